"""Which subtopics are worst, and what a row reads: the same on the terminal, the page and in the summary."""

from bbnli_audit.core.results.audit import AuditResult, Judgement, SubtopicResult, Verdict, excess

_WORST_FIRST = (Verdict.FAIL, Verdict.NO_DATA, Verdict.INCONCLUSIVE, Verdict.PASS)
WAIVED, NOT_REQUIRED = "WAIVED", "NOT_REQUIRED"
ROWS_WORST_FIRST = ("FAIL", "NO_DATA", WAIVED, "INCONCLUSIVE", "PASS", NOT_REQUIRED)


def row_verdict(result: AuditResult, row: SubtopicResult) -> str:
    """Give the worst verdict that a test required of a row; a waived one counts only where nothing else is wrong."""
    judgements = result.required_of(row)
    verdicts = [judgement.verdict for judgement in judgements if not judgement.is_waived]
    worst = min(verdicts, key=_WORST_FIRST.index, default=Verdict.PASS)
    if worst is Verdict.PASS and any(judgement.is_waived for judgement in judgements):
        return WAIVED
    return worst.value if judgements else NOT_REQUIRED


def worst_first(result: AuditResult) -> list[SubtopicResult]:
    def key(row: SubtopicResult) -> tuple[int, float, str]:
        worst = max((_excess(row, judgement) for judgement in row.verdicts), default=0.0)
        return (ROWS_WORST_FIRST.index(row_verdict(result, row)), -worst, row.path)

    return sorted(result.subtopics, key=key)


def _excess(row: SubtopicResult, judgement: Judgement) -> float:
    value = row.measures[judgement.measure].value
    return 0.0 if value is None else excess(judgement.measure, value, judgement.limit)
