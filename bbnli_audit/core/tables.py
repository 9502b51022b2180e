"""Strict readers of tables: CSV, JSON Lines (both also as .gz) and Parquet. Each record knows its line.

Messages name the file, the line and the column. They quote single words at most, since a longer text may be a sentence
of a suite. CSV and JSON Lines are read with the standard library, which keeps every text as it is. Only Parquet loads
pyarrow.
"""

import csv
import gzip
import json
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain, count
from pathlib import Path
from typing import IO, Any, NamedTuple

from bbnli_audit.core.errors import AuditError
from bbnli_audit.core.reading import ANY_SIZE, HOLDS_SURROGATE, Source, has_surrogate

Error = type[AuditError]
ParseInt = Callable[[str], Any]

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_ONE_WORD = re.compile(r"[\w.,%+-]{1,40}")


class Record(NamedTuple):
    """One record, and the line (in Parquet: the row) where it begins.

    In JSON Lines, `text` is the line itself. For other formats, `text` is empty.
    """

    number: int
    values: dict[str, Any]
    text: str = ""


class Table(ABC):
    """An open table. `columns` is its header; in JSON Lines, the keys of the first object."""

    unit = "line"
    columns: Sequence[str]
    _header: int | None = None  # the line that names the columns; None in Parquet

    def __init__(self, path: Path, error: Error, advice: str) -> None:
        self.path = path
        self._error = error
        self._advice = advice

    def records(self, columns: Sequence[str]) -> Iterator[Record]:
        """Read the records. Each record has all these columns. From Parquet, no other column is read."""
        self.require(columns)
        return self._read(columns)

    def require(self, columns: Sequence[str], advice: str | None = None) -> None:
        """Refuse a table that does not have each of these columns exactly once."""
        missing = [repr(column) for column in columns if column not in self.columns]
        if missing:
            raise self.wrong(f"has no column {', '.join(missing)}. {self._tell_columns()}", self._header, advice)
        for column in columns:
            if self.columns.count(column) > 1:
                shown = f"the column {column!r}" if _ONE_WORD.fullmatch(column) else "a column"
                raise self.wrong(f"has {shown} twice", self._header, "Remove or rename one.")

    def wrong(self, fault: str, number: int | None = None, advice: str | None = None) -> AuditError:
        """Return an error about a record or the whole table. Without advice, use the advice given to `open_table`."""
        separator = ":" if self.unit == "line" else f": {self.unit} "
        place = self.path if number is None else f"{self.path}{separator}{number}"
        return self._error(f"{place}: {fault}. {self._advice if advice is None else advice}".rstrip())

    @abstractmethod
    def share_read(self) -> float:
        """Return how much has been read, from 0 to 1."""

    @abstractmethod
    def _read(self, columns: Sequence[str], /) -> Iterator[Record]: ...

    def _tell_columns(self) -> str:
        # If the header is missing, the first line has sentences, which must not be shown.
        shown = [repr(column) for column in self.columns if _ONE_WORD.fullmatch(column)]
        n_hidden = len(self.columns) - len(shown)
        if n_hidden:
            shown.append(f"{n_hidden} whose name is not one word (is the first line a header, with commas between?)")
        return f"Columns found: {', '.join(shown) or 'none'}"


class _TextTable(Table):
    """A table in a text file, plain or compressed with gzip."""

    newline: str  # as for `open`; "" and "\n" both leave every line break as it is

    def __init__(self, file: IO[bytes], path: Path, error: Error, advice: str) -> None:
        super().__init__(path, error, advice)
        self._file = file
        self._bytes: Any = gzip.GzipFile(fileobj=file) if path.name.lower().endswith(".gz") else file
        self._lines = TextIOWrapper(self._bytes, encoding="utf-8-sig", newline=self.newline)

    def share_read(self) -> float:
        return self._file.tell() / max(1, self.path.stat().st_size)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as exc:
            raise self.wrong("is not UTF-8", self._find_bad_line(), "Save the file as UTF-8.") from exc
        except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
            advice = "It may be cut off or not be gzip at all: copy it again."
            raise self.wrong(f"is not valid gzip: {type(exc).__name__}", advice=advice) from exc
        except OSError as exc:
            raise self.wrong(f"cannot be read: {exc.strerror}", advice="") from exc

    def _find_bad_line(self) -> int:
        self._bytes.seek(0)
        return next((n for n, line in enumerate(self._bytes, 1) if line.decode(errors="ignore").encode() != line), 1)


class CsvTable(_TextTable):
    """A CSV file. Every value is a text."""

    newline = ""

    def __init__(self, file: IO[bytes], path: Path, error: Error, advice: str) -> None:
        super().__init__(file, path, error, advice)
        self._rows = self._parse()
        self._header, self.columns = next(self._rows, (1, []))
        if not self.columns:
            raise self.wrong("holds no row")

    def _parse(self) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(self._lines, strict=True)
        line = 1
        try:
            with self._reading():
                for cells in reader:
                    if cells:  # not a blank line
                        yield line, cells
                    line = reader.line_num + 1
        except csv.Error as exc:
            advice = "Fix that line, or write the file with a CSV library."
            raise self.wrong(f"is not valid CSV: {exc}", line, advice) from exc

    def _read(self, _columns: Sequence[str], /) -> Iterator[Record]:
        for line, cells in self._rows:
            if len(cells) != len(self.columns):
                fault = f"has {len(cells)} values for {len(self.columns)} columns"
                advice = "A text that holds a comma, a quote or a line break must be in double quotes."
                raise self.wrong(fault, line, advice)
            yield Record(line, dict(zip(self.columns, cells, strict=True)))


