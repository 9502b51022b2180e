"""`--bbnli-data DIR` with a space: pytest takes DIR for a test path and moves its root there, unless we see to it."""

import os
from pathlib import Path

import pytest

from bbnli_audit.frontends.pytest_plugin.plugin import join_values
from tests.invented import write_large_suite
from tests.plugin.conftest import Project


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_suite(tmp_path_factory.mktemp("outside"))


def test_an_outside_folder_after_a_space_works(project: Project, outside: Path) -> None:
    result = project.run_in_a_process("audits", "--bbnli-model", "planted:ideal", "--bbnli-data", str(outside))
    result.stdout.fnmatch_lines(["bbnli: limits thresholds.yaml*", f"rootdir: {project.path}"])
    result.assert_outcomes(passed=7)
    assert result.ret == pytest.ExitCode.OK


def test_the_exit_code_survives(project: Project, outside: Path) -> None:
    result = project.run_in_a_process("audits", "--bbnli-model", "planted:always-pro", "--bbnli-data", str(outside))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"rootdir: {project.path}", "*2 failed, 5 passed*"])


def test_testpaths_of_the_project_stay_in_force(project: Project, outside: Path) -> None:
    project.pytester.makeini("[pytest]\ntestpaths = audits\n")
    project.write("tests/test_other.py", "def test_other():\n    assert False\n")
    result = project.run_in_a_process("--bbnli-data", str(outside), "--bbnli-model=planted:ideal")
    result.assert_outcomes(passed=7)


def test_a_checkpoint_outside_after_a_space(project: Project, outside: Path) -> None:
    (outside / "config.json").write_text('{"architectures": ["BertForTokenClassification"]}')
    result = project.run_in_a_process("audits", "--model", str(outside))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --model={outside}: its head is BertForTokenClassification; *"])


@pytest.mark.parametrize(
    ("args", "joined"),
    [
        (["--bbnli-data", "{here}"], ["--bbnli-data={here}"]),
        (["--bbnli-data={here}", "{here}"], ["--bbnli-data={here}", "{here}"]),
        (["--bbnli-data", "{here}/none"], ["--bbnli-data", "{here}/none"]),
        (["--bbnli-report"], ["--bbnli-report"]),
        (["--model", "{here}"], ["--model", "{here}"]),
        (["--model", "{here}/checkpoint", "tests"], ["--model={here}/checkpoint", "tests"]),
        (["--model", "--bbnli-data", "{here}"], ["--model", "--bbnli-data={here}"]),
        (["--other", "{here}"], ["--other", "{here}"]),
        (["-k", "x", "tests"], ["-k", "x", "tests"]),
    ],
)
def test_only_our_own_options_with_a_path_are_joined(tmp_path: Path, args: list[str], joined: list[str]) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "config.json").write_text("{}")
    here = os.fspath(tmp_path)
    options = {"--bbnli-data", "--bbnli-report", "--model"}
    assert join_values([arg.format(here=here) for arg in args], options) == [arg.format(here=here) for arg in joined]


OWNER = """
print("a conftest of the project")

def pytest_addoption(parser):
    parser.addoption("--model", help="mine")
"""


@pytest.mark.parametrize("place", ["conftest.py", "tests/conftest.py"])
def test_somebody_elses_model_starts_nothing_twice(project: Project, outside: Path, place: str) -> None:
    (outside / "config.json").write_text("{}")  # a checkpoint, so that it could be ours
    project.write(place, OWNER)
    project.write("tests/test_mine.py", "def test_mine(request):\n    assert request.config.getoption('--model')\n")
    result = project.run_in_a_process("tests", "--model", str(outside), "-s")
    result.assert_outcomes(passed=1)
    shown = result.stdout.str()
    assert shown.count("a conftest of the project") == shown.count("test session starts") == 1
    assert "bbnli:" not in shown
