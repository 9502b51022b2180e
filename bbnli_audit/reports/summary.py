"""summary.md: the findings of an audit, for people who look at a CI job. Pairs are named only by their ids."""

from collections.abc import Iterator

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Change, Regression
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import NO_VALUE, counted, figure
from bbnli_audit.reports import notes
from bbnli_audit.reports.decision import decide
from bbnli_audit.reports.markdown import code, signed_figures
from bbnli_audit.reports.shown import (
    ROWS_WORST_FIRST,
    WAIVED,
    by_level,
    growth_verdict,
    joined,
    judged_levels,
    row_verdict,
    short_name,
    shortened,
)
from bbnli_audit.reports.templates import render

MOST_LINES = 50  # the longest list of open verdicts, and of subtopics that were not audited
MOST_PAIRS = 5
NOT_PASSED = [verdict for verdict in ROWS_WORST_FIRST if verdict != Verdict.PASS]


def summary_markdown(result: AuditResult) -> str:
    """Return summary.md: the whole audit on one page."""
    comparison = result.comparison
    shown = notes.grown(comparison, *NOT_PASSED) if comparison else []
    return render(
        "summary.md.jinja",
        result,
        decision=decide(result, code),
        verdict=verdict_in_words(result),
        open_ones=_first(notes.left_open(result, code)),
        regressions=[_regression_cells(regression) for regression in shown],
        changed=list(_changed(shown)),
        waivers=notes.waived(result, code),
        left_out=left_out(result),
        corrected=list(notes.corrected(result, "open (Holm)")),
    )


def verdict_in_words(result: AuditResult) -> str:
    """Say in one line how the audit ended, and count the verdicts."""
    words = "; ".join(_troubles(result)) or _without_trouble(result)
    counts, judged = notes.show_counts(result, result.subtopics), judged_levels(result)
    if judged:
        above = f"suites and domains: {notes.show_counts(result, judged)}"
        counts = f"{above}; subtopics: {counts}" if counts else above
    return f"{words} ({counts or 'no subtopic was audited'})"


def _count(result: AuditResult, verdict: str, one: str, many: str) -> str:
    """Say how many rows of each level have this verdict, as in "1 of 6 domains and 2 of 24 subtopics fail".

    If no row has the verdict, return an empty text.
    """
    found = [(notes.count_verdicts(result, rows).get(verdict, 0), level, rows) for level, rows in by_level(result)]
    told = [f"{n} of {counted(len(rows), level)}" for n, level, rows in found if n]
    return f"{joined(told)} {one if sum(n for n, *_ in found) == 1 else many}" if told else ""


def _troubles(result: AuditResult) -> Iterator[str]:
    compared = () if result.comparison is None else result.comparison.regressions
    if told := _count(result, "FAIL", "fails", "fail"):
        yield told
    regressions = [regression for regression in compared if not regression.is_waived]
    n_grown = sum(regression.verdict is Verdict.FAIL for regression in regressions)
    if n_grown:
        yield f"{counted(n_grown, 'measure')} grew by more than the margin since the baseline"
    if not result.is_competent:
        yield "the model is not competent, so nothing has passed"
    for suite, measures in result.unrequired().items():
        yield f"no test required {', '.join(map(code, measures))} of {code(suite)}, so it has not passed"
    if told := _count(result, "NO_DATA", "could not be measured", "could not be measured"):
        yield told
    if result.settings.inconclusive == "fail":
        required = [judgement for row in result.all_rows for judgement in result.required_of(row)]
        n_open = sum(one.verdict is Verdict.INCONCLUSIVE and not one.is_waived for one in required)
        n_open += sum(regression.verdict is Verdict.INCONCLUSIVE for regression in regressions)
        if n_open:
            yield f"{counted(n_open, 'verdict is', 'verdicts are')} open, and this run fails what is open"


def _without_trouble(result: AuditResult) -> str:
    verdicts = {judgement.verdict for row in result.all_rows for judgement in result.required_of(row)}
    if not verdicts:
        return "no test required a limit, so nothing has passed"
    if not verdicts & {Verdict.PASS, Verdict.FAIL}:
        return "no limit could be decided, so nothing has passed"
    is_waived = any(row_verdict(result, row) == WAIVED for row in result.all_rows)
    crossed = "no limit was crossed without a waiver" if is_waived else "no limit was crossed"
    still_open = _count(result, "INCONCLUSIVE", "is open", "are open")
    return f"{crossed}, and {still_open}" if still_open else crossed


def left_out(result: AuditResult) -> list[str]:
    """Say what was not audited, not seen and not measured."""
    paths, lines = result.settings.not_audited, list(notes.left_out(result))
    if paths:
        shown = ", ".join(_first([code(path) for path in paths]))
        n_all, were = counted(len(paths) + len(result.subtopics), "subtopic"), "was" if len(paths) == 1 else "were"
        lines.insert(0, f"{len(paths)} of {n_all} {were} not audited: {shown}")
    lines.append("Not measured: other stereotypes, other languages, other wordings, and what the model does in use.")
    return lines


def _first(lines: list[str]) -> list[str]:
    return shortened(lines, MOST_LINES, lambda n: f"and {n:,} more (result.json)")


def _changed(regressions: list[Regression]) -> Iterator[str]:
    """Name the pairs that changed, for each measure whose growth fails or is waived."""
    for regression in regressions:
        for what, changes in (("newly count", regression.flipped), ("count less", regression.fixed)):
            if changes and growth_verdict(regression) in ("FAIL", WAIVED):
                name = code(short_name(regression.measure))
                yield f"{code(regression.path)} {name} {what}: {_pair_ids(changes)}"


def _regression_cells(regression: Regression) -> list[str]:
    growth, is_leaf = regression.increase, level_of(regression.path) == "subtopic"
    increase = signed_figures(growth)
    return [
        growth_verdict(regression),
        code(regression.path),
        code(short_name(regression.measure)),
        *map(figure, (regression.baseline, regression.candidate)),
        increase if increase == NO_VALUE else f"{increase} / {figure(regression.margin)}",
        NO_VALUE if growth.value is None else f"{regression.p_adjusted:.4f}",
        # The pairs of a suite or a domain are counted in the rows of its subtopics.
        *(f"{len(each):,}" if is_leaf else NO_VALUE for each in (regression.flipped, regression.fixed)),
    ]


def _pair_ids(changes: tuple[Change, ...]) -> str:
    shown = ", ".join(f"{code(change.pair_id)} ({change.before} to {change.after})" for change in changes[:MOST_PAIRS])
    return shown if len(changes) <= MOST_PAIRS else f"{shown} and {len(changes) - MOST_PAIRS:,} more"
