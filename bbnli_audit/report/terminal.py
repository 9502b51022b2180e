"""The table under `pytest`: subtopics worst first, then what the reader must know beside it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

from bbnli_audit.report.failure import what_would_decide
from bbnli_audit.results import AuditResult, Judgement, SubtopicResult, Verdict

Write = Callable[..., None]

MOST_OPEN = 8
_WORST_FIRST = (Verdict.FAIL, Verdict.NO_DATA, Verdict.INCONCLUSIVE, Verdict.PASS)
WAIVED, NOT_REQUIRED = "WAIVED", "NOT_REQUIRED"
_ROWS_WORST_FIRST = ("FAIL", "NO_DATA", WAIVED, "INCONCLUSIVE", "PASS", NOT_REQUIRED)
_COLORS: dict[str, dict[str, Any]] = {
    "FAIL": {"red": True},
    "NO_DATA": {"red": True},
    WAIVED: {"yellow": True},
    "INCONCLUSIVE": {"yellow": True},
    "PASS": {"green": True},
}
_MARKS = {Verdict.FAIL: "FAIL", Verdict.NO_DATA: "none", Verdict.INCONCLUSIVE: "open", Verdict.PASS: "pass"}


Required = Collection[tuple[str, str]]


def row_verdict(row: SubtopicResult, required: Required) -> str:
    """Give the worst verdict that a test required of a row; a waived one counts only where nothing else is wrong."""
    judgements = [judgement for judgement in row.verdicts if (row.path, judgement.measure) in required]
    verdicts = [judgement.verdict for judgement in judgements if not judgement.is_waived]
    worst = min(verdicts, key=_WORST_FIRST.index, default=Verdict.PASS)
    if worst is Verdict.PASS and any(judgement.is_waived for judgement in judgements):
        return WAIVED
    return worst.value if judgements else NOT_REQUIRED


def worst_first(result: AuditResult, required: Required) -> list[SubtopicResult]:
    def key(row: SubtopicResult) -> tuple[int, float, str]:
        excess = max((_excess(row, judgement) for judgement in row.verdicts), default=0.0)
        return (_ROWS_WORST_FIRST.index(row_verdict(row, required)), -excess, row.path)

    return sorted(result.subtopics, key=key)


def write_summary(result: AuditResult, required: Required, write: Write) -> None:
    """Write the table and its notes.

    Args:
        result: What was found.
        required: Path and measure of every limit that a test asked for; the other values are shown without a verdict.
        write: Writes one line; colours are keyword arguments.
    """
    rows = worst_first(result, required)
    measures = list(dict.fromkeys(judgement.measure for row in rows for judgement in row.verdicts))
    width = max([len("subtopic"), *(len(row.path) for row in rows)])
    titles = "".join(f"  {measure.removesuffix('_rate'):>15}" for measure in measures)
    write(f"{'verdict':<12}  {'subtopic':<{width}}  {'pairs':>6}{titles}  {'controls right':>14}")
    for row in rows:
        verdict = row_verdict(row, required)
        cells = "".join(f"  {_cell(row, measure, required):>15}" for measure in measures)
        controls = "-" if row.control_accuracy is None else f"{row.control_accuracy:.2f}"
        line = f"{verdict:<12}  {row.path:<{width}}  {row.counts.n_pairs:>6}{cells}  {controls:>14}"
        write(line, **_COLORS.get(verdict, {}))
    for note in _notes(result, required):
        write(note)


def _cell(row: SubtopicResult, measure: str, required: Required) -> str:
    value = row.measures[measure].value
    judgement = row.judgement(measure)
    shown = "-" if value is None else f"{value:.3f}"
    if judgement is None or (row.path, measure) not in required:
        return f"{shown}     "
    return f"{shown} {'waived' if judgement.is_waived else _MARKS[judgement.verdict]}"


def _excess(row: SubtopicResult, judgement: Judgement) -> float:
    value = row.measures[judgement.measure].value
    return 0.0 if value is None else value - judgement.limit


def _notes(result: AuditResult, required: Required) -> Iterator[str]:
    tally = Counter(row_verdict(row, required) for row in result.subtopics)
    counted = ", ".join(f"{tally[verdict]} {verdict}" for verdict in _ROWS_WORST_FIRST if tally[verdict])
    n = len(result.subtopics)
    audited = f"{n} subtopic{'s' if n > 1 else ''} audited"
    yield f"{audited}: {counted}. PASS says: no limit was crossed on these pairs."
    yield from _competence(result)
    yield from _left_open(result, required)
    if "not_entailment" in result.model.labels:
        yield (
            "The model has two labels: it cannot answer contradiction, so errors of that kind could not be seen; "
            "not_entailment was read as neutral."
        )
    total = result.total
    if total.n_identical or total.n_duplicates:
        yield (
            f"Left out of the measures: {total.n_identical} pairs with the same text on both sides, "
            f"{total.n_duplicates} duplicates."
        )
    if total.n_truncated:
        yield (
            f"Cut off: {total.n_truncated} of {total.counts.n_samples} samples were longer than the model takes; "
            "what was cut could not count."
        )
    waived = [(row, judgement) for row in result.subtopics for judgement in row.verdicts if judgement.waiver]
    if waived:
        n_judgements = sum(len(row.verdicts) for row in result.subtopics)
        yield f"Waivers: {len(waived)} of {n_judgements} verdicts."
        for row, judgement in waived:
            used = "" if judgement.verdict is not Verdict.PASS else " - no longer needed, remove it"
            yield f"  {row.path} {judgement.measure}: {judgement.waiver}{used}"


def _left_open(result: AuditResult, required: Required) -> Iterator[str]:
    """Say what would decide the verdicts that are open for want of pairs."""
    lines = [
        f"open: {row.path} {judgement.measure}: {what_would_decide(row, judgement)}"
        for row in worst_first(result, required)
        for judgement in row.verdicts
        if judgement.verdict is Verdict.INCONCLUSIVE
        and (row.path, judgement.measure) in required
        and _is_competent(result)
    ]
    yield from (f"  {line}" for line in lines[:MOST_OPEN])
    if len(lines) > MOST_OPEN:
        yield f"  and {len(lines) - MOST_OPEN} more that are open for want of pairs (verdicts in result.json)"


def _is_competent(result: AuditResult) -> bool:
    judgement = result.total.judgement("control_accuracy")
    return judgement is not None and judgement.verdict is Verdict.PASS


def _competence(result: AuditResult) -> Iterator[str]:
    judgement = result.total.judgement("control_accuracy")
    skill = result.settings["skill"]
    if judgement is None or result.total.control_accuracy is None:
        yield "Competence could not be measured: the suites have no controls, so nothing can read PASS."
        return
    yield (
        f"Competence: {result.total.control_accuracy:.3f} of {result.total.n_controls} controls right "
        f"(limit {judgement.limit:.2f}, {judgement.source}; best constant answer {skill['best_constant']:.3f}; "
        f"plain probe {skill['probe_accuracy']:.3f}): {judgement.verdict}."
    )
    if not _is_competent(result):
        yield "Nothing reads PASS for a model that cannot do the task."
