"""A small project of a user, with invented groups, in which pytest is run."""

import importlib
import os
import sys
import textwrap
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.invented import LIMITS, write_large_suite
from tests.package_modules import LATE, MODULES
from tests.warm.runs import AHEAD, Run, server_address, warm_python

# pytester makes Python forget what a run in this process has imported. numpy cannot be imported twice, and two copies
# of our own modules would not know each other's classes: import everything before the first run.
PRELOADED = [
    importlib.import_module(name)
    for name in (*MODULES, *LATE, "huggingface_hub", "huggingface_hub.errors", "vl_convert")
]

AUDITS = """
def test_pro(bbnli):
    bbnli.require("pro_rate")

def test_anti(bbnli):
    bbnli.require("anti_rate")

def test_brittleness(bbnli):
    bbnli.require("brittleness_rate")

def test_competence(bbnli_model):
    bbnli_model.require_competence()

def test_regression(bbnli_regression):
    bbnli_regression.require()
"""

# Other people's plugins, whose import takes longer than most of these runs.
QUICK = ("-p", "no:hypothesispytest", "-p", "no:anyio")
MODES = {"plain": [], "no xdist": ["-p", "no:xdist"], "n0": ["-n0"], "n2": ["-n2"]}


class Project:
    """A folder with audits, limits and data."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path: Path = pytester.path
        pytester.makeini(f"[pytest]\naddopts = --strict-markers {' '.join(QUICK)}\npythonpath = .\n")
        self.write("audits/test_audits.py", AUDITS)
        self.write("thresholds.yaml", LIMITS)
        write_large_suite(self.path / "data")

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def run(self, *args: str) -> pytest.RunResult:
        with pytest.MonkeyPatch.context() as patch:
            if "-n2" in args:  # workers are forked from a process that has imported pandas
                patch.setenv("BBNLI_WARM", server_address())
                patch.setattr(sys, "executable", warm_python())
                args = (*AHEAD, *args)
            return self.pytester.runpytest_inprocess(*args)

    def run_warm(self, *args: str, **environment: str) -> CompletedProcess[str]:
        """Run in a process of its own, forked from one that has imported torch and this project."""
        given = {**os.environ, "BBNLI_WARM": server_address(), "BBNLI_PYTHON": warm_python(), **environment}
        return Run("pytest", (*AHEAD, *args), given, self.path).finish()

    def run_in_a_process(self, *args: str) -> pytest.RunResult:
        """Do the same, and give what pytester gives."""
        done = self.run_warm(*args)
        return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), 0.0)

    def audit(self, model: str, *args: str, data: str = "data") -> pytest.RunResult:
        return self.run("audits", f"--model={model}", f"--bbnli-data={data}", *args)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> list[str]:
    """Options for each way of running: with xdist installed, switched off, with no and with two workers."""
    return MODES[request.param]
