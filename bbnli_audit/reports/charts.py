"""Draws the charts of the page: Vega-Lite specifications that become SVG when the report is written.

Colours are CSS variables of the page, so that a drawing fits light mode, dark mode and print.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bbnli_audit.core.results.rows import Measured
from bbnli_audit.core.words import figure
from bbnli_audit.reports.shown import cause_names

Spec = dict[str, Any]
# Characters that XML forbids: any of them makes vl-convert end the whole process.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

FONT = "-apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
VERDICT_COLORS = {"FAIL": "var(--fail)", "NO_DATA": "var(--fail)", "WAIVED": "var(--waived)", "PASS": "var(--pass)"}
# Rows are positions, not names: two suites may have a subtopic of the same name.
_ROW = {"field": "row", "type": "ordinal", "axis": None, "scale": {"paddingInner": 0, "paddingOuter": 0}}


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of a drawing, in pixels. If `names` is 0, names stand above the bars."""

    names: int  # the width of the names
    bar: int  # the width of the panel with bars
    panel: int  # the width of every panel without bars
    step: int  # the height of a row
    gap: int  # the space between panels
    size: int  # the size of the text
    n_ticks: int  # the most steps on the axis of a panel

    @property
    def has_names_above(self) -> bool:
        return not self.names


WIDE = Layout(names=248, bar=236, panel=126, step=30, gap=22, size=13, n_ticks=4)
NARROW = Layout(names=0, bar=98, panel=58, step=52, gap=12, size=12, n_ticks=1)


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its bounds, and its limit if it has one."""

    value: float
    low: float
    high: float
    limit: float | None = None

    @classmethod
    def of(cls, measured: Measured, limit: float | None) -> "Interval | None":
        if measured.value is None or measured.low is None or measured.high is None:
            return None
        return cls(measured.value, measured.low, measured.high, limit)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a chart: `shares` become bars. Each of `measures` is drawn in the panel that has its name."""

    name: str
    verdict: str
    shares: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, Interval] = field(default_factory=dict)
    limit: float | None = None  # the limit on the whole bar, that is, on the sum of all shares


Chart = Mapping[str, str]  # a wide and a narrow drawing, and a label that tells the chart in words


def make_chart(draw: Callable[[Layout], str], label: str) -> Chart:
    return {"wide": draw(WIDE), "narrow": draw(NARROW), "label": label}


def draw_causes(rows: Sequence[Row], layout: Layout) -> str:
    """Draw the shares of the three causes as stacked bars, then each cause with its interval and limit."""
    top = round_up(max([0.1, *(max(sum(row.shares.values()), row.limit or 0) for row in rows)]))
    intervals = [interval for row in rows for interval in row.measures.values()]
    reach = round_up(max([0.1, *(max(interval.high, interval.limit or 0) for interval in intervals)]))
    panels = [_interval_panel(rows, layout, cause, (0.0, reach)) for cause in cause_names()]
    return _draw([_stacked_panel(rows, layout, top), *panels], rows, layout)


def draw_increases(rows: Sequence[Row], panels: Sequence[str], layout: Layout) -> str:
    """Draw how much each measure grew since the baseline, with bounds and margin."""
    intervals = [interval for row in rows for interval in row.measures.values()]
    ends = [end for each in intervals for end in (each.low, each.high, each.limit or 0.0)]
    low, high = -round_up(max([0.02, *(-end for end in ends)])), round_up(max([0.02, *ends]))
    room = layout.bar + 3 * layout.panel + (3 - len(panels) + 1) * layout.gap
    wider = replace(layout, panel=room // len(panels))
    return _draw([_interval_panel(rows, wider, name, (low, high), line=0) for name in panels], rows, wider)


def draw_preferences(rows: Sequence[Row], name: str, layout: Layout, share: str = "") -> str:
    """Draw a measure for which 0.5 means no preference. With `share`, a panel of shares with this title comes first."""
    wider = replace(layout, panel=layout.bar)
    panels = [_interval_panel(rows, wider, name, (0.0, 1.0), line=0.5)]
    if share:
        panels.insert(0, _share_panel(rows, layout, share))
    return _draw(panels, rows, wider)


def round_up(value: float) -> float:
    """Round up to a value at which an axis can end. Nothing drawn is above 2, the most by which lean can grow."""
    steps = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5)
    return next((step for step in steps if value <= step), 2.0)


