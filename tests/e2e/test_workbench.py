"""The workbench with real NLI checkpoints: killed again and again at random, it makes the same release."""

import csv
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bbnli_audit.cli.main import main
from bbnli_audit.extend.review.exchange import COLUMNS
from tests.invented import write_large_suite
from tests.shared_data import shared_path
from tests.tiny_language_model import save_lm

# One process does all steps, so that a kill may come in any of them.
COMMAND = "import sys; from tests.e2e.test_workbench import run_steps; run_steps(*sys.argv[1:])"
N_KILLS = 2


def steps(given: str, work: str, nli: str) -> Iterator[list[str]]:
    yield ["mask", work, f"--data={given}/data"]
    yield ["expand", work]
    yield ["fill", work, f"--model={given}/lm", "--top=6", "--device=cpu"]
    yield ["filter", work, "--model=demo", f"--held-out={nli}"]
    yield ["annotations", "import", work, str(judge(Path(work)))]
    yield ["agree", work]
    yield ["counterfactual", work]
    yield ["release", work, "--version=1.0.0"]


def run_steps(given: str, work: str, nli: str) -> None:
    for step in steps(given, work, nli):
        if main(["extend", *step]) != 0:
            sys.exit(f"{step[0]} failed")


def judge(work: Path) -> Path:
    """Write what two annotators say who find everything valid: the stereotype is about the group named first."""
    path = work.parent / f"{work.name}.csv"
    with (work / "items.csv").open(encoding="utf-8", newline="") as file:
        items = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for item in items:
            groups = ("Zorbs", "Fins", "Quints", "Gills")
            first = min((name for name in groups if name in item["hypothesis"]), key=item["hypothesis"].find)
            stance = "pro" if first in groups[:2] else "anti"
            for name in ("ana", "ben"):
                writer.writerow((item["item"], name, "valid", stance, "", "2026-01-01T00:00:00.000000Z"))
    return path


def start(given: Path, work: Path) -> "subprocess.Popen[str]":
    nli = shared_path("models/tiny-nli")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(given), str(work), str(nli)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


@pytest.mark.xdist_group("workbench")
def test_killed_at_random_it_makes_the_same_release(tmp_path: Path) -> None:
    write_large_suite(tmp_path / "data", n_premises=6)
    save_lm(tmp_path / "lm", "bert")
    started = time.monotonic()
    whole = start(tmp_path, tmp_path / "whole")
    out, _ = whole.communicate(timeout=300)
    assert whole.returncode == 0, out
    seconds = time.monotonic() - started
    chance = random.Random(3)
    n_killed = 0
    for _ in range(N_KILLS):
        process = start(tmp_path, tmp_path / "killed")
        try:
            process.wait(timeout=chance.uniform(0.3, 0.9) * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            n_killed += 1
        process.communicate()
    last = start(tmp_path, tmp_path / "killed")
    out, _ = last.communicate(timeout=300)
    assert last.returncode == 0, out
    assert n_killed > 0
    killed, undisturbed = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "release").iterdir()}
        for name in ("killed", "whole")
    )
    assert killed == undisturbed
