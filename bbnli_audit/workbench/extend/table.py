"""The tables between the steps: CSV files that people may look at and change. Read with line numbers, written whole."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.files import replacing


class MaskedTemplate(NamedTuple):
    """A hypothesis template with one mask."""

    domain: str
    subtopic: str
    template: str  # which hypothesis of the suite it comes from: h03
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
    """A sample that at least one model gets wrong. `labels` is what each model answers, as JSON."""

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
        return [name for name, label in json.loads(self.labels).items() if label != "neutral"]


class Item(NamedTuple):
    """A distinct hypothesis, for people to judge; `premise` is one that it stands with."""

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
    """A pair of the next version: one premise, the hypothesis with the groups as the stereotype has them, and not."""

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


R = TypeVar("R", MaskedTemplate, Sample, Word, Found, Item, Reviewed, NewPair)


def write_table(path: Path, row_type: type[R], rows: Iterable[R]) -> None:
    """Write a table whole: a file is old or new, never half.

    Raises:
        WorkbenchError: when it cannot be written.
    """
    try:
        with replacing(path) as file:
            writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a text may hold a \r
            writer.writerow(row_type._fields)
            writer.writerows(rows)
    except OSError as exc:
        raise WorkbenchError(
            f"{path}: cannot be written: {exc.strerror}. Give a folder with rights and space."
        ) from exc


def read_table(path: Path, row_type: type[R], find_fault: Callable[[R], str | None] = lambda _: None) -> list[R]:
    """Read a table; columns that are not ours are left alone.

    Args:
        path: The file.
        row_type: What a row holds.
        find_fault: Says what is wrong with a row; people may have changed it.

    Raises:
        WorkbenchError: naming the file, the line and the column.
    """
    kinds = get_type_hints(row_type)
    rows: list[R] = []
    for line, values in read_lines(path, row_type._fields):
        found = [_read(path, line, column, values[column], kinds[column]) for column in row_type._fields]
        row = row_type(*found)
        fault = find_fault(row)
        if fault is not None:
            raise WorkbenchError(f"{path}:{line}: {fault}")
        rows.append(row)
    return rows


def read_lines(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Read a CSV file: each row with the line it ends on. No message quotes a sentence."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            _check_header(path, reader.fieldnames or (), columns)
            for row in reader:
                if None in row or None in row.values():
                    more, n = "more" if None in row else "fewer", len(reader.fieldnames or ())
                    raise WorkbenchError(
                        f"{path}:{reader.line_num}: has {more} values than the {n} columns. Mend that line, or write "
                        "the file with a library."
                    )
                yield reader.line_num, row
    except FileNotFoundError as exc:
        raise WorkbenchError(f"{path}: there is no such file.") from exc
    except UnicodeDecodeError as exc:
        raise WorkbenchError(f"{path}: is not UTF-8. Save it as UTF-8.") from exc
    except csv.Error as exc:
        line = reader.reader.line_num  # of the file; a DictReader counts whole rows
        raise WorkbenchError(f"{path}:{line}: is not valid CSV: {exc}. Mend that line.") from exc
    except OSError as exc:
        raise WorkbenchError(f"{path}: cannot be read: {exc.strerror}.") from exc


def _check_header(path: Path, found: Sequence[str], columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in found]
    if missing:
        raise WorkbenchError(f"{path}:1: has no column {missing[0]!r}. The columns are {', '.join(columns)}.")
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise WorkbenchError(f"{path}:1: the column {twice!r} is there twice. Remove one.")


def _read(path: Path, line: int, column: str, value: str, kind: Any) -> Any:
    if kind is str:
        return value
    try:
        return kind(value)
    except ValueError as exc:
        raise WorkbenchError(f"{path}:{line}: {column} is {value!r:.40}; expected a number.") from exc
