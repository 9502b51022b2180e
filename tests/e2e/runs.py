"""Runs pytest on this repository's audits in a process of its own, as a user does."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from bbnli_audit.suites.bbnli import OWN_DATA

ROOT = Path(__file__).parents[2]
# Other people's plugins, whose import takes seconds.
QUICK = ("-p", "no:hypothesispytest", "-p", "no:anyio")


def start_pytest(*args: str, **environment: str) -> subprocess.Popen[str]:
    """Start a run. One thread each, since the runs share two cores with other tests; nothing is kept by default."""
    defaults = {"HF_HUB_OFFLINE": "1", "COLUMNS": "160", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *QUICK, *args],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **defaults, **environment},
    )


def run_pytest(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    process = start_pytest(*args, **environment)
    output, _ = process.communicate()
    return subprocess.CompletedProcess(args, process.returncode, output)


def write_one_subtopic(folder: Path) -> Path:
    """Copy one of our subtopics. A model is proved with the controls of all there are, so this saves most of a run."""
    (folder / "gender").mkdir(parents=True)
    shutil.copy(OWN_DATA / "gender" / "man_is_to_programmer.json", folder / "gender")
    return folder


def read_report(folder: Path) -> tuple[dict[str, Any], list[str]]:
    return json.loads((folder / "result.json").read_text()), (folder / "pairs.csv").read_text().splitlines()


def read_usage(output: str) -> tuple[int, int, int]:
    """Read how many texts there were, how many of them were stored, and how many were predicted."""
    found = re.search(r"Predictions: ([\d,]+) texts, ([\d,]+) stored.*, ([\d,]+) predicted", output)
    assert found is not None, output
    n_texts, n_stored, n_predicted = (int(number.replace(",", "")) for number in found.groups())
    return n_texts, n_stored, n_predicted