def _stacked_panel(rows: Sequence[Row], layout: Layout, top: float) -> Spec:
    causes = cause_names()
    segments: list[Spec] = []
    totals: list[Spec] = []
    for n, row in enumerate(rows):
        start = 0.0
        for cause in causes:
            share = row.shares.get(cause, 0.0)
            told = f"{share:.2f}" if share / top * layout.bar > 3.2 * layout.size else ""
            segments.append({"row": n, "cause": cause, "start": start, "end": start + share, "told": told})
            start += share
        told = figure(start) if row.shares else "no data"
        is_near = row.limit is not None and 0 <= row.limit - start < 0.2 * top
        totals.append({"row": n, "end": row.limit if is_near else start, "told": told, "limit": row.limit})
    # The total stands after its bar and must not run into the next panel.
    end = top * layout.bar / (layout.bar - 3.4 * layout.size)
    colors = _colors("cause", {cause: f"var(--{cause})" for cause in causes})
    bar = _mark(layout, "bar", height=layout.size + 5)
    told_ones = [{**part, "middle": (part["start"] + part["end"]) / 2} for part in segments if part["told"]]
    layers = [
        _layer(segments, bar, _scaled("start", (0, end), _axis(layout, top)), x2={"field": "end"}, color=colors),
        _texts(told_ones, layout, "middle", fontSize=layout.size - 2, color="var(--on-cause)"),
        _texts(totals, layout, "end", align="left", dx=6, color="var(--text)"),
        _limit_ticks(totals, layout),
    ]
    title = "mispredicted" if layout.has_names_above else "mispredicted samples, by cause"
    return _panel(layers, rows, layout, layout.bar, title)


def _share_panel(rows: Sequence[Row], layout: Layout, title: str) -> Spec:
    values = [
        {"row": n, "none": 0, "share": share, "told": f"{share:.1%}"}
        for n, row in enumerate(rows)
        for share in row.shares.values()
    ]
    # The figure stands after its bar and must not run into the next panel.
    end = layout.bar / (layout.bar - 4 * layout.size)
    bar = _mark(layout, "bar", height=layout.size + 1, color="var(--edge)")
    layers = [
        _layer(values, bar, _scaled("none", (0, end), _axis(layout, 1.0)), x2={"field": "share"}),
        _texts(values, layout, "share", align="left", dx=6, fontSize=layout.size - 1),
    ]
    return _panel(layers, rows, layout, layout.bar, title)


def _interval_panel(
    rows: Sequence[Row], layout: Layout, name: str, domain: tuple[float, float], line: float | None = None
) -> Spec:
    """Draw the values of one measure with their intervals. `line` is a value to mark in every row."""
    values = [
        {"row": n, "value": each.value, "low": each.low, "high": each.high, "limit": each.limit}
        for n, row in enumerate(rows)
        if (each := row.measures.get(name)) is not None
    ]
    color = f"var(--{name})" if name in cause_names() else "var(--text)"
    x = _scaled("low", domain, _axis(layout, domain[1], domain[0]))
    rule = _mark(layout, "rule", color=color, strokeWidth=2, opacity=0.75)
    layers = [
        _layer(values, rule, x, x2={"field": "high"}),
        _layer(values, _mark(layout, "point", filled=True, size=62, color=color, opacity=1), _at("value")),
        _limit_ticks(values, layout),
    ]
    if line is not None:
        size = layout.size + 5 if layout.has_names_above else layout.step
        lines = [{"row": n, "line": line} for n in range(len(rows))]
        layers.insert(0, _layer(lines, _mark(layout, "tick", thickness=1, size=size, color="var(--edge)"), _at("line")))
    return _panel(layers, rows, layout, layout.panel, name, color)


def _limit_ticks(values: Iterable[Mapping[str, Any]], layout: Layout) -> Spec:
    tick = _mark(layout, "tick", thickness=2, size=layout.size + 5, color="var(--text)")
    return _layer([value for value in values if value["limit"] is not None], tick, _at("limit"))


def _names(rows: Sequence[Row], layout: Layout) -> Spec:
    """Write the name of each row once, left of the first panel or above the bar of the row."""
    if layout.has_names_above:
        mark, place = {"type": "text", "align": "left", "yOffset": -13, "limit": 250}, 0
    else:
        mark, place = {"type": "text", "align": "right", "limit": layout.names - 12}, -12
    values = [{"row": n, "name": row.name} for n, row in enumerate(rows)]
    return _layer(values, mark, {"value": place}, text={"field": "name"})


def _verdict_panel(rows: Sequence[Row], layout: Layout) -> Spec:
    values = [{"row": n, "verdict": row.verdict.replace("_", " "), "key": row.verdict} for n, row in enumerate(rows)]
    colors = {row.verdict: VERDICT_COLORS.get(row.verdict, "var(--open)") for row in rows}
    above = layout.has_names_above
    place: Spec = {"align": "right", "yOffset": -13} if above else {"align": "left"}
    mark = {"type": "text", "fontSize": layout.size - 2, "fontWeight": 600, **place}
    layer = _layer(values, mark, {"value": 0}, text={"field": "verdict"}, color=_colors("key", colors))
    return _panel([layer], rows, layout, 1 if above else 100, "")


