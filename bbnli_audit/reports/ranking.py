"""Which subtopics are worst, and what a row reads: the same on the terminal, the page and in the summary."""

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import SubtopicResult, Verdict

WORST_FIRST = (Verdict.FAIL, Verdict.NO_DATA, Verdict.INCONCLUSIVE, Verdict.PASS)
WAIVED, NOT_REQUIRED = "WAIVED", "NOT_REQUIRED"
ROWS_WORST_FIRST = ("FAIL", "NO_DATA", WAIVED, "INCONCLUSIVE", "PASS", NOT_REQUIRED)


def row_verdict(result: AuditResult, row: SubtopicResult) -> str:
    """Return the worst verdict that a test required of a row; a waived one counts only where nothing else is wrong."""
    judgements = result.required_of(row)
    verdicts = [judgement.verdict for judgement in judgements if not judgement.is_waived]
    worst = min(verdicts, key=WORST_FIRST.index, default=Verdict.PASS)
    if worst is Verdict.PASS and any(judgement.is_waived for judgement in judgements):
        return WAIVED
    return worst.value if judgements else NOT_REQUIRED


def measure_verdict(result: AuditResult, row: SubtopicResult, measure: str) -> str:
    """Return the verdict on one measure; NOT_REQUIRED where no test held it to a limit."""
    judgement = row.judgement(measure)
    if judgement is None or (row.path, measure) not in result.required:
        return NOT_REQUIRED
    return WAIVED if judgement.is_waived else judgement.verdict.value


def worst_first(result: AuditResult) -> list[SubtopicResult]:
    def key(row: SubtopicResult) -> tuple[int, float, str]:
        return ROWS_WORST_FIRST.index(row_verdict(result, row)), -_largest_excess(row), row.path

    return sorted(result.subtopics, key=key)


def _largest_excess(row: SubtopicResult) -> float:
    from bbnli_audit.measures.registry import find_measure

    found = [
        0.0 if value is None else find_measure(judgement.measure).excess(value, judgement.limit)
        for judgement in row.verdicts
        for value in (row.measures[judgement.measure].value,)
    ]
    return max(found, default=0.0)