class JsonLinesTable(_TextTable):
    """JSON Lines: one object per line. `parse_int` turns the digits of a whole number into a value."""

    newline = "\n"

    def __init__(
        self,
        file: IO[bytes],
        path: Path,
        error: Error,
        advice: str,
        parse_int: ParseInt = int,
        is_verbatim: bool = False,
    ) -> None:
        super().__init__(file, path, error, advice)
        self._is_verbatim = is_verbatim
        self._decode = json.JSONDecoder(parse_int=parse_int).decode
        objects = self._parse()
        first = next(objects, None)
        if first is None:
            raise self.wrong("holds no row")
        self._header, self.columns = first.number, list(first.values)
        self._objects = chain((first,), objects)

    def _parse(self) -> Iterator[Record]:
        with self._reading():
            for number, line in enumerate(self._lines, 1):
                text = line.strip(" \t\r\n")
                if text:
                    yield Record(number, self._parse_object(number, text), text)

    def _parse_object(self, number: int, text: str) -> dict[str, Any]:
        advice = "Write one object per line."
        try:
            found = self._decode(text)
        except (ValueError, RecursionError) as exc:
            reason = exc.msg if isinstance(exc, json.JSONDecodeError) else type(exc).__name__
            raise self.wrong(f"is not valid JSON: {reason}", number, advice) from exc
        if not isinstance(found, dict):
            raise self.wrong(f"holds a {json_type(found)}", number, advice)
        if "\\u" in text and not self._is_verbatim and has_surrogate(found):
            raise self.wrong(HOLDS_SURROGATE, number)
        return found

    def _read(self, columns: Sequence[str]) -> Iterator[Record]:
        for record in self._objects:
            for column in columns:
                if column not in record.values:
                    fault = f"has no {column}, but the first record has"
                    raise self.wrong(fault, record.number, "Every record needs the same keys.")
            yield record


class ParquetTable(Table):
    """A Parquet file, with its Arrow schema."""

    unit = "row"

    def __init__(self, file: IO[bytes], path: Path, error: Error, advice: str) -> None:
        import pyarrow.parquet as pq

        super().__init__(path, error, advice)
        with self._reading():
            self._file = pq.ParquetFile(file, pre_buffer=False)  # buffers would be kept to the end
        self.schema = self._file.schema_arrow
        self.columns = self.schema.names
        self._n_read = 0

    def share_read(self) -> float:
        return self._n_read / max(1, int(self._file.metadata.num_rows))

    def batches(self, size: int, columns: Sequence[str]) -> Iterator[tuple[Any, list[list[Any]]]]:
        """Read whole rows as Arrow batches, each with the values of these columns as lists."""
        with self._reading():
            for batch in self._file.iter_batches(size):
                self._n_read += len(batch)
                yield batch, [batch.column(column).to_pylist() for column in columns]

    def _read(self, columns: Sequence[str]) -> Iterator[Record]:
        numbers = count(1)
        with self._reading():
            for batch in self._file.iter_batches(columns=columns):
                batch.validate()
                yield from (Record(next(numbers), values) for values in batch.to_pylist())

    @contextmanager
    def _reading(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as exc:
            advice = "It may be cut off or in another format: write it again."
            raise self.wrong(f"is not valid Parquet: {type(exc).__name__}", advice=advice) from exc


@contextmanager
def open_table(
    path: Path,
    error: Error,
    advice: str = "",
    *,
    suffix: str = "",
    file: IO[bytes] | None = None,
    parse_int: ParseInt = int,
    is_verbatim: bool = False,
) -> Iterator[Table]:
    """Open a table for reading. Raise `error` if the file is not sound.

    `advice`, such as "docs/workbench.md describes the table.", ends messages that have no advice of their own. The
    ending of the file's name gives the format, unless `suffix` does. A caller that has already opened the file passes
    the open file as `file`; `open_table` closes it. In JSON Lines, `parse_int` turns the digits of a whole number into
    a value, and `is_verbatim` accepts lone surrogates in texts.
    """
    source = Source(path, error)
    if file is None:
        source.check(ANY_SIZE)
    with source.telling():
        opened = path.open("rb") if file is None else file
    with opened:
        match suffix or Path(path.name.lower().removesuffix(".gz")).suffix:
            case ".parquet":
                yield ParquetTable(opened, path, error, advice)
            case ".jsonl":
                yield JsonLinesTable(opened, path, error, advice, parse_int, is_verbatim)
            case _:
                yield CsvTable(opened, path, error, advice)


def write_csv(file: IO[str], columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    # Quote every text: before Python 3.13, the writer by itself leaves a text with a lone carriage return unquoted.
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows(rows)


def guard_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula and run."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguard_formula(text: str) -> str:
    """Undo `guard_formula`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def show_text(text: str) -> str:
    """Quote a text if it is one word; otherwise give only its length, because it may be a sentence of a suite."""
    return repr(text) if _ONE_WORD.fullmatch(text) else f"a text of {len(text)} characters"


def json_type(value: object) -> str:
    """Name the type of a value in JSON's words."""
    names = {dict: "object", list: "list", str: "text", bool: "true/false", int: "number", float: "number"}
    return names.get(type(value), "null")
