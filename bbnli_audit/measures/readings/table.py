"""The pair table: one row per pair, in the order of the suite. Measures read it and never change it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CELLS, Cell, CellCounts
from bbnli_audit.core.values import Direction, Label, Pair, Subtopic, TextPair
from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.intervals import (
    Estimate,
    Spread,
    estimate_difference,
    estimate_means,
    find_spreads,
)

Floats = NDArray[np.float64]

_IS_MEASURED = attrgetter("is_measured")  # always the same object, so that `PairTable.where` remembers it
DIRECTION = "direction"
PLACES = ("suite", "domain", "subtopic", "pair_id", "cluster", DIRECTION)
TEXTS = ("pro_premise", "pro_hypothesis", "anti_premise", "anti_hypothesis")
SIDES = ("pro", "anti")
LETTERS = "".join(label.letter for label in Label)  # a letter per label; a cell is the pro side's, then the anti side's
NOT_MEASURED = -1  # in place of a cell, for a pair without an outcome
# The prefix of columns with the model's output for the reference of a pair. A reference is the same pair with a neutral
# word in place of what the stereotype is about, such as "person" in place of an occupation.
REFERENCE = "reference_"
TAGS = "tags"  # column with the tags of each pair, joined by semicolons; only if some pair of the subtopic has tags
# Column with the share of neutral answers to the subtopic's open texts, the same in all rows. Open texts are in no
# pair, and neutral is right for them.
OPEN_NEUTRAL = "open_neutral"


class Reading(Protocol):
    """One way to read a model's output. Each reading has its own columns in the pair table."""

    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]  # the columns that hold numbers
    answers: ClassVar[tuple[str, str, str]]  # the meaning of the three columns of `probabilities`
    preference: ClassVar[str]  # the name of the figure that says which way the model leans overall
    has_task: ClassVar[bool] = True  # whether answers can be right or wrong, so that controls can show competence
    also: ClassVar[tuple[str, ...]] = ()  # other readings whose measures this reading has too
    instead: ClassVar[Mapping[str, str]] = {}  # a measure that this reading lacks -> the measure to require instead

    @property
    def by_letter(self) -> dict[str, str]:
        """The answers, by the letters that stand for them in cells."""
        return dict(zip(LETTERS, self.answers, strict=True))

    def has_measures_of(self, readings: Collection[str]) -> bool:
        """Whether this reading has the measures of any of these readings."""
        return any(name in readings for name in (self.name, *self.also))

    def is_unread(self, predictions: Floats) -> NDArray[np.bool_]:
        """Return which of the (n, 3) predictions stand for answers that could not be read."""
        return np.zeros(len(predictions), dtype=np.bool_)

    def ask(self, pair: Pair) -> tuple[TextPair, TextPair]:
        """Return what the model is given for the two sides of a pair."""
        return pair.pro, pair.anti

    def read(self, pro: Floats, anti: Floats) -> Mapping[str, Any]:
        """Turn (n_pairs, 3) predictions for the two sides into the columns of this reading."""

    def cells(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        """Return the cell of each pair as an index into CELLS, or NOT_MEASURED."""

    def probabilities(self, frame: pd.DataFrame, side: str) -> Floats:
        """Return one side's probabilities, (n_pairs, 3). The meanings of the three columns are in `answers`."""

    def strengths(self, frame: pd.DataFrame) -> Floats:
        """Return how strongly the model leans on each pair: pro above 0, anti below 0."""

    def tell(self, pair: Mapping[Any, Any], side: str) -> str:
        """Describe the model's output for one side of a pair, without its sentences."""


PairValues = Callable[["PairTable"], Floats]  # what each pair adds to a measure, in [0, 1]


@dataclass(frozen=True, eq=False)
class PairTable:
    """The pairs of one or several subtopics, with one model's output."""

    frame: pd.DataFrame
    reading: Reading
    run: "PairTable | None" = None  # all pairs of the suite in this run; `Spread` is estimated from them
    # The results of `where` and `spread`. They are kept, because many measures ask for the same results.
    _kept: dict[Any, "PairTable"] = field(default_factory=dict, init=False, repr=False)
    _spreads: dict[PairValues, Spread] = field(default_factory=dict, init=False, repr=False)

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
        return self.where(_IS_MEASURED)

    @cached_property
    def design(self) -> Design:
        """Which pairs share a subtopic, and which share templates."""
        return design_of(self.frame)

    @cached_property
    def directions(self) -> Floats:
        """The direction of each pair's premise: 1 with the stereotype, -1 against it, 0 for none."""
        signs = {Direction.WITH.value: 1.0, Direction.AGAINST.value: -1.0}
        return np.array([signs.get(each, 0.0) for each in self.frame[DIRECTION].tolist()], dtype=np.float64)

    def take(self, rows: NDArray[Any]) -> "PairTable":
        return PairTable(self.frame[rows].reset_index(drop=True), self.reading)

    def where(self, condition: Callable[["PairTable"], NDArray[np.bool_]]) -> "PairTable":
        """Return the table of the pairs that meet a condition. Its `run` has only such pairs, too."""
        if condition not in self._kept:
            rows = condition(self)
            run = None if self.run is None else self.run.where(condition)
            kept = self if rows.all() and run is self.run else replace(self.take(rows), run=run)
            self._kept[condition] = kept
        return self._kept[condition]

    def mean(self, values: PairValues, confidence: float) -> Estimate:
        """Estimate the mean of what each pair adds."""
        return self.means([values], confidence)[0]

    def means(self, values: Sequence[PairValues], confidence: float) -> list[Estimate]:
        """Estimate several means. One call is faster than several."""
        columns = np.column_stack([each(self) for each in values])
        return estimate_means(columns, self.design, confidence, self._spreads_of_run(*values))

    def difference(self, first: PairValues, second: PairValues, confidence: float) -> Estimate:
        """Estimate the mean of the first minus the mean of the second."""
        one, other = first(self), second(self)
        found = estimate_difference(one, other, self.design, confidence, self._spreads_of_run(first, second))
        return found._replace(value=float((one - other).mean()))  # a single division, so it is rounded only once

    def _spreads_of_run(self, *values: PairValues) -> list[Spread]:
        return [] if self.run is None else [self.run.spread(each) for each in values]

    def spread(self, values: PairValues) -> Spread:
        """Return how similar the values of pairs that share templates are, over all subtopics of this table."""
        if values not in self._spreads:
            (self._spreads[values],) = find_spreads(values(self), self.design)
        return self._spreads[values]

    def probabilities(self, side: str) -> Floats:
        return self.reading.probabilities(self.frame, side)

    @cached_property
    def beside_references(self) -> "tuple[PairTable, PairTable]":
        """The pairs whose reference could be measured, and their references in the same order. Both may be empty."""
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
        return CellCounts(dict(zip(CELLS, tally.tolist(), strict=True)))

    def cells_by_cluster(self) -> dict[str, dict[str, Cell]]:
        """Return the cell of every measured pair, by cluster and pair id."""
        found: dict[str, dict[str, Cell]] = {}
        frame, cells = self.measured.frame, self.measured.cells
        for cluster, pair_id, cell in zip(frame["cluster"], frame["pair_id"], cells, strict=True):
            found.setdefault(str(cluster), {})[str(pair_id)] = CELLS[cell]
        return found

    def pairs_by_direction(self) -> dict[Literal["with", "against"], tuple[str, ...]]:
        """Return the ids of the measured pairs whose premises point with the stereotype, and against it."""
        frame = self.measured.frame
        ways: tuple[Literal["with", "against"], ...] = ("with", "against")
        found = {way: tuple(map(str, frame.loc[frame[DIRECTION] == way, "pair_id"])) for way in ways}
        return {way: ids for way, ids in found.items() if ids}

    def paths(self) -> list[str]:
        return _paths(self.frame)

    def with_texts(self, pairs: Iterable[Pair]) -> "PairTable":
        """Return a table with only the columns that reports show, and with the sentences of each pair."""
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
    """Make the table of a subtopic from the (n_pairs, 3) predictions for the pro and the anti sides of its pairs.

    `of_references` are the predictions for the references of the pairs, if every pair has a reference.
    """
    frame = pd.DataFrame(
        {
            "suite": subtopic.suite,
            "domain": subtopic.domain,
            "subtopic": subtopic.name,
            "pair_id": [pair.id for pair in pairs],
            "cluster": [pair.cluster for pair in pairs],
            DIRECTION: [pair.direction.value for pair in pairs],
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
    """Join the tables of several subtopics. If all of them have the same `run`, the new table has it, too."""
    run = tables[0].run if all(table.run is tables[0].run for table in tables) else None
    return PairTable(pd.concat([table.frame for table in tables], ignore_index=True), tables[0].reading, run)


def share_run(tables: Mapping[str, PairTable]) -> dict[str, PairTable]:
    """Return the tables of subtopics, by path, with `run` set to all pairs of their suite."""
    suites = {path: path.partition("/")[0] for path in sorted(tables)}
    runs = {
        suite: join_tables([replace(tables[path], run=None) for path in suites if suites[path] == suite])
        for suite in dict.fromkeys(suites.values())
    }
    return {path: replace(tables[path], run=runs[suite]) for path, suite in suites.items()}


def design_of(frame: pd.DataFrame) -> Design:
    """Return which pairs of a frame share a subtopic, and which share templates."""
    suites = frame["suite"].tolist()
    several = suites if len(set(suites)) > 1 else None
    return Design.of(frame["cluster"].to_numpy(dtype=object), _paths(frame), several)


def _paths(frame: pd.DataFrame) -> list[str]:
    """Return the path of the subtopic of each pair."""
    return ["/".join(parts) for parts in zip(*(frame[name].tolist() for name in PLACES[:3]), strict=True)]
