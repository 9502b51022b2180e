"""summary.md: what an audit found, for people who look at a CI job. Pairs are named by their ids alone."""

from collections.abc import Iterator

from bbnli_audit.core.results.audit import AuditResult, SuiteInfo, Verdict
from bbnli_audit.core.results.comparison import Change, Comparison, Regression
from bbnli_audit.reports import notes, second
from bbnli_audit.reports.markdown import NO_VALUE, bullets, code, subtopic_table, table
from bbnli_audit.reports.ranking import WAIVED

MOST_OPEN = 50
MOST_PAIRS = 5
LAST_WORDS = "A pass says: no limit was crossed on these pairs."
NOT_MEASURED = "Not measured: other stereotypes, other languages, other wordings, and what the model does in use."


def summary_markdown(result: AuditResult) -> str:
    """Tell a whole audit on one page."""
    return "\n\n".join((*_parts(result), LAST_WORDS)) + "\n"


def _parts(result: AuditResult) -> Iterator[str]:
    yield f"# Bias audit: {verdict_in_words(result)}"
    yield bullets(_subjects(result))
    yield "## Subtopics, worst first"
    yield subtopic_table(result)
    yield f"Figures: value ({result.settings['confidence']:.0%} interval) / limit; without a limit where no test asked."
    yield notes.audited(result)
    yield "\n".join(notes.competence(result, code))
    open_ones = notes.left_open(result, code)
    if open_ones:
        yield "## Open for want of pairs"
        yield bullets(_shortened(open_ones))
    if result.comparison is not None:
        yield "## Against the baseline"
        yield from _compared(result.comparison)
    if result.second_model is not None:
        yield "## Agreement with a second model"
        titles = second.agreement_titles(result.second_model, code)
        yield table(titles, second.agreement_rows(result.second_model, code))
        yield "\n".join(second.agreement_notes(result.second_model, code))
    if result.second_prompt is not None:
        yield "## Prompt sensitivity"
        yield table(second.prompt_titles(), second.prompt_rows(result.second_prompt, code))
        yield "\n".join(second.prompt_notes(result.second_prompt, code))
    waivers = notes.waived(result, code)
    if waivers:
        yield "## Waivers"
        yield waivers[0]
        yield bullets(waivers[1:])
    yield "## Left out"
    yield bullets((*not_audited(result), *notes.left_out(result), NOT_MEASURED))


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
    if result.settings.get("inconclusive") == "fail":
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


def _subjects(result: AuditResult) -> Iterator[str]:
    """Say which model was measured on what, and held to which limits."""
    model, settings = result.model, result.settings
    labels = ", ".join(code(label) for label in model.labels)
    yield (
        f"Model: {code(model.name)} ({code(model.kind)}, {code(model.backend)}, {code(model.dtype)}; labels {labels}; "
        f"fingerprint {code(model.fingerprint[:12])})"
    )
    yield from (f"Suite: {describe_suite(suite)}" for suite in result.suites)
    yield (
        f"Limits: {code(str(settings['thresholds']))}, decide {settings['decide']} at {settings['confidence']:.0%}, "
        f"inconclusive: {settings['inconclusive']}"
    )


def describe_suite(suite: SuiteInfo) -> str:
    return (
        f"{code(suite.name)} {code(suite.version)} (groups exchanged: {code(suite.pairing)}; sha256 "
        f"{code(suite.sha256)})"
    )


def not_audited(result: AuditResult) -> Iterator[str]:
    paths = result.settings.get("not_audited", ())
    if paths:
        shown = ", ".join(_shortened([code(path) for path in paths]))
        yield f"{len(paths)} of {len(paths) + len(result.subtopics)} subtopics were not audited: {shown}"


def _shortened(lines: list[str]) -> list[str]:
    n_more = len(lines) - MOST_OPEN
    return [*lines[:MOST_OPEN], *([f"and {n_more} more (result.json)"] if n_more > 0 else [])]


def _compared(comparison: Comparison) -> Iterator[str]:
    yield "\n".join(notes.against_baseline(comparison, code))
    shown = notes.grown(comparison, Verdict.FAIL, Verdict.NO_DATA, Verdict.INCONCLUSIVE)
    if shown:
        titles = ("verdict", "subtopic", "measure", "baseline", "now", "increase (bounds) / margin", "adjusted p")
        yield table((*titles, "newly count", "count less"), map(_regression_cells, shown), n_left=3)
        yield (
            "Increase: now less baseline, on the shared pairs; each bound holds by itself. Pairs that newly count "
            "towards the measure, or count more, or less, than before."
        )
    changed = [
        f"{code(regression.path)} {code(regression.measure)} {what}: {_pair_ids(changes)}"
        for regression in shown
        if regression.verdict is Verdict.FAIL
        for what, changes in (("newly count", regression.flipped), ("count less", regression.fixed))
        if changes
    ]
    if changed:
        yield bullets(changed)
    loosened = notes.loosened(comparison, code)
    if loosened:
        yield bullets(loosened)


def _regression_cells(regression: Regression) -> list[str]:
    growth = regression.increase
    increase = NO_VALUE
    if growth.value is not None and growth.low is not None and growth.high is not None:
        increase = f"{growth.value:+.3f} ({growth.low:+.3f} to {growth.high:+.3f}) / {regression.margin:.3f}"
    return [
        regression.verdict.value,
        code(regression.path),
        code(regression.measure),
        *(NO_VALUE if value is None else f"{value:.3f}" for value in (regression.baseline, regression.candidate)),
        increase,
        NO_VALUE if growth.value is None else f"{regression.p_adjusted:.4f}",
        f"{len(regression.flipped):,}",
        f"{len(regression.fixed):,}",
    ]


def _pair_ids(changes: tuple[Change, ...]) -> str:
    shown = ", ".join(f"{code(change.pair_id)} ({change.before} to {change.after})" for change in changes[:MOST_PAIRS])
    return shown if len(changes) <= MOST_PAIRS else f"{shown} and {len(changes) - MOST_PAIRS:,} more"
