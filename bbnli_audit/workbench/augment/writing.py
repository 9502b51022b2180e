"""Writes training data in batches: each row, followed by its swapped copy if it has one."""

import csv
import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from io import StringIO
from pathlib import Path
from typing import IO, Any, Self

from bbnli_audit.core.errors import AuditError
from bbnli_audit.core.reading import parse_json
from bbnli_audit.core.tables import ParquetTable, Table
from bbnli_audit.workbench.augment.reading import AUGMENTED, Batch, TextColumns, find_suffix

Copies = Mapping[int, tuple[str, str]]  # index of a row in the batch → the texts of its copy
ROW_GROUP = 32_768
_GZIP_LEVEL = 6
_ASCII = json.JSONEncoder().encode
_UNICODE = json.JSONEncoder(ensure_ascii=False).encode


def open_writer(file: IO[bytes], path: Path, table: Table, texts: TextColumns, has_originals: bool) -> "Writer":
    """Return the writer for the format that the suffix of the path names. The writer writes into `file`."""
    suffix = find_suffix(path, "OUT")
    if suffix == ".parquet":
        return ParquetWriter(file, table, texts, has_originals)
    out: Any = file
    if suffix.endswith(".gz"):  # no time or name in the header, so that the same rows give the same bytes
        out = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
    return (CsvWriter if ".csv" in suffix else JsonlWriter)(out, table, texts, has_originals)


class Writer(ABC):
    """Writes batches in one format: the copies and, with `has_originals`, the rows themselves."""

    def __init__(self, out: IO[bytes], table: Table, texts: TextColumns, has_originals: bool) -> None:
        self._out = out
        self._table = table
        self._texts = texts
        self._has_originals = has_originals

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_rest: object) -> None:
        # After an error the file is discarded, but its writer is closed: a Parquet writer must not outlive the file.
        with suppress(Exception) if error else nullcontext():
            self.close()

    @abstractmethod
    def write(self, batch: Batch, copies: Copies) -> None: ...

    def close(self) -> None:
        if isinstance(self._out, gzip.GzipFile):
            self._out.close()

    def _order(self, batch: Batch, copies: Copies) -> Iterator[tuple[int, bool]]:
        """Yield what to write, in order: the index of a row, with True for its copy or False for the row itself."""
        for index in range(len(batch)) if self._has_originals else copies:
            if self._has_originals:
                yield index, False
            if index in copies:
                yield index, True

    def _rows(self, batch: Batch, copies: Copies) -> Iterator[tuple[int, dict[str, Any], bool]]:
        """Yield the rows to write, each with its index and whether it is a copy."""
        records = batch.records()
        for index, is_copy in self._order(batch, copies):
            record = records[index]
            if is_copy:
                record = {**record, **dict(zip(self._texts, copies[index], strict=True))}
            yield index, record, is_copy

    def _table_rows(self, batch: Batch, copies: Copies) -> Iterator[tuple[dict[str, Any], bool]]:
        """Yield the rows for CSV or Parquet, and refuse a row whose keys are not the columns."""
        columns = set(self._table.columns)
        for _, record, is_copy in self._rows(batch, copies):
            if record.keys() != columns:
                names = ", ".join(sorted(record.keys() ^ columns))
                problem = f"the keys of a record differ from those of the first ({names}), which a table cannot hold"
                raise self._refuse(problem, ".jsonl")
            yield record, is_copy

    def _refuse(self, problem: str, suffix: str) -> AuditError:
        return self._table.wrong(problem, advice=f"Use a name for OUT that ends in {suffix}.")

    def _refuse_surrogate(self) -> AuditError:
        return self._refuse("a text contains half of a surrogate pair, which is not a character", ".jsonl, or fix it")


class JsonlWriter(Writer):
    """Writes JSON Lines. A row from JSON Lines is written as it was read, with one key added."""

    def write(self, batch: Batch, copies: Copies) -> None:
        self._out.write("".join(self._lines(batch, copies)).encode())

    def _lines(self, batch: Batch, copies: Copies) -> Iterator[str]:
        lines = batch.lines
        for index, record, is_copy in self._rows(batch, copies):
            if lines is None:
                yield self._encode({**record, AUGMENTED: is_copy}) + "\n"
            elif is_copy:
                # If the row has escapes, write the copy with escapes. An escape may stand for half of a surrogate pair,
                # which UTF-8 cannot hold. If the row is plain ASCII, write the copy in ASCII.
                encode = _ASCII if lines[index].isascii() or "\\u" in lines[index] else _UNICODE
                yield encode({**record, AUGMENTED: True}) + "\n"
            else:
                yield f'{lines[index][:-1].rstrip()}, "{AUGMENTED}": false}}\n'

    def _encode(self, record: dict[str, Any]) -> str:
        try:
            return _UNICODE(record)
        except TypeError as exc:
            column = next(name for name, value in record.items() if not _is_json(value))
            kind = type(record[column]).__name__
            raise self._refuse(f"the column {column} holds a {kind}, which JSON cannot hold", ".parquet") from exc


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


