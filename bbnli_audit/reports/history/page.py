"""history.html: all releases on one self-contained page, with pair ids, but without sentences or scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bbnli_audit.core.values import level_of
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.reports.decision import DECIDED, decide
from bbnli_audit.reports.history.flips import FlippedPairs, find_flips
from bbnli_audit.reports.history.plot import HEIGHT, WIDTH, Plot, Scale, draw
from bbnli_audit.reports.history.releases import Entry, History, Series
from bbnli_audit.reports.history.trends import Place, Trend, data_of, find_places
from bbnli_audit.reports.html_page import content_policy
from bbnli_audit.reports.page_data import LETTERS
from bbnli_audit.reports.shown import shown_measures
from bbnli_audit.reports.templates import read_asset, render


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """A suite, a domain or a subtopic on the page: its drawings, and its measures for the table."""

    place: Place
    anchor: str
    plots: list[Plot]
    measures: list[str]


@dataclass(frozen=True, slots=True)
class ShownSeries:
    """One model on the page."""

    series: Series
    places: list[ShownPlace]
    flips: list[FlippedPairs]
    labels: Mapping[str, str]  # the meaning of the letters of a cell
    breaks: list[str]

    def at(self, level: str) -> list[ShownPlace]:
        return [shown for shown in self.places if shown.place.level == level]


def render_history(history: History) -> str:
    """Return the page. The same results give the same bytes."""
    shown = [_show(series, number) for number, series in enumerate(history.series)]
    newest = history.newest
    return render(
        "history.html.jinja",
        newest.result,
        history=history,
        shown=shown,
        decide=decide,
        decided=DECIDED,
        models=history.models,
        compared=_compared(history.models),
        size=(WIDTH, HEIGHT),
        policy=content_policy(""),
        css=read_asset("page.css") + read_asset("history.css"),
        anchors={},
    )


def _show(series: Series, number: int) -> ShownSeries:
    places = find_places(series)
    scales = _scales(places)
    labels = [entry.label for entry in series.entries]
    shown = []
    for n, place in enumerate(places):
        plots = [draw(trend, labels, scales[place.level, trend.measure]) for trend in place.trends]
        shown.append(ShownPlace(place, f"place-{number}-{n}", plots, [trend.measure for trend in place.trends]))
    reading = reading_of(series.newest.result.model.kind)
    letters = dict(zip(LETTERS, reading.answers, strict=True))
    return ShownSeries(series, shown, find_flips(series), letters, _breaks(series))


def _scales(places: Sequence[Place]) -> dict[tuple[str, str], Scale]:
    together: dict[tuple[str, str], list[Trend]] = {}
    for place in places:
        for trend in place.trends:
            together.setdefault((place.level, trend.measure), []).append(trend)
    return {key: Scale.of(trends) for key, trends in together.items()}


def _breaks(series: Series) -> list[str]:
    """Say where the data of a suite changed: figures before and after are measured on different pairs."""
    found = []
    for name in dict.fromkeys(suite.name for entry in series.entries for suite in entry.result.suites):
        known = [(entry, data) for entry in series.entries if (data := data_of(entry, name)) is not None]
        for (_, before), (entry, after) in pairwise(known):
            if before != after:
                versions = f"from version {before.version} to {after.version}"
                found.append(f"{name} changed in {entry.label} ({versions}): the line is broken there.")
    return found


def _compared(models: Sequence[Entry]) -> dict[str, dict[str, list[str]]]:
    """Return the rows of the table of models: level -> path -> the measures that any model shows there."""
    found: dict[str, dict[str, list[str]]] = {"suite": {}, "domain": {}, "subtopic": {}}
    for entry in models:
        for row in entry.result.all_rows:
            names = found[level_of(row.path)].setdefault(row.path, [])
            more = [name for name in shown_measures(entry.result, [row]) if name in row.measures and name not in names]
            names.extend(more)
    return {level: rows for level, rows in found.items() if rows}
