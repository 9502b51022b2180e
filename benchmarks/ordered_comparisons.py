"""Compare every result with every other, both ways, at all levels: python -m benchmarks.ordered_comparisons REPORT...

Two models cannot both have grown, so no measure of a place may FAIL both ways. Unlike `bbnli-audit compare` this also
takes models that are not competent: it asks how the test behaves, and not whether a model may be released.
"""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import date
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from bbnli_audit.audit.gate.baseline import find_extra_measures
from bbnli_audit.audit.gate.compared import Shown
from bbnli_audit.audit.gate.growth import Rule, compare_pairs, find_rule, list_tests
from bbnli_audit.audit.gate.thresholds import read_thresholds
from bbnli_audit.core.results.file import read_result
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.measures.registry import find_measure
from benchmarks.page import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bbnli_audit.core.results.audit import AuditResult
    from bbnli_audit.core.results.comparison import Regression

LEVELS = ("suite", "domain", "subtopic")
Compared = dict[tuple[str, str], list["Regression"]]  # names of baseline and candidate -> all tests


def compare_all(results: Mapping[str, AuditResult], rule: Rule) -> Compared:
    """Compare all ordered pairs of results."""
    found = {}
    for (before, baseline), (after, candidate) in permutations(results.items(), 2):
        tests = list_tests((row.path for row in candidate.subtopics), find_extra_measures(baseline))
        found[before, after] = compare_pairs(tests, Shown.of(candidate), Shown.of(baseline), rule)
    return found


def find_both_ways(compared: Compared) -> list[tuple[str, str]]:
    """Return path and measure of what grew from one result to another and also back."""
    failed = {
        ends: {(one.path, one.measure) for one in of if one.verdict is Verdict.FAIL} for ends, of in compared.items()
    }
    return sorted({test for (a, b), tests in failed.items() for test in tests & failed[b, a]})


def rows_of(compared: Compared) -> list[list[str]]:
    """Make a row for each comparison: what grew at each level, and the growth of each measure in the suite."""
    return [
        [f"{before} → {after}", str(len(tests)), *map(_tell, _by_level(tests))]
        for (before, after), tests in compared.items()
    ]


def _by_level(tests: Sequence[Regression]) -> list[list[Regression]]:
    return [[one for one in tests if level_of(one.path) == level] for level in LEVELS]


def _tell(tests: Sequence[Regression]) -> str:
    """Count verdicts, and name the measures that grew."""
    verdicts = Counter(one.verdict for one in tests)
    failed = Counter(find_measure(one.measure).short for one in tests if one.verdict is Verdict.FAIL)
    named = f" ({', '.join(f'{name} {n}' for name, n in failed.items())})" if failed else ""
    return f"{verdicts[Verdict.FAIL]}{named} / {verdicts[Verdict.INCONCLUSIVE]} / {verdicts[Verdict.PASS]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", metavar="REPORT", type=Path, nargs="+", help="report folders, or result.json files")
    parser.add_argument("--thresholds", type=Path, default=Path("thresholds.yaml"), help="the file with the margins")
    arguments = parser.parse_args()
    results = {(path if path.is_dir() else path.parent).name: read_result(path) for path in arguments.reports}
    compared = compare_all(results, find_rule(read_thresholds(arguments.thresholds), date.today()))
    print(
        table(
            ["baseline → candidate", "tests", *(f"{level}: FAIL / open / PASS" for level in LEVELS)], rows_of(compared)
        )
    )
    both = find_both_ways(compared)
    print(f"Grown both ways: {', '.join(' '.join(each) for each in both) or 'nothing'}.")


if __name__ == "__main__":
    main()
