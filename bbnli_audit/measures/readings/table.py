"""The pair table: one row per pair, in the order of the suite. Every measure reads it and none changes it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CELLS, Cell, CellCounts
from bbnli_audit.core.values import Direction, Pair, Subtopic, TextPair
from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.intervals import (
    Estimate,
    Spread,
    estimate_difference,
    estimate_means,
    find_spreads,
)

Floats = NDArray[np.float64]

DIRECTION = "direction"
PLACES = ("suite", "domain", "subtopic", "pair_id", "cluster", DIRECTION)
TEXTS = ("pro_premise", "pro_hypothesis", "anti_premise", "anti_hypothesis")
SIDES = ("pro", "anti")
NOT_MEASURED = -1  # in place of a cell
REFERENCE = "reference_"  # prefix: a pair's reference has the columns of the reading, with this before their names
TAGS = "tags"  # the tags of a pair, separated by semicolons; only if some pair of the subtopic has one
OPEN_NEUTRAL = "open_neutral"  # share of neutral answers to the suite's texts without sides, equal in all rows


class Reading(Protocol):
    """One way to read a model's output. Each reading has its own columns in the pair table."""

    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]  # the columns that hold numbers
    answers: ClassVar[tuple[str, str, str]]  # the meaning of the three columns of `probabilities`
    preference: ClassVar[str]  # the measure that says which way the model leans overall
    has_task: ClassVar[bool] = True  # whether answers can be right or wrong, so that controls can show competence
    also: ClassVar[tuple[str, ...]] = ()  # other readings whose measures this one has as well
    instead: ClassVar[Mapping[str, str]] = {}  # a measure that this reading lacks -> the one used instead

    def has_measures_of(self, readings: Collection[str]) -> bool:
        """Say whether this reading has the measures of any of these readings."""
        return any(name in readings for name in (self.name, *self.also))

    def is_unread(self, predictions: Floats) -> NDArray[np.bool_]:
        """Say which of the (n, 3) predictions stand for answers that could not be read."""
        return np.zeros(len(predictions), dtype=np.bool_)

    def ask(self, pair: Pair) -> tuple[TextPair, TextPair]:
        """Return the texts that the model predicts for the two sides of a pair."""
        return pair.pro, pair.anti

    def read(self, pro: Floats, anti: Floats) -> Mapping[str, Any]:
        """Turn (n_pairs, 3) predictions for the two sides into the columns of this reading."""

    def cells(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        """Return the cell of each pair as an index into CELLS, or NOT_MEASURED."""

    def probabilities(self, frame: pd.DataFrame, side: str) -> Floats:
        """Return (n_pairs, 3) for one side: entailment, neutral and contradiction, or this reading's `answers`."""

    def strengths(self, frame: pd.DataFrame) -> Floats:
        """Return how strongly the model leans on each pair: above 0 pro, below 0 anti, 0 neither."""

    def tell(self, pair: Mapping[Any, Any], side: str) -> str:
        """Describe the model's output for one side of a pair, without its sentences."""


PairValues = Callable[["PairTable"], Floats]  # what each pair adds to a measure, in [0, 1]


@dataclass(frozen=True, eq=False)
class PairTable:
    """The pairs of one or several subtopics, with one model's output."""

    frame: pd.DataFrame
    reading: Reading
    run: "PairTable | None" = None  # all pairs of the suite in this run: they show how much templates differ

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def cells(self) -> NDArray[np.intp]:
        return self.reading.cells(self.frame)

    @cached_property
    def is_measured(self) -> NDArray[np.bool_]:
        return np.asarray(self.cells != NOT_MEASURED, dtype=np.bool_)

    @cached_property
    def measured(self) -> "PairTable":
        """The pairs that have an outcome."""
        return self.where(_is_measured)

    @cached_property
    def design(self) -> Design:
        """Which pairs share a subtopic, and which share templates."""
        return design_of(self.frame)

    @cached_property
    def directions(self) -> Floats:
        """The direction of each premise: 1 with the stereotype, -1 against it, 0 for none."""
        signs = {Direction.WITH.value: 1.0, Direction.AGAINST.value: -1.0}
        return np.array([signs.get(each, 0.0) for each in self.frame["direction"].tolist()], dtype=np.float64)

    def take(self, rows: NDArray[Any]) -> "PairTable":
        return PairTable(self.frame[rows].reset_index(drop=True), self.reading)

    def where(self, condition: Callable[["PairTable"], NDArray[np.bool_]]) -> "PairTable":
        """Keep the pairs that meet a condition, in this table and in the table of the run."""
        if condition not in self._kept:
            rows = condition(self)
            run = None if self.run is None else self.run.where(condition)
            kept = self if rows.all() and run is self.run else replace(self.take(rows), run=run)
            self._kept[condition] = kept
        return self._kept[condition]

    @cached_property
    def _kept(self) -> dict[Any, "PairTable"]:
        return {}

    def mean(self, values: PairValues, confidence: float) -> Estimate:
        """Estimate the mean of what each pair adds."""
        return self.means([values], confidence)[0]

    def means(self, values: Sequence[PairValues], confidence: float) -> list[Estimate]:
        """Estimate several means. One call is faster than several."""
        columns = np.column_stack([each(self) for each in values])
        return estimate_means(columns, self.design, confidence, self._spreads(*values))

    def difference(self, first: PairValues, second: PairValues, confidence: float) -> Estimate:
        """Estimate the mean of the first minus the mean of the second."""
        one, other = first(self), second(self)
        found = estimate_difference(one, other, self.design, confidence, self._spreads(first, second))
        return found._replace(value=float((one - other).mean()))  # one division only: the estimate has two, rounded

    def _spreads(self, *values: PairValues) -> list[Spread]:
        return [] if self.run is None else [self.run.spread(each) for each in values]

    def spread(self, values: PairValues) -> Spread:
        """Return how alike the values of pairs are that share templates, over all subtopics of this table."""
        if values not in self._found_spreads:
            (self._found_spreads[values],) = find_spreads(values(self), self.design)
        return self._found_spreads[values]

    @cached_property
    def _found_spreads(self) -> dict[Any, Spread]:
        return {}

    def probabilities(self, side: str) -> Floats:
        return self.reading.probabilities(self.frame, side)

    @cached_property
    def beside_references(self) -> "tuple[PairTable, PairTable]":
        """The pairs whose reference was measured, and the references in the same order. Both tables may be empty."""
        names = [REFERENCE + name for name in self.reading.columns]
        if names[0] not in self.frame:
            nothing = self.take(np.zeros(len(self), dtype=np.bool_))
            return nothing, nothing
        has_reference = self.frame[names[0]].notna().to_numpy()  # missing for pairs of suites without references
        own = self if has_reference.all() else self.take(has_reference)
        columns = dict(zip(names, self.reading.columns, strict=True))
        references = PairTable(own.frame[names].rename(columns=columns), self.reading)
        if not references.is_measured.all():
            own = own.take(references.is_measured)
        return own, references.measured

    def count_unread(self) -> int:
        """Count the samples whose answer could not be read."""
        return sum(int(self.reading.is_unread(self.probabilities(side)).sum()) for side in SIDES)

    def count(self) -> CellCounts:
        """Count the measured pairs of each of the nine cells."""
        tally = np.bincount(self.measured.cells, minlength=len(CELLS))
        return CellCounts({cell: int(n) for cell, n in zip(CELLS, tally, strict=True)})

    def cells_by_cluster(self) -> dict[str, dict[str, Cell]]:
        """Return the cell of every measured pair by cluster and pair id. A baseline needs no more of a pair."""
        found: dict[str, dict[str, Cell]] = {}
        table = self.measured
        places = (table.frame[name].tolist() for name in ("cluster", "pair_id"))
        for cluster, pair_id, cell in zip(*places, table.cells.tolist(), strict=True):
            found.setdefault(str(cluster), {})[str(pair_id)] = CELLS[cell]
        return found

    def pairs_by_direction(self) -> dict[Literal["with", "against"], tuple[str, ...]]:
        """Return the ids of the measured pairs whose premise points with the stereotype, and against it."""
        ids, signs = self.measured.frame["pair_id"].tolist(), self.measured.directions.tolist()
        ways: Mapping[Literal["with", "against"], float] = {"with": 1.0, "against": -1.0}
        found = {way: tuple(str(each) for each, of in zip(ids, signs, strict=True) if of == ways[way]) for way in ways}
        return {way: each for way, each in found.items() if each}

    def paths(self) -> list[str]:
        return _paths(self.frame)

    def with_texts(self, pairs: Iterable[Pair]) -> "PairTable":
        """Add the sentences of the suite to their pairs, by pair id."""
        texts = {pair.id: (*pair.pro, *pair.anti) for pair in pairs}
        found = [texts[pair_id] for pair_id in self.frame["pair_id"]]
        columns = zip(*found, strict=True) if found else ((),) * len(TEXTS)
        added = {name: list(column) for name, column in zip(TEXTS, columns, strict=True)}
        return PairTable(self.frame.assign(**added)[[*PLACES, *TEXTS, *self.reading.columns]], self.reading)


def make_table(
    subtopic: Subtopic,
    pairs: Sequence[Pair],
    reading: Reading,
    predictions: tuple[Floats, Floats],
    of_references: tuple[Floats, Floats] | None = None,
) -> PairTable:
    """Make the table of pairs from the (n_pairs, 3) predictions for their pro and anti sides.

    `of_references` are the predictions for the references of the pairs, if all pairs have one.
    """
    frame = pd.DataFrame(
        {
            "suite": subtopic.suite,
            "domain": subtopic.domain,
            "subtopic": subtopic.name,
            "pair_id": [pair.id for pair in pairs],
            "cluster": [pair.cluster for pair in pairs],
            "direction": [pair.direction.value for pair in pairs],
            **reading.read(*predictions),
        },
        index=pd.RangeIndex(len(pairs)),
    )
    frame = frame[[*PLACES, *reading.columns]]
    if of_references is not None:
        found = reading.read(*of_references)
        frame = frame.assign(**{REFERENCE + name: found[name] for name in reading.columns})
    if any(pair.tags for pair in pairs):
        frame = frame.assign(**{TAGS: [";".join(pair.tags) for pair in pairs]})
    return PairTable(frame, reading)


def join_tables(tables: Sequence[PairTable]) -> PairTable:
    """Put the tables of several subtopics below each other. Keep the table of their run if they share one."""
    run = tables[0].run if all(table.run is tables[0].run for table in tables) else None
    return PairTable(pd.concat([table.frame for table in tables], ignore_index=True), tables[0].reading, run)


def share_run(tables: Mapping[str, PairTable]) -> dict[str, PairTable]:
    """Give each subtopic's table (by path) a table with all pairs of its suite in this run."""
    suites = {path: path.partition("/")[0] for path in sorted(tables)}
    runs = {
        suite: join_tables([replace(tables[path], run=None) for path in suites if suites[path] == suite])
        for suite in dict.fromkeys(suites.values())
    }
    return {path: replace(tables[path], run=runs[suite]) for path, suite in suites.items()}


def design_of(frame: pd.DataFrame) -> Design:
    """Return the structure of the pairs in a frame."""
    suites = frame["suite"].tolist()
    several = suites if len(set(suites)) > 1 else None
    return Design.of(frame["cluster"].to_numpy(dtype=object), _paths(frame), several)


def _paths(frame: pd.DataFrame) -> list[str]:
    """Return the path of the subtopic of each pair."""
    return ["/".join(parts) for parts in zip(*(frame[name].tolist() for name in PLACES[:3]), strict=True)]


def _is_measured(table: PairTable) -> NDArray[np.bool_]:
    return table.is_measured
