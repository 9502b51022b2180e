"""Markdown that stays what it is, whatever a model, a file or a subtopic is called."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from bbnli_audit.core.results.audit import AuditResult, Measure, SubtopicResult
from bbnli_audit.reports.notes import mark_of
from bbnli_audit.reports.ranking import row_verdict, worst_first

NO_VALUE = "–"
CAUSES = ("pro_rate", "anti_rate", "brittleness_rate")

# Line and page breaks, control and formatting characters (a text could turn around what stands beside it), and halves
# of characters, which no file can hold.
_UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_IS_PLAIN = re.compile(r"[^`|\s]([^`|]*[^`|\s])?")


def code(text: str) -> str:
    """Show a name that others have given, as code: there no mark-up, link or mention is read, nor `|` in a table."""
    shown = printable(text)
    if _IS_PLAIN.fullmatch(shown):
        return f"`{shown}`"
    # A backtick would end the code and a bar the cell. Entities end nothing, and renderers look for no link in <code>.
    return f"<code>{''.join(c if c.isalnum() or c == ' ' else f'&#{ord(c)};' for c in shown)}</code>"


def printable(text: str) -> str:
    """Put a space for each line break or tab, and a mark for each character that cannot be shown."""
    text = re.sub(r"[\r\n\t\v\f\x85\u2028\u2029]+", " ", text)
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _UNPRINTABLE else c for c in text)


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1) -> str:
    """Lay out cells that hold Markdown; the first `n_left` columns are words, the others figures."""
    rule = ["---" if place < n_left else "---:" for place in range(len(titles))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, rule, *rows))


def figures(measure: Measure | None) -> str:
    """Show a value with its interval: 0.214 (0.154-0.289)."""
    if measure is None or measure.value is None:
        return NO_VALUE
    shown = f"{measure.value:.3f}"
    return shown if measure.low is None or measure.high is None else f"{shown} ({measure.low:.3f}-{measure.high:.3f})"


def controls(row: SubtopicResult) -> str:
    return NO_VALUE if row.control_accuracy is None else f"{row.control_accuracy:.3f} of {row.n_controls:,}"


def subtopic_table(result: AuditResult) -> str:
    """Show each subtopic, the worst first, with verdict, figures and limits."""
    rows = worst_first(result)
    judged = [judgement.measure for row in rows for judgement in row.verdicts]
    measures = list(dict.fromkeys((*CAUSES, *judged)))
    titles = ["verdict", "subtopic", "pairs", *(code(measure) for measure in measures), "controls right"]
    cells = (
        [
            row_verdict(result, row),
            code(row.path),
            f"{row.counts.n_pairs:,}",
            *(_judged_figures(result, row, measure) for measure in measures),
            controls(row),
        ]
        for row in rows
    )
    return table(titles, cells, n_left=2)


def _judged_figures(result: AuditResult, row: SubtopicResult, measure: str) -> str:
    """Show figures with limit and verdict: 0.214 (0.154-0.289) / 0.150 FAIL; without them where no test asked."""
    shown = figures(row.measures.get(measure))
    mark, judgement = mark_of(result, row, measure), row.judgement(measure)
    if not mark or judgement is None:
        return shown
    return f"{shown} / {judgement.limit:.3f} {mark if mark == 'pass' else f'**{mark}**'}"
