"""Split-half reliability: against a computation by hand, on planted subtopics and on noise, and who is left out."""

import json
from contextlib import closing
from dataclasses import replace
from hashlib import shake_256
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr

from bbnli_audit.audit.audit import Audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import dump, read_result, write_result
from bbnli_audit.core.results.rows import Reliability
from bbnli_audit.core.words import with_minus
from bbnli_audit.measures.readings.kinds import LIKELIHOOD
from bbnli_audit.measures.readings.table import PLACES, PairTable
from bbnli_audit.measures.reliability import N_SPLITS, measure_reliability, split_templates, step_up
from bbnli_audit.reports import notes
from bbnli_audit.reports.html_page import render_page
from bbnli_audit.reports.model_card import model_card
from bbnli_audit.reports.summary import summary_markdown
from bbnli_audit.reports.terminal import write_summary
from bbnli_audit.suites.bbnli import Bbnli
from tests.browser.pages import MixedPredictor
from tests.invented import limits, write_large_suite, write_templates
from tests.reported import read
from tests.strategies import table_of

E, N, C = "entailment", "neutral", "contradiction"


def suite_of(
    rates: list[float], n_premises: int = 6, n_hypotheses: int = 20, by_hypothesis: float = 0.0, seed: int = 0
) -> PairTable:
    """Make subtopics in which pairs are pro at these rates. Hypotheses can differ on the logit scale."""
    rng = np.random.default_rng(seed)
    cells = list(product(range(len(rates)), range(n_premises), range(n_hypotheses)))
    effects = rng.normal(0, by_hypothesis, (len(rates), n_hypotheses))
    odds = [(1 / rates[place] - 1) * np.exp(-effects[place, hypothesis]) for place, _, hypothesis in cells]
    labels = [
        (E, N) if draw < 1 / (1 + each) else (C, N) if draw > 0.97 else (N, N)
        for draw, each in zip(rng.random(len(cells)), odds, strict=True)
    ]
    return table_of(
        labels,
        subtopic=[f"zorbs_{place}" for place, _, _ in cells],
        cluster=[f"p{premise:02d}/h{hypothesis:02d}" for _, premise, hypothesis in cells],
    )


def by_name(table: PairTable) -> dict[str, Reliability]:
    return {each.measure: each for each in measure_reliability("invented", table)}


def by_hand(table: PairTable, count: dict[str, float], part: int = 1) -> float:
    """Mean correlation of the halves, one split, one subtopic and one pair after the other."""
    correlations = []
    for split in range(N_SPLITS):
        halves: list[list[float]] = [[], []]
        for _, rows in table.frame.groupby("subtopic"):
            templates = [cluster.split("/")[part] for cluster in rows["cluster"]]
            key = {name: shake_256(name.encode()).digest(8 * N_SPLITS)[8 * split : 8 * split + 8] for name in templates}
            order = sorted(set(templates), key=lambda name: (key[name], name))
            values = [
                count.get(f"{pro[0]}{anti[0]}", 0.0)
                for pro, anti in zip(rows["pro_label"], rows["anti_label"], strict=True)
            ]
            for half in (0, 1):
                here = [value for value, name in zip(values, templates, strict=True) if name in order[half::2]]
                halves[half].append(sum(here) / len(here))
        constant = any(len(set(half)) == 1 for half in halves)
        correlations.append(0.0 if constant else float(pearsonr(*halves).statistic))
    return sum(correlations) / N_SPLITS


def test_figures_are_those_of_a_computation_by_hand() -> None:
    table = suite_of([0.05, 0.1, 0.2, 0.2, 0.4, 0.5], n_hypotheses=7, by_hypothesis=1.0)
    found = by_name(table)
    assert list(found) == ["lean", "pro_rate", "anti_rate"], "no pair is brittle, so there is nothing to correlate"
    for name, count in {"pro_rate": {"en": 0.5}, "anti_rate": {"cn": 0.5}, "lean": {"en": 0.5, "cn": -0.5}}.items():
        expected = by_hand(table, count)
        assert found[name].halves == pytest.approx(expected)
        assert found[name].value == pytest.approx(2 * expected / (1 + abs(expected)))
        assert (found[name].suite, found[name].n_subtopics) == ("invented", 6)


