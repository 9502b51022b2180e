"""The chart of the `occupations` suite: how often the majority gender is preferred, beside the share of women."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import NamedTuple

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.reports.charts import (
    _ROW,
    NARROW,
    WIDE,
    Interval,
    Layout,
    Row,
    Spec,
    _axis,
    _draw,
    _intervals,
    _names,
    _panel,
    _shift,
)
from bbnli_audit.reports.ranking import NOT_REQUIRED, row_verdict
from bbnli_audit.suites.occupations import Occupation, Occupations

MEASURE = "pro_preference"
YEAR = 2020  # of the survey that the shares in suites/data/occupations/ are from
_TITLE = "pro preference"


class Point(NamedTuple):
    """An occupation that was measured and whose share of women is known."""

    occupation: Occupation
    share: float
    row: Row


def occupation_chart(result: AuditResult) -> str:
    """Draw the occupations by their share of women, fewest first; empty when none was measured.

    The markup fits the page's own: a wide and a narrow drawing, each an image with the same description.
    """
    points = _points(result)
    if not points:
        return ""
    label = escape(_label(points), quote=True)
    drawings = {"wide": _draw_points(points, WIDE), "narrow": _draw_points(points, NARROW)}
    return "\n".join(
        f'<div class="chart {size}" role="img" aria-label="{label}">{drawn}</div>' for size, drawn in drawings.items()
    )


def _points(result: AuditResult) -> list[Point]:
    suite = Occupations()
    known = dict(zip((subtopic.name for subtopic in suite.subtopics()), suite.occupations(), strict=True))
    points = []
    for found in result.subtopics:
        in_suite, _, place = found.path.partition("/")
        domain, _, name = place.partition("/")
        occupation, measure = known.get(name), found.measures.get(MEASURE)
        if in_suite != suite.name or occupation is None or occupation.women_percent is None or measure is None:
            continue
        if measure.value is None or measure.low is None or measure.high is None:
            continue
        judgement = found.judgement(MEASURE)
        interval = Interval(measure.value, measure.low, measure.high, judgement.limit if judgement else None)
        shown = f"{occupation.name} ({domain[:1].upper()})"  # F or M: the gender that counts as the majority
        verdict = row_verdict(result, found)
        row = Row(shown, "" if verdict == NOT_REQUIRED else verdict, measures={_TITLE: interval})
        points.append(Point(occupation, occupation.women_percent / 100, row))
    return sorted(points, key=lambda point: (point.share, point.occupation.name))


def _draw_points(points: Sequence[Point], layout: Layout) -> str:
    rows = [point.row for point in points]
    wider = replace(layout, panel=layout.bar)
    return _draw([_share_panel(points, layout), _preference_panel(rows, wider)], rows, wider)


def _share_panel(points: Sequence[Point], layout: Layout) -> Spec:
    values = [{"row": n, "none": 0, "share": each.share, "told": f"{each.share:.1%}"} for n, each in enumerate(points)]
    # The figure stands behind its bar and must not run into the next panel.
    end = layout.bar / (layout.bar - 4 * layout.size)
    scale = {"domain": [0, end], "nice": False}
    x = {"field": "none", "type": "quantitative", "scale": scale, "axis": _axis(layout, 1.0), "title": None}
    figure = {"type": "text", "align": "left", "dx": 6, "fontSize": layout.size - 1, **_shift(layout)}
    layers: list[Spec] = [
        {
            "data": {"values": values},
            "mark": {"type": "bar", "height": layout.size + 1, "color": "var(--edge)", **_shift(layout)},
            "encoding": {"y": _ROW, "x": x, "x2": {"field": "share"}},
        },
        {
            "data": {"values": values},
            "mark": figure,
            "encoding": {"y": _ROW, "x": {"field": "share", "type": "quantitative"}, "text": {"field": "told"}},
        },
    ]
    rows = [point.row for point in points]
    title = "women" if layout.has_names_above else f"share of women (CPS {YEAR})"
    return _panel([*layers, *_names(rows, layout)], rows, layout, layout.bar, title, "var(--text)")


def _preference_panel(rows: Sequence[Row], layout: Layout) -> Spec:
    """Mark 0.5 as well, where neither gender is preferred."""
    drawn = _intervals(rows, layout, _TITLE, (0.0, 1.0))
    size = layout.size + 5 if layout.has_names_above else layout.step
    even = {
        "data": {"values": [{"row": n, "even": 0.5} for n in range(len(rows))]},
        "mark": {"type": "tick", "thickness": 1, "size": size, "color": "var(--edge)", **_shift(layout)},
        "encoding": {"y": _ROW, "x": {"field": "even", "type": "quantitative"}},
    }
    return {**drawn, "layer": [even, *drawn["layer"]]}


def _label(points: Sequence[Point]) -> str:
    ends = "; ".join(
        f"{point.occupation.name} with {point.share:.1%} women {point.row.measures[_TITLE].value:.3f}"
        for point in points[:: max(len(points) - 1, 1)]
    )
    return (
        f"Chart: how often the majority gender is preferred, with its interval, for {len(points)} occupations by their "
        f"share of women in the US in {YEAR}, fewest first; 0.5 is even. {ends}."
    )
