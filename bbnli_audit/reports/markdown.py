"""Writes safe Markdown: the name of a model, a file or a subtopic never becomes markup."""

import re
from collections.abc import Iterable, Sequence

from bbnli_audit.core.printable import printable
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Measured, SubtopicResult, SuiteInfo
from bbnli_audit.core.words import NO_VALUE, figure, signed_figure, with_minus
from bbnli_audit.reports.shown import (
    interval,
    level_measures,
    levels,
    mark_of,
    row_verdict,
    short_name,
    shown_measures,
    worst_first,
)

_IS_PLAIN = re.compile(r"[^`|\s]([^`|]*[^`|\s])?")


def code(text: str) -> str:
    """Show a name from outside as code: markup, links, mentions and the `|` of tables in it have no effect."""
    shown = printable(text)
    if _IS_PLAIN.fullmatch(shown):
        return f"`{shown}`"
    # Entities, because a backtick would end the code and a bar would end the cell. Renderers link nothing in <code>.
    return f"<code>{''.join(c if c.isalnum() or c == ' ' else f'&#{ord(c)};' for c in shown)}</code>"


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1) -> str:
    """Make a table of cells that hold Markdown. The first `n_left` columns hold words, all other columns figures."""
    rule = ["---" if place < n_left else "---:" for place in range(len(titles))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, rule, *rows))


def signed(value: float | None) -> str:
    return with_minus(signed_figure(value))


def figures(measured: Measured | None) -> str:
    """Show a value with its interval, such as 0.214 (0.154-0.289), or -0.010 (-0.031 to 0.012)."""
    if measured is None or measured.value is None:
        return NO_VALUE
    return figure(measured.value) + ("" if measured.low is None else f" ({interval(measured)})")


def signed_figures(measured: Measured) -> str:
    """Show a difference with its interval, such as +0.021 (-0.010 to +0.052)."""
    if measured.value is None or measured.low is None or measured.high is None:
        return NO_VALUE
    return f"{signed_figure(measured.value)} ({signed_figure(measured.low)} to {signed_figure(measured.high)})"


def describe_suite(suite: SuiteInfo) -> str:
    name, version, pairing, sha256 = map(code, (suite.name, suite.version, suite.pairing, suite.sha256))
    return f"{name} {version} (groups exchanged: {pairing}; sha256 {sha256})"


def level_table(result: AuditResult) -> str:
    """Show each suite and domain as a whole, with verdict, figures and limits.

    If there are several suites, also show the total.
    """
    rows = [*levels(result), *([] if len(result.suite_rows) == 1 else [result.total])]
    return _judged_table(result, rows, level_measures(result), "suite or domain")


def subtopic_table(result: AuditResult) -> str:
    """Show each subtopic, the worst first, with verdict, figures and limits."""
    rows = worst_first(result)
    return _judged_table(result, rows, shown_measures(result, rows), "subtopic")


def _judged_table(result: AuditResult, rows: Sequence[SubtopicResult], measures: Sequence[str], title: str) -> str:
    titles = ["verdict", title, "pairs", *(code(short_name(name)) for name in measures), "controls right"]
    return table(titles, (_cells(result, row, measures) for row in rows), n_left=2)


def _cells(result: AuditResult, row: SubtopicResult, measures: Sequence[str]) -> list[str]:
    shown = [_judged_figures(result, row, name) for name in measures]
    has_controls = row.control_accuracy is not None and result.has_task
    controls = f"{figure(row.control_accuracy)} of {row.n_controls:,}" if has_controls else NO_VALUE
    return [row_verdict(result, row), code(row.path), f"{row.n_pairs:,}", *shown, controls]


def _judged_figures(result: AuditResult, row: SubtopicResult, measure: str) -> str:
    """Show figures with limit and verdict, such as 0.214 (0.154-0.289) / 0.150 FAIL.

    If no test held the measure to a limit, show only the figures.
    """
    shown = figures(row.measures.get(measure))
    mark, judgement = mark_of(result, row, measure), row.judgement(measure)
    if not mark or judgement is None:
        return shown
    mark = mark.replace("*", " (Holm)")
    return f"{shown} / {figure(judgement.limit)} {mark if mark == 'pass' else f'**{mark}**'}"
