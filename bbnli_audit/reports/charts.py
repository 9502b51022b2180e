"""The charts of the page: Vega-Lite specifications, drawn as SVG when the report is written.

Colours are CSS variables of the page, so that one drawing follows light, dark and print.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Spec = dict[str, Any]
# What XML cannot hold: vl-convert ends the whole process on such a character.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

FONT = "-apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
CAUSES = ("pro", "anti", "brittleness")
VERDICT_COLORS = {"FAIL": "var(--fail)", "NO_DATA": "var(--fail)", "WAIVED": "var(--waived)", "PASS": "var(--pass)"}
# Rows are positions, not names: two suites may have a subtopic of the same name.
_ROW = {"field": "row", "type": "ordinal", "axis": None, "scale": {"paddingInner": 0, "paddingOuter": 0}}


@dataclass(frozen=True, slots=True)
class Layout:
    """One of the two drawings of a chart. Where `names` is 0 the names stand above the bars."""

    names: int
    bar: int
    panel: int
    step: int
    gap: int
    size: int
    n_ticks: int

    @property
    def has_names_above(self) -> bool:
        return not self.names


WIDE = Layout(names=248, bar=236, panel=126, step=30, gap=22, size=13, n_ticks=4)
NARROW = Layout(names=0, bar=98, panel=58, step=52, gap=12, size=12, n_ticks=1)


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its bounds, and where it is held to a limit the limit."""

    value: float
    low: float
    high: float
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One subtopic of a chart: measures by the short name of the panel they go to."""

    name: str
    verdict: str
    shares: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, Interval] = field(default_factory=dict)
    limit: float | None = None


def draw_causes(rows: Sequence[Row], layout: Layout) -> str:
    """Draw stacked shares of the three causes, then each with its interval and its limit."""
    top = _round_up(max([0.1, *(max(sum(row.shares.values()), row.limit or 0) for row in rows)]))
    intervals = [interval for row in rows for interval in row.measures.values()]
    reach = _round_up(max([0.1, *(max(interval.high, interval.limit or 0) for interval in intervals)]))
    panels = [_stacked(rows, layout, top)]
    panels += [_intervals(rows, layout, cause, (0.0, reach)) for cause in CAUSES]
    return _draw(panels, rows, layout)


def draw_increases(rows: Sequence[Row], panels: Sequence[str], layout: Layout) -> str:
    """Draw what each measure grew by since the baseline, with bounds and margin."""
    intervals = [interval for row in rows for interval in row.measures.values()]
    ends = [end for each in intervals for end in (each.low, each.high, each.limit or 0.0)]
    low, high = -_round_up(max([0.02, *(-end for end in ends)])), _round_up(max([0.02, *ends]))
    room = layout.bar + 3 * layout.panel + (3 - len(panels) + 1) * layout.gap
    wider = replace(layout, panel=room // len(panels))
    drawn = [_intervals(rows, wider, name, (low, high), has_zero=True, has_names=name == panels[0]) for name in panels]
    return _draw(drawn, rows, wider)


def _round_up(value: float) -> float:
    steps = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
    return next((step for step in steps if value <= step), 1.0)


def _stacked(rows: Sequence[Row], layout: Layout, top: float) -> Spec:
    segments, totals = [], []
    for n, row in enumerate(rows):
        start = 0.0
        for cause in CAUSES:
            share = row.shares.get(cause, 0.0)
            told = f"{share:.2f}" if share / top * layout.bar > 3.2 * layout.size else ""
            segments.append({"row": n, "cause": cause, "start": start, "end": start + share, "told": told})
            start += share
        told = f"{start:.3f}" if row.shares else "no data"
        is_near = row.limit is not None and 0 <= row.limit - start < 0.2 * top
        totals.append({"row": n, "end": row.limit if is_near else start, "told": told, **_limit(row.limit)})
    # The total stands behind its bar and must not run into the next panel.
    end = top * layout.bar / (layout.bar - 3.4 * layout.size)
    scale = {"domain": [0, end], "nice": False}
    x = {"field": "start", "type": "quantitative", "scale": scale, "axis": _axis(layout, top), "title": None}
    color = {
        "field": "cause",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(CAUSES), "range": [f"var(--{cause})" for cause in CAUSES]},
    }
    height = layout.size + 5
    bars: list[Spec] = [
        {
            "data": {"values": segments},
            "mark": {"type": "bar", "height": height, **_shift(layout)},
            "encoding": {"y": _ROW, "x": x, "x2": {"field": "end"}, "color": color},
        },
        {
            "data": {"values": [part for part in segments if part["told"]]},
            "transform": [{"calculate": "(datum.start + datum.end) / 2", "as": "middle"}],
            "mark": {"type": "text", "fontSize": layout.size - 2, "color": "var(--on-cause)", **_shift(layout)},
            "encoding": {"y": _ROW, "x": {"field": "middle", "type": "quantitative"}, "text": {"field": "told"}},
        },
        {
            "data": {"values": totals},
            "mark": {"type": "text", "align": "left", "dx": 6, "color": "var(--text)", **_shift(layout)},
            "encoding": {"y": _ROW, "x": {"field": "end", "type": "quantitative"}, "text": {"field": "told"}},
        },
        _limit_tick(totals, layout),
    ]
    title = "mispredicted" if layout.has_names_above else "mispredicted samples, by cause"
    return _panel([*bars, *_names(rows, layout)], rows, layout, layout.bar, title, "var(--text)")


def _intervals(
    rows: Sequence[Row],
    layout: Layout,
    name: str,
    domain: tuple[float, float],
    *,
    has_zero: bool = False,
    has_names: bool = False,
) -> Spec:
    values = [
        {"row": n, "value": each.value, "low": each.low, "high": each.high, **_limit(each.limit)}
        for n, row in enumerate(rows)
        if (each := row.measures.get(name)) is not None
    ]
    color = f"var(--{name})" if name in CAUSES else "var(--text)"
    scale = {"domain": list(domain), "nice": False}
    axis = _axis(layout, domain[1], domain[0])
    x = {"field": "low", "type": "quantitative", "scale": scale, "axis": axis, "title": None}
    layers: list[Spec] = [
        {
            "data": {"values": values},
            "mark": {"type": "rule", "color": color, "strokeWidth": 2, "opacity": 0.75, **_shift(layout)},
            "encoding": {"y": _ROW, "x": x, "x2": {"field": "high"}},
        },
        {
            "data": {"values": values},
            "mark": {"type": "point", "filled": True, "size": 62, "color": color, "opacity": 1, **_shift(layout)},
            "encoding": {"y": _ROW, "x": {"field": "value", "type": "quantitative"}},
        },
        _limit_tick(values, layout),
    ]
    if has_zero:
        size = layout.size + 5 if layout.has_names_above else layout.step
        zero: Spec = {"type": "tick", "thickness": 1, "size": size, "color": "var(--edge)", **_shift(layout)}
        zeros = {"values": [{"row": n, "zero": 0} for n in range(len(rows))]}
        x_zero = {"field": "zero", "type": "quantitative"}
        layers.insert(0, {"data": zeros, "mark": zero, "encoding": {"y": _ROW, "x": x_zero}})
    if has_names:
        layers += _names(rows, layout)
    return _panel(layers, rows, layout, layout.panel, name, color)


def _limit(limit: float | None) -> dict[str, float]:
    return {} if limit is None else {"limit": limit}


def _limit_tick(values: Sequence[Mapping[str, Any]], layout: Layout) -> Spec:
    return {
        "data": {"values": [value for value in values if "limit" in value]},
        "mark": {"type": "tick", "thickness": 2, "size": layout.size + 5, "color": "var(--text)", **_shift(layout)},
        "encoding": {"y": _ROW, "x": {"field": "limit", "type": "quantitative"}},
    }


def _shift(layout: Layout) -> Spec:
    """Leave room for the name above a bar."""
    return {"yOffset": 8} if layout.has_names_above else {}


def _names(rows: Sequence[Row], layout: Layout) -> list[Spec]:
    """Write each name once, left of the first panel or above its bar."""
    values = [{"row": n, "name": row.name} for n, row in enumerate(rows)]
    if not layout.has_names_above:
        mark: Spec = {"type": "text", "align": "right", "limit": layout.names - 12}
        place: Spec = {"value": -12}
    else:
        mark = {"type": "text", "align": "left", "yOffset": -13, "limit": 250}
        place = {"value": 0}
    encoding = {"y": _ROW, "x": place, "text": {"field": "name"}}
    return [{"data": {"values": values}, "mark": mark, "encoding": encoding}]


def _verdicts(rows: Sequence[Row], layout: Layout) -> Spec:
    values = [{"row": n, "verdict": row.verdict.replace("_", " "), "key": row.verdict} for n, row in enumerate(rows)]
    keys = list(dict.fromkeys(row.verdict for row in rows))
    color = {
        "field": "key",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": keys, "range": [VERDICT_COLORS.get(key, "var(--open)") for key in keys]},
    }
    above = layout.has_names_above
    place: Spec = {"align": "right", "yOffset": -13} if above else {"align": "left"}
    mark = {"type": "text", "fontSize": layout.size - 2, "fontWeight": 600, **place}
    layer = {
        "data": {"values": values},
        "mark": mark,
        "encoding": {"y": _ROW, "x": {"value": 0}, "text": {"field": "verdict"}, "color": color},
    }
    return _panel([layer], rows, layout, 1 if above else 100, "", "var(--text)")


def _axis(layout: Layout, top: float, bottom: float = 0.0) -> Spec:
    n_ticks = 1 if bottom else layout.n_ticks
    marks = [round(top * n / n_ticks, 4) for n in range(n_ticks + 1)]
    if bottom and -bottom / (top - bottom) * layout.panel > 3 * layout.size:
        marks.insert(0, bottom)
    return {
        "values": marks,
        "format": ".2~f",
        "orient": "top",
        "domain": False,
        "ticks": False,
        "grid": not layout.has_names_above,
        "gridColor": "var(--line)",
        "labelColor": "var(--muted)",
        "labelFontSize": layout.size - 1,
        "labelPadding": 5,
        "labelFlush": True,
    }


def _panel(layers: Sequence[Spec], rows: Sequence[Row], layout: Layout, width: int, title: str, color: str) -> Spec:
    heading = {
        "text": title,
        "anchor": "start",
        "frame": "group",
        "color": color,
        "fontSize": layout.size if not layout.has_names_above else layout.size - 1,
        "fontWeight": 600,
        "offset": 6,
    }
    return {"width": width, "height": layout.step * max(len(rows), 1), "title": heading, "layer": list(layers)}


def _draw(panels: Sequence[Spec], rows: Sequence[Row], layout: Layout) -> str:
    spec = {
        "background": None,
        "padding": 0,
        "spacing": layout.gap,
        "bounds": "flush",
        "hconcat": [*panels, _verdicts(rows, layout)],
        "resolve": {"scale": {"y": "shared", "color": "independent"}},
        "config": {
            "aria": False,
            "font": FONT,
            "view": {"stroke": None},
            "text": {"font": FONT, "fontSize": layout.size, "color": "var(--text)"},
            "bar": {"discreteBandSize": 18},
            "axis": {"labelFont": FONT},
            "title": {"font": FONT},
        },
    }
    return to_svg(spec)


def to_svg(spec: Spec) -> str:
    """Draw a specification; it has its data in it, and nothing is fetched."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(_drawable(spec), allowed_base_urls=[])
    found = re.match(r"<svg [^>]*?width=\"([\d.]+)\" height=\"([\d.]+)\" viewBox=\"([^\"]*)\">", drawn)
    if found is None:
        raise ValueError("the drawing does not begin with an svg element")
    width, height, box = found.groups()
    opening = f'<svg width="{width}" height="{height}" viewBox="{box}" aria-hidden="true" focusable="false">'
    return opening + drawn[found.end() :]


def _drawable(value: Any) -> Any:
    """Replace the characters that no drawing can hold, wherever a name stands."""
    if isinstance(value, dict):
        return {key: _drawable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_drawable(each) for each in value]
    return _NOT_XML.sub("\ufffd", value) if isinstance(value, str) else value
