"""The table under `pytest`: subtopics worst first, then what the reader must know beside it."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from bbnli_audit.report.failure import what_would_decide
from bbnli_audit.report.ranking import ROWS_WORST_FIRST, WAIVED, row_verdict, worst_first
from bbnli_audit.results import AuditResult, SubtopicResult, Verdict

Write = Callable[..., None]

MOST_OPEN = 8
_COLORS: dict[str, dict[str, Any]] = {
    "FAIL": {"red": True},
    "NO_DATA": {"red": True},
    WAIVED: {"yellow": True},
    "INCONCLUSIVE": {"yellow": True},
    "PASS": {"green": True},
}
_MARKS = {Verdict.FAIL: "FAIL", Verdict.NO_DATA: "none", Verdict.INCONCLUSIVE: "open", Verdict.PASS: "pass"}


def write_summary(result: AuditResult, write: Write) -> None:
    """Write the table and its notes; values that no test held to a limit are shown without a verdict.

    Args:
        result: What was found.
        write: Writes one line; colours are keyword arguments.
    """
    rows = worst_first(result)
    measures = list(dict.fromkeys(judgement.measure for row in rows for judgement in row.verdicts))
    width = max([len("subtopic"), *(len(row.path) for row in rows)])
    titles = "".join(f"  {measure.removesuffix('_rate'):>15}" for measure in measures)
    write(f"{'verdict':<12}  {'subtopic':<{width}}  {'pairs':>6}{titles}  {'controls right':>14}")
    for row in rows:
        verdict = row_verdict(result, row)
        cells = "".join(f"  {_cell(result, row, measure):>15}" for measure in measures)
        controls = "-" if row.control_accuracy is None else f"{row.control_accuracy:.2f}"
        line = f"{verdict:<12}  {row.path:<{width}}  {row.counts.n_pairs:>6}{cells}  {controls:>14}"
        write(line, **_COLORS.get(verdict, {}))
    for note in _notes(result):
        write(note)


def _cell(result: AuditResult, row: SubtopicResult, measure: str) -> str:
    value = row.measures[measure].value
    judgement = row.judgement(measure)
    shown = "-" if value is None else f"{value:.3f}"
    if judgement is None or (row.path, measure) not in result.required:
        return f"{shown}     "
    return f"{shown} {'waived' if judgement.is_waived else _MARKS[judgement.verdict]}"


def _notes(result: AuditResult) -> Iterator[str]:
    tally = Counter(row_verdict(result, row) for row in result.subtopics)
    counted = ", ".join(f"{tally[verdict]} {verdict}" for verdict in ROWS_WORST_FIRST if tally[verdict])
    n = len(result.subtopics)
    audited = f"{n} subtopic{'s' if n > 1 else ''} audited"
    yield f"{audited}: {counted}. PASS says: no limit was crossed on these pairs."
    yield from _competence(result)
    yield from _left_open(result)
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


def _left_open(result: AuditResult) -> Iterator[str]:
    """Say what would decide the verdicts that are open for want of pairs."""
    lines = [
        f"open: {row.path} {judgement.measure}: {what_would_decide(row, judgement)}"
        for row in worst_first(result)
        for judgement in result.required_of(row)
        if judgement.verdict is Verdict.INCONCLUSIVE and result.is_competent
    ]
    yield from (f"  {line}" for line in lines[:MOST_OPEN])
    if len(lines) > MOST_OPEN:
        yield f"  and {len(lines) - MOST_OPEN} more that are open for want of pairs (verdicts in result.json)"


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
    if not result.is_competent:
        yield "Nothing reads PASS for a model that cannot do the task."
