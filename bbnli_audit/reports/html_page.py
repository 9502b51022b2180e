"""report.html, and the page of a comparison: self-contained files that fetch nothing.

report.html shows sentences only on request; the page of a comparison has none.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Judgement, SubtopicResult
from bbnli_audit.core.words import counted, figure
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.readings.table import LETTERS, PairTable
from bbnli_audit.reports.charts import Chart, draw_causes, draw_increases, draw_preferences, make_chart
from bbnli_audit.reports.decision import DECIDED, decide
from bbnli_audit.reports.notes import count_verdicts
from bbnli_audit.reports.occupation_chart import occupation_chart
from bbnli_audit.reports.page_data import (
    chart_rows,
    increase_rows,
    ordered_regressions,
    outcome_words,
    payload,
    sections,
    to_inert_json,
    wordings,
)
from bbnli_audit.reports.shown import (
    NOT_REQUIRED,
    WAIVED,
    WORST_FIRST,
    by_level,
    cause_names,
    joined,
    judged_levels,
    leading_measures,
    level_measures,
    levels,
    measure_name,
)
from bbnli_audit.reports.templates import read_asset, render

# The words after "3 of 16 subtopics" in the line of verdicts: first the form for one row, then for several rows.
_SAID = {
    "FAIL": ("crosses a limit", "cross a limit"),
    "NO_DATA": ("has no usable pair", "have no usable pair"),
    WAIVED: ("needs its waiver", "need their waivers"),
    "INCONCLUSIVE": ("is undecided", "are undecided"),
    "PASS": ("crosses no limit on these pairs", "cross no limit on these pairs"),
    NOT_REQUIRED: ("was held to no limit", "were held to no limit"),
}


def render_page(result: AuditResult, pairs: PairTable) -> str:
    """Return report.html. `pairs` must have sentences (`with_texts`). The same input gives the same bytes."""
    shown, words, explained = sections(result, pairs), outcome_words(pairs.reading), wordings(result, pairs)
    above = levels(result)
    return _render(
        "page.html.jinja",
        result,
        script=read_asset("page.js"),
        data=to_inert_json(payload(result, pairs, shown, explained)),
        decision=decide(result),
        decided=DECIDED,
        verdict=_verdict_line(result),
        n_pairs=len(pairs),
        suites=[(s.name, f"version {s.version}, pairing {s.pairing}, sha256 {s.sha256[:12]}") for s in result.suites],
        sections=shown,
        wordings=explained,
        measures=list(dict.fromkeys(name for section in shown for name in section.measures)),
        letters=[letter for letter in LETTERS if any(letter in cell for cell in words)],
        words=words,
        leading=_leading_chart(result),
        occupations=occupation_chart(result),
        levels=above,
        judged_levels=judged_levels(result),
        level_judgements=_level_judgements(result, above),
        level_measures=level_measures(result),
        anchors={row.path: f"level-{n}" for n, row in enumerate(above)}
        | {section.row.path: section.anchor for section in shown},
    )


def _level_judgements(result: AuditResult, rows: Sequence[SubtopicResult]) -> list[tuple[SubtopicResult, Judgement]]:
    """Return the verdicts on suites and domains that are not PASS or have a waiver, the worst first."""
    found = [(row, one) for row in rows for one in result.required_of(row) if one.verdict != "PASS" or one.waiver]
    return sorted(found, key=lambda each: WORST_FIRST.index(each[1].verdict))


def render_comparison(result: AuditResult) -> str:
    """Return a page with only the comparison with the baseline. It has names, numbers and pair ids, but no script."""
    return _render("comparison.html.jinja", result, script="", anchors={})


def _render(template: str, result: AuditResult, *, script: str, **values: Any) -> str:
    reading = reading_of(result.model.kind)
    return render(
        template,
        result,
        reading=reading,
        labels=reading.by_letter,
        policy=content_policy(script),
        css=read_asset("page.css"),
        script=script,
        regressions=ordered_regressions(result),
        increases=_increase_chart(result),
        **values,
    )


def content_policy(script: str) -> str:
    """Return a content security policy that allows nothing from outside, and no script but our own."""
    allowed = f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" if script else "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )


def _verdict_line(result: AuditResult) -> str:
    """Say how many suites, domains and subtopics have which verdict. Each level has a sentence, unless all pass."""
    rows = [(level, members) for level, members in by_level(result) if members or level == "subtopic"]
    tallies = [(count_verdicts(result, members), level, len(members)) for level, members in rows]
    if all(list(tally) == ["PASS"] for tally, *_ in tallies):
        return f"No limit was crossed on these pairs, in {joined([counted(n, level) for _, level, n in tallies])}."
    said = []
    for tally, level, n in tallies:
        (first, n_first), *others = tally.items() or [(NOT_REQUIRED, 0)]
        parts = [f"{count} {_SAID[verdict][count != 1]}" for verdict, count in others]
        who = f"The {level}" if n == n_first == 1 else f"{n_first} of {counted(n, level)}"
        said.append("; ".join([f"{who} {_SAID[first][n_first != 1]}", *parts]) + ".")
    return " ".join(said)


def _leading_chart(result: AuditResult) -> Chart:
    """Draw the causes of error or, for a model that is read by its likelihoods, its preference."""
    rows = chart_rows(result)
    worst = next((row for row in rows if row.shares), None)
    shares = ", ".join(f"{name} {figure(share)}" for name, share in worst.shares.items()) if worst else ""
    example = f" First is {worst.name}: {shares}." if worst else ""
    about = f"for {counted(len(rows), 'subtopic')}, worst first.{example} The table below has all numbers."
    if result.has_task:
        label = f"Chart: mispredicted samples by cause, and each cause with its interval and limit, {about}"
        return make_chart(lambda layout: draw_causes(rows, layout), label)
    (name,) = map(measure_name, leading_measures(result))
    label = f"Chart: {name} with interval and limit, {about}"
    return make_chart(lambda layout: draw_preferences(rows, name, layout), label)


def _increase_chart(result: AuditResult) -> Chart | None:
    rows = increase_rows(result)
    names = dict.fromkeys(measure_name(regression.measure) for regression in ordered_regressions(result))
    first = [name for name in (measure_name("lean"), *cause_names()) if name in names]
    panels = list(dict.fromkeys([*first, *names]))
    if not panels:
        return None
    label = (
        f"Chart: growth of {', '.join(panels)} since the baseline with bounds and margin, for "
        f"{len(rows)} suites, domains and subtopics, worst first. The table below has all numbers."
    )
    return make_chart(lambda layout: draw_increases(rows, panels, layout), label)
