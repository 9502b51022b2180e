"""Prepares the data of report.html: its sections, the rows of its charts, and the pairs as JSON for its tables."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from bbnli_audit.core.outcomes import CAUSES, CELLS, outcome_of
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.rows import NO_DATA, Measured, SubtopicResult, Verdict
from bbnli_audit.core.values import Direction
from bbnli_audit.core.words import counted
from bbnli_audit.measures.drivers import DrivingCluster, driving_clusters, driving_words
from bbnli_audit.measures.readings.table import SIDES, TEXTS, PairTable, Reading
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.measures.wording import Factor, entailment_difference, wording_sensitivity
from bbnli_audit.reports.charts import Interval, Row
from bbnli_audit.reports.markdown import signed
from bbnli_audit.reports.notes import grown
from bbnli_audit.reports.shown import (
    ROWS_WORST_FIRST,
    growth_verdict,
    leading_measures,
    measure_name,
    row_verdict,
    short_path,
    shown_measures,
    worst_first,
)

_FILTERS = ("pro", "anti", "brittle", "correct", "neither", "not read")  # outcomes in this order: errors come first


@dataclass(frozen=True, slots=True)
class Wording:
    """How sensitive one measure of a suite is to wording. `number` is the position of this part on the page."""

    number: int
    suite: str
    measure: str | None  # a measure that crossed its limit; None for the entailment difference
    factors: list[Factor]

    @property
    def words(self) -> list[str]:
        """Each word, and how far the pairs with this word differ from the pairs that they are compared with.

        The page hides the words at first, because they come from sentences.
        """
        return [
            f"{level.name} {signed(level.difference)} ({counted(level.n_pairs, 'pair')})"
            for factor in self.factors
            if factor.name == "word" and factor.information > 0  # otherwise words explain no more than chance does
            for level in factor.levels
        ]


@dataclass(frozen=True, slots=True)
class Section:
    """One subtopic. `number` is its place on the page."""

    number: int
    row: SubtopicResult
    verdict: str
    measures: list[str]
    drivers: list["Driver"]
    corners: list["Corner"]  # the corners of its quads; empty without quads, and for models read by likelihoods

    @property
    def anchor(self) -> str:
        return f"subtopic-{self.number}"


@dataclass(frozen=True, slots=True)
class Driver:
    """The clusters and words that drive one cause of error. The page hides words at first: they come from sentences."""

    name: str
    clusters: list[DrivingCluster]
    words: list[tuple[str, int, int, int, int]]  # the fields of each `DrivingWord`


@dataclass(frozen=True, slots=True)
class Corner:
    """One corner of quads: texts with one direction of premise and one side, and the share of each answer to them."""

    premise: Direction
    n: int
    shares: list[float]  # in the order of the reading's answers


def corners(table: PairTable) -> list[Corner]:
    """Return the four corners. If the table lacks premises of one direction, return an empty list.

    First come the pairs whose premise goes with the stereotype: their pro side, then their anti side. Then come the
    pairs whose premise goes against it, again with both sides.
    """
    import numpy as np

    found = []
    for direction, sign in ((Direction.WITH, 1), (Direction.AGAINST, -1)):
        rows = table.take(table.directions == sign)
        if not len(rows):
            return []
        for side in SIDES:
            answers = np.bincount(rows.probabilities(side).argmax(axis=1), minlength=3)
            found.append(Corner(direction, len(rows), (answers / len(rows)).tolist()))
    return found


def tables_by_path(pairs: PairTable) -> dict[str, PairTable]:
    import numpy as np

    paths = np.array(pairs.paths(), dtype=object)
    return {str(path): pairs.take(paths == path) for path in dict.fromkeys(paths)}


def outcome_words(reading: Reading) -> dict[str, str]:
    """Name the outcome of each cell that a reading can give.

    To find these cells, all nine pairs of predictions are read in which each prediction is certain of one answer. If
    answers are neither right nor wrong, a tie (NN) is called "neither", not "correct".
    """
    import numpy as np
    import pandas as pd

    pro, anti = np.repeat(np.eye(3), 3, axis=0), np.tile(np.eye(3), (3, 1))
    found = set(reading.cells(pd.DataFrame(reading.read(pro, anti))).tolist())
    words: dict[str, str] = {cell: outcome_of(cell).value for n, cell in enumerate(CELLS) if n in found}
    return words if reading.has_task else {cell: "neither" if cell == "NN" else word for cell, word in words.items()}


def sections(result: AuditResult, pairs: PairTable) -> list[Section]:
    """Describe the subtopics, worst first."""
    tables = tables_by_path(pairs.measured)
    return [
        Section(
            number=n,
            row=row,
            verdict=row_verdict(result, row),
            measures=[name for name in shown_measures(result, [row]) if name in row.measures],
            drivers=_drivers(tables[row.path]) if row.path in tables else [],
            corners=corners(tables[row.path]) if row.path in tables and result.has_task else [],
        )
        for n, row in enumerate(worst_first(result))
    ]


def _drivers(table: PairTable) -> list[Driver]:
    found = []
    for cause in map(find_measure, CAUSES):
        counts = cause.count(table)
        clusters = driving_clusters(table.frame, counts)
        if clusters:
            words = [astuple(word) for word in driving_words(table.frame, counts)]
            found.append(Driver(measure_name(cause.name), clusters, words))
    return found


def wordings(result: AuditResult, pairs: PairTable) -> list[Wording]:
    """Measure for each suite how well wording explains the measures that crossed a limit.

    For a suite where no measure crossed a limit, measure how well wording explains the entailment difference
    (`measures/wording.py`).
    """
    found: list[Wording] = []
    for suite in sorted(set(pairs.measured.frame["suite"])):
        of_suite = pairs.take((pairs.frame["suite"] == suite).to_numpy())
        for name, within in _failed(result, suite).items() or [(None, None)]:
            measure = None if name is None else find_measure(name)
            explained = entailment_difference if measure is None else measure.pair_values
            assert explained is not None
            table = of_suite if measure is not None and measure.is_over_all else of_suite.measured
            found.append(Wording(len(found), suite, name, wording_sensitivity(table, explained, within)))
    return found


def _failed(result: AuditResult, suite: str) -> dict[str, list[str]]:
    """Return the measures that crossed a limit in a suite, each with the subtopics concerned, in the order of tables.

    A limit crossed in a domain or the whole suite counts as crossed in all subtopics there. Measures without values
    per pair are left out.
    """
    paths = [row.path for row in result.subtopics if row.path.startswith(f"{suite}/")]
    crossed: dict[str, set[str]] = {}
    for row in result.all_rows:
        for judgement in result.required_of(row):
            if judgement.verdict is Verdict.FAIL and find_measure(judgement.measure).pair_values is not None:
                below = {path for path in paths if path == row.path or path.startswith(f"{row.path}/")}
                crossed.setdefault(judgement.measure, set()).update(below)
    names = [name for name in shown_measures(result, result.all_rows) if crossed.get(name)]
    return {name: sorted(path.partition("/")[2] for path in crossed[name]) for name in names}


def chart_rows(result: AuditResult) -> list[Row]:
    """Return a chart row for each subtopic, with its leading measures. The worst subtopic comes first."""
    rows = []
    for row in worst_first(result):
        limits = {judgement.measure: judgement.limit for judgement in row.verdicts}
        leading = [(name, row.measures.get(name, NO_DATA), limits.get(name)) for name in leading_measures(result)]
        measures = _intervals(leading)
        shares = {name: interval.value for name, interval in measures.items()}
        name, verdict = short_path(result, row.path), row_verdict(result, row)
        rows.append(Row(name, verdict, shares, measures, limits.get("misprediction_rate")))
    return rows


def _intervals(found: Iterable[tuple[str, Measured, float | None]]) -> dict[str, Interval]:
    """Return the measured values with their limits, by name of measure. Leave out measures without a value."""
    intervals = {measure_name(name): Interval.of(measured, limit) for name, measured, limit in found}
    return {name: interval for name, interval in intervals.items() if interval is not None}


def increase_rows(result: AuditResult) -> list[Row]:
    """Return a chart row for each suite, domain and subtopic, with the growth of its measures. The worst come first."""
    by_path: dict[str, list[Regression]] = {}
    for regression in ordered_regressions(result):
        by_path.setdefault(regression.path, []).append(regression)
    rows = []
    for path, regressions in by_path.items():
        measures = _intervals([(each.measure, each.increase, each.margin) for each in regressions])
        rows.append(Row(short_path(result, path), growth_verdict(regressions[0]), measures=measures))
    return rows


def ordered_regressions(result: AuditResult) -> list[Regression]:
    """Return the growth of each measure, the worst first. For an unchanged model, leave out growth that passes."""
    comparison = result.comparison
    if comparison is None:
        return []
    found = grown(comparison, *ROWS_WORST_FIRST)
    return [each for each in found if each.verdict is not Verdict.PASS] if comparison.is_unchanged else found


def payload(
    result: AuditResult, pairs: PairTable, shown: Sequence[Section], explained: Sequence[Wording]
) -> dict[str, Any]:
    """Return the pairs as columns of small numbers, so that each text and each name is written only once."""
    import numpy as np
    import pandas as pd

    order = {section.row.path: section.number for section in shown}
    frame, paths, reading = pairs.frame, pairs.paths(), pairs.reading
    cluster_of, clusters = pd.factorize(frame["cluster"].to_numpy(dtype=object))
    text_of, texts = pd.factorize(frame[list(TEXTS)].to_numpy(dtype=object).ravel())
    probabilities = np.column_stack([pairs.probabilities(side) for side in SIDES])
    words = outcome_words(reading)
    unread = () if pairs.is_measured.all() else (_FILTERS[-1],)
    before = _cells_before(result)
    keys = zip(paths, frame["cluster"], frame["pair_id"], strict=True)
    return {
        "answers": list(reading.answers),
        "cells": list(CELLS),
        "outcomes": [words.get(cell) for cell in CELLS],
        "filters": [word for word in _FILTERS if word in (*words.values(), *unread)],
        "subtopics": [short_path(result, section.row.path) for section in shown],
        "clusters": clusters.tolist(),
        "texts": texts.tolist(),
        "words": [{driver.name: driver.words for driver in section.drivers} for section in shown],
        "wording": {wording.number: wording.words for wording in explained},
        "hasTask": reading.has_task,
        "hasBaseline": result.comparison is not None,
        "pairs": {
            "id": frame["pair_id"].tolist(),
            "subtopic": [order[path] for path in paths],
            "cluster": cluster_of.tolist(),
            # -1 if the pair has no outcome because an answer could not be read.
            "cell": pairs.cells.tolist(),
            # Six numbers per pair, in ten thousandths: for each of `answers` on the pro side, then on the anti side.
            "probabilities": (probabilities * 10_000).round().astype(int).ravel().tolist(),
            # Four numbers per pair: premise and hypothesis of the pro side, then of the anti side.
            "texts": text_of.tolist(),
            "before": {str(row): CELLS.index(before[key]) for row, key in enumerate(keys) if key in before},
        },
    }


def _cells_before(result: AuditResult) -> Mapping[tuple[str, str, str], Any]:
    regressions = result.comparison.regressions if result.comparison else ()
    return {
        (regression.path, change.cluster, change.pair_id): change.before
        for regression in regressions
        for change in (*regression.flipped, *regression.fixed)
    }


def to_inert_json(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot close the script element around it, whatever the texts contain."""
    written = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found.group()):04x}", written)
