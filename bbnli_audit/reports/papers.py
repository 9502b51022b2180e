"""Figures as papers report them: measures under their names in the papers, and biased answers of prompted models."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import NO_DATA, Measured, SubtopicResult
from bbnli_audit.core.words import figure
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.registry import all_measures
from bbnli_audit.reports.markdown import code, figures, table
from bbnli_audit.reports.notes import Quote
from bbnli_audit.reports.shown import aligned

HEADING = "Measures of the papers"
N_WORST = 4
_BIASED = ("pro_rate", "anti_rate")  # brittle answers are the same for both groups, so they are not biased


class Papers(NamedTuple):
    """One suite's measures that have a name in a paper, and the rows to show: the suite, then its domains."""

    suite: str
    measures: list[Measure]
    rows: list[SubtopicResult]

    def cells(self, show: Callable[[Measured], str], quote: Quote = str) -> list[list[str]]:
        """Return a table; its first row has the titles."""
        titles = ["suite, domain", "pairs", *(str(measure.paper) for measure in self.measures)]
        values = [[row.measures.get(measure.name, NO_DATA) for measure in self.measures] for row in self.rows]
        shown = zip(self.rows, values, strict=True)
        return [titles, *([quote(row.path), f"{row.n_pairs:,}", *map(show, found)] for row, found in shown)]

    def legend(self, quote: Quote = str) -> str:
        """Say what result.json calls each measure."""
        return _legend(self.measures, quote)


def _legend(measures: Sequence[Measure], quote: Quote = str) -> str:
    return "; ".join(f"{measure.paper}: {quote(measure.name)}" for measure in measures)


def papers_of(result: AuditResult) -> Iterator[Papers]:
    """Yield each suite with its measures that papers name: those made for the suite if there are any, else BBNLI's."""
    for row in result.suite_rows:
        known = [each for each in all_measures() if each.paper is not None and each.name in row.measures]
        measures = [each for each in known if each.family is not None] or known
        domains = [each for each in result.domains if each.path.startswith(f"{row.path}/")]
        if measures:
            yield Papers(row.path, measures, [row, *domains])


def as_lines(result: AuditResult) -> Iterator[str]:
    """Show each suite as a whole, for the terminal."""
    for papers in papers_of(result):
        # The legend leaves out a measure whose names in the paper and in result.json are nearly the same (M1, m1).
        names = _legend([each for each in papers.measures if str(each.paper).lower().replace(" ", "_") != each.name])
        yield f"{HEADING}, {papers.suite} as a whole{f' ({names})' if names else ''}:"
        yield from (f"  {line}" for line in aligned(papers.cells(lambda measured: figure(measured.value))[:2]))


def as_markdown(result: AuditResult) -> Iterator[str]:
    """Show suites and domains, for summary.md and the model card."""
    for papers in papers_of(result):
        titles, *rows = papers.cells(figures, code)
        yield f"{table(titles, rows)}\n\n{papers.legend(code)}."


def biased_answers(result: AuditResult, quote: Quote = str) -> Iterator[str]:
    """Say what share of answers is biased with each prompt, and which subtopics have the largest shares.

    For a model without a prompt, there is nothing to say.
    """
    if result.model.prompt is None:
        return
    found = _biased_shares(result.total)
    if found is None:
        yield f"Biased answers: not measured. No pair has answers to {quote(result.model.prompt)} that could be read."
        return
    told = [_tell(found, quote(result.model.prompt))]
    second = result.second_prompt
    if second is not None:
        shares = {each.measure: each.second for each in second.total.differences}
        other = {name: share for name in _BIASED if (share := shares.get(name)) is not None}
        told += [_tell(other, quote(second.prompts[1]))] if len(other) == len(_BIASED) else []
    yield f"Biased answers, the share of all (pro + anti): {'; '.join(told)}."
    by_path = {row.path: sum(each.values()) for row in result.subtopics if (each := _biased_shares(row)) is not None}
    worst = sorted(by_path, key=lambda path: (-by_path[path], path))[:N_WORST]
    if len(result.subtopics) > 1 and any(by_path.values()):
        listed = ", ".join(f"{quote(path)} {figure(by_path[path])}" for path in worst)
        yield f"Subtopics with the largest share of biased answers: {listed}."


def _biased_shares(row: SubtopicResult) -> dict[str, float] | None:
    """Return the shares of pro and of anti answers; None if they were not measured."""
    values = {name: row.measures.get(name, NO_DATA).value for name in _BIASED}
    known = {name: value for name, value in values.items() if value is not None}
    return known if len(known) == len(_BIASED) else None


def _tell(shares: Mapping[str, float], prompt: str) -> str:
    pro, anti = (shares[name] for name in _BIASED)
    return f"{figure(pro + anti)} with the prompt {prompt} (pro {figure(pro)}, anti {figure(anti)})"