class CsvWriter(Writer):
    """Writes CSV. A null becomes an empty cell."""

    def __init__(self, out: IO[bytes], table: Table, texts: TextColumns, has_originals: bool) -> None:
        super().__init__(out, table, texts, has_originals)
        self._write_rows([[*table.columns, AUGMENTED]])

    def write(self, batch: Batch, copies: Copies) -> None:
        self._write_rows(
            [*(self._cell(name, record[name]) for name in self._table.columns), str(is_copy).lower()]
            for record, is_copy in self._table_rows(batch, copies)
        )

    def _cell(self, column: str, value: object) -> str:
        if type(value) is str:
            return value
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (list, dict, bytes)):
            kind = type(value).__name__
            raise self._refuse(f"the column {column} holds a {kind}, which CSV cannot hold", ".jsonl or .parquet")
        return str(value)

    def _write_rows(self, rows: Iterable[Sequence[str]]) -> None:
        text = StringIO(newline="")
        plain = csv.writer(text, lineterminator="\n")
        # Before Python 3.13, the writer does not quote a text that has a carriage return without a line feed.
        quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for row in rows:
            (quoted if "\r" in "".join(row) else plain).writerow(row)
        try:
            self._out.write(text.getvalue().encode())
        except UnicodeEncodeError as exc:
            raise self._refuse_surrogate() from exc


class ParquetWriter(Writer):
    """Writes Parquet. Rows that were read from Parquet keep their types and the file's metadata."""

    def __init__(self, out: IO[bytes], table: Table, texts: TextColumns, has_originals: bool) -> None:
        super().__init__(out, table, texts, has_originals)
        self._schema = _add_column(table.schema) if isinstance(table, ParquetTable) else None
        self._writer: Any = None
        self._waiting: list[Any] = []

    def write(self, batch: Batch, copies: Copies) -> None:
        table = self._copy_arrow(batch, copies) if batch.arrow is not None else self._make(batch, copies)
        if table is None:
            return
        self._waiting.append(table)
        if sum(table.num_rows for table in self._waiting) >= ROW_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            if self._schema is None:  # IN is no Parquet file, and no row was written
                texts = [(name, pa.string()) for name in self._table.columns]
                self._schema = pa.schema([*texts, (AUGMENTED, pa.bool_())])
            self._writer = pq.ParquetWriter(self._out, self._schema)
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting).unify_dictionaries())
        self._waiting = []

    def _copy_arrow(self, batch: Batch, copies: Copies) -> Any:
        import pyarrow as pa

        order = list(self._order(batch, copies))
        table = pa.Table.from_batches([batch.arrow]).take(pa.array([index for index, _ in order], pa.int64()))
        for side, column in enumerate(self._texts):
            values = [copies[index][side] if is_copy else batch.texts[index][side] for index, is_copy in order]
            place = table.schema.get_field_index(column)
            field = table.schema.field(place)
            table = table.set_column(place, field, _array(values, field.type))
        table = table.append_column(AUGMENTED, pa.array([is_copy for _, is_copy in order], pa.bool_()))
        return table.cast(self._schema)

    def _make(self, batch: Batch, copies: Copies) -> Any:
        import pyarrow as pa

        records = [{**record, AUGMENTED: is_copy} for record, is_copy in self._table_rows(batch, copies)]
        if not records:
            return None
        try:
            table = pa.Table.from_pylist(records, schema=self._schema)
        except UnicodeEncodeError as exc:
            raise self._refuse_surrogate() from exc
        except (pa.ArrowException, OverflowError) as exc:
            problem = f"a column holds values of different types, which Parquet cannot hold ({type(exc).__name__})"
            raise self._refuse(problem, ".jsonl") from exc
        self._schema = table.schema
        return table


def _array(values: list[str | None], kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def _add_column(schema: Any) -> Any:
    """Return the schema with our column added. Add the column to the metadata of the `datasets` library, too."""
    import pyarrow as pa

    metadata = dict(schema.metadata or {})
    try:
        known = parse_json(metadata[b"huggingface"].decode())
        known["info"]["features"][AUGMENTED] = {"dtype": "bool", "_type": "Value"}
        metadata[b"huggingface"] = json.dumps(known).encode()
    except (KeyError, TypeError, ValueError):
        pass  # the file has no metadata of `datasets`
    return schema.append(pa.field(AUGMENTED, pa.bool_())).with_metadata(metadata or None)
