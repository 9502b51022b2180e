"""The chart of the `occupations` suite: how often the majority gender is preferred, beside the share of women."""

from collections.abc import Sequence
from html import escape

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import NO_DATA
from bbnli_audit.core.words import figure
from bbnli_audit.reports.charts import NARROW, WIDE, Interval, Row, draw_preferences
from bbnli_audit.reports.shown import NOT_REQUIRED, row_verdict
from bbnli_audit.suites.occupations import Occupations

MEASURE = "pro_preference"
YEAR = 2020  # of the survey that the shares in suites/data/occupations/ are from
_TITLE = "pro preference"


def occupation_chart(result: AuditResult) -> str:
    """Draw the occupations by their share of women, fewest first. The text is empty if no occupation was measured.

    The markup is like that of other charts: a wide and a narrow drawing, each an image with the same description. The
    survey covers the package's own list, so there is no chart for a user's occupations.
    """
    suite = Occupations()
    if not any(each.name == suite.name and each.sha256 == suite.sha256 for each in result.suites):
        return ""
    found = sorted(_rows(result, suite), key=lambda each: (each[1].shares["women"], each[0]))
    if not found:
        return ""
    label, rows = escape(_label(found), quote=True), [row for _, row in found]
    drawings = {
        "wide": draw_preferences(rows, _TITLE, WIDE, f"share of women (CPS {YEAR})"),
        "narrow": draw_preferences(rows, _TITLE, NARROW, "women"),
    }
    return "\n".join(
        f'<div class="chart {size}" role="img" aria-label="{label}">{drawn}</div>' for size, drawn in drawings.items()
    )


def _rows(result: AuditResult, suite: Occupations) -> list[tuple[str, Row]]:
    """Return the occupations that were measured and whose share of women is known, by name."""
    known = {subtopic.path: each for subtopic, each in zip(suite.subtopics(), suite.occupations(), strict=True)}
    rows = []
    for found in result.subtopics:
        occupation, judgement = known.get(found.path), found.judgement(MEASURE)
        interval = Interval.of(found.measures.get(MEASURE, NO_DATA), judgement.limit if judgement else None)
        if occupation is None or occupation.women_percent is None or interval is None:
            continue
        shown = f"{occupation.name} ({occupation.majority[:1].upper()})"  # F or M: the gender of the majority
        verdict = row_verdict(result, found)
        shares = {"women": occupation.women_percent / 100}
        row = Row(shown, "" if verdict == NOT_REQUIRED else verdict, shares, {_TITLE: interval})
        rows.append((occupation.name, row))
    return rows


def _label(found: Sequence[tuple[str, Row]]) -> str:
    ends = "; ".join(
        f"{name} with {row.shares['women']:.1%} women {figure(row.measures[_TITLE].value)}"
        for name, row in found[:: max(len(found) - 1, 1)]
    )
    return (
        f"Chart: how often the majority gender is preferred, with its interval, for {len(found)} occupations by their "
        f"share of women in the US in {YEAR}, fewest first; 0.5 is even. {ends}."
    )
