"""Places the lines and marks of a small drawing. The template draws them in the colours of the page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bbnli_audit.core.words import figure
from bbnli_audit.reports.charts import round_up
from bbnli_audit.reports.history.trends import Point, Trend
from bbnli_audit.reports.markdown import figures
from bbnli_audit.reports.shown import measure_name

WIDTH, HEIGHT = 300, 132
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 8, 24
_LONGEST = 18  # characters of a release's name below a drawing


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of values that a drawing shows. Drawings of the same measure at the same level have the same scale."""

    low: float
    high: float

    @classmethod
    def of(cls, trends: Iterable[Trend]) -> "Scale":
        ends = [0.0]
        for trend in trends:
            for point in trend.points:
                bounds = (point.measured.value, point.measured.low, point.measured.high)
                ends += [*trend.limits_at(point), *(end for end in bounds if end is not None)]
        low, high = min(ends), round_up(max(0.1, *ends))
        return cls(-round_up(-low) if low < 0 else 0.0, high)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(_TOP + (1 - share) * (HEIGHT - _TOP - _BOTTOM), 1)


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing. `line`, `intervals`, `limits` and each value of `marks` are SVG paths (the `d` attribute)."""

    name: str
    label: str  # the drawing in words
    newest: Point
    line: str
    intervals: str
    limits: str
    marks: dict[str, str]  # verdict -> the marks of all points with this verdict
    ticks: list[tuple[float, str]]  # the height of each tick, and the value written beside it
    ends: tuple[str, str]  # the names of the first and the last release


def draw(trend: Trend, labels: Sequence[str], scale: Scale) -> Plot:
    """Draw a trend over the releases that `labels` names."""
    xs = _places(len(labels))
    marks: dict[str, str] = {}
    for point in trend.points:
        assert point.measured.value is not None
        # A cross for FAIL. For any other verdict a dot, drawn as a line of length 0 with round ends.
        mark = "m-4-4l8 8m0-8l-8 8" if point.verdict == "FAIL" else "h0"
        at = f"M{xs[point.place]} {scale.y(point.measured.value)}"
        marks[point.verdict.lower()] = marks.get(point.verdict.lower(), "") + at + mark
    return Plot(
        name=measure_name(trend.measure),
        label=_describe(trend, len(labels)),
        newest=trend.points[-1],
        line=_line(trend.points, xs, scale),
        intervals="".join(_interval(point, xs, scale) for point in trend.points),
        limits="".join(_limits(trend, xs, scale)),
        marks=marks,
        ticks=[(scale.y(value), figure(value, 2)) for value in dict.fromkeys((scale.low, 0.0, scale.high))],
        ends=(_shortened(labels[0]), _shortened(labels[-1]) if len(labels) > 1 else ""),
    )


def _places(n: int) -> list[float]:
    if n == 1:
        return [(WIDTH + _LEFT - _RIGHT) / 2]
    room = WIDTH - _LEFT - _RIGHT - 16
    return [round(_LEFT + 8 + room * place / (n - 1), 1) for place in range(n)]


def _line(points: Sequence[Point], xs: Sequence[float], scale: Scale) -> str:
    """Join the points of neighbouring releases that were measured on the same data."""
    drawn, before = "", None
    for point in points:
        is_next = before is not None and before.place == point.place - 1 and before.data == point.data
        drawn += f"{'L' if is_next else 'M'}{xs[point.place]} {scale.y(point.measured.value or 0.0)}"
        before = point
    return drawn


def _interval(point: Point, xs: Sequence[float], scale: Scale) -> str:
    low, high = point.measured.low, point.measured.high
    return "" if low is None or high is None else f"M{xs[point.place]} {scale.y(low)}V{scale.y(high)}"


def _limits(trend: Trend, xs: Sequence[float], scale: Scale) -> Iterable[str]:
    """Draw the limits of each release as horizontal lines, which reach half way to the releases on either side."""
    half = (xs[1] - xs[0]) / 2 if len(xs) > 1 else 12
    for point in trend.points:
        for limit in trend.limits_at(point):
            yield f"M{round(xs[point.place] - half, 1)} {scale.y(limit)}h{round(2 * half, 1)}"


def _describe(trend: Trend, n_releases: int) -> str:
    first, newest = trend.points[0], trend.points[-1]
    verdict = "" if newest.verdict == "NOT_REQUIRED" else f", {newest.verdict.replace('_', ' ')}"
    told = f"{figures(newest.measured)} in {newest.label}{verdict}"
    if first is not newest:
        told = f"{figures(first.measured)} in {first.label}, {told}"
    return f"Chart: {measure_name(trend.measure)} over {n_releases} releases: {told}. The table below has all numbers."


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
