"""Reads training data in batches, whatever its size. Messages name file, line and column and never a text."""

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

from bbnli_audit.core.errors import AugmentError, OptionError
from bbnli_audit.suites.json_file import json_type

AUGMENTED = "augmented"
SUFFIXES = (".csv", ".jsonl", ".csv.gz", ".jsonl.gz", ".parquet")
BATCH = 4096
_BLOCK = 1 << 20

_ONE_WORD = re.compile(r"[\w.-]{1,40}")
Texts = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: their two texts, and the rows as objects; also as they stood in the file, where that is of use."""

    texts: Sequence[Texts]
    records: Callable[[], Sequence[dict[str, Any]]]
    lines: Sequence[str] | None = None
    arrow: Any = None

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The names of the two columns that hold texts."""

    premise: str = "premise"
    hypothesis: str = "hypothesis"

    def __iter__(self) -> Iterator[str]:
        return iter((self.premise, self.hypothesis))


@dataclass(frozen=True, slots=True)
class Source:
    """An open file: its columns, its batches, how much of it is read (0 to 1), and its schema if it is Parquet."""

    path: Path
    texts: TextColumns
    columns: Sequence[str]
    batches: Iterator[Batch]
    share_read: Callable[[], float]
    schema: Any = None


def find_suffix(path: Path, option: str) -> str:
    """Give the suffix that says the format.

    Raises:
        OptionError: when there is no such format.
    """
    name = path.name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise OptionError(f"{option} {path}: give a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")


@contextmanager
def open_source(path: Path, texts: TextColumns) -> Iterator[Source]:
    """Open a file of training data.

    Raises:
        OptionError: when the file is not there, or is of another format.
        AugmentError: when it has not the columns that are needed; while reading, when it is not sound.
    """
    suffix = find_suffix(path, "IN")
    if path.is_dir():
        raise OptionError(f"IN {path}: is a folder. Give a file.")
    try:
        raw = path.open("rb")
    except FileNotFoundError as exc:
        raise OptionError(f"IN {path}: there is no such file.") from exc
    except OSError as exc:
        raise OptionError(f"IN {path}: cannot be read: {exc.strerror}.") from exc
    with raw:
        yield (_open_parquet if suffix == ".parquet" else _open_text)(raw, path, texts)


def _open_text(raw: IO[bytes], path: Path, texts: TextColumns) -> Source:
    size = max(1, path.stat().st_size)
    stream: Any = gzip.GzipFile(fileobj=raw) if path.name.lower().endswith(".gz") else raw
    read = _read_csv if ".csv" in find_suffix(path, "IN") else _read_jsonl
    blocks = read(_read_lines(stream, path), path)
    first = next(blocks, None)
    if first is None:
        raise AugmentError(f"{path}: holds no row.")
    columns = list(first.records[0])
    check_columns(path, columns, texts)
    batches = (_make_batch(block, path, texts) for block in chain((first,), blocks))
    return Source(path, texts, columns, batches, lambda: raw.tell() / size)


def check_columns(path: Path, columns: Sequence[str], texts: TextColumns) -> None:
    """Refuse a file that has not both text columns once, or has what we would add."""
    for column, option in zip(texts, ("--premise-column", "--hypothesis-column"), strict=True):
        if column not in columns:
            shown = [repr(name) for name in columns if _ONE_WORD.fullmatch(name)]
            if len(shown) < len(columns):
                shown.append(f"{len(columns) - len(shown)} whose name is not one word (is the first line a header?)")
            raise AugmentError(
                f"{path}: has no column {column!r}. Columns found: {', '.join(shown)}. Name the right one with "
                f"{option}."
            )
    if texts.premise == texts.hypothesis:
        raise OptionError(f"--premise-column and --hypothesis-column are both {texts.premise!r}. Name two columns.")
    if AUGMENTED in columns:
        raise _is_augmented(str(path))


def _is_augmented(place: str) -> AugmentError:
    return AugmentError(
        f"{place}: has a column {AUGMENTED!r}, which tells copies from originals, so it seems to be augmented already. "
        "Give the original data, or rename that column."
    )


