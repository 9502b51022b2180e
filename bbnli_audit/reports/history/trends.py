"""Collects each measure of each suite, domain and subtopic over the releases of a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Measured, SubtopicResult, SuiteInfo
from bbnli_audit.core.values import level_of
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports.history.releases import Entry, Series
from bbnli_audit.reports.shown import measure_verdict, row_growth, row_verdict, shown_measures


@dataclass(frozen=True, slots=True)
class Point:
    """A measure in one release."""

    place: int  # the position of the release in its series
    label: str  # the name of the release
    measured: Measured
    limit: float | None
    verdict: str
    data: object  # points measured on different data are not joined by a line


@dataclass(frozen=True, slots=True)
class Trend:
    """One measure of one suite, domain or subtopic over releases. A release without a value has no point."""

    path: str
    measure: str
    points: tuple[Point, ...]

    def limits_at(self, point: Point) -> list[float]:
        """Return the limits to draw at a point: none, one, or two if the measure is two-sided."""
        measure = find_measure(self.measure)
        if point.limit is None:
            return []
        return [point.limit, measure.mirror(point.limit)] if measure.is_two_sided else [point.limit]


@dataclass(frozen=True, slots=True)
class Place:
    """A suite, a domain or a subtopic over releases."""

    path: str
    verdict: str  # the verdict on its limits, in the newest release that has this path
    growth: str | None  # the verdict on its growth, in the same release; None if growth was not measured
    trends: tuple[Trend, ...]

    @property
    def level(self) -> str:
        return level_of(self.path)


def find_places(series: Series) -> list[Place]:
    """Return the places that any release has: each suite, then its domains, then its subtopics."""
    paths = dict.fromkeys(row.path for entry in reversed(series.entries) for row in entry.result.all_rows)
    suites = list(dict.fromkeys(path.partition("/")[0] for path in paths))
    ordered = sorted(paths, key=lambda path: (suites.index(path.partition("/")[0]), min(path.count("/"), 2)))
    return [_find_place(series, path) for path in ordered]


def _find_place(series: Series, path: str) -> Place:
    rows = [(entry.result, row) for entry in reversed(series.entries) if (row := entry.row(path)) is not None]
    # All measures that any release has; those that tables show come first.
    shown = [name for result, row in rows for name in shown_measures(result, [row])]
    measures = dict.fromkeys((*shown, *(name for _, row in rows for name in row.measures)))
    trends = [Trend(path, name, tuple(_points(series.entries, path, name))) for name in measures]
    growth = row_growth(rows[0][0], path)
    return Place(path, row_verdict(*rows[0]), growth, tuple(trend for trend in trends if trend.points))


def _points(entries: Sequence[Entry], path: str, measure: str) -> Iterable[Point]:
    for place, entry in enumerate(entries):
        row, result = entry.row(path), entry.result
        measured = None if row is None else row.measures.get(measure)
        if row is None or measured is None or measured.value is None:
            continue
        judgement = row.judgement(measure)
        yield Point(
            place=place,
            label=entry.label,
            measured=measured,
            limit=None if judgement is None else judgement.limit,
            verdict=_point_verdict(result, row, measure),
            data=(data_of(entry, path), result.model.kind, result.settings.size),
        )


def _point_verdict(result: AuditResult, row: SubtopicResult, measure: str) -> str:
    """Return FAIL if the growth of the measure fails, else the verdict on its limit."""
    is_grown = row_growth(result, row.path, measure) == "FAIL"
    return "FAIL" if is_grown else measure_verdict(result, row, measure)


def data_of(entry: Entry, path: str) -> SuiteInfo | None:
    """Return the suite that a path belongs to, with its version and hash; None if the result lacks this suite."""
    name = path.partition("/")[0]
    return next((suite for suite in entry.result.suites if suite.name == name), None)
