"""The chart of the `occupations` suite: how often the majority gender is preferred, beside the share of women."""

from collections.abc import Sequence

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import NO_DATA
from bbnli_audit.core.words import figure
from bbnli_audit.reports.charts import Chart, Interval, Layout, Row, draw_preferences, make_chart
from bbnli_audit.reports.shown import NOT_REQUIRED, row_verdict
from bbnli_audit.suites.occupations import Occupations

MEASURE = "pro_preference"
YEAR = 2020  # the year of the survey that gave the shares in suites/data/occupations/
_TITLE = "pro preference"


def occupation_chart(result: AuditResult) -> Chart | None:
    """Draw the occupations in order of their share of women, smallest first.

    Return None if no occupation was measured. Also return None if the result is about another list of occupations than
    the package's, because the shares are from the package's list.
    """
    suite = Occupations()
    if not any(each.name == suite.name and each.sha256 == suite.sha256 for each in result.suites):
        return None
    found = sorted(_rows(result, suite), key=lambda each: (each[1].shares["women"], each[0]))
    if not found:
        return None
    rows = [row for _, row in found]

    def draw(layout: Layout) -> str:
        share = "women" if layout.has_names_above else f"share of women (CPS {YEAR})"
        return draw_preferences(rows, _TITLE, layout, share)

    return make_chart(draw, _label(found))


def _rows(result: AuditResult, suite: Occupations) -> list[tuple[str, Row]]:
    """Return the name and the row of each occupation that was measured and whose share of women is known."""
    known = {subtopic.path: each for subtopic, each in zip(suite.subtopics(), suite.occupations(), strict=True)}
    rows = []
    for found in result.subtopics:
        occupation, judgement = known.get(found.path), found.judgement(MEASURE)
        interval = Interval.of(found.measures.get(MEASURE, NO_DATA), judgement.limit if judgement else None)
        if occupation is None or occupation.women_percent is None or interval is None:
            continue
        shown = f"{occupation.name} ({occupation.majority[:1].upper()})"  # the gender of the majority: F or M
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