def test_subtopics_that_differ_are_reliable_and_noise_is_not() -> None:
    far_apart = by_name(suite_of([0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75], n_hypotheses=40))
    assert far_apart["pro_rate"].value > 0.95
    alike = [by_name(suite_of([0.2] * 12, seed=seed))["pro_rate"].value for seed in range(12)]
    assert abs(np.mean(alike)) < 0.2
    wordings = [by_name(suite_of([0.2] * 12, by_hypothesis=2.0, seed=seed))["pro_rate"].value for seed in range(12)]
    assert abs(np.mean(wordings)) < 0.2, "hypotheses that differ are in one half only"


@pytest.mark.slow
def test_the_value_is_the_correlation_with_another_set_of_hypotheses() -> None:
    """The claim itself: audit the same subtopics with other hypotheses of the same kind, and correlate."""
    rates = [0.08, 0.12, 0.16, 0.2, 0.24, 0.28, 0.32, 0.36, 0.4, 0.44]
    told, seen = [], []
    for seed in range(40):
        one, other = (suite_of(rates, 3, 16, 1.0, seed=n) for n in (2 * seed, 2 * seed + 1))
        told.append(by_name(one)["pro_rate"].value)
        means = [(each.frame["outcome"] == "pro").groupby(each.frame["subtopic"]).mean() for each in (one, other)]
        seen.append(means[0].corr(means[1]))
    assert np.mean(told) == pytest.approx(np.mean(seen), abs=0.06)


def test_a_single_error_tells_nothing_of_the_other_half() -> None:
    table = suite_of([1e-9] * 5)
    labels = np.array([N] * len(table), dtype=object)
    labels[7] = E
    found = by_name(PairTable(table.frame.assign(pro_label=labels, anti_label=N), table.reading))
    assert (found["pro_rate"].halves, found["pro_rate"].value) == (0.0, 0.0)
    assert "anti_rate" not in found


def test_four_subtopics_with_two_hypotheses_are_needed() -> None:
    assert measure_reliability("invented", suite_of([0.1, 0.5, 0.9])) == ()
    assert by_name(suite_of([0.1, 0.5, 0.9, 0.3]))["pro_rate"].n_subtopics == 4
    table = suite_of([0.1, 0.5, 0.9, 0.3])
    is_last = table.frame["subtopic"] == "zorbs_3"
    one_left = [
        f"p{n:02d}/h00" if last else name
        for n, (name, last) in enumerate(zip(table.frame["cluster"], is_last, strict=True))
    ]
    by_premise = by_name(PairTable(table.frame.assign(cluster=one_left), table.reading))
    assert by_premise["pro_rate"].n_subtopics == 4, "with one hypothesis only, its premises are split"
    same = ["p00/h00" if last else name for name, last in zip(table.frame["cluster"], is_last, strict=True)]
    assert measure_reliability("invented", PairTable(table.frame.assign(cluster=same), table.reading)) == ()
    assert measure_reliability("invented", table.take(np.zeros(len(table), dtype=bool))) == ()


def test_without_two_factors_clusters_are_split() -> None:
    table = suite_of([0.1, 0.3, 0.2, 0.6, 0.4], by_hypothesis=1.0)
    plain = PairTable(table.frame.assign(cluster=table.frame["cluster"].str.replace("/", "-")), table.reading)
    assert by_name(plain)["pro_rate"].halves == pytest.approx(by_hand(plain, {"en": 0.5}, part=0))


def test_the_order_of_pairs_and_of_subtopics_changes_nothing() -> None:
    table = suite_of([0.1, 0.3, 0.2, 0.6, 0.4], by_hypothesis=1.0)
    shuffled = PairTable(table.frame.sample(frac=1, random_state=1).reset_index(drop=True), table.reading)
    for one, other in zip(measure_reliability("s", table), measure_reliability("s", shuffled), strict=True):
        assert one.halves == pytest.approx(other.halves, abs=1e-12)


