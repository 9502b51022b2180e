"""`bbnli-audit augment`: what is refused, with a message and nothing left behind."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbnli_audit.core.errors import AuditError, OptionError
from bbnli_audit.workbench.augment.lexicon import read_lexicon
from bbnli_audit.workbench.augment.reading import TextColumns
from bbnli_audit.workbench.augment.run import Augmenter
from bbnli_audit.workbench.augment.swap import Swapper
from tests.augmented_files import ROWS, run, write

GOOD = '{"premise": "he", "hypothesis": "x"}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.jsonl", b"", "holds no row"),
        ("in.csv", b"premise,hypothesis\n", "holds no row"),
        ("in.jsonl", f"{GOOD}{{nothing}}\n".encode(), ":2: is not valid JSON"),
        ("in.jsonl", f'{GOOD}[1]\n{{"a": 1}}, {{"b": 2}}\n'.encode(), ":2: holds a list. Write one object per line"),
        ("in.jsonl", f'{GOOD}\n{{"premise": "secret text"}}\n'.encode(), ":3: has no hypothesis"),
        (
            "in.jsonl",
            f'{GOOD}{{"premise": 3, "hypothesis": ""}}'.encode(),
            ":2: premise is a number; it must be a text",
        ),
        ("in.jsonl", f'{GOOD}{GOOD[:-2]}, "augmented": 1}}'.encode(), ":2: has a column 'augmented'"),
        ("in.jsonl", GOOD.encode() + b'{"premise": "\xff"}', ":2: is not UTF-8"),
        (
            "in.jsonl",
            b'{"text": "x", "a long secret": 1}',
            "has no column 'premise'. Columns found: 'text', 1 whose name",
        ),
        ("in.csv", b"premise,hypothesis,premise\nx,y,z\n", ":1: has the column 'premise' twice"),
        ("in.csv", b'premise,hypothesis\nx,y\n\n"a\nb",y,z\n', ":4: has 3 values for 2 columns"),
        ("in.csv", b'premise,hypothesis\nx,"y" z\n', ":2: is not valid CSV"),
        ("in.csv", b"premise,hypothesis,augmented\nx,y,z\n", "has a column 'augmented'"),
        ("in.jsonl.gz", b"no gzip", "is not valid gzip: BadGzipFile"),
        ("in.jsonl.gz", gzip.compress(GOOD.encode() * 9, mtime=0)[:-9], "is not valid gzip: EOFError"),
        ("in.parquet", b"PAR1 no", "is not valid Parquet"),
        ("in.txt", b"x", "the name must end in .csv, .jsonl, .csv.gz, .jsonl.gz or .parquet"),
    ],
)
def test_unsound_data_is_refused_and_nothing_is_left_behind(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AuditError) as raised:
        run(tmp_path / name, tmp_path / "out.jsonl")
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)
    assert {path.name for path in tmp_path.iterdir()} == {name}


def _link(folder: Path) -> list[object]:
    (folder / "link.jsonl").symlink_to(folder / "in.jsonl")
    return [folder / "in.jsonl", folder / "link.jsonl"]


def _list_of(text: str) -> Callable[[Path], list[object]]:
    def arguments(folder: Path) -> list[object]:
        (folder / "list.txt").write_text(text)
        return [folder / "in.jsonl", folder / "out.csv", "--occupations", folder / "list.txt"]

    return arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda folder: [folder / "in.jsonl", folder / "in.jsonl"], "is the same file as IN"),
        (_link, "is the same file as IN"),
        (lambda folder: [folder / "none.csv", folder / "out.csv"], "there is no such file"),
        (lambda folder: [folder / "in.jsonl", folder / "no" / "out.csv"], "there is no folder"),
        (lambda folder: [folder / "in.jsonl", folder / "out.xlsx"], "OUT"),
        (lambda folder: [folder / "in.jsonl", folder / "out.csv", "--show", "-1"], "--show=-1"),
        (
            lambda folder: [folder / "in.jsonl", folder / "out.csv", "--report", folder / "out.csv"],
            "is the same file as",
        ),
        (lambda folder: [folder / "in.jsonl", folder / "out.csv", "--report", folder], "is a folder"),
        (
            lambda folder: [folder / "in.jsonl", folder / "out.csv", "--hypothesis-column", "premise"],
            "are both 'premise'",
        ),
        (
            lambda folder: [folder / "in.jsonl", folder / "out.csv", "--occupations", folder / "x"],
            "there is no such file",
        ),
        (_list_of("# none\n"), "names no occupation"),
        (_list_of("ok\n???\n"), "list.txt:2: is not an occupation"),
    ],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, arguments: Callable[[Path], list[object]], message: str
) -> None:
    write(tmp_path / "in.jsonl")
    before = (tmp_path / "in.jsonl").read_bytes()
    with pytest.raises(AuditError) as raised:
        run(*arguments(tmp_path))
    assert message in str(raised.value)
    assert (tmp_path / "in.jsonl").read_bytes() == before
    assert not (tmp_path / "out.csv").exists()


def _at_file(path: Path) -> None:
    path.write_text("theirs")


def _at_link(path: Path) -> None:
    path.with_name("theirs.jsonl").write_text("theirs")
    path.symlink_to("theirs.jsonl")


def _at_dangling_link(path: Path) -> None:
    path.symlink_to("nothing.jsonl")


def _at_pipe(path: Path) -> None:
    os.mkfifo(path)  # stands for a device: a fault here must not cost one


@pytest.mark.parametrize("place", [_at_file, _at_link, _at_dangling_link, _at_pipe])
@pytest.mark.parametrize("option", ["OUT ", "--report="])
def test_what_is_there_already_stays(tmp_path: Path, place: Callable[[Path], None], option: str) -> None:
    there, source = tmp_path / "there.jsonl", write(tmp_path / "in.jsonl")
    place(there)
    before = {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    arguments = [there] if option == "OUT " else [tmp_path / "out.jsonl", "--report", there]
    with pytest.raises(OptionError) as raised:
        run(source, *arguments)
    assert str(raised.value).startswith(f"{option}{there}: already exists, and no file is overwritten.")
    assert {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_comes_there_in_the_meantime_stays(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(OptionError, match="cannot be written: File exists"):
        Augmenter(Swapper(read_lexicon())).run(
            write(tmp_path / "in.jsonl"), out, TextColumns(), progress=lambda *_: out.write_text("theirs")
        )
    assert out.read_text() == "theirs"
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out.jsonl"}


@pytest.mark.parametrize(
    ("rows", "out", "message"),
    [
        ([{**ROWS[0], "tags": [1]}], "out.csv", "the column tags holds a list, which CSV cannot hold"),
        ([ROWS[0], {**ROWS[1], "more": 1}], "out.csv", "keys of a record differ from those of the first (more)"),
        ([ROWS[0], {**ROWS[1], "more": 1}], "out.parquet", "keys of a record differ from those of the first (more)"),
        ([ROWS[0], {**ROWS[1], "id": "two"}], "out.parquet", "a column holds values of different types"),
        ([{**ROWS[0], "id": "\ud800"}], "out.csv", "half of a surrogate pair"),
        ([{**ROWS[0], "id": "\ud800"}], "out.parquet", "half of a surrogate pair"),
    ],
)
def test_what_a_format_cannot_hold_is_told(tmp_path: Path, rows: list[dict[str, Any]], out: str, message: str) -> None:
    with pytest.raises(AuditError) as raised:
        run(write(tmp_path / "in.jsonl", rows), tmp_path / out)
    assert message in str(raised.value)
    assert not (tmp_path / out).exists()


def test_a_date_of_parquet_is_no_json(tmp_path: Path) -> None:
    table = pa.table({"premise": ["he"], "hypothesis": ["x"], "when": pa.array([1], pa.timestamp("s"))})
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(AuditError, match="the column when holds a datetime, which JSON cannot hold"):
        run(tmp_path / "in.parquet", tmp_path / "out.jsonl")


def test_texts_of_parquet_must_be_texts(tmp_path: Path) -> None:
    pq.write_table(pa.table({"premise": [1], "hypothesis": ["x"]}), tmp_path / "in.parquet")
    with pytest.raises(AuditError, match="the column premise holds int64; it must hold texts"):
        run(tmp_path / "in.parquet", tmp_path / "out.jsonl")