def _layer(values: Sequence[Mapping[str, Any]], mark: Spec, x: Spec, **encoding: Spec) -> Spec:
    return {"data": {"values": list(values)}, "mark": mark, "encoding": {"y": _ROW, "x": x, **encoding}}


def _texts(values: Sequence[Mapping[str, Any]], layout: Layout, place: str, **how: Any) -> Spec:
    """Write the text of each value."""
    return _layer(values, _mark(layout, "text", **how), _at(place), text={"field": "told"})


def _mark(layout: Layout, kind: str, **how: Any) -> Spec:
    """Describe a mark; leave room above it if names stand above the bars."""
    return {"type": kind, **how, **({"yOffset": 8} if layout.has_names_above else {})}


def _at(name: str) -> Spec:
    return {"field": name, "type": "quantitative"}


def _scaled(name: str, domain: tuple[float, float], axis: Spec) -> Spec:
    return {**_at(name), "scale": {"domain": list(domain), "nice": False}, "axis": axis, "title": None}


def _colors(name: str, colors: Mapping[str, str]) -> Spec:
    scale = {"domain": list(colors), "range": list(colors.values())}
    return {"field": name, "type": "nominal", "legend": None, "scale": scale}


def _axis(layout: Layout, top: float, bottom: float = 0.0) -> Spec:
    n_ticks = 1 if bottom else _count_ticks(top, layout.n_ticks)
    marks = [round(top * n / n_ticks, 4) for n in range(n_ticks + 1)]
    if bottom and -bottom / (top - bottom) * layout.panel > 3 * layout.size:
        marks.insert(0, bottom)
    return {"values": marks, "format": ".2~f"}


def _count_ticks(top: float, most: int) -> int:
    """Return the largest number of steps, up to `most`, whose size needs at most two decimal places."""
    return next((n for n in range(most, 1, -1) if round(top / n, 2) == round(top / n, 9)), 1)


def _panel(
    layers: list[Spec], rows: Sequence[Row], layout: Layout, width: int, title: str, color: str = "var(--text)"
) -> Spec:
    heading = {"text": title, "color": color}
    return {"width": width, "height": layout.step * max(len(rows), 1), "title": heading, "layer": layers}


def _draw(panels: Sequence[Spec], rows: Sequence[Row], layout: Layout) -> str:
    """Draw panels side by side, with the names of the rows in the first panel and their verdicts in the last panel."""
    above = layout.has_names_above
    panels[0]["layer"].append(_names(rows, layout))
    axis = {"orient": "top", "domain": False, "ticks": False, "grid": not above, "gridColor": "var(--line)"}
    labels = {"labelFont": FONT, "labelColor": "var(--muted)", "labelPadding": 5, "labelFlush": True}
    title = {"anchor": "start", "frame": "group", "offset": 6, "font": FONT, "fontWeight": 600}
    spec = {
        "background": None,
        "padding": 0,
        "spacing": layout.gap,
        "bounds": "flush",
        "hconcat": [*panels, _verdict_panel(rows, layout)],
        "resolve": {"scale": {"y": "shared", "color": "independent"}},
        "config": {
            "aria": False,
            "font": FONT,
            "view": {"stroke": None},
            "text": {"font": FONT, "fontSize": layout.size, "color": "var(--text)"},
            "bar": {"discreteBandSize": 18},
            "axis": {**axis, **labels, "labelFontSize": layout.size - 1},
            "title": {**title, "fontSize": layout.size - 1 if above else layout.size},
        },
    }
    return _to_svg(spec)


def _to_svg(spec: Spec) -> str:
    """Turn a specification into an SVG element. The specification contains its data, so nothing is fetched."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(_drawable(spec), allowed_base_urls=[])
    found = re.match(r"<svg [^>]*?width=\"([\d.]+)\" height=\"([\d.]+)\" viewBox=\"([^\"]*)\">", drawn)
    if found is None:
        raise ValueError("the drawing does not begin with an svg element")
    width, height, box = found.groups()
    opening = f'<svg width="{width}" height="{height}" viewBox="{box}" aria-hidden="true" focusable="false">'
    return opening + drawn[found.end() :]


def _drawable(value: Any) -> Any:
    """Replace the characters that a drawing cannot contain, in all texts of a specification."""
    if isinstance(value, dict):
        return {key: _drawable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_drawable(each) for each in value]
    return _NOT_XML.sub("\ufffd", value) if isinstance(value, str) else value
