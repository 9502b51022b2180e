"""Two results compared by hand: which pairs are shared, what grew, and what the verdict is."""

from datetime import date

import pytest

from bbnli_audit.audit.gate.baseline import check_kinds
from bbnli_audit.audit.gate.compared import Shown
from bbnli_audit.audit.gate.growth import MEASURES, Rule, compare_pairs, find_rule
from bbnli_audit.audit.gate.growth import list_tests as level_tests
from bbnli_audit.audit.gate.verdict import judge_increase
from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.outcomes import CAUSES, Cell
from bbnli_audit.core.results.comparison import NO_GROWTH, Regression
from bbnli_audit.core.results.file import dump, load
from bbnli_audit.core.results.rows import Measured, ModelInfo, Verdict
from bbnli_audit.measures.registry import find_measure
from tests.invented import LIMITS, limits

RULE = Rule.of(0.05, "thresholds.yaml:7")


def pairs(cells: list[Cell], start: int = 0) -> dict[str, dict[str, Cell]]:
    """One pair per cluster."""
    return {f"c{n}": {f"id{n}": cell} for n, cell in enumerate(cells, start)}


def compare(before: list[Cell], after: list[Cell], measure: str = "pro_rate") -> Regression:
    (found,) = compare_pairs(
        [("s/d/t", measure)], Shown({"s/d/t": pairs(after)}), Shown({"s/d/t": pairs(before)}), RULE
    )
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
    (found,) = compare_pairs([("s/d/t", "pro_rate")], Shown(candidate), Shown(baseline), RULE)
    assert found.n_shared == 2
    assert {change.pair_id for change in found.flipped} == {"id4", "id5"}


def test_a_subtopic_without_shared_pairs_has_no_data_and_still_counts_as_a_test() -> None:
    tests = [("s/d/t", "pro_rate"), ("s/d/new", "pro_rate")]
    candidate = {"s/d/t": pairs(["EC"] * 40), "s/d/new": pairs(["EC"] * 40)}
    found, empty = compare_pairs(tests, Shown(candidate), Shown({"s/d/t": pairs(["NN"] * 40)}), RULE)
    assert empty.verdict is Verdict.NO_DATA
    assert empty.increase == NO_GROWTH
    assert found.verdict is Verdict.FAIL
    assert found.p_adjusted == pytest.approx(2 * found.p_value)


def test_nothing_shared_at_all_is_refused() -> None:
    with pytest.raises(ResultError, match="no pair in common"):
        compare_pairs([("s/d/t", "pro_rate")], Shown({"s/d/t": pairs(["NN"])}), Shown({"s/d/u": pairs(["NN"])}), RULE)


def test_the_tests_go_from_suites_to_subtopics_with_lean_first() -> None:
    assert MEASURES == ("lean", "pro_rate", "anti_rate", "brittleness_rate")
    places = ["s", "r", "s/d", "s/e", "r/d", "s/d/t", "s/d/u", "s/e/t", "r/d/t"]
    assert level_tests(["s/d/t", "s/d/u", "s/e/t", "r/d/t"]) == [(path, name) for path in places for name in MEASURES]


@pytest.mark.parametrize(
    ("written", "margins"),
    [
        ("max_increase: 0.03", [(0.03, 7), (0.03, 7), (0.03, 7)]),
        ("max_increase: 0.03\n  domain: 0.02", [(0.03, 7), (0.02, 8), (0.02, 8)]),
        ("max_increase: 0.03\n  suite: 0.01", [(0.03, 7), (0.03, 7), (0.01, 8)]),
        ("max_increase: 0.03\n  domain: 0.02\n  suite: 0.01", [(0.03, 7), (0.02, 8), (0.01, 9)]),
    ],
)
def test_a_level_without_a_margin_has_that_of_the_level_below(written: str, margins: list[tuple[float, int]]) -> None:
    rule = find_rule(limits(f"{LIMITS}regression:\n  {written}\n"), date(2026, 1, 1))
    lines = [(margin, int(source.rpartition(":")[2]) - 1) for margin, source in rule.margins.values()]
    assert list(rule.margins) == ["subtopic", "domain", "suite"]
    assert lines == margins


