"""Two results compared by hand: which pairs are shared, what grew, and what the verdict is."""

import pytest

from bbnli_audit.audit.gate.baseline import Rule, check_other_model, compare_pairs
from bbnli_audit.audit.gate.verdict import judge_increase
from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.outcomes import CAUSES, Cell
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.rows import NO_DATA, Measured, ModelInfo, Verdict
from bbnli_audit.measures.registry import find_measure

RULE = Rule.of(0.05, "thresholds.yaml:7")


def pairs(cells: list[Cell], start: int = 0) -> dict[str, dict[str, Cell]]:
    """One pair per cluster."""
    return {f"c{n}": {f"id{n}": cell} for n, cell in enumerate(cells, start)}


def compare(before: list[Cell], after: list[Cell], measure: str = "pro_rate") -> Regression:
    (found,) = compare_pairs([("s/d/t", measure)], {"s/d/t": pairs(after)}, {"s/d/t": pairs(before)}, RULE)
    return found


def test_values_and_changes_follow_from_the_outcome_table() -> None:
    found = compare(["NN", "EC", "EN", "CC", "NC"], ["EN", "EN", "EN", "NC", "NN"])
    assert found.baseline == pytest.approx((0 + 2 + 1 + 0 + 1) / 10)
    assert found.candidate == pytest.approx((1 + 1 + 1 + 1 + 0) / 10)
    assert found.increase.value == 0.0
    assert found.increase.n == 10
    assert [(c.pair_id, c.cluster, c.before, c.after) for c in found.flipped] == [
        ("id0", "c0", "NN", "EN"),
        ("id3", "c3", "CC", "NC"),
    ]
    assert [(c.pair_id, c.before, c.after) for c in found.fixed] == [("id1", "EC", "EN"), ("id4", "NC", "NN")]


@pytest.mark.parametrize("measure", ["pro_rate", "anti_rate", "brittleness_rate"])
def test_exchanging_the_results_exchanges_flipped_and_fixed(measure: str) -> None:
    one: list[Cell] = ["NN", "EC", "CE", "CC", "EE", "NC"] * 9
    other: list[Cell] = ["EE", "NN", "EC", "NN", "CN", "NE"] * 9
    there, back = compare(one, other, measure), compare(other, one, measure)
    assert {c.pair_id for c in there.flipped} == {c.pair_id for c in back.fixed}
    assert {c.pair_id for c in there.fixed} == {c.pair_id for c in back.flipped}
    assert there.increase.value == -(back.increase.value or 0)
    # Counted once more, by hand.
    weights = CAUSES[measure]
    grown = sum(weights.get(b, 0) > weights.get(a, 0) for a, b in zip(one, other, strict=True))
    assert len(there.flipped) == grown


def test_only_pairs_of_the_same_id_and_subtopic_are_compared() -> None:
    candidate = {"s/d/t": pairs(["EC"] * 6)}
    baseline = {"s/d/t": pairs(["NN"] * 6, start=4), "s/d/u": pairs(["EC"] * 6)}
    (found,) = compare_pairs([("s/d/t", "pro_rate")], candidate, baseline, RULE)
    assert found.n_shared == 2
    assert {change.pair_id for change in found.flipped} == {"id4", "id5"}


def test_a_subtopic_without_shared_pairs_has_no_data_and_still_counts_as_a_test() -> None:
    tests = [("s/d/t", "pro_rate"), ("s/d/new", "pro_rate")]
    candidate = {"s/d/t": pairs(["EC"] * 40), "s/d/new": pairs(["EC"] * 40)}
    found, empty = compare_pairs(tests, candidate, {"s/d/t": pairs(["NN"] * 40)}, RULE)
    assert empty.verdict is Verdict.NO_DATA
    assert empty.increase == NO_DATA
    assert found.verdict is Verdict.FAIL
    assert found.p_adjusted == pytest.approx(2 * found.p_value)


def test_nothing_shared_at_all_is_refused() -> None:
    with pytest.raises(ResultError, match="no pair in common"):
        compare_pairs([("s/d/t", "pro_rate")], {"s/d/t": pairs(["NN"])}, {"s/d/u": pairs(["NN"])}, RULE)


@pytest.mark.parametrize(
    ("value", "high", "p_adjusted", "decide", "is_competent", "verdict"),
    [
        (0.04, 0.05, 0.9, "bounds", True, Verdict.PASS),  # at the margin passes
        (0.04, 0.0501, 0.9, "bounds", True, Verdict.INCONCLUSIVE),
        (0.09, 0.2, 0.05, "bounds", True, Verdict.FAIL),  # at the level fails
        (0.09, 0.2, 0.0501, "bounds", True, Verdict.INCONCLUSIVE),
        (0.04, 0.05, 0.9, "bounds", False, Verdict.INCONCLUSIVE),  # a pass would mean nothing
        (0.09, 0.2, 0.01, "bounds", False, Verdict.FAIL),
        (0.05, 0.2, 0.9, "point", True, Verdict.PASS),
        (0.0501, 0.2, 0.9, "point", True, Verdict.FAIL),
    ],
)
def test_verdicts(
    value: float, high: float, p_adjusted: float, decide: str, is_competent: bool, verdict: Verdict
) -> None:
    measure = Measured(value, -0.1, high, 100)
    found = judge_increase(measure, 0.05, p_adjusted, decide=decide, confidence=0.95, is_competent=is_competent)
    assert found is verdict


def test_likelihoods_are_not_compared_with_answers() -> None:
    answering, masked = (
        ModelInfo(name, name, kind, "torch", "float32", ())
        for name, kind in (("old", "sequence-classification"), ("new", "masked-lm"))
    )
    for candidate, baseline in ((masked, answering), (answering, masked)):
        with pytest.raises(ResultError, match=f"of the kind {baseline.kind}, and {candidate.name} is of the kind"):
            check_other_model(candidate, baseline, "old.json")


@pytest.mark.parametrize(
    ("measure", "value", "is_beyond"),
    [("pro_rate", 0.2, True), ("pro_rate", 0.05, False), ("same_label", 0.2, False), ("same_label", 0.05, True)],
)
def test_a_limit_is_crossed_on_its_worse_side(measure: str, value: float, is_beyond: bool) -> None:
    assert (find_measure(measure).excess(value, 0.1) > 0) is is_beyond
