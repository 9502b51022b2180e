"""Files with stored probabilities about invented groups, in each format."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbnli_audit.core.values import TextPair
from bbnli_audit.models.recorded import RecordedPredictor

Rows = Sequence[Mapping[str, Any]]


def write_csv(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8", newline="")


def write_parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    ".csv": write_csv,
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
}
formats = pytest.mark.parametrize("suffix", list(WRITERS))


def row(text: tuple[str, str], *values: Any) -> dict[str, Any]:
    labels = ("entailment", "neutral", "contradiction") if len(values) == 3 else ("entailment", "not_entailment")
    return dict(zip(("premise", "hypothesis", *labels), (*text, *values), strict=True))


ONE = TextPair("Zorbs live on the red moon.", "Zorbs juggle.")
TWO = TextPair("Quints live on the red moon.", "Quints juggle.")
GOOD = [row(ONE, 0.7, 0.2, 0.1), row(TWO, 0.25, 0.5, 0.25)]


def open_file(path: Path) -> RecordedPredictor:
    return RecordedPredictor(f"predictions:{path}")


def stored(folder: Path, suffix: str, rows: Rows = GOOD) -> RecordedPredictor:
    path = folder / f"stored{suffix}"
    WRITERS[suffix.lower()](path, rows)
    return open_file(path)


def lines(path: Path, *content: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return path
