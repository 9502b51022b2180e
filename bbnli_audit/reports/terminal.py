"""Writes the end of a `pytest` run: the decision, a table of suites, domains and subtopics, and notes."""

from collections.abc import Callable, Sequence
from typing import Any

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Comparison
from bbnli_audit.core.results.rows import SubtopicResult, Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import counted, figure
from bbnli_audit.reports import notes, papers, second
from bbnli_audit.reports.decision import DECIDED, decide
from bbnli_audit.reports.failure import regression_headline
from bbnli_audit.reports.markdown import figures
from bbnli_audit.reports.shown import (
    ROWS_WORST_FIRST,
    WAIVED,
    aligned,
    growth_mark,
    is_of_facts,
    judged_levels,
    mark_of,
    row_growth,
    row_verdict,
    short_name,
    shortened,
    tabled_measures,
    worst_first,
)

Write = Callable[..., None]

MOST_OPEN = 8
_COLORS: dict[str, dict[str, Any]] = {
    "FAIL": {"red": True},
    "NO_DATA": {"red": True},
    WAIVED: {"yellow": True},
    "INCONCLUSIVE": {"yellow": True},
    "PASS": {"green": True},
}


def write_summary(result: AuditResult, write: Write) -> None:
    """Write the whole summary. `write` writes one line; its keyword arguments, such as `red` or `bold`, style it."""
    _write_decision(result, write)
    _write_table(result, write)
    told = (*notes.corrected(result, "open*"), *notes.competence(result), *notes.reliability(result))
    still_open = _open(notes.left_open(result), "(verdicts in result.json)")
    for line in (notes.audited(result), *told, *still_open):
        write(line)
    if result.comparison is not None:
        _write_comparison(result.comparison, write)
    waived = [f"  {line}" if place else line for place, line in enumerate(notes.waived(result))]
    apart = notes.apart(result.suite_rows)
    for line in (*notes.left_out(result), *waived, *apart, *papers.as_lines(result), *papers.biased_answers(result)):
        write(line)
    _write_second(result, write)


def _write_decision(result: AuditResult, write: Write) -> None:
    decision = decide(result)
    write(decision.line, bold=True, **_COLORS[DECIDED[decision.word]])
    for reason in decision.reasons:
        write(f"  - {reason}")
    for step in decision.steps:
        write(f"  Next: {step}")
    write("")


def _write_table(result: AuditResult, write: Write) -> None:
    above = judged_levels(result)
    rows = [*above, *worst_first(result)]
    judged = [judgement.measure for row in rows for judgement in row.verdicts]
    # If any measure has a limit, the first measure of all tables is shown too: lean, if the result has it.
    measures = list(dict.fromkeys([*(tabled_measures(result)[:1] if judged else []), *judged]))
    title = "suite, domain, subtopic" if above else "subtopic"
    width = max([len(title), *(len(row.path) for row in rows)])
    columns = [_column(result, rows, measure) for measure in measures]
    titles, *cells = ("".join(f"  {column[place]}" for column in columns) for place in range(1 + len(rows)))
    has_growth = result.comparison is not None
    write(f"{'verdict':<12}  {'growth  ' * has_growth}{title:<{width}}  {'pairs':>6}{titles}  {'controls':>8}")
    for row, figures_of_row in zip(rows, cells, strict=True):
        verdict = row_verdict(result, row)
        growth = f"{growth_mark(result, row.path):<6}  " if has_growth else ""
        controls = "-" if row.control_accuracy is None else f"{row.control_accuracy:.2f}"
        line = f"{verdict:<12}  {growth}{row.path:<{width}}  {row.n_pairs:>6}{figures_of_row}  {controls:>8}"
        write(line, **_COLORS.get(_worse(verdict, row_growth(result, row.path)), {}))
    for row in result.suite_rows:
        if "lean" in row.measures and not result.required_of(row):
            write(f"All audited pairs of {row.path} together, held to no limit: lean {figures(row.measures['lean'])}.")


def _worse(verdict: str, growth: str | None) -> str:
    """Return the worse of a row's two verdicts: on its limits and on its growth. Growth without data is ignored."""
    measured = [growth] if growth is not None and growth != "NO_DATA" else []
    return min((verdict, *measured), key=ROWS_WORST_FIRST.index)


def _column(result: AuditResult, rows: Sequence[SubtopicResult], measure: str) -> list[str]:
    """Return a column of the table: its title, and a figure for each row, with marks if any row has one."""
    marks = [mark_of(result, row, measure) for row in rows]
    found = [row.measures.get(measure) for row in rows]
    shown = ["-" if each is None or each.value is None else figure(each.value) for each in found]
    if any(marks):
        shown = [f"{each} {mark:<5}" for each, mark in zip(shown, marks, strict=True)]
    cells = [short_name(measure), *shown]
    return [f"{cell:>{max(map(len, cells))}}" for cell in cells]


def _open(lines: Sequence[str], why: str) -> list[str]:
    return shortened(
        [f"  open: {line}" for line in lines], MOST_OPEN, lambda n: f"  and {n:,} more that are open {why}"
    )


def _write_comparison(comparison: Comparison, write: Write) -> None:
    for note in notes.against_baseline(comparison):
        write(note)
    for regression in notes.grown(comparison, Verdict.FAIL):
        told = regression_headline(regression)
        if level_of(regression.path) == "subtopic" and not is_of_facts(regression):
            told += f"; {counted(len(regression.flipped), 'pair newly counts', 'pairs newly count')}, "
            told += f"{len(regression.fixed):,} less than before"
        write(f"  FAIL: {told}", **_COLORS["FAIL"])
    open_ones = [regression_headline(each) for each in notes.grown(comparison, Verdict.INCONCLUSIVE)]
    for note in _open(open_ones, "against the baseline (comparison in result.json)"):
        write(note)
    for note in notes.loosened(comparison):
        write(f"  {note}", **_COLORS[WAIVED])


def _write_second(result: AuditResult, write: Write) -> None:
    for _, rows, lines in second.tables(result):
        for line in ("", *aligned(rows), *lines):
            write(line)
