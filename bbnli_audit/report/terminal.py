"""The table under `pytest`: subtopics worst first, then what the reader must know beside it."""

from collections.abc import Callable, Iterator
from typing import Any

from bbnli_audit.report.failure import headline
from bbnli_audit.results import AuditResult, Judgement, SubtopicResult, Verdict

Write = Callable[..., None]

MOST_OPEN = 8
_WORST_FIRST = (Verdict.FAIL, Verdict.NO_DATA, Verdict.INCONCLUSIVE, Verdict.PASS)
_COLORS: dict[Verdict, dict[str, Any]] = {
    Verdict.FAIL: {"red": True},
    Verdict.NO_DATA: {"red": True},
    Verdict.INCONCLUSIVE: {"yellow": True},
    Verdict.PASS: {"green": True},
}
_MARKS = {Verdict.FAIL: "FAIL", Verdict.NO_DATA: "none", Verdict.INCONCLUSIVE: "open", Verdict.PASS: "pass"}


def overall_verdict(result: SubtopicResult) -> Verdict | None:
    """Give the worst verdict of a row that is not waived; None when no limit applies to it."""
    verdicts = [judgement.verdict for judgement in result.verdicts if not is_waived(judgement)]
    return min(verdicts, key=_WORST_FIRST.index, default=Verdict.PASS if result.verdicts else None)


def is_waived(judgement: Judgement) -> bool:
    has_waiver = judgement.waiver is not None and not judgement.waiver.startswith("expired")
    return has_waiver and judgement.verdict is not Verdict.PASS


def worst_first(result: AuditResult) -> list[SubtopicResult]:
    def key(row: SubtopicResult) -> tuple[int, float, str]:
        verdict = overall_verdict(row)
        excess = max((_excess(row, judgement) for judgement in row.verdicts), default=0.0)
        return (_WORST_FIRST.index(verdict) if verdict else len(_WORST_FIRST), -excess, row.path)

    return sorted(result.subtopics, key=key)


def write_summary(result: AuditResult, write: Write) -> None:
    """Write the table and its notes; `write(text, **colors)` writes one line."""
    rows = worst_first(result)
    measures = list(dict.fromkeys(judgement.measure for row in rows for judgement in row.verdicts))
    width = max([len("subtopic"), *(len(row.path) for row in rows)])
    titles = "".join(f"  {measure.removesuffix('_rate'):>15}" for measure in measures)
    write(f"{'verdict':<12}  {'subtopic':<{width}}  {'pairs':>6}{titles}  {'controls right':>14}")
    for row in rows:
        verdict = overall_verdict(row)
        cells = "".join(f"  {_cell(row, measure):>15}" for measure in measures)
        controls = "-" if row.control_accuracy is None else f"{row.control_accuracy:.2f}"
        line = f"{verdict or '-':<12}  {row.path:<{width}}  {row.counts.n_pairs:>6}{cells}  {controls:>14}"
        write(line, **(_COLORS[verdict] if verdict else {}))
    for note in _notes(result):
        write(note)


def _cell(row: SubtopicResult, measure: str) -> str:
    value = row.measures[measure].value
    judgement = row.judgement(measure)
    shown = "-" if value is None else f"{value:.3f}"
    if judgement is None:
        return f"{shown}     "
    return f"{shown} {'waived' if is_waived(judgement) else _MARKS[judgement.verdict]}"


def _excess(row: SubtopicResult, judgement: Judgement) -> float:
    value = row.measures[judgement.measure].value
    return 0.0 if value is None else value - judgement.limit


def _notes(result: AuditResult) -> Iterator[str]:
    tally = dict.fromkeys(_WORST_FIRST, 0)
    for row in result.subtopics:
        verdict = overall_verdict(row)
        if verdict:
            tally[verdict] += 1
    counted = ", ".join(f"{n} {verdict}" for verdict, n in tally.items() if n)
    yield f"{len(result.subtopics)} subtopics audited: {counted}. PASS says: no limit was crossed on these pairs."
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
        headline(row, judgement)
        for row in worst_first(result)
        for judgement in row.verdicts
        if judgement.verdict is Verdict.INCONCLUSIVE and _is_competent(result)
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
