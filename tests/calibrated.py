"""A measured result over invented groups whose bounds are known, for tests of calibration."""

from dataclasses import replace
from pathlib import Path

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Measured, SubtopicResult
from bbnli_audit.core.values import Subtopic
from bbnli_audit.measures.registry import limited_measures
from tests.invented import limits, write_large_suite

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


def measure_invented(folder: Path) -> AuditResult:
    """Measure a faultless model, then give its subtopics, domains and suite the bounds above."""
    options = AuditOptions(model="planted:ideal", thresholds=limits(), data=write_large_suite(folder))
    result = run_audit(options)
    rows = [with_bounds(row, HIGHS[row.path]) for row in result.subtopics]
    domains = [with_bounds(row, LEVEL_HIGHS[row.path]) for row in result.domains]
    suites = [with_bounds(row, LEVEL_HIGHS[row.path]) for row in result.suite_rows]
    return replace(result, subtopics=tuple(rows), domains=tuple(domains), suite_rows=tuple(suites))


def with_bounds(row: SubtopicResult, highs: dict[str, float]) -> SubtopicResult:
    changed = {LIMIT_MEASURES[key]: Measured(0.0, 0.0, high, 100) for key, high in highs.items()}
    return replace(row, measures={**row.measures, **changed})
