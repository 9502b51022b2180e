"""Hostile text in every name: each output is read by a reader of its kind, and holds nothing but what we mean."""

import io
import json
import re
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bbnli_audit.core.errors import AuditError, LimitExceeded
from bbnli_audit.core.printable import printable, printable_line, printable_lines
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import dump, read_result, write_result
from bbnli_audit.core.tables import guard_formula, unguard_formula
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.measures.readings.table import TEXTS
from bbnli_audit.reports.files import read_pairs, write_data
from bbnli_audit.reports.folder import CSV
from bbnli_audit.reports.terminal import write_summary
from tests.entrances import JSON_ENTRANCES, make_result
from tests.reported import HOSTILE, reported
from tests.strategies import table_of

ATTACKS = (
    *HOSTILE,
    *("\n::error::pwned", "x\r\n  ::set-output name=a::b", "\x1b[2J\x1b]0;owned\x07", "##[add-path]/tmp", "a\x9b31m"),
    *("x ##vso[task.complete result=Succeeded]", "##teamcity[buildStatus status='SUCCESS']"),
    *("=cmd|'/c calc'!A0", "+1+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''+1", "\ud800", "a\x00b"),
)
attacks = st.sampled_from(ATTACKS) | st.text(max_size=12)
COMMAND = re.compile(r"\s*::|.*##\w*\[", re.DOTALL)  # as the runners of CI services look for commands


def assert_inert(line: str) -> None:
    """Check what a terminal and a CI service would read as one line."""
    line.encode()
    assert line.isprintable() or not [c for c in line if ord(c) < 32 or 0x7F <= ord(c) < 0xA0], repr(line)
    assert len(line.splitlines()) <= 1, repr(line)
    assert not COMMAND.match(line), repr(line)


@given(attacks)
def test_a_line(text: str) -> None:
    assert_inert(printable_line(text))
    assert_inert(printable_line(f"  {text}"))
    assert printable(printable(text)) == printable(text)
    for line in printable_lines(text).split("\n"):
        assert_inert(line)


@given(attacks, attacks)
def test_a_message(one: str, other: str) -> None:
    for error in (AuditError, LimitExceeded):
        lines = str(error(f"{one}: is wrong.\n{other}")).split("\n")
        for line in lines:
            assert_inert(line)


@given(reported())
@settings(max_examples=25)
def test_the_terminal(result: AuditResult) -> None:
    lines: list[str] = []
    write_summary(result, lambda line, **_: lines.append(printable_line(line)))  # as the session writes
    assert lines
    for line in lines:
        assert_inert(line)


@given(attacks)
@settings(max_examples=25)
def test_the_result_file_is_json_whatever_the_model_is_called(name: str) -> None:
    document = dump(make_result())
    with tempfile.TemporaryDirectory() as folder:
        result = make_result()
        object.__setattr__(result.model, "name", name)
        path = Path(folder, "result.json")
        write_result(result, path)
        assert json.loads(path.read_text(encoding="utf-8"))["suites"] == document["suites"]
        assert read_result(path).model.name == name.encode(errors="replace").decode()


@given(st.lists(attacks, min_size=4, max_size=4))
@example(["\r=1", "a\rb", "\r", "\n"])
@settings(max_examples=25)
def test_a_spreadsheet_finds_no_formula_and_we_find_the_texts(texts: list[str]) -> None:
    texts = [text.replace("\0", "").encode(errors="replace").decode() for text in texts]
    added: dict[str, Any] = {name: [text] for name, text in zip(TEXTS, texts, strict=True)}
    pairs = table_of([("entailment", "neutral")], **added)
    result = make_result()
    path = "invented/planets/zorbs"
    object.__setattr__(result, "pairs", {path: pairs.cells_by_cluster()})
    with tempfile.TemporaryDirectory() as folder:
        write_data(result, pairs, Path(folder))
        Path(folder, "pairs.parquet").unlink()
        cells = pd.read_csv(Path(folder, CSV), dtype=str, keep_default_na=False)
        assert not [cell for cell in cells[list(TEXTS)].iloc[0] if cell[:1] in tuple("=+-@\t\r")]
        read = read_pairs(result, Path(folder)).frame[list(TEXTS)].iloc[0].tolist()
    assert read == texts


@given(attacks)
def test_a_guarded_cell_is_read_back(text: str) -> None:
    assert unguard_formula(guard_formula(text)) == text
    assert guard_formula(text)[:1] not in tuple("=+-@\t\r")


@pytest.mark.parametrize("name", ["planets/zorbs.json", "suite.json"])
@given(attacks)
@settings(max_examples=10)
def test_the_commands(name: str, text: str) -> None:
    entrance = next(each for each in JSON_ENTRANCES if each.name == name)
    content = {**entrance.content, ("version" if name == "suite.json" else "annotations"): [text]}
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as out:
        entrance.write(Path(folder), json.dumps(content).encode())
        main(["suites", "list", "bbnli", "--data", folder])
    for line in out.getvalue().split("\n"):
        assert_inert(line)
