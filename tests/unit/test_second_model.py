"""Two models on the same pairs: each figure against another computation of it, and what exchanging the models does."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from bbnli_audit.core.results.comparison import LEANS, AgreementRow
from bbnli_audit.core.values import Pair, Subtopic, TextPair
from bbnli_audit.measures.agreement import join_strengths, measure_agreement, r_over
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.readings.table import TEXTS, PairTable, make_table
from bbnli_audit.measures.registry import measure_table
from bbnli_audit.measures.statistics.association import rank_correlation
from bbnli_audit.measures.statistics.intervals import estimate_means

ZORBS = Subtopic("invented", "planets", "zorbs")
BY_ENTAILMENT, BY_BOTH = ("entailment_preference",) * 2, ("token_preference", "entailment_preference")
# Few values, so that there are ties.
strengths = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0])
both_strengths = st.lists(st.tuples(strengths, strengths, st.integers(0, 4)), min_size=1, max_size=40)


def joined_of(rows: list[tuple[float, float, int]]) -> pd.DataFrame:
    places = {"suite": "invented", "domain": "planets", "subtopic": "zorbs"}
    return pd.DataFrame([{**places, "pair_id": f"{n:03}", "cluster": f"c{c}", "first": one, "second": other}
                         for n, (one, other, c) in enumerate(rows)])  # fmt: skip


def agreement_of(rows: list[tuple[float, float, int]]) -> AgreementRow:
    return measure_agreement("invented/planets/zorbs", joined_of(rows), 0.95, BY_ENTAILMENT)


def transposed(row: AgreementRow) -> AgreementRow:
    leans = {lean: row.leans[other] for lean in LEANS for other in LEANS if other == lean[::-1]}
    return replace(row, first=row.second, second=row.first, leans=leans)


@settings(max_examples=40)
@given(both_strengths)
@example([(1.0, 1.0, 0), (-0.5, -2.0, 0)])
@example([(1.0, 1.0, 0)])
def test_figures_are_those_of_other_computations(rows: list[tuple[float, float, int]]) -> None:
    found = agreement_of(rows)
    signs = np.sign([[one, other] for one, other, _ in rows])
    n_same = sum(one == other for one, other in signs)
    assert found.agreement.value == pytest.approx(n_same / len(rows))
    assert sum(found.leans.values()) == found.n_pairs == found.agreement.n == len(rows)
    assert found.leans["PP"] + found.leans["TT"] + found.leans["AA"] == n_same
    for measure, column in ((found.first, 0), (found.second, 1)):
        shares = [(sign > 0) + (sign == 0) / 2 for sign in signs[:, column]]
        assert measure.value == pytest.approx(np.mean(shares))
    # By chance: draw the lean of each model from its own pairs, independently.
    assert found.by_chance == pytest.approx(np.mean([[one == other for other in signs[:, 1]] for one in signs[:, 0]]))
    if found.kappa is None:
        assert len(set(signs.ravel())) == 1
    else:
        assert found.kappa == pytest.approx(cohen_kappa_score(signs[:, 0], signs[:, 1]), abs=1e-12)


@settings(max_examples=40)
@given(both_strengths.filter(lambda rows: len(rows) > 2))
def test_ranks_are_correlated_as_scipy_does(rows: list[tuple[float, float, int]]) -> None:
    first, second = (pd.Series([row[side] for row in rows]) for side in (0, 1))
    found = rank_correlation(first, second)
    if min(first.nunique(), second.nunique()) == 1:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)


@settings(max_examples=40)
@given(both_strengths)
def test_exchanging_the_models_transposes_the_table(rows: list[tuple[float, float, int]]) -> None:
    exchanged = agreement_of([(other, one, cluster) for one, other, cluster in rows])
    expected = transposed(agreement_of(rows))
    assert exchanged.rank_correlation == pytest.approx(expected.rank_correlation, abs=1e-12)
    for name in ("kappa_interval", "rank_interval"):
        one, other = getattr(exchanged, name), getattr(expected, name)
        assert one == (None if other is None else pytest.approx(other, abs=1e-9))
    one, other = (
        replace(each, rank_correlation=None, kappa_interval=None, rank_interval=None) for each in (exchanged, expected)
    )
    assert one == other


@settings(max_examples=40)
@given(both_strengths)
def test_kappa_and_the_rank_correlation_lie_in_their_intervals(rows: list[tuple[float, float, int]]) -> None:
    found = agreement_of(rows)
    for value, interval in ((found.kappa, found.kappa_interval), (found.rank_correlation, found.rank_interval)):
        assert (value is None) == (interval is None)
        if value is not None and interval is not None:
            assert -1 <= interval[0] <= value + 1e-12
            assert value - 1e-12 <= interval[1] <= 1


@settings(max_examples=40)
@given(both_strengths, st.floats(0.1, 10))
def test_a_model_agrees_with_one_that_always_leans_as_it_does(
    rows: list[tuple[float, float, int]], factor: float
) -> None:
    found = agreement_of([(one, factor * one, cluster) for one, _, cluster in rows])
    assert found.agreement.value == 1
    assert found.agreement.high == 1
    assert found.kappa in (None, 1.0)
    assert found.rank_correlation is None or found.rank_correlation == pytest.approx(1)


@settings(max_examples=40)
@given(both_strengths)
def test_the_interval_is_that_of_clustered_shares(rows: list[tuple[float, float, int]]) -> None:
    same = [float(np.sign(one) == np.sign(other)) for one, other, _ in rows]
    (expected,) = estimate_means(same, [cluster for _, _, cluster in rows], 0.95)
    found = agreement_of(rows).agreement
    assert (found.low, found.high) == (expected.low, expected.high)


def test_no_pairs_are_no_data() -> None:
    found = measure_agreement("all", joined_of([(1.0, 1.0, 0)]).iloc[:0], 0.95, BY_ENTAILMENT)
    assert (found.agreement.value, found.by_chance, found.kappa, found.rank_correlation) == (None,) * 4
    assert set(found.leans.values()) == {0}


def row_of(first: float, second: float) -> AgreementRow:
    row = agreement_of([(1.0, 1.0, 0)])
    return replace(row, first=replace(row.first, value=first), second=replace(row.second, value=second))


def test_r_over_subtopics_has_its_sign_and_needs_three_of_them() -> None:
    rows = [row_of(0.2, 0.9), row_of(0.4, 0.5), row_of(0.9, 0.3)]
    line = np.polyfit([0.2, 0.4, 0.9], [0.9, 0.5, 0.3], 1)
    left = np.array([0.9, 0.5, 0.3]) - np.polyval(line, [0.2, 0.4, 0.9])
    found = r_over(rows)
    assert found is not None
    assert found < 0, "where one model leans pro more, the other leans less"
    assert found**2 == pytest.approx(1 - left @ left / (3 * np.var([0.9, 0.5, 0.3])))
    assert r_over(rows[:2]) is None
    assert r_over([row_of(0.5, value) for value in (0.1, 0.2, 0.3)]) is None
    assert r_over([row_of(0.5, 0.5), row_of(0.4, 0.4), row_of(0.1, 0.1)]) == pytest.approx(1)


def table_of(kind: str, pro: list[float], anti: list[float], is_read: list[bool] | None = None) -> PairTable:
    """Make a pair table with these values of p(entailment), as a kind of model is read."""
    pairs = [Pair("c0", TextPair("p", f"Zorbs {n}"), TextPair("p", f"Quints {n}")) for n in range(len(pro))]
    read = is_read or [True] * len(pro)
    rows = [
        np.array([[p, 1 - p, 0.0] if each else [0.0, 0.0, 1.0] for p, each in zip(side, read, strict=True)])
        for side in (pro, anti)
    ]
    return make_table(ZORBS, pairs, reading_of(kind), (rows[0], rows[1]))


def test_pairs_that_both_models_have_are_joined() -> None:
    first = table_of("hf", [0.9, 0.2, 0.5], [0.1, 0.3, 0.5])
    second = table_of("generative", [0.5, 0.8, 0.1], [0.6, 0.1, 0.2], is_read=[False, True, True])
    found = join_strengths(first, second)
    assert found["first"].tolist() == pytest.approx([-0.1, 0.0])
    assert found["second"].tolist() == pytest.approx([0.7, -0.1])
    assert not set(TEXTS) & set(found)


def test_likelihoods_that_round_to_one_are_told_apart() -> None:
    shares = [1 - 1e-17, 1 - 1e-30, 1 - 1e-300]
    assert shares == [1.0, 1.0, 1.0]
    table = table_of("masked-lm", shares, [1e-17, 1e-30, 1e-300])
    found = join_strengths(table, table_of("hf", [0.1, 0.2, 0.3], [0.0, 0.0, 0.0]))
    assert found["first"].is_monotonic_increasing
    assert measure_agreement("all", found, 0.95, BY_BOTH).rank_correlation == pytest.approx(1)


def test_a_likelihood_that_vanishes_still_leans() -> None:
    found = join_strengths(table_of("causal-lm", [1.0], [0.0]), table_of("hf", [0.4], [0.3]))
    assert np.isfinite(found["first"]).all()
    assert measure_agreement("all", found, 0.95, BY_BOTH).leans["PP"] == 1


@settings(max_examples=40)
@given(both_strengths)
def test_of_a_likelihood_the_mean_lean_is_its_token_preference(rows: list[tuple[float, float, int]]) -> None:
    shares = [1 / (1 + np.exp(-one)) for one, _, _ in rows]
    table = table_of("masked-lm", shares, [1 - share for share in shares])
    found = measure_agreement("all", join_strengths(table, table), 0.95, BY_BOTH)
    preference = measure_table(table, 0.95).measures["token_preference"]
    sees_no_difference = 2 * sum(share == 0.5 for share in shares) > len(shares)
    assert found.first == preference
    assert (preference.value is None) == sees_no_difference
    assert found.second.value is not None, "answers are often the same on both sides"


def test_each_reading_names_its_preference() -> None:
    named = {kind: reading_of(kind).preference for kind in ("masked-lm", "causal-lm", "generative", "hf")}
    assert named == {
        **dict.fromkeys(("masked-lm", "causal-lm"), "token_preference"),
        **dict.fromkeys(("generative", "hf"), "entailment_preference"),
    }