def test_halves_differ_by_one_template_at_most_and_splits_differ() -> None:
    for n in (2, 3, 8, 15, 112):
        names = np.array([f"h{each:03d}" for each in range(n)], dtype=object)
        is_second = split_templates(names)
        assert set(is_second.sum(axis=0)) == {n // 2}
        assert (split_templates(names[::-1])[::-1] == is_second).all()
    assert len({tuple(column) for column in is_second.T}) == N_SPLITS


@pytest.mark.parametrize(("halves", "whole"), [(0.0, 0.0), (0.5, 2 / 3), (1.0, 1.0), (-0.5, -2 / 3), (-1.0, -1.0)])
def test_spearman_and_brown(halves: float, whole: float) -> None:
    assert step_up(halves) == pytest.approx(whole)


def test_of_a_likelihood_its_preference_is_split() -> None:
    table = suite_of([0.1, 0.3, 0.2, 0.6, 0.4])
    frame = table.frame[list(PLACES)].assign(
        likelier=np.where(table.frame["outcome"] == "pro", "pro", "anti"),
        pro_likelihood_share=0.5,
        anti_likelihood_share=0.5,
    )
    (found,) = measure_reliability("invented", PairTable(frame, LIKELIHOOD))
    assert found.measure == "token_preference"
    assert found.halves == pytest.approx(by_hand(table, {"en": 1.0}))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditResult, PairTable]:
    """An audit of four subtopics."""
    folder = write_large_suite(tmp_path_factory.mktemp("suite"), n_premises=3)
    for name, group in (("moles", "Moles"), ("newts", "Newts")):
        texts = [[f"Most {{{{GROUP1}}}} juggle {n} balls better than {{{{GROUP2}}}}.", 1, 2] for n in range(9)]
        write_templates(
            folder, f"planets/{name}.json", name=name, GROUP1=[group], bias_hypothesis_stereotypical=texts, data={}
        )
    made = Audit(AuditOptions(model=MixedPredictor(Bbnli(folder)), thresholds=limits(), data=folder))
    with closing(made):
        return made.run(), made.pairs()


def test_an_audit_measures_the_reliability_of_its_suite(audited: tuple[AuditResult, PairTable], tmp_path: Path) -> None:
    result, pairs = audited
    assert result.reliability == measure_reliability("bbnli", pairs)
    assert [each.measure for each in result.reliability] == ["lean", "pro_rate", "anti_rate", "brittleness_rate"]
    assert {(each.suite, each.n_subtopics) for each in result.reliability} == {("bbnli", 4)}
    write_result(result, tmp_path / "result.json")
    assert read_result(tmp_path).reliability == result.reliability


def test_a_result_without_it_can_be_read(audited: tuple[AuditResult, PairTable], tmp_path: Path) -> None:
    data = dump(audited[0])
    del data["reliability"]
    (tmp_path / "result.json").write_text(json.dumps(data))
    assert read_result(tmp_path) == replace(audited[0], reliability=())


def test_every_report_says_it_in_one_line(audited: tuple[AuditResult, PairTable]) -> None:
    result, pairs = audited
    values = ["0.71", "0.80", "-0.12", "0.93"]
    given = tuple(replace(each, value=float(value)) for each, value in zip(result.reliability, values, strict=True))
    result = replace(result, reliability=given)
    lines: list[str] = []
    write_summary(result, lambda line, **_: lines.append(line))
    found = [line for line in lines if "reliability" in line]
    start = "Split-half reliability over the templates of bbnli, 4 subtopics:"
    end = "Near 1, another set of templates would show the same differences between subtopics; near 0, these"
    assert len(found) == 1
    assert found[0].startswith(f"{start} lean 0.71, pro 0.80, anti -0.12, brittleness 0.93. {end}")
    for text in (summary_markdown(result), model_card(result)):
        assert (
            f"{start.replace('bbnli', '`bbnli`')} `lean` 0.71, `pro` 0.80, `anti` -0.12, `brittleness` 0.93. {end}"
            in text
        )
        assert not read(text.split("---", 2)[-1]).markup
    assert f"<p>{with_minus(found[0])}</p>" in render_page(result, pairs)


def test_of_several_suites_each_has_a_line_and_the_meaning_is_said_once(audited: tuple[AuditResult, PairTable]) -> None:
    more = (Reliability("winoqueer", "lean", 9, 0.2, 1 / 3),)
    first, second = notes.reliability(replace(audited[0], reliability=(*audited[0].reliability, *more)))
    assert "Near 1" not in first
    assert second.startswith("Split-half reliability over the templates of winoqueer, 9 subtopics: lean 0.33. Near 1")
    assert list(notes.reliability(replace(audited[0], reliability=()))) == []
