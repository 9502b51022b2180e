"""Runs pytest on this repository's audits in a process of its own, as a user does."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bbnli_audit.suites.bbnli import FIRST_DATA
from tests.warm.runs import AHEAD, ROOT, Run, server_address, warm_python

# Other people's plugins, whose import takes seconds.
QUICK = ("-p", "no:hypothesispytest", "-p", "no:anyio")


def start_pytest(*args: str, **environment: str) -> Run:
    if set(args) & {"-n", "-n2"}:
        environment |= {"BBNLI_WARM": server_address(), "BBNLI_PYTHON": warm_python()}
    return Run("pytest", _given((*AHEAD, *args)), environment_of(environment))


def run_pytest(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = start_pytest(*args, **environment).finish()
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout + done.stderr)


def run_cold_pytest(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run in a process that has imported nothing yet, for tests of what is imported."""
    command = [sys.executable, "-m", "pytest", *_given(args)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment_of(environment)
    )


def _given(args: Sequence[str]) -> list[str]:
    return ["-p", "no:cacheprovider", *QUICK, *args]


def environment_of(changes: Mapping[str, str]) -> dict[str, str]:
    """One thread each, since runs share two cores with other tests. Ray's workers do not wait for all other tests."""
    fixed = {"HF_HUB_OFFLINE": "1", "COLUMNS": "160", "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
    return {**os.environ, **fixed, **changes}


def write_one_subtopic(folder: Path) -> Path:
    """Copy one of our subtopics. A model is proved with the controls of all there are, so this saves most of a run."""
    (folder / "gender").mkdir(parents=True)
    shutil.copy(FIRST_DATA / "gender" / "man_is_to_programmer.json", folder / "gender")
    return folder


def read_report(folder: Path) -> tuple[dict[str, Any], list[str]]:
    return json.loads((folder / "result.json").read_text()), (folder / "pairs.csv").read_text().splitlines()


def read_usage(output: str) -> tuple[int, int, int]:
    """Read how many texts there were, how many of them were stored, and how many were predicted."""
    found = re.search(r"Predictions: ([\d,]+) texts, ([\d,]+) stored.*, ([\d,]+) predicted", output)
    assert found is not None, output
    n_texts, n_stored, n_predicted = (int(number.replace(",", "")) for number in found.groups())
    return n_texts, n_stored, n_predicted
