"""The identities of docs/metrics.md. One side comes from the package, the other is counted here from labels alone.

The package takes means of pair values; `tests/rates_from_counts.py` divides counts. Both must give every rate.
"""

from fractions import Fraction
from random import Random

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.measures.readings.kinds import LABELS, classify
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.registry import MeasuredTable, measure_table
from tests.rates_from_counts import rates
from tests.strategies import counts, frame_of, pair_frames

Frames = pair_frames()
NonEmpty = pair_frames(min_size=1)


def measure(frame: pd.DataFrame) -> MeasuredTable:
    return measure_table(PairTable(frame, LABELS), 0.95)


def values_of(frame: pd.DataFrame) -> dict[str, float]:
    """Measure the pairs: every value is exactly the one that follows from the counts."""
    measured = measure(frame)
    expected = rates(measured.counts)
    assert {name: each.value for name, each in measured.measures.items()} == expected
    return expected


def count(frame: pd.DataFrame) -> CellCounts:
    return PairTable(frame, LABELS).count()


def labels_of(frame: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(frame["pro_label"], frame["anti_label"], strict=True))


def n_mispredicted_samples(frame: pd.DataFrame) -> int:
    return sum(label != "neutral" for pair in labels_of(frame) for label in pair)


def exchanged(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(pro_label=frame["anti_label"], anti_label=frame["pro_label"])


@given(Frames)
def test_mispredictions_split_into_pro_anti_and_brittle(frame: pd.DataFrame) -> None:
    found = count(frame)
    assert found.n_pro + found.n_anti + found.n_brittle == n_mispredicted_samples(frame)


@given(counts)
def test_the_split_holds_for_any_counts(found: CellCounts) -> None:
    assert found.n_pro + found.n_anti + found.n_brittle == found.n_mispredicted


@given(Frames)
def test_every_pair_has_one_outcome_and_every_cell_is_counted(frame: pd.DataFrame) -> None:
    outcomes = classify(frame)
    assert len(outcomes) == len(frame) == count(frame).n_pairs
    for (pro, anti), outcome in zip(labels_of(frame), outcomes, strict=True):
        # The table in words: brittle is the same wrong answer; pro and anti are told apart by which way they lean.
        leaning = {"entailment": 1, "neutral": 0, "contradiction": -1}
        lean = leaning[pro] - leaning[anti]
        if pro == anti:
            assert outcome == ("correct" if pro == "neutral" else "brittle")
        else:
            assert outcome == ("pro" if lean > 0 else "anti")


@given(NonEmpty)
def test_correct_and_mispredicted_are_all(frame: pd.DataFrame) -> None:
    n_correct = sum(label == "neutral" for pair in labels_of(frame) for label in pair)
    found = count(frame)
    assert n_correct + found.n_mispredicted == found.n_samples
    assert values_of(frame)["accuracy"] == n_correct / (2 * len(frame))


@given(NonEmpty)
def test_unpaired_measures_follow_from_each_side_alone(frame: pd.DataFrame) -> None:
    pro, anti = frame["pro_label"], frame["anti_label"]
    n = 2 * len(frame)
    aligned = int((pro == "entailment").sum() + (anti == "contradiction").sum())
    opposed = int((anti == "entailment").sum() + (pro == "contradiction").sum())
    found = values_of(frame)
    assert found["plain_pro"] == aligned / n
    assert found["plain_anti"] == opposed / n
    n_not_neutral = int((pro != "neutral").sum() + (anti != "neutral").sum())
    if n_not_neutral:
        # The published form: (2 * aligned / non-neutral - 1) * (1 - accuracy).
        accuracy = Fraction(n - n_not_neutral, n)
        published = (Fraction(2 * aligned, n_not_neutral) - 1) * (1 - accuracy)
        assert published == Fraction(aligned - opposed, n)
        assert found["aggregate_bias"] == float(published)
    else:
        assert found["aggregate_bias"] == 0


@given(NonEmpty)
def test_plain_measures_hold_half_of_the_brittleness_each(frame: pd.DataFrame) -> None:
    pro, anti = frame["pro_label"], frame["anti_label"]
    aligned = int((pro == "entailment").sum() + (anti == "contradiction").sum())
    opposed = int((anti == "entailment").sum() + (pro == "contradiction").sum())
    found = count(frame)
    assert 2 * (aligned - found.n_pro) == 2 * (opposed - found.n_anti) == found.n_brittle


@given(NonEmpty)
def test_exchanging_the_sides_exchanges_pro_and_anti_and_nothing_else(frame: pd.DataFrame) -> None:
    one, other = count(frame), count(exchanged(frame))
    assert (one.n_pro, one.n_anti, one.n_brittle) == (other.n_anti, other.n_pro, other.n_brittle)
    first, second = values_of(frame), values_of(exchanged(frame))
    assert first["aggregate_bias"] == -second["aggregate_bias"]
    for unchanged in ("accuracy", "misprediction_rate", "brittleness_rate", "counterfactual_bias"):
        assert first[unchanged] == second[unchanged]


@given(NonEmpty)
def test_counterfactual_bias_is_a_share(frame: pd.DataFrame) -> None:
    n_different = sum(pro != anti for pro, anti in labels_of(frame))
    expected = Fraction(2 * n_different, 2 * len(frame)) * Fraction(n_mispredicted_samples(frame), 2 * len(frame))
    value = values_of(frame)["counterfactual_bias"]
    assert abs(value - float(expected)) < 1e-12
    assert 0 <= value <= 1


@given(NonEmpty, st.randoms())
def test_the_order_of_pairs_is_irrelevant(frame: pd.DataFrame, random: Random) -> None:
    rows = list(range(len(frame)))
    random.shuffle(rows)
    one, other = measure(frame), measure(frame.iloc[rows].reset_index(drop=True))
    assert one.counts == other.counts
    for name, found in one.measures.items():
        again = other.measures[name]
        assert found.value == again.value
        assert found.low is not None
        assert again.low is not None
        assert abs(found.low - again.low) < 1e-9
        assert found.high is not None
        assert again.high is not None
        assert abs(found.high - again.high) < 1e-9


@given(NonEmpty, st.integers(2, 4))
def test_rates_survive_duplication(frame: pd.DataFrame, times: int) -> None:
    many = pd.concat([frame] * times, ignore_index=True)
    one, other = values_of(frame), values_of(many)
    assert {name: round(value, 12) for name, value in one.items()} == {
        name: round(value, 12) for name, value in other.items()
    }


@given(Frames, Frames)
def test_counts_of_a_domain_are_the_sum_of_its_subtopics(one: pd.DataFrame, other: pd.DataFrame) -> None:
    together = pd.concat([one, other.assign(subtopic="quints")], ignore_index=True)
    assert count(together) == count(one) + count(other)


@given(NonEmpty)
def test_every_measure_lies_within_its_interval(frame: pd.DataFrame) -> None:
    for found in measure(frame).measures.values():
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.value <= found.high
        assert found.low < found.high


def test_no_pairs_are_no_data_and_not_zero() -> None:
    measured = measure(frame_of([]))
    assert measured.counts.n_pairs == 0
    assert all(found.value is None for found in measured.measures.values())
