"""Reads training data of any size, in batches. Messages name the file, line and column, but quote no sentence."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.tables import JsonLinesTable, ParquetTable, Record, Table, json_type

AUGMENTED = "augmented"
SUFFIXES = (".csv", ".jsonl", ".csv.gz", ".jsonl.gz", ".parquet")
BATCH = 4096
Texts = tuple[str | None, str | None]  # premise and hypothesis


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows, as texts and as objects. `lines` (JSON Lines) or `arrow` (Parquet) has the rows as they were read."""

    texts: Sequence[Texts]
    records: Callable[[], Sequence[dict[str, Any]]]
    lines: Sequence[str] | None = None
    arrow: Any = None

    def __len__(self) -> int:
        return len(self.texts)


class TextColumns(NamedTuple):
    premise: str = "premise"
    hypothesis: str = "hypothesis"


def find_suffix(path: Path, option: str) -> str:
    """Return the suffix of a file's name, which gives the format. Refuse a suffix that is not in `SUFFIXES`."""
    name = path.name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise OptionError(f"{option} {path}: the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")


def read_batches(table: Table, texts: TextColumns) -> Iterator[Batch]:
    """Yield training data in batches. An AugmentError says what is wrong with the data."""
    for column, option in zip(texts, ("--premise-column", "--hypothesis-column"), strict=True):
        table.require([column], f"Name the right one with {option}.")
    if texts.premise == texts.hypothesis:
        raise OptionError(f"--premise-column and --hypothesis-column are both {texts.premise!r}. Name two columns.")
    if AUGMENTED in table.columns:
        raise _is_augmented(table)
    yield from _read_parquet(table, texts) if isinstance(table, ParquetTable) else _read_text(table, texts)


def _is_augmented(table: Table, number: int | None = None) -> Exception:
    fault = f"has a column {AUGMENTED!r}, which tells copies from originals, so it seems to be augmented already"
    return table.wrong(fault, number, "Use the original data, or rename that column.")


def _read_text(table: Table, texts: TextColumns) -> Iterator[Batch]:
    table.require(table.columns)  # no column may occur twice, because all columns are written
    records = table.records(texts)
    found = list(islice(records, BATCH))
    if not found:
        raise table.wrong("holds no row")
    while found:
        yield _make_batch(table, found, texts)
        found = list(islice(records, BATCH))


def _make_batch(table: Table, records: Sequence[Record], texts: TextColumns) -> Batch:
    premise, hypothesis = texts
    pairs = []
    for number, values, _ in records:
        if AUGMENTED in values:
            raise _is_augmented(table, number)
        pair = (values[premise], values[hypothesis])
        for column, value in zip(texts, pair, strict=True):
            if value is not None and not isinstance(value, str):
                raise table.wrong(f"{column} is a {json_type(value)}; it must be a text", number)
        pairs.append(pair)
    lines = [record.text for record in records] if isinstance(table, JsonLinesTable) else None
    return Batch(pairs, lambda: [record.values for record in records], lines)


def _read_parquet(table: ParquetTable, texts: TextColumns) -> Iterator[Batch]:
    import pyarrow as pa

    for column in texts:
        kind = table.schema.field(column).type
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(test(value) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
            raise table.wrong(f"the column {column} holds {kind}; it must hold texts")
    for batch, (premises, hypotheses) in table.batches(BATCH, texts):
        yield Batch(list(zip(premises, hypotheses, strict=True)), batch.to_pylist, arrow=batch)
