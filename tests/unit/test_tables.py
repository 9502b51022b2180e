"""Tables are read strictly, with the line of each record, and no message quotes a text."""

import csv
import gzip
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbnli_audit.core.errors import AuditError, SuiteError
from bbnli_audit.core.tables import CsvTable, ParquetTable, Record, open_table, write_csv

ROWS = [{"premise": "Zorbs\njuggle,\r they say.", "label": "a"}, {"premise": "", "label": "\u2028é"}]
SENTENCE = "Zorbs live on the red moon."
HOW = "docs/tables.md describes the table."


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8-sig", newline="") as file:
        if ".jsonl" in path.name:
            file.write("".join(json.dumps(row, ensure_ascii=False) + "\n\n" for row in rows))
        else:
            write_csv(file, rows[0], [row.values() for row in rows])
    return path


def read(path: Path, columns: tuple[str, ...] = ("premise", "label"), **options: Any) -> list[Record]:
    with open_table(path, SuiteError, HOW, **options) as table:
        return list(table.records(columns))


def refusal(path: Path, content: str | bytes, columns: tuple[str, ...] = ("premise",)) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SuiteError) as caught:
        read(path, columns)
    assert "orbs" not in str(caught.value)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("a.csv", [2, 5]),  # a record begins on its first line
        ("a.CSV", [2, 5]),
        ("a.csv.gz", [2, 5]),
        ("a.jsonl", [1, 3]),  # blank lines count
        ("a.jsonl.gz", [1, 3]),
        ("a.parquet", [1, 2]),
    ],
)
def test_records_come_back_with_their_lines(tmp_path: Path, name: str, numbers: list[int]) -> None:
    found = read(write(tmp_path / name, ROWS))
    assert [record.values for record in found] == ROWS
    assert [record.number for record in found] == numbers
    if "jsonl" in name:
        assert [json.loads(record.text) for record in found] == ROWS


def test_content_and_format_may_come_from_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.txt"
    (record,) = read(path, ("n",), suffix=".jsonl", file=BytesIO(b'{"n": 3}'), parse_int=float)
    assert (record.values, type(record.values["n"])) == ({"n": 3.0}, float)
    assert read(path, ("n",), suffix=".csv", file=BytesIO(b"n\r3\r")) == [Record(2, {"n": "3"})]


def test_columns_that_are_not_asked_for_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("premise,,,x,x\nA moon.,1,2,3,4\n")
    assert read(tmp_path / "a.csv", ("premise",))[0].values["premise"] == "A moon."
    when = pa.array([2**62], pa.timestamp("ns"))  # too late for Python
    pq.write_table(pa.table({"premise": ["A moon."], "when": when}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", ("premise",)) == [Record(1, {"premise": "A moon."})]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", f": holds no row. {HOW}"),
        ("a.csv", "\n\n", f": holds no row. {HOW}"),
        ("a.jsonl", " \n", f": holds no row. {HOW}"),
        ("a.csv", "label\nx\n", f":1: has no column 'premise'. Columns found: 'label'. {HOW}"),
        ("a.jsonl", '\n{"label": 1}', f":2: has no column 'premise'. Columns found: 'label'. {HOW}"),
        ("a.jsonl", "{}", f":1: has no column 'premise'. Columns found: none. {HOW}"),
        ("a.csv", "premise,premise\n", ":1: has the column 'premise' twice. Remove or rename one."),
        (
            "a.csv",
            "premise,label\nx,y\n\nz\n",
            ":4: has 1 values for 2 columns. A text that holds a comma, a quote or a",
        ),
        (
            "a.csv",
            'premise\nx\n"a\nb" c\n',
            ":3: is not valid CSV: ',' expected after '\"'. Fix that line, or write the",
        ),
        ("a.csv", 'premise\n"Zorbs\n\n', ":2: is not valid CSV: unexpected end of data. Fix that line"),
        ("a.csv", b"premise\nx\n\xff\n", ":3: is not UTF-8. Save the file as UTF-8."),
        ("a.jsonl", b'{"premise": "\xe9"}', ":1: is not UTF-8."),
        (
            "a.jsonl",
            '{"premise": 1}\n{"premise": Zorbs}',
            ":2: is not valid JSON: Expecting value. Write one object per",
        ),
        ("a.jsonl", '{"premise": 1}, {"premise": 1}', ":1: is not valid JSON: Extra data. Write one object per line."),
        ("a.jsonl", '{"premise": 1}\n"Zorbs"', ":2: holds a text. Write one object per line."),
        (
            "a.jsonl",
            '{"premise": 1}\n{}',
            ":2: has no premise, but the first record has. Every record needs the same keys.",
        ),
        ("a.csv.gz", "premise", ": is not valid gzip: BadGzipFile. It may be cut off or not be gzip at all: copy it"),
        ("a.parquet", "PAR1", ": is not valid Parquet: ArrowInvalid. It may be cut off or in another format: write it"),
    ],
)
def test_what_is_not_sound_is_refused(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    assert refusal(tmp_path / name, content).startswith(message)


def test_a_gzip_file_that_is_cut_off(tmp_path: Path) -> None:
    assert refusal(tmp_path / "a.csv.gz", gzip.compress(b"premise\nx\n" * 9, mtime=0)[:-9]).startswith(
        ": is not valid gzip: EOF"
    )


def test_a_forgotten_header_is_not_quoted(tmp_path: Path) -> None:
    found = refusal(tmp_path / "a.csv", f"{SENTENCE},pro,{SENTENCE}\n{SENTENCE},anti,{SENTENCE}\n")
    assert "Columns found: 'pro', 2 whose name is not one word (is the first line a header" in found
    (tmp_path / "b.csv").write_text(f"{SENTENCE},{SENTENCE}\n")
    message = r"b\.csv:1: has a column twice\. Remove or rename one\.$"
    with pytest.raises(SuiteError, match=message), open_table(tmp_path / "b.csv", SuiteError) as table:
        table.require(table.columns)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none.csv", "there is no such file"),
        (tmp_path, "cannot be read: it is a folder, not a file"),
    ):
        with pytest.raises(AuditError, match=f"{message}\\.$"):
            read(path)


def test_the_caller_names_the_record_that_is_wrong(tmp_path: Path) -> None:
    for name, kind, place in (("a.csv", CsvTable, ":7"), ("a.parquet", ParquetTable, ": row 7")):
        path = write(tmp_path / name, ROWS)
        with open_table(path, SuiteError, HOW) as table:
            assert isinstance(table, kind)
            assert str(table.wrong("is odd", 7)) == f"{path}{place}: is odd. {HOW}"
            assert str(table.wrong("is odd", 7, "")) == f"{path}{place}: is odd."
            assert str(table.wrong("is odd")) == f"{path}: is odd. {HOW}"


def test_large_files_are_read_record_by_record(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["premise"], *([str(n)] for n in range(100_000)), ["too", "many"]])
    with open_table(path, SuiteError) as table:
        records = table.records(("premise",))
        assert next(records).values == {"premise": "0"}  # the fault at the end is not met yet
        with pytest.raises(SuiteError, match=":100002: has 2 values for 1 columns"):
            list(records)
