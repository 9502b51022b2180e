"""history.html: all releases on one self-contained page, with pair ids, but without sentences or scripts."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bbnli_audit.core.values import level_of
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.reports.decision import DECIDED, decide
from bbnli_audit.reports.history.flips import find_flips
from bbnli_audit.reports.history.plot import HEIGHT, WIDTH, Scale, draw
from bbnli_audit.reports.history.releases import Entry, History, Series
from bbnli_audit.reports.history.trends import Place, Trend, data_of, find_places
from bbnli_audit.reports.html_page import content_policy
from bbnli_audit.reports.shown import shown_measures
from bbnli_audit.reports.templates import read_asset, render


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


def _show(series: Series, number: int) -> dict[str, Any]:
    """Return what the page shows of one series. `labels` says what each letter of a cell means."""
    places = find_places(series)
    scales = _scales(places)
    names = [entry.label for entry in series.entries]
    shown = [
        {
            "place": place,
            "anchor": f"place-{number}-{n}",
            "plots": [draw(trend, names, scales[place.level, trend.measure]) for trend in place.trends],
        }
        for n, place in enumerate(places)
    ]
    labels = reading_of(series.newest.result.model.kind).by_letter
    flips, breaks = find_flips(series), _breaks(series)
    return {"series": series, "places": shown, "flips": flips, "labels": labels, "breaks": breaks}


def _scales(places: Sequence[Place]) -> dict[tuple[str, str], Scale]:
    together: dict[tuple[str, str], list[Trend]] = {}
    for place in places:
        for trend in place.trends:
            together.setdefault((place.level, trend.measure), []).append(trend)
    return {key: Scale.of(trends) for key, trends in together.items()}


def _breaks(series: Series) -> list[str]:
    """Say in which releases the data of a suite changed. The lines of the suite's measures are broken there."""
    found = []
    for name in dict.fromkeys(suite.name for entry in series.entries for suite in entry.result.suites):
        known = [(entry, data) for entry in series.entries if (data := data_of(entry, name)) is not None]
        for (_, before), (entry, after) in pairwise(known):
            if before != after:
                versions = f"from version {before.version} to {after.version}"
                found.append(f"{name} changed in {entry.label} ({versions}): the line is broken there.")
    return found


def _compared(models: Sequence[Entry]) -> dict[str, dict[str, list[str]]]:
    """Return the rows of tables that compare models: level -> path -> measures shown for at least one of the models."""
    found: dict[str, dict[str, list[str]]] = {"suite": {}, "domain": {}, "subtopic": {}}
    for entry in models:
        for row in entry.result.all_rows:
            names = found[level_of(row.path)].setdefault(row.path, [])
            more = [name for name in shown_measures(entry.result, [row]) if name in row.measures and name not in names]
            names.extend(more)
    return {level: rows for level, rows in found.items() if rows}
