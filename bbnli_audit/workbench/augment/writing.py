"""Writes training data in batches: each row as it stands, and right after it its swapped copy."""

import csv
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import IO, Any, Protocol

from bbnli_audit.core.errors import AugmentError
from bbnli_audit.workbench.augment.reading import AUGMENTED, Batch, Source, find_suffix

# The texts of the copies, by the place of their row in the batch.
Copies = Mapping[int, tuple[str, str]]
ROW_GROUP = 32_768
_GZIP_LEVEL = 6
_ASCII = json.JSONEncoder().encode
_UNICODE = json.JSONEncoder(ensure_ascii=False).encode


class Writer(Protocol):
    """Writes batches in one format."""

    def write(self, batch: Batch, copies: Copies) -> None: ...

    def close(self) -> None: ...


def open_writer(file: IO[bytes], path: Path, source: Source, *, has_originals: bool) -> Writer:
    """Give the writer for the suffix of a path, which writes into a file that is open."""
    suffix = find_suffix(path, "OUT")
    if suffix == ".parquet":
        return ParquetWriter(file, source, has_originals)
    out: Any = file
    if suffix.endswith(".gz"):  # no time and no name inside: the same rows give the same bytes
        out = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
    return (CsvWriter if ".csv" in suffix else JsonlWriter)(out, source, has_originals)


def _rows(batch: Batch, source: Source, copies: Copies, has_originals: bool) -> Iterator[tuple[dict[str, Any], bool]]:
    """Give what is to be written: rows, and whether they are copies."""
    premise, hypothesis = source.texts
    records = batch.records()
    for index, record in enumerate(records) if has_originals else ((index, records[index]) for index in copies):
        if has_originals:
            yield record, False
        if index in copies:
            yield {**record, premise: copies[index][0], hypothesis: copies[index][1]}, True


class JsonlWriter:
    """Writes objects. A row that was read as a line stays that line, so that no number and no escape changes."""

    def __init__(self, out: IO[bytes], source: Source, has_originals: bool) -> None:
        self._out = out
        self._source = source
        self._has_originals = has_originals

    def write(self, batch: Batch, copies: Copies) -> None:
        rows = self._rewrite(batch, batch.lines, copies) if batch.lines is not None else self._encode(batch, copies)
        self._out.write("".join(rows).encode())

    def close(self) -> None:
        if isinstance(self._out, gzip.GzipFile):
            self._out.close()

    def _rewrite(self, batch: Batch, lines: Sequence[str], copies: Copies) -> Iterator[str]:
        premise, hypothesis = self._source.texts
        records = batch.records()
        if not self._has_originals:
            for index, texts in copies.items():
                yield _copy_line(records[index], lines[index], {premise: texts[0], hypothesis: texts[1]})
            return
        for index, line in enumerate(lines):
            yield f'{line[:-1].rstrip()}, "{AUGMENTED}": false}}\n'
            if index in copies:
                texts = copies[index]
                yield _copy_line(records[index], line, {premise: texts[0], hypothesis: texts[1]})

    def _encode(self, batch: Batch, copies: Copies) -> Iterator[str]:
        for record, is_copy in _rows(batch, self._source, copies, self._has_originals):
            try:
                yield _UNICODE({**record, AUGMENTED: is_copy}) + "\n"
            except TypeError as exc:
                column = next(name for name, value in record.items() if not _is_json(value))
                raise AugmentError(
                    f"{self._source.path}: the column {column} holds a {type(record[column]).__name__}, which JSON "
                    "cannot hold. Give OUT a name that ends in .parquet."
                ) from exc


def _copy_line(record: dict[str, Any], line: str, texts: dict[str, str]) -> str:
    # Escapes may stand for what UTF-8 cannot hold (half of a surrogate pair); then all are written so.
    encode = _ASCII if line.isascii() or "\\u" in line else _UNICODE
    return encode({**record, **texts, AUGMENTED: True}) + "\n"


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


class CsvWriter:
    """Writes cells; null is an empty cell."""

    def __init__(self, out: IO[bytes], source: Source, has_originals: bool) -> None:
        self._out = out
        self._source = source
        self._has_originals = has_originals
        self._write_rows([[*source.columns, AUGMENTED]])

    def write(self, batch: Batch, copies: Copies) -> None:
        columns = self._source.columns
        rows = []
        for record, is_copy in _rows(batch, self._source, copies, self._has_originals):
            if record.keys() != set(columns):
                raise other_columns(self._source, record)
            rows.append([*(self._cell(name, record[name]) for name in columns), str(is_copy).lower()])
        self._write_rows(rows)

    def close(self) -> None:
        if isinstance(self._out, gzip.GzipFile):
            self._out.close()

    def _cell(self, column: str, value: object) -> str:
        if type(value) is str:
            return value
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (list, dict, bytes)):
            raise AugmentError(
                f"{self._source.path}: the column {column} holds a {type(value).__name__}, which CSV cannot hold. Give "
                "OUT a name that ends in .jsonl or .parquet."
            )
        return str(value)

    def _write_rows(self, rows: Sequence[Sequence[str]]) -> None:
        text = StringIO(newline="")
        plain = csv.writer(text, lineterminator="\n")
        # Before Python 3.13, a carriage return alone does not make the writer quote a text.
        quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for row in rows:
            (quoted if "\r" in "".join(row) else plain).writerow(row)
        try:
            self._out.write(text.getvalue().encode())
        except UnicodeEncodeError as exc:
            raise not_unicode(self._source) from exc


