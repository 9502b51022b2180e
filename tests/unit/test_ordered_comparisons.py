"""The table of all comparisons counts what grew, and finds what grew both ways."""

from dataclasses import replace

from bbnli_audit.audit.gate.compared import Shown
from bbnli_audit.audit.gate.growth import Rule, compare_pairs, list_tests
from bbnli_audit.core.outcomes import Cell
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.rows import Verdict
from benchmarks.ordered_comparisons import find_both_ways, rows_of

PATH = "s/d/t"


def compare(before: Cell, after: Cell) -> list[Regression]:
    one, other = (Shown({PATH: {f"c{n}": {f"id{n}": cell} for n in range(60)}}) for cell in (before, after))
    return compare_pairs(list_tests([PATH]), other, one, Rule.of(0.03, "thresholds.yaml:7"))


def test_growth_is_counted_at_each_level_by_measure() -> None:
    grown = "2 (lean 1, pro 1) / 2 / 0"
    there, back = rows_of({("a", "b"): compare("NN", "EC"), ("b", "a"): compare("EC", "NN")})
    assert there == ["a → b", "12", grown, grown, grown]
    assert back[2].startswith("0 / ")


def test_growth_both_ways_is_found() -> None:
    there, back = compare("NN", "EC"), compare("EC", "NN")
    assert find_both_ways({("a", "b"): there, ("b", "a"): back}) == []
    wrong = [
        replace(one, verdict=Verdict.FAIL) if one.measure == "pro_rate" and one.path == "s" else one for one in back
    ]
    assert find_both_ways({("a", "b"): there, ("b", "a"): wrong}) == [("s", "pro_rate")]
