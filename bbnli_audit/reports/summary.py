"""summary.md: what an audit found, for people who look at a CI job. Pairs are named by their ids alone."""

from collections.abc import Iterator

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Change, Regression
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.reports import notes
from bbnli_audit.reports.markdown import NO_VALUE, code, number, signed_figures
from bbnli_audit.reports.shown import WAIVED
from bbnli_audit.reports.templates import render

MOST_OPEN = 50
MOST_PAIRS = 5


def summary_markdown(result: AuditResult) -> str:
    """Tell the whole audit on one page."""
    comparison = result.comparison
    shown = notes.grown(comparison, Verdict.FAIL, Verdict.NO_DATA, Verdict.INCONCLUSIVE) if comparison else []
    return render(
        "summary.md.jinja",
        result,
        verdict=verdict_in_words(result),
        open_ones=_shortened(notes.left_open(result, code)),
        regressions=[_regression_cells(regression) for regression in shown],
        changed=list(_changed(shown)),
        waivers=notes.waived(result, code),
        left_out=left_out(result),
    )


def verdict_in_words(result: AuditResult) -> str:
    """Say in one line how the audit ended, and count the verdicts."""
    tally = notes.count_verdicts(result)
    counted = ", ".join(f"{n} {verdict}" for verdict, n in tally.items())
    words = "; ".join(_troubles(result, tally)) or _without_trouble(result, tally)
    return f"{words} ({counted or 'no subtopic was audited'})"


def _troubles(result: AuditResult, tally: dict[str, int]) -> Iterator[str]:
    n = len(result.subtopics)
    regressions = () if result.comparison is None else result.comparison.regressions
    if "FAIL" in tally:
        yield f"{tally['FAIL']} of {n} subtopics {_verb(tally['FAIL'], 'fails', 'fail')}"
    n_grown = sum(regression.verdict is Verdict.FAIL for regression in regressions)
    if n_grown:
        yield f"{n_grown} {_verb(n_grown, 'measure', 'measures')} grew by more than the margin since the baseline"
    if not result.is_competent:
        yield "the model is not competent, so nothing has passed"
    if "NO_DATA" in tally:
        yield f"{tally['NO_DATA']} of {n} subtopics could not be measured"
    if result.settings.inconclusive == "fail":
        required = [judgement for row in result.subtopics for judgement in result.required_of(row)]
        n_open = sum(one.verdict is Verdict.INCONCLUSIVE and not one.is_waived for one in required)
        n_open += sum(regression.verdict is Verdict.INCONCLUSIVE for regression in regressions)
        if n_open:
            yield f"{n_open} {_verb(n_open, 'verdict is', 'verdicts are')} open, and this run fails what is open"


def _without_trouble(result: AuditResult, tally: dict[str, int]) -> str:
    verdicts = {judgement.verdict for row in result.subtopics for judgement in result.required_of(row)}
    if not verdicts:
        return "no test required a limit, so nothing has passed"
    if not verdicts & {Verdict.PASS, Verdict.FAIL}:
        return "no limit could be decided, so nothing has passed"
    crossed = "no limit was crossed that has no waiver" if WAIVED in tally else "no limit was crossed"
    n_open = tally.get("INCONCLUSIVE", 0)
    if not n_open:
        return crossed
    return f"{crossed}, and {n_open} of {len(result.subtopics)} subtopics {_verb(n_open, 'is', 'are')} open"


def _verb(n: int, one: str, many: str) -> str:
    return one if n == 1 else many


def left_out(result: AuditResult) -> list[str]:
    """Say what was not audited, not seen and not measured."""
    paths, lines = result.settings.not_audited, list(notes.left_out(result))
    if paths:
        shown = ", ".join(_shortened([code(path) for path in paths]))
        lines.insert(0, f"{len(paths)} of {len(paths) + len(result.subtopics)} subtopics were not audited: {shown}")
    return [
        *lines,
        "Not measured: other stereotypes, other languages, other wordings, and what the model does in use.",
    ]


def _shortened(lines: list[str]) -> list[str]:
    n_more = len(lines) - MOST_OPEN
    return [*lines[:MOST_OPEN], *([f"and {n_more} more (result.json)"] if n_more > 0 else [])]


def _changed(regressions: list[Regression]) -> Iterator[str]:
    """Name the pairs of the measures that grew."""
    for regression in regressions:
        for what, changes in (("newly count", regression.flipped), ("count less", regression.fixed)):
            if changes and regression.verdict is Verdict.FAIL:
                yield f"{code(regression.path)} {code(regression.measure)} {what}: {_pair_ids(changes)}"


def _regression_cells(regression: Regression) -> list[str]:
    growth = regression.increase
    increase = signed_figures(growth)
    return [
        regression.verdict.value,
        code(regression.path),
        code(regression.measure),
        *map(number, (regression.baseline, regression.candidate)),
        increase if increase == NO_VALUE else f"{increase} / {regression.margin:.3f}",
        NO_VALUE if growth.value is None else f"{regression.p_adjusted:.4f}",
        f"{len(regression.flipped):,}",
        f"{len(regression.fixed):,}",
    ]


def _pair_ids(changes: tuple[Change, ...]) -> str:
    shown = ", ".join(f"{code(change.pair_id)} ({change.before} to {change.after})" for change in changes[:MOST_PAIRS])
    return shown if len(changes) <= MOST_PAIRS else f"{shown} and {len(changes) - MOST_PAIRS:,} more"