class ParquetWriter:
    """Writes row groups. Rows that were read from Parquet keep their types and the file's metadata."""

    def __init__(self, file: IO[bytes], source: Source, has_originals: bool) -> None:
        self._file = file
        self._source = source
        self._has_originals = has_originals
        self._schema = None if source.schema is None else _add_column(source.schema)
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._n_waiting = 0

    def write(self, batch: Batch, copies: Copies) -> None:
        table = self._copy_arrow(batch, copies) if batch.arrow is not None else self._make(batch, copies)
        if table is None:
            return
        self._waiting.append(table)
        self._n_waiting += table.num_rows
        if self._n_waiting >= ROW_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            if self._schema is None:  # no row of a text file was to be written
                names = (*self._source.columns, AUGMENTED)
                self._schema = pa.schema([(name, pa.bool_() if name == AUGMENTED else pa.string()) for name in names])
            self._writer = pq.ParquetWriter(self._file, self._schema)
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting).unify_dictionaries())
        self._waiting, self._n_waiting = [], 0

    def _copy_arrow(self, batch: Batch, copies: Copies) -> Any:
        import pyarrow as pa

        indices, is_copy = [], []
        for index in range(len(batch)):
            if self._has_originals:
                indices.append(index)
                is_copy.append(False)
            if index in copies:
                indices.append(index)
                is_copy.append(True)
        table = pa.Table.from_batches([batch.arrow]).take(pa.array(indices, pa.int64()))
        for side, column in enumerate(self._source.texts):
            values = [
                copies[index][side] if copied else batch.texts[index][side]
                for index, copied in zip(indices, is_copy, strict=True)
            ]
            place = table.schema.get_field_index(column)
            table = table.set_column(place, table.schema.field(place), _array(values, table.schema.field(place).type))
        table = table.append_column(AUGMENTED, pa.array(is_copy, pa.bool_()))
        return table.cast(self._schema)

    def _make(self, batch: Batch, copies: Copies) -> Any:
        import pyarrow as pa

        columns = set(self._source.columns)
        records = []
        for record, is_copy in _rows(batch, self._source, copies, self._has_originals):
            if record.keys() != columns:
                raise other_columns(self._source, record)
            records.append({**record, AUGMENTED: is_copy})
        if not records:
            return None
        try:
            table = pa.Table.from_pylist(records, schema=self._schema)
        except UnicodeEncodeError as exc:
            raise not_unicode(self._source) from exc
        except (pa.ArrowException, OverflowError) as exc:
            raise AugmentError(
                f"{self._source.path}: a column holds values of different types, which Parquet cannot hold "
                f"({type(exc).__name__}). Give OUT a name that ends in .jsonl."
            ) from exc
        self._schema = table.schema
        return table


def _array(values: list[str | None], kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def _add_column(schema: Any) -> Any:
    """Add our column, also to the list that the `datasets` library keeps in the metadata and goes by."""
    import pyarrow as pa

    metadata = dict(schema.metadata or {})
    try:
        known = json.loads(metadata[b"huggingface"])
        known["info"]["features"][AUGMENTED] = {"dtype": "bool", "_type": "Value"}
        metadata[b"huggingface"] = json.dumps(known).encode()
    except (KeyError, TypeError, ValueError):
        pass  # written by another library
    return schema.append(pa.field(AUGMENTED, pa.bool_())).with_metadata(metadata or None)


def other_columns(source: Source, record: Mapping[str, object]) -> AugmentError:
    differing = sorted(record.keys() ^ set(source.columns))
    return AugmentError(
        f"{source.path}: a record differs from the first one in its keys ({', '.join(differing)}), which a table "
        "cannot hold. Give OUT a name that ends in .jsonl."
    )


def not_unicode(source: Source) -> AugmentError:
    return AugmentError(
        f"{source.path}: a text holds half of a surrogate pair, which is no character. Mend it, or give OUT a name "
        "that ends in .jsonl."
    )
