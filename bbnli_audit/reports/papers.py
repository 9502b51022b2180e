"""The measures of the papers, under their own names, for each suite and its domains as a whole."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Measured, SubtopicResult
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.registry import all_measures
from bbnli_audit.reports.markdown import code, figures, number, table

HEADING = "Measures of the papers"


class Papers(NamedTuple):
    """The measures of one suite that papers define, and the rows to show: the suite, then its domains."""

    suite: str
    measures: list[Measure]
    rows: list[SubtopicResult]

    def cells(self, show: Callable[[Measured | None], str], quote: Callable[[str], str] = str) -> list[list[str]]:
        """Return a table; its first row has the titles."""
        titles = ["suite, domain", "pairs", *(str(measure.paper) for measure in self.measures)]
        found = [[quote(row.path), f"{row.n_pairs:,}", *map(show, self._values(row))] for row in self.rows]
        return [titles, *found]

    def _values(self, row: SubtopicResult) -> list[Measured | None]:
        return [row.measures.get(measure.name) for measure in self.measures]

    def legend(self, quote: Callable[[str], str] = str) -> str:
        """Give the name of each measure in a threshold file and in result.json."""
        return "; ".join(f"{measure.paper}: {quote(measure.name)}" for measure in self.measures)


def papers_of(result: AuditResult) -> Iterator[Papers]:
    """Yield the papers' measures of each suite: its own measures if it has any, else those of BBNLI."""
    for row in result.suite_rows:
        known = [each for each in all_measures() if each.paper is not None and each.name in row.measures]
        measures = [each for each in known if each.family is not None] or known
        if measures:
            yield Papers(row.path, measures, [row, *(each for each in result.domains if _is_below(each, row))])


def _is_below(domain: SubtopicResult, suite: SubtopicResult) -> bool:
    return domain.path.startswith(f"{suite.path}/")


def as_lines(result: AuditResult) -> Iterator[str]:
    """Show the suites, each as a whole, for the terminal."""
    for papers in papers_of(result):
        rows = papers.cells(lambda measured: number(None if measured is None else measured.value))[:2]
        first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield f"{HEADING}, {papers.suite} as a whole ({papers.legend()}):"
        yield from ("  ".join(["", name.ljust(first), *map(str.rjust, cells, widths)]) for name, *cells in rows)


def as_markdown(result: AuditResult) -> Iterator[str]:
    """Show suites and domains, for summary.md and the model card."""
    for papers in papers_of(result):
        titles, *rows = papers.cells(figures, code)
        yield f"{table(titles, rows)}\n\n{papers.legend(code)}."
