"""Reads and writes the tables that steps hand to later steps: CSV files that people may look at and change."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.tables import show_text
from bbnli_audit.core.values import Label
from bbnli_audit.workbench.workspace import read_lines, write_rows


class MaskedTemplate(NamedTuple):
    """A hypothesis template with one mask."""

    domain: str
    subtopic: str
    template: str  # the hypothesis of the suite that was masked, such as h03
    strategy: str
    masked: str


class Sample(NamedTuple):
    """A premise and a hypothesis with a mask; `counterpart` is that hypothesis with the groups exchanged."""

    domain: str
    subtopic: str
    sample: str
    cluster: str
    strategy: str
    side: str
    premise: str
    masked: str
    counterpart: str


class Word(NamedTuple):
    """A word that a masked language model proposes."""

    domain: str
    subtopic: str
    masked: str
    rank: int
    word: str
    probability: float


class Found(NamedTuple):
    """A sample that at least one model gets wrong. `labels` has the answer of each model, as JSON."""

    domain: str
    subtopic: str
    sample: str
    cluster: str
    strategy: str
    premise: str
    hypothesis: str
    counterpart: str
    masked: str
    word: str
    labels: str

    @property
    def found_by(self) -> list[str]:
        return [name for name, label in json.loads(self.labels).items() if label != Label.NEUTRAL]


class Item(NamedTuple):
    """A distinct hypothesis for people to judge. `premise` is one of the premises that it was found with."""

    item: str
    domain: str
    subtopic: str
    hypothesis: str
    template: str
    word: str
    premise: str
    n_samples: int


class Reviewed(NamedTuple):
    """What people decided about an item."""

    item: str
    domain: str
    subtopic: str
    hypothesis: str
    verdict: str
    stance: str


class NewPair(NamedTuple):
    """A pair of the next version: a premise, and the hypothesis of each side."""

    domain: str
    subtopic: str
    pair_id: str
    cluster: str
    premise: str
    pro_hypothesis: str
    anti_hypothesis: str
    strategy: str
    word: str
    found_by: str


Row = MaskedTemplate | Sample | Word | Found | Item | Reviewed | NewPair
R = TypeVar("R", MaskedTemplate, Sample, Word, Found, Item, Reviewed, NewPair)


def path_of(row: Row) -> str:
    return f"{row.domain}/{row.subtopic}"


def write_table(path: Path, row_type: type[R], rows: Iterable[R]) -> None:
    write_rows(path, row_type._fields, rows)


def read_table(path: Path, row_type: type[R], find_fault: Callable[[R], str | None] = lambda _: None) -> list[R]:
    """Read a table that may have been edited. Columns that `row_type` lacks are ignored.

    `find_fault` says what is wrong with a row.
    """
    kinds = get_type_hints(row_type)
    rows: list[R] = []
    for line, values in read_lines(path, row_type._fields):
        found: list[Any] = []
        for column in row_type._fields:
            try:
                found.append(kinds[column](values[column]))
            except ValueError as exc:
                shown = show_text(values[column])
                raise WorkbenchError(f"{path}:{line}: {column} is {shown}; expected a number.") from exc
        row = row_type(*found)
        fault = find_fault(row)
        if fault is not None:
            raise WorkbenchError(f"{path}:{line}: {fault}")
        rows.append(row)
    return rows
