"""What the page shows of each subtopic, ready to print, and the pairs as JSON for its tables."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.results.audit import (
    ANTI_WEIGHTS,
    BRITTLE_WEIGHTS,
    CELLS,
    PRO_WEIGHTS,
    AuditResult,
    Judgement,
    Measure,
    SubtopicResult,
    Verdict,
)
from bbnli_audit.core.results.comparison import Change, Regression
from bbnli_audit.reports.charts import CAUSES, Interval, Row
from bbnli_audit.reports.failure import headline
from bbnli_audit.reports.notes import grown
from bbnli_audit.reports.page_overview import short_name
from bbnli_audit.reports.page_wording import Wording, wordings
from bbnli_audit.reports.ranking import row_verdict, worst_first

if TYPE_CHECKING:
    import pandas as pd

MEASURES = tuple(f"{cause}_rate" for cause in CAUSES)
MISPREDICTION = "misprediction_rate"
LETTERS = "ENC"
_TEXTS = ("pro_premise", "pro_hypothesis", "anti_premise", "anti_hypothesis")
_PROBABILITIES = tuple(
    f"{side}_{label}" for side in ("pro", "anti") for label in ("entailment", "neutral", "contradiction")
)


@dataclass(frozen=True, slots=True)
class MeasureCell:
    """One measure of one subtopic. `mark` is its verdict where a test required it."""

    name: str
    measure: Measure
    judgement: Judgement | None
    mark: str | None


@dataclass(frozen=True, slots=True)
class Section:
    """One subtopic, `number` being its place on the page."""

    number: int
    name: str
    verdict: str
    row: SubtopicResult
    cells: list[MeasureCell]
    headlines: list[tuple[str, str]]
    matrix: list[list[tuple[str, str, int]]]
    drivers: list["Driver"]
    regressions: list[Regression]
    wording: Wording | None  # of its suite

    @property
    def anchor(self) -> str:
        return f"subtopic-{self.number}"


@dataclass(frozen=True, slots=True)
class Driver:
    """What drives one measure. Words are sentences' words: they go into the JSON, only their number onto the page."""

    name: str
    clusters: list[tuple[str, int, int]]
    words: list[tuple[str, int, int, int, int]]


def outcome_of(cell: str) -> str:
    if cell in PRO_WEIGHTS:
        return "pro"
    if cell in ANTI_WEIGHTS:
        return "anti"
    return "brittle" if cell in BRITTLE_WEIGHTS else "correct"


def sections(result: AuditResult, pairs: "pd.DataFrame") -> list[Section]:
    """Describe the subtopics, worst first."""
    rows_of: dict[str, list[int]] = {}
    for n, path in enumerate(paths_of(pairs)):
        rows_of.setdefault(path, []).append(n)
    by_suite = wordings(pairs)
    return [
        Section(
            number=n,
            name=short_name(result, row.path),
            verdict=row_verdict(result, row),
            row=row,
            cells=measure_cells(result, row),
            headlines=[
                (judgement.verdict.value, headline(row, judgement).removeprefix(f"{row.path}: "))
                for judgement in result.required_of(row)
            ],
            matrix=[
                [(cell, outcome_of(cell), row.counts.cells[cell]) for cell in (pro + anti for anti in LETTERS)]
                for pro in LETTERS
            ],
            drivers=_drivers(pairs.iloc[rows_of.get(row.path, [])]),
            regressions=result.comparison.of(row.path) if result.comparison else [],
            wording=by_suite.get(row.path.partition("/")[0]),
        )
        for n, row in enumerate(worst_first(result))
    ]


def measure_cells(result: AuditResult, row: SubtopicResult) -> list[MeasureCell]:
    """The three causes, and other measures that are held to a limit."""
    judged = [judgement.measure for judgement in row.verdicts]
    names = [name for name in dict.fromkeys((*MEASURES, *judged)) if name in row.measures]
    return [_measure_cell(result, row, name) for name in names]


def _measure_cell(result: AuditResult, row: SubtopicResult, name: str) -> MeasureCell:
    judgement = row.judgement(name)
    mark = None
    if judgement is not None and (row.path, name) in result.required:
        mark = "WAIVED" if judgement.is_waived else judgement.verdict.value
    return MeasureCell(measure_name(name), row.measures[name], judgement, mark)


def measure_name(measure: str) -> str:
    return measure.removesuffix("_rate").replace("_", " ")


