"""Training data in every format, and the command `augment` on it, for tests."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bbnli_audit.frontends.cli import augment
from bbnli_audit.frontends.cli.arguments import Parser

ROWS = [
    {"id": 1, "premise": "The nurse lost her keys.", "hypothesis": "She has keys.", "label": "neutral", "w": 0.5},
    {"id": 2, "premise": "It rains, again.", "hypothesis": 'A "dry" day', "label": "contradiction", "w": None},
    {"id": 3, "premise": "A boy ran.", "hypothesis": "His sister\nran", "label": "neutral", "w": 2.0},
]
COPIES = [
    {**ROWS[0], "premise": "The nurse lost his keys.", "hypothesis": "He has keys."},
    {**ROWS[2], "premise": "A girl ran.", "hypothesis": "Her brother\nran"},
]
EXPECTED = [
    {**row, "augmented": is_copy}
    for row, is_copy in (
        (ROWS[0], False),
        (COPIES[0], True),
        (ROWS[1], False),
        (ROWS[2], False),
        (COPIES[1], True),
    )
]


def run(*arguments: object) -> int:
    parser = Parser()
    augment.add_parser(parser.add_subparsers())
    parsed = parser.parse_args(["augment", *map(str, arguments)])
    return int(parsed.run(parsed))


def open_any(path: Path, mode: str) -> Any:
    return (gzip.open if path.suffix == ".gz" else open)(path, mode, encoding="utf-8", newline="")


def write(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ".jsonl" in path.name:
        with open_any(path, "wt") as file:
            file.write("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        with open_any(path, "wt") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    with open_any(path, "rt") as file:
        return [json.loads(line) for line in file] if ".jsonl" in path.name else list(csv.DictReader(file))


def as_text(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shown: dict[object, str] = {None: "", True: "true", False: "false"}
    return [
        {key: shown[value] if value is None or isinstance(value, bool) else str(value) for key, value in row.items()}
        for row in rows
    ]
