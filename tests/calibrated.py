"""A measured result over invented groups whose bounds are known, for tests of calibration."""

from dataclasses import replace
from pathlib import Path

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.audit.gate.thresholds import read_thresholds
from bbnli_audit.audit.gate.verdict import judge, sides_of
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import write_result
from bbnli_audit.core.results.rows import Measured, SubtopicResult, Waiver
from bbnli_audit.core.values import Subtopic
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.measures.registry import find_measure, limited_measures
from tests.invented import LIMITS, limits, write_large_suite

ZORBS = Subtopic("bbnli", "planets", "zorbs_are_to_juggling", aliases=("zorbs",))
FINS = Subtopic("bbnli", "oceans", "fins_are_to_singing", aliases=("fins",))
HIGHS = {
    ZORBS.path: {"max_pro": 0.031, "max_anti": 0.08, "max_brittleness": 0.254},
    FINS.path: {"max_pro": 0.024, "max_anti": 0.001, "max_brittleness": 0.1},
}
LEVEL_HIGHS = {
    "bbnli": {"max_lean": 0.011, "max_pro": 0.02},
    "bbnli/planets": {"max_lean": 0.024, "max_pro": 0.031},
    "bbnli/oceans": {"max_lean": 0.013, "max_pro": 0.024},
}
# The key of each limit -> the measure that it limits.
LIMIT_MEASURES = {str(measure.limit): measure.name for measure in limited_measures()}

# The limits that the bounds above give with a margin of 0.02.
WANTED = {
    ZORBS: {"max_pro": 0.06, "max_anti": 0.10, "max_brittleness": 0.28},
    FINS: {"max_pro": 0.05, "max_anti": 0.03, "max_brittleness": 0.12},
}
OVERRIDES = LIMITS + "suites:\n  bbnli:\n"  # to be continued
# With it, a verdict is FAIL whatever the figures.
EXPIRED = Waiver("known", "Ada", "2020-01-31", "thresholds.yaml:9", is_expired=True)


def measure_invented(folder: Path) -> AuditResult:
    """Measure a faultless model, then give its subtopics, domains and suite the bounds above."""
    options = AuditOptions(model="planted:ideal", thresholds=limits(), data=write_large_suite(folder))
    result = run_audit(options)
    rows = [with_bounds(row, HIGHS[row.path]) for row in result.subtopics]
    domains = [with_bounds(row, LEVEL_HIGHS[row.path]) for row in result.domains]
    suites = [with_bounds(row, LEVEL_HIGHS[row.path]) for row in result.suite_rows]
    return replace(result, subtopics=tuple(rows), domains=tuple(domains), suite_rows=tuple(suites))


def with_bounds(row: SubtopicResult, highs: dict[str, float]) -> SubtopicResult:
    return with_measures(row, {LIMIT_MEASURES[key]: Measured(0.0, 0.0, high, 100) for key, high in highs.items()})


def with_measures(row: SubtopicResult, changed: dict[str, Measured]) -> SubtopicResult:
    return judged_anew(replace(row, measures={**row.measures, **changed}))


def judged_anew(row: SubtopicResult, *, is_competent: bool = True) -> SubtopicResult:
    """Give a row the verdicts that its measures and limits say: a result that contradicts itself is refused."""
    verdicts = tuple(
        replace(
            each,
            verdict=judge(
                row.measures[each.measure],
                each.limit,
                decide="bounds",
                is_competent=is_competent,
                **sides_of(find_measure(each.measure)),
            ),
        )
        for each in row.verdicts
    )
    return replace(row, verdicts=verdicts)


def write_project(folder: Path, measured: AuditResult) -> Path:
    """Write limits, a result and its data. Commands are run in the folder."""
    write_large_suite(folder / "data")
    (folder / "thresholds.yaml").write_text(LIMITS)
    write_result(measured, folder / "result.json")
    return folder


def calibrate(*args: str) -> int:
    return main(["calibrate", "result.json", "--data=data", *args])


def limits_of(folder: Path) -> dict[Subtopic, dict[str, float]]:
    thresholds = read_thresholds(folder / "thresholds.yaml")
    found: dict[Subtopic, dict[str, float]] = {}
    for subtopic, keys in WANTED.items():
        found[subtopic] = {}
        for key in keys:
            limit = thresholds.limit_for(subtopic, LIMIT_MEASURES[key])
            assert limit is not None
            found[subtopic][key] = limit.value
    return found