def _read_lines(stream: IO[bytes], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give some lines at a time, without their ends, and the number of the first of them."""
    number, rest = 1, b""
    try:
        while chunk := stream.read(_BLOCK):
            whole, end, rest = (rest + chunk).rpartition(b"\n")
            if end:
                lines = _decode(whole, number, path)
                yield number, lines
                number += len(lines)
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise AugmentError(
            f"{path}: is not sound gzip: {type(exc).__name__}. It may be cut off, or not be gzip at all: copy it again."
        ) from exc
    except OSError as exc:
        raise AugmentError(f"{path}: cannot be read: {exc.strerror}.") from exc
    if rest:
        yield number, _decode(rest, number, path)


def _decode(data: bytes, number: int, path: Path) -> list[str]:
    try:
        return data.decode("utf-8-sig" if number == 1 else "utf-8").split("\n")
    except UnicodeDecodeError as exc:
        line = number + data.count(b"\n", 0, exc.start)
        raise AugmentError(f"{path}:{line}: is not UTF-8. Save the file as UTF-8.") from exc


@dataclass(frozen=True, slots=True)
class _Block:
    """Some records, the lines they begin in, and those lines if they are JSON."""

    numbers: Sequence[int]
    records: list[dict[str, Any]]
    lines: list[str] | None = None


def _read_csv(blocks: Iterator[tuple[int, list[str]]], path: Path) -> Iterator[_Block]:
    reader = csv.reader((f"{line}\n" for _, lines in blocks for line in lines), strict=True)
    header: list[str] = []
    numbers: list[int] = []
    records: list[dict[str, Any]] = []
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as exc:
            raise AugmentError(
                f"{path}:{number}: is not valid CSV: {exc}. Write it with a CSV library, commas between the values."
            ) from exc
        if records and (cells is None or len(records) == BATCH):
            yield _Block(numbers, records)
            numbers, records = [], []
        if cells is None:
            return
        if not header:
            header = cells
            if len(set(header)) < len(header):
                raise AugmentError(f"{path}:{number}: two columns bear the same name. Rename one.")
        elif len(cells) == len(header):
            numbers.append(number)
            records.append(dict(zip(header, cells, strict=True)))
        elif cells:
            raise AugmentError(
                f"{path}:{number}: has {len(cells)} values for {len(header)} columns. A text that holds a comma, a "
                "quote or a line break must stand in double quotes."
            )


def _read_jsonl(blocks: Iterator[tuple[int, list[str]]], path: Path) -> Iterator[_Block]:
    for first, raw in blocks:
        lines = [line.strip(" \t\r") for line in raw]
        numbers: Sequence[int] = range(first, first + len(lines))
        if "" in lines:
            numbers = [number for number, line in zip(numbers, lines, strict=True) if line]
            lines = [line for line in lines if line]
        if lines:
            yield _Block(numbers, _parse(numbers, lines, path), lines)


def _parse(numbers: Sequence[int], lines: list[str], path: Path) -> list[dict[str, Any]]:
    """Parse all lines at once, which is quicker; and one by one to say what is wrong."""
    try:
        records: list[Any] = json.loads(f"[{','.join(lines)}]")
    except (ValueError, RecursionError):
        records = []
    if len(records) != len(lines) or not all(line[0] == "{" and line[-1] == "}" for line in lines):
        records = [_parse_line(number, line, path) for number, line in zip(numbers, lines, strict=True)]
    for number, record in zip(numbers, records, strict=True):
        if AUGMENTED in record:
            raise _is_augmented(f"{path}:{number}")
    return records


def _parse_line(number: int, line: str, path: Path) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as exc:
        told = exc.msg if isinstance(exc, json.JSONDecodeError) else type(exc).__name__
        raise AugmentError(f"{path}:{number}: is not valid JSON: {told}. Write one object a line.") from exc
    if not isinstance(record, dict):
        raise AugmentError(f"{path}:{number}: holds a {json_type(record)}. Write one object a line.")
    return record


def _make_batch(block: _Block, path: Path, texts: TextColumns) -> Batch:
    premise, hypothesis = texts
    try:
        pairs = [(record[premise], record[hypothesis]) for record in block.records]
    except KeyError as exc:
        where = next(n for n, record in zip(block.numbers, block.records, strict=True) if exc.args[0] not in record)
        raise AugmentError(f"{path}:{where}: has no {exc.args[0]}, although the first record has.") from exc
    for index, pair in enumerate(pairs):
        if type(pair[0]) is not str or type(pair[1]) is not str:
            _check_texts(pair, texts, f"{path}:{block.numbers[index]}")
    return Batch(pairs, block.records.copy, block.lines)


def _check_texts(pair: Texts, texts: TextColumns, place: str) -> None:
    for value, column in zip(pair, texts, strict=True):
        if value is not None and not isinstance(value, str):
            raise AugmentError(f"{place}: {column} is a {json_type(value)}; it must be a text.")


def _open_parquet(raw: IO[bytes], path: Path, texts: TextColumns) -> Source:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _sound_parquet(path):
        file = pq.ParquetFile(raw, pre_buffer=False)  # buffers would be kept to the end
    schema = file.schema_arrow
    check_columns(path, schema.names, texts)
    for column in texts:
        if schema.names.count(column) > 1:
            raise AugmentError(f"{path}: has the column {column} twice. Rename one.")
        kind = schema.field(column).type
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(test(value) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
            raise AugmentError(f"{path}: the column {column} holds {kind}; it must hold texts.")
    n_rows = max(1, file.metadata.num_rows)
    read = 0

    def batches() -> Iterator[Batch]:
        nonlocal read
        with _sound_parquet(path):
            for batch in file.iter_batches(batch_size=BATCH):
                read += len(batch)
                premises, hypotheses = (batch.column(column).to_pylist() for column in texts)
                yield Batch(list(zip(premises, hypotheses, strict=True)), batch.to_pylist, arrow=batch)

    return Source(path, texts, schema.names, batches(), lambda: read / n_rows, schema)


@contextmanager
def _sound_parquet(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as exc:
        raise AugmentError(
            f"{path}: is not valid Parquet: {type(exc).__name__}. It may be cut off, or of another format: write it "
            "again."
        ) from exc
