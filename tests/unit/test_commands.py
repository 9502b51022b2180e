"""What all commands of `bbnli-audit` have in common, and the JSON of `selftest`."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bbnli_audit import __version__
from bbnli_audit.frontends.cli.main import COMMANDS, main, make_parser
from bbnli_audit.models.planted import KINDS
from tests.invented import write_large_suite

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from parsers(command)


@pytest.mark.parametrize("parser", list(parsers(make_parser())), ids=lambda parser: str(parser.prog))
def test_every_command_has_a_description_and_examples(parser: argparse.ArgumentParser) -> None:
    assert parser.description
    title, *examples = (parser.epilog or "").split("\n  ")
    assert title == "examples:"
    assert examples
    for example in examples:
        assert "bbnli-audit " in example
    for action in parser._actions:
        assert action.help or isinstance(action, argparse._SubParsersAction), f"{parser.prog}: {action.dest}"


@pytest.mark.parametrize(
    "args",
    [[], ["nothing"], ["suites"], ["suites", "list", "--nothing"], ["calibrate"], ["calibrate", "r", "--per=x"]],
)
def test_wrong_use_ends_with_4(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 4
    err = capsys.readouterr().err
    assert "ERROR: " in err
    assert err.startswith("usage: bbnli-audit")
    assert err.endswith("--help\n")


def test_the_version_and_the_list_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--version", "--help"):
        with pytest.raises(SystemExit) as ended:
            main([option])
        assert ended.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"bbnli-audit {__version__}\n")
    for name in COMMANDS:
        assert f"\n    {name}" in out


@pytest.mark.parametrize("of", ["thresholds", "result"])
def test_schemas_are_those_of_the_docs(capsys: pytest.CaptureFixture[str], of: str) -> None:
    assert main(["schema", of]) == 0
    assert capsys.readouterr().out == (DOCS / f"{of}.schema.json").read_text(encoding="utf-8")


def test_a_command_starts_light() -> None:
    code = (
        "import sys; from bbnli_audit.frontends.cli.main import make_parser; make_parser(); "
        "found = {'torch', 'numpy', 'pandas', 'yaml', 'pydantic', 'pytest', 'shtab', 'jinja2'} & set(sys.modules); "
        "assert not found, found"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_selftest_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(write_large_suite(tmp_path / "data"))
    assert main(["selftest", "--data", data, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["limits"] == "built-in limits"
    assert {row["model"] for row in found["models"]} == {f"planted:{kind}" for kind in KINDS}
    # These controls can be told from their words: the selftest says so of such data.
    missed = {row["model"] for row in found["models"] if not row["is_as_expected"]}
    assert missed >= {"planted:blind-words", "planted:group-means-neutral"}
    by_model = {row["model"]: row for row in found["models"]}
    assert by_model["planted:always-pro"] == {
        "model": "planted:always-pro",
        "found": ["lean", "pro_rate"],
        "must_find": ["lean", "pro_rate"],
        "may_find": [],
        "is_decided": False,
        "is_as_expected": True,
    }
    loose = tmp_path / "loose.yaml"
    loose.write_text(
        "version: 1\ncompetence: {min_control_accuracy: 0.0}\ndefaults: {max_pro: 1, max_anti: 1, max_brittleness: 1}\n"
    )
    assert main(["selftest", "--data", data, "--thresholds", str(loose), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [row["found"] for row in found["models"] if row["model"] == "planted:always-pro"] == [[]]


def test_the_page_about_commands_has_each_of_them() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"\n## {name}\n" in page
        assert f"[`{name}`](#{name})" in page