def spread(n_grown: int, n_pairs: int = 50) -> tuple[dict[str, dict[str, Cell]], dict[str, dict[str, Cell]]]:
    """Pairs before and after: the first ones newly follow the stereotype."""
    before: list[Cell] = ["NN"] * n_pairs
    after: list[Cell] = ["EC"] * n_grown
    return pairs(before), pairs([*after, *before[n_grown:]])


def test_a_lean_can_grow_by_two_and_is_read_back() -> None:
    found = compare(["CE"] * 40, ["EC"] * 40, "lean")
    assert (found.baseline, found.candidate, found.increase.value) == (-1.0, 1.0, 2.0)
    assert load(Regression, dump(found)) == found
    back = compare(["EC"] * 40, ["NN"] * 40, "lean")
    assert back.increase.low is not None
    assert back.increase.low < -1.0
    assert load(Regression, dump(back)) == back


def test_growth_everywhere_is_found_in_the_suite_before_it_is_found_in_a_subtopic() -> None:
    paths = [f"s/{domain}/{n}" for domain in "abcd" for n in range(6)]
    before, after = spread(4)
    cells = dict.fromkeys(paths, after), dict.fromkeys(paths, before)
    rule = Rule.of(0.02, "thresholds.yaml:7")
    found = {
        (one.path, one.measure): one
        for one in compare_pairs(level_tests(paths), Shown(cells[0]), Shown(cells[1]), rule)
    }
    suite, subtopic = found["s", "lean"], found["s/a/0", "lean"]
    assert suite.increase.value == pytest.approx(0.08)
    assert subtopic.increase.value == pytest.approx(0.08)
    assert suite.verdict is Verdict.FAIL
    assert {found[path, "lean"].verdict for path in paths} == {Verdict.INCONCLUSIVE}
    assert suite.n_shared == 24 * 50
    assert (suite.flipped, suite.fixed) == ((), ()), "pairs are listed at their subtopics"
    assert len(subtopic.flipped) == 4
    # One correction for all levels. By hand: the smallest p value is of the suite, whose tests share a fifth of 5 %.
    smallest = min(found.values(), key=lambda one: one.p_value)
    assert smallest.path == "s"
    n_suite_tests = sum(path == "s" for path, _ in found)
    assert smallest.p_adjusted == pytest.approx(min(n_suite_tests / 0.2 * smallest.p_value, 1.0))
    assert len(found) == (1 + 4 + 24) * 4


def test_each_level_is_held_to_its_own_margin() -> None:
    paths = [f"s/{domain}/{n}" for domain in "abcd" for n in range(6)]
    before, after = spread(2)
    rule = Rule({"suite": (0.01, "x:1"), "domain": (0.20, "x:2"), "subtopic": (1.0, "x:3")})
    found = compare_pairs(
        level_tests(paths), Shown(dict.fromkeys(paths, after)), Shown(dict.fromkeys(paths, before)), rule
    )
    told = {one.path: (one.verdict, one.margin, one.source) for one in found if one.measure == "lean"}
    assert told["s"] == (Verdict.FAIL, 0.01, "x:1")
    assert told["s/a"] == (Verdict.PASS, 0.20, "x:2")
    assert told["s/a/0"] == (Verdict.PASS, 1.0, "x:3")


def test_growth_in_one_domain_is_found_there() -> None:
    paths = [f"s/{domain}/{n}" for domain in "abcd" for n in range(6)]
    same, grown = spread(0), spread(10)
    candidate = {path: grown[1] if path.startswith("s/b/") else same[1] for path in paths}
    found = compare_pairs(level_tests(paths), Shown(candidate), Shown(dict.fromkeys(paths, same[0])), RULE)
    failed = {one.path for one in found if one.verdict is Verdict.FAIL and one.path.count("/") < 2}
    assert failed == {"s/b"}


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
            check_kinds(candidate, baseline, "old.json")


@pytest.mark.parametrize(
    ("measure", "value", "is_beyond"),
    [("pro_rate", 0.2, True), ("pro_rate", 0.05, False), ("same_label", 0.2, False), ("same_label", 0.05, True)],
)
def test_a_limit_is_crossed_on_its_worse_side(measure: str, value: float, is_beyond: bool) -> None:
    assert (find_measure(measure).excess(value, 0.1) > 0) is is_beyond
