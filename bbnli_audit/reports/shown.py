"""Which measures a report shows, and what it calls them."""

from collections.abc import Iterable

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import SubtopicResult


def measure_name(measure: str) -> str:
    from bbnli_audit.measures.registry import find_measure

    return find_measure(measure).short.replace("_", " ")


def cause_names() -> list[str]:
    return [measure_name(cause) for cause in CAUSES]


def leading_measures(result: AuditResult) -> tuple[str, ...]:
    """Return what every report shows: the causes of error, or the preference of a model that cannot be wrong."""
    from bbnli_audit.measures.readings.kinds import reading_of

    return tuple(CAUSES) if result.has_task else (reading_of(result.model.kind).preference,)


def shown_measures(result: AuditResult, rows: Iterable[SubtopicResult]) -> list[str]:
    """Return the leading measures, then the others that are held to a limit in these rows."""
    judged = [judgement.measure for row in rows for judgement in row.verdicts]
    return list(dict.fromkeys((*leading_measures(result), *judged)))


def short_path(result: AuditResult, path: str) -> str:
    """Leave the suite out where there is only one."""
    return path.partition("/")[2] or path if len(result.suites) == 1 else path
