"""Every command with anything where it expects a file or a folder: an exit code and a message, never a traceback."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bbnli_audit.core.results.file import write_result
from bbnli_audit.frontends.cli.arguments import PIPE_CLOSED, WRONG_USE
from bbnli_audit.frontends.cli.main import main
from tests.entrances import NO_FILES, make_result
from tests.invented import LIMITS

pytestmark = pytest.mark.slow

VERIFY = ("verify", "report", "--model", "planted:ideal")
COMMANDS = (
    *(("init", "BAD"), ("suites", "list", "BAD"), ("suites", "list", "bbnli", "--data", "BAD")),
    *(("suites", "check", "bbnli", "--data", "BAD"), ("suites", "check", "bbnli", "--published", "BAD")),
    ("suites", "texts", "bbnli", "--data", "report", "--output", "BAD"),
    *(("verify", "BAD", "--model", "planted:ideal"), ("verify", "report", "--model", "BAD"), VERIFY),
    *((*VERIFY, option, "BAD") for option in ("--thresholds", "--baseline", "--suite", "--data", "--labels")),
    *(("report", "BAD"), ("report", "result.json", "--output", "BAD"), ("report", "BAD", "--output", "page")),
    *(("compare", "BAD", "result.json"), ("compare", "result.json", "BAD")),
    ("compare", "result.json", "result.json", "--thresholds", "BAD"),
    ("baseline", "accept", "BAD", "--owner", "Ada", "--reason", "known", "--expires", "2999-01-01"),
    *(("history", "BAD", "--output", "pages"), ("history", "result.json", "--output", "BAD")),
    *(("correlate", "BAD", "result.json"), ("calibrate", "BAD"), ("calibrate", "result.json", "--thresholds", "BAD")),
    *(("inspect", model, "--premise", "a", "--hypothesis", "b") for model in ("BAD", "predictions:BAD")),
    *(("augment", "BAD", "new.csv"), ("augment", "in.csv", "BAD"), ("augment", "in.csv", "n.csv", "--lexicon", "BAD")),
    *(
        ("extend", "mask", "BAD"),
        ("extend", "status", "BAD"),
        ("extend", "review", "BAD", "--annotator", "ada"),
        ("schema", "BAD"),
        ("completion", "BAD"),
        ("BAD",),
    ),
)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 10)


def _nothing(path: Path) -> None: ...


def _below_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file")


KINDS = (*NO_FILES, _empty, _binary, _nothing, _below_a_file)
NAMES = ("", "\0", "a" * 5000, os.fsdecode(b"n\xffm"), "-", "9" * 400, "::error::x", "/dev/null")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    write_result(make_result(), tmp_path / "result.json")
    (tmp_path / "report").mkdir()
    write_result(make_result(), tmp_path / "report" / "result.json")
    (tmp_path / "thresholds.yaml").write_text(LIMITS)
    (tmp_path / "in.csv").write_text("premise,hypothesis\nHe juggles.,She walks.\n")
    (tmp_path / "places").mkdir()
    return tmp_path


def run(command: tuple[str, ...], value: str) -> int:
    try:
        return main([word.replace("BAD", value) for word in command])
    except SystemExit as exc:  # argparse
        return int(exc.code or 0)


def check(command: tuple[str, ...], value: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(command, value)
    told = capsys.readouterr()
    assert code in (0, 1, WRONG_USE)
    assert code == 0 or told.err.strip() or told.out.strip()
    assert "Traceback" not in told.err
    assert "the following arguments are required" not in told.err, "it must read BAD"
    assert (command[0], code) != ("verify", 0)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_what_is_not_as_expected(
    folder: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None]
) -> None:
    for number, command in enumerate(COMMANDS):
        place = folder / "places" / str(number) / "BAD"
        place.parent.mkdir()
        make(place)
        check(command, str(place), capsys)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:12]))
def test_names_that_no_file_has(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    for command in COMMANDS:
        check(command, name, capsys)


def test_a_reader_that_has_gone_is_not_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """`bbnli-audit verify … | grep -q x` with `pipefail`: nobody has read what it found."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        patch.setattr(sys, "__stdout__", pipe)
        assert main(["schema", "result"]) == PIPE_CLOSED


def test_a_closed_output_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`bbnli-audit … >&-`: Python then has no standard output."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert main(["schema", "result"]) == WRONG_USE
    assert capsys.readouterr().err == "ERROR: The output cannot be written: standard output is closed.\n"
