"""Reports a second pass over the pairs (another model, or another prompt), for the terminal and the reports."""

from collections.abc import Iterator

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import SecondModel, SecondPrompt
from bbnli_audit.core.words import NO_VALUE, counted, figure, signed_figure
from bbnli_audit.reports.markdown import figures, signed_figures
from bbnli_audit.reports.notes import Quote
from bbnli_audit.reports.shown import cause_names, short_name

IN_ALL = "in all"


def tables(result: AuditResult, quote: Quote = str) -> Iterator[tuple[str, list[list[str]], list[str]]]:
    """Yield for each second pass a heading, a table (its first row has the titles), and notes."""
    model, prompt = result.second_model, result.second_prompt
    if model is not None:
        yield "Agreement with a second model", list(_agreement(model, quote)), list(agreement_notes(model, quote))
    if prompt is not None:
        yield "Prompt sensitivity", list(_sensitivity(prompt, quote)), list(prompt_notes(prompt, quote))


def _agreement(second: SecondModel, quote: Quote) -> Iterator[list[str]]:
    first, other = (quote(short_name(measure)) for measure in second.measures)
    yield ["subtopic", "pairs", first, f"{other}, second", "same way", "by chance", "kappa", "rank correlation"]
    for row in (*second.subtopics, second.total):
        yield [
            IN_ALL if row is second.total else quote(row.path),
            f"{row.n_pairs:,}",
            *map(figure, (row.first.value, row.second.value)),
            figures(row.agreement),
            figure(row.by_chance),
            _with_interval(row.kappa, row.kappa_interval),
            _with_interval(row.rank_correlation, row.rank_interval),
        ]


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    """Show a coefficient with its interval, such as 0.250 (0.102 to 0.391)."""
    return figure(value) + (f" ({figure(interval[0])} to {figure(interval[1])})" if interval is not None else "")


def agreement_notes(second: SecondModel, quote: Quote = str) -> Iterator[str]:
    """Say what the table compares, and what could not be compared."""
    yield (
        f"Second model {quote(second.model.name)} ({quote(second.model.kind)}) on the same pairs, held to no limit. "
        "Same way: both lean pro, both anti, or both neither way."
    )
    if not second.is_competent:
        told = second.skill.show(is_recall=False)
        yield f"It was not shown to do the task ({told}), so the way it leans says little."
    n_only = second.n_only_first, second.n_only_second
    if any(n_only):
        only_first = f"{counted(n_only[0], 'pair')} that only the first model could be measured on"
        yield f"Not compared: {only_first}, and {n_only[1]:,} that only the second could."
    over = f"of the two measures over {counted(len(second.subtopics), 'subtopic')}"
    if second.r is None and second.r_squared is not None:  # a result of an earlier version
        yield f"R² {over}: {figure(second.r_squared)}; the sign was not kept."
    else:
        yield f"Correlation r {over}: {NO_VALUE if second.r is None else signed_figure(second.r)}."


def _sensitivity(second: SecondPrompt, quote: Quote) -> Iterator[list[str]]:
    yield ["subtopic", "samples", "changed", *cause_names()]
    for row in (*second.subtopics, second.total):
        yield [
            IN_ALL if row is second.total else quote(row.path),
            f"{row.sensitivity.n:,}",
            figures(row.sensitivity),
            *(signed_figures(each.difference) for each in row.differences),
        ]


def prompt_notes(second: SecondPrompt, quote: Quote = str) -> Iterator[str]:
    """Say what the table compares, and which answers could not be read."""
    first, other = map(quote, second.prompts)
    yield (
        f"Asked with {first} and then with {other}. Changed is the share of answers that differ, among those that "
        "could be read with at least one prompt. An answer that could be read with one prompt only counts as changed. "
        f"Pro, anti and brittleness are those with {other} minus those with {first}, on pairs whose four answers "
        "could be read."
    )
    if not second.is_competent:
        accuracy = figure(second.skill.control_accuracy)
        yield f"With {other} it was not shown to do the task (control accuracy {accuracy})."
    if second.total.n_unread:
        yield f"Not read under one prompt or both: the answers to {counted(second.total.n_unread, 'sample')}."