def chart_rows(result: AuditResult) -> list[Row]:
    rows = []
    for row in worst_first(result):
        shares, measures = {}, {}
        for cause, name in zip(CAUSES, MEASURES, strict=True):
            measure, judgement = row.measures.get(name), row.judgement(name)
            interval = None if measure is None else _interval(measure, judgement.limit if judgement else None)
            if interval is not None:
                shares[cause], measures[cause] = interval.value, interval
        limit = row.judgement(MISPREDICTION)
        verdict = row_verdict(result, row)
        rows.append(Row(short_name(result, row.path), verdict, shares, measures, limit.limit if limit else None))
    return rows


def increase_rows(result: AuditResult) -> list[Row]:
    """The growth of each measure, one row a subtopic, in the order of the comparison's worst verdicts."""
    by_path: dict[str, list[Regression]] = {}
    for regression in ordered_regressions(result):
        by_path.setdefault(regression.path, []).append(regression)
    rows = []
    for path, regressions in by_path.items():
        measures = {
            measure_name(regression.measure): interval
            for regression in regressions
            if (interval := _interval(regression.increase, regression.margin)) is not None
        }
        rows.append(Row(short_name(result, path), regressions[0].verdict.value, measures=measures))
    return rows


def ordered_regressions(result: AuditResult) -> list[Regression]:
    return grown(result.comparison, *Verdict) if result.comparison else []


def _interval(measure: Measure, limit: float | None) -> Interval | None:
    if measure.value is None or measure.low is None or measure.high is None:
        return None
    return Interval(measure.value, measure.low, measure.high, limit)


def _drivers(frame: "pd.DataFrame") -> list[Driver]:
    from bbnli_audit.measures.drivers import driving_clusters, driving_words

    found = []
    for name in MEASURES if len(frame) else ():
        clusters = [(each.cluster, each.n_counted, each.n_samples) for each in driving_clusters(frame, name)]
        words = [
            (each.word, each.n_counted, each.n_samples, each.n_counted_without, each.n_samples_without)
            for each in driving_words(frame, name)
        ]
        if clusters:
            found.append(Driver(measure_name(name), clusters, words))
    return found


def paths_of(pairs: "pd.DataFrame") -> list[str]:
    return ["/".join(parts) for parts in zip(pairs["suite"], pairs["domain"], pairs["subtopic"], strict=True)]


def payload(result: AuditResult, pairs: "pd.DataFrame", shown: Sequence[Section]) -> dict[str, Any]:
    """Give the pairs as columns of small numbers: each text and each name is written once."""
    from bbnli_audit.measures.outcomes import cell_indices

    order = {section.row.path: section.number for section in shown}
    paths = paths_of(pairs)
    known = [n for n, path in enumerate(paths) if path in order]
    pairs, paths = pairs.iloc[known], [paths[n] for n in known]
    clusters, cluster_of = _numbered(pairs["cluster"].tolist())
    texts, text_of = _numbered([text for row in pairs[list(_TEXTS)].to_numpy().tolist() for text in row])
    before = _cells_before(result)
    keys = zip(paths, pairs["cluster"], pairs["pair_id"], strict=True)
    return {
        "cells": list(CELLS),
        "outcomes": [outcome_of(cell) for cell in CELLS],
        "subtopics": [section.name for section in shown],
        "clusters": clusters,
        "texts": texts,
        "words": [{driver.name: driver.words for driver in section.drivers} for section in shown],
        "wording": {section.wording.number: section.wording.words for section in shown if section.wording},
        "hasBaseline": result.comparison is not None,
        "pairs": {
            "id": pairs["pair_id"].tolist(),
            "subtopic": [order[path] for path in paths],
            "cluster": cluster_of,
            "cell": cell_indices(pairs).tolist(),
            # In ten thousandths, six a pair: pro, then anti, each in the order entailment, neutral, contradiction.
            "probabilities": (pairs[list(_PROBABILITIES)].to_numpy() * 10_000).round().astype(int).ravel().tolist(),
            # Four a pair: premise and hypothesis of the pro side, then of the anti side.
            "texts": text_of,
            "before": {str(row): CELLS.index(before[key]) for row, key in enumerate(keys) if key in before},
        },
    }


def _numbered(values: Sequence[str]) -> tuple[list[str], list[int]]:
    number_of: dict[str, int] = {}
    numbers = [number_of.setdefault(value, len(number_of)) for value in values]
    return list(number_of), numbers


def _cells_before(result: AuditResult) -> Mapping[tuple[str, str, str], str]:
    regressions = result.comparison.regressions if result.comparison else ()
    return {
        (regression.path, change.cluster, change.pair_id): change.before
        for regression in regressions
        for change in changes_of(regression)
    }


def changes_of(regression: Regression) -> tuple[Change, ...]:
    return (*regression.flipped, *regression.fixed)


def to_inert_json(data: Mapping[str, Any]) -> str:
    """Write JSON that cannot end the script element it stands in, whatever the texts hold."""
    written = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found.group()):04x}", written)
