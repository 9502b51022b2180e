"""Overreach and fact gap against a baseline: by hand, on a few pairs and facts about invented groups."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.audit.gate.baseline import find_extra_measures
from bbnli_audit.audit.gate.compared import Shown
from bbnli_audit.audit.gate.growth import MEASURES, Rule, compare_pairs
from bbnli_audit.audit.gate.growth import list_tests as level_tests
from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.outcomes import Cell
from bbnli_audit.core.results.audit import AuditResult, FactsOfSubtopic
from bbnli_audit.core.results.comparison import NO_GROWTH, Regression
from bbnli_audit.core.results.file import read_result, write_result
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.values import Control, Direction, Label, TextPair
from bbnli_audit.measures.direction import estimate_fact_gap, find_facts_by_premise
from tests.invented import LIMITS, limits, write_quads

PATH, ZORBS = "s/d/t", "bbnli/planets/zorbs_are_to_juggling"
RULE = Rule.of(0.05, "thresholds.yaml:7")


def shown(cells: list[Cell], facts: FactsOfSubtopic | None = None) -> Shown:
    """Pairs with premises in turn with the stereotype, against it, and without a direction."""
    pairs = {f"c{n}": {f"id{n}": cell} for n, cell in enumerate(cells)}
    ids = [f"id{n}" for n in range(len(cells))]
    sides: dict[Literal["with", "against"], tuple[str, ...]] = {
        "with": tuple(ids[0::3]),
        "against": tuple(ids[1::3]),
    }
    return Shown({PATH: pairs}, {PATH: sides}, {} if facts is None else {PATH: facts})


def compare(measure: str, before: Shown, after: Shown) -> Regression:
    (found,) = compare_pairs([(PATH, measure)], after, before, RULE)
    return found


def test_overreach_grows_where_errors_newly_follow_the_premise() -> None:
    found = compare("overreach", shown(["NN", "NN", "NN"] * 30), shown(["EC", "CE", "NN"] * 30))
    assert (found.baseline, found.candidate, found.increase.value) == (0.0, 1.0, 1.0)
    assert found.n_shared == 60, "pairs whose premise has no direction say nothing about it"
    assert found.verdict is Verdict.FAIL
    assert {change.pair_id for change in found.flipped} == {f"id{n}" for n in range(90) if n % 3 < 2}
    assert found.fixed == ()


def test_what_leans_alike_in_both_directions_is_no_overreach() -> None:
    found = compare("overreach", shown(["NN", "NN", "NN"] * 30), shown(["EC", "EC", "EC"] * 30))
    assert found.increase.value == 0.0
    assert len(found.flipped) == len(found.fixed) == 30
    lean = compare("lean", shown(["NN", "NN", "NN"] * 30), shown(["EC", "EC", "EC"] * 30))
    assert lean.increase.value == 1.0


def test_overreach_can_grow_by_two() -> None:
    found = compare("overreach", shown(["CE", "EC", "NN"] * 30), shown(["EC", "CE", "NN"] * 30))
    assert (found.baseline, found.candidate, found.increase.value) == (-1.0, 1.0, 2.0)


def test_without_directions_there_is_nothing_to_compare() -> None:
    after = replace(shown(["EC", "CE", "NN"] * 30), directions={})
    found = compare("overreach", shown(["NN"] * 90), after)
    assert (found.verdict, found.increase, found.n_shared) == (Verdict.NO_DATA, NO_GROWTH, 0)


def facts(n_premises: int, agreeing: float, contradicting: float) -> FactsOfSubtopic:
    return {f"p{n}": {f"f{n}": (agreeing, contradicting)} for n in range(n_premises)}


def test_the_fact_gap_grows_where_facts_against_the_stereotype_are_newly_missed() -> None:
    before, after = facts(60, 1.0, 1.0), facts(60, 1.0, 0.0)
    found = compare("fact_gap", shown(["NN"], before), shown(["NN"], after))
    assert (found.baseline, found.candidate, found.increase.value) == (0.0, 1.0, 1.0)
    assert (found.n_shared, found.increase.n) == (60, 120)
    assert found.verdict is Verdict.FAIL
    assert (found.flipped, found.fixed) == ((), ()), "facts are no pairs"
    back = compare("fact_gap", shown(["NN"], after), shown(["NN"], before))
    assert back.increase.value == -1.0
    assert back.verdict is Verdict.PASS


def test_only_facts_that_both_results_have_are_compared() -> None:
    before, after = facts(40, 1.0, 1.0), {**facts(60, 1.0, 1.0), "p0": {"other": (1.0, 0.0)}}
    found = compare("fact_gap", shown(["NN"], before), shown(["NN"], after))
    assert found.n_shared == 39
    assert found.increase.value == 0.0


def test_facts_of_one_premise_are_worth_less_than_those_of_many() -> None:
    """The premise is the one factor: if one premise makes all the growth, it is not shown."""
    of_one = {"p0": {f"f{n}": (1.0, 0.0) for n in range(20)}, **{f"q{n}": {"f": (1.0, 1.0)} for n in range(40)}}
    of_many = {f"p{n}": {"f": (1.0, 0.0)} for n in range(20)} | {f"q{n}": {"f": (1.0, 1.0)} for n in range(40)}
    low = {}
    for name, after in (("one", of_one), ("many", of_many)):
        before = {premise: dict.fromkeys(found, (1.0, 1.0)) for premise, found in after.items()}
        low[name] = compare("fact_gap", shown(["NN"], before), shown(["NN"], after)).increase.low or 0.0
    assert low["one"] < low["many"]


def test_each_place_is_tested_for_what_the_baseline_has_there() -> None:
    paths = ["s/d/t", "s/e/u", "r/d/v"]
    extra = {"s/d/t": ("overreach", "fact_gap"), "s/e/u": ("overreach",)}
    tests = level_tests(paths, extra)
    found = {path: [name for place, name in tests if place == path] for path in dict.fromkeys(p for p, _ in tests)}
    assert found["s"] == found["s/d"] == found["s/d/t"] == [*MEASURES, "overreach", "fact_gap"]
    assert found["s/e"] == found["s/e/u"] == [*MEASURES, "overreach"]
    assert found["r"] == found["r/d/v"] == list(MEASURES)


def control(premise: str, fact: str, direction: Direction) -> Control:
    text = TextPair(f"{premise} {direction.value}", fact)
    return Control(f"{premise}/{fact}", text, Label.ENTAILMENT, direction)


def test_facts_for_a_baseline_give_the_fact_gap_that_was_measured() -> None:
    sides = (Direction.WITH, Direction.AGAINST)
    controls = [control(f"p{n % 4}", f"f{n}", side) for n in range(12) for side in sides]
    controls.append(control("p9", "alone", Direction.WITH))
    is_right = [n % 3 != 0 for n in range(len(controls))]
    found = find_facts_by_premise(controls, is_right)
    assert sorted(found) == ["p0", "p1", "p2", "p3"], "a fact without its counterpart is not compared"
    gaps = [one - other for by_id in found.values() for one, other in by_id.values()]
    assert len(gaps) == 12
    assert sum(gaps) / 12 == pytest.approx(estimate_fact_gap(controls, is_right, 0.95).value)
    assert find_facts_by_premise(controls, []) == {}


def test_a_fact_with_another_text_is_another_fact() -> None:
    sides = (Direction.WITH, Direction.AGAINST)
    one = [control("p0", "f0", side) for side in sides]
    other = [replace(each, text=TextPair(each.text.premise, "changed")) for each in one]
    ids = [list(find_facts_by_premise(each, [True, True])["p0"]) for each in (one, other)]
    assert ids[0] != ids[1]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    write_quads(folder)
    return folder


@pytest.fixture(scope="module")
def result(suite: Path) -> AuditResult:
    options = AuditOptions(model="planted:random", thresholds=limits(), data=suite, pairing="hypothesis")
    return run_audit(options)


def test_a_result_keeps_what_growth_of_both_needs(result: AuditResult, tmp_path: Path) -> None:
    write_result(result, tmp_path / "result.json")
    found = read_result(tmp_path / "result.json")
    assert {way: len(ids) for way, ids in found.directions[ZORBS].items()} == {"with": 2, "against": 2}
    assert sorted(found.facts[ZORBS]) == ["a1", "a2"]
    assert sum(map(len, found.facts[ZORBS].values())) == 6
    assert found == result
    assert find_extra_measures(found) == {ZORBS: ("overreach", "fact_gap")}


def test_the_fact_gap_of_a_baseline_without_facts_is_not_tested(result: AuditResult) -> None:
    assert find_extra_measures(replace(result, facts={})) == {ZORBS: ("overreach",)}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("facts", r"fact_gap is .*, and its facts give 0"),
        ("directions", r"directions of .* name a pair twice, or a pair that the subtopic does not have"),
    ],
)
def test_edited_facts_and_directions_are_not_read(result: AuditResult, tmp_path: Path, key: str, message: str) -> None:
    path = tmp_path / "result.json"
    write_result(result, path)
    document = json.loads(path.read_text())
    measured = next(row for row in document["subtopics"] if row["path"] == ZORBS)["measures"]["fact_gap"]
    if key == "facts":
        shares = [1.0, 1.0] if measured["value"] else [1.0, 0.0]
        message = message if measured["value"] else r"fact_gap is 0.0, and its facts give 1"
        document["facts"][ZORBS] = {
            premise: dict.fromkeys(facts, shares) for premise, facts in document["facts"][ZORBS].items()
        }
    else:
        document["directions"][ZORBS]["with"].append("nowhere")
    path.write_text(json.dumps(document))
    with pytest.raises(ResultError, match=message):
        read_result(path)


def test_an_audit_tests_both_against_its_baseline(suite: Path, tmp_path: Path) -> None:
    given = limits(f"{LIMITS}regression: {{max_increase: 0.05}}\n")
    options = AuditOptions(model="planted:ideal", thresholds=given, data=suite, pairing="hypothesis")
    write_result(run_audit(options), tmp_path / "baseline.json")
    found = run_audit(replace(options, model="planted:always-pro", baseline=tmp_path / "baseline.json")).comparison
    assert found is not None
    assert found.n_tests == 3 * 6, "suite, domain and subtopic"
    growth = {one.measure: one.increase.value for one in found.regressions if one.path == ZORBS}
    assert growth == {
        "lean": 1.0,
        "pro_rate": 1.0,
        "anti_rate": 0.0,
        "brittleness_rate": 0.0,
        "overreach": 0.0,
        "fact_gap": 0.0,
    }
