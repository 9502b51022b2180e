"""The workbench with real NLI checkpoints: killed in the middle of its steps, it makes the same release."""

import csv
import json
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bbnli_audit.frontends.cli.main import main
from bbnli_audit.workbench.extend.steps import JOURNAL
from bbnli_audit.workbench.review.exchange import COLUMNS
from bbnli_audit.workbench.workspace import STORE
from tests.e2e.runs import environment_of
from tests.invented import write_large_suite
from tests.shared_data import shared_path
from tests.tiny_language_model import save_lm
from tests.warm.runs import Run

pytestmark = pytest.mark.e2e


def steps(given: str, work: str, nli: str) -> Iterator[list[str]]:
    yield ["mask", work, f"--data={given}/data"]
    yield ["expand", work]
    yield ["fill", work, f"--model={given}/lm", "--top=6", "--device=cpu"]
    yield ["filter", work, f"--model={nli}", "--held-out=demo"]
    yield ["annotations", "import", work, str(judge(Path(work)))]
    yield ["agree", work]
    yield ["counterfactual", work]
    yield ["release", work, "--version=1.0.0"]


def run_steps(given: str, work: str, nli: str) -> None:
    """Do all steps in one process, so that a kill may come in any of them."""
    for step in steps(given, work, nli):
        if main(["extend", *step]) != 0:
            sys.exit(f"{step[0]} failed")


def judge(work: Path) -> Path:
    """Write judgements of two annotators who find everything valid; the group named first decides the side."""
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


def start(given: Path, work: Path) -> Run:
    args = [str(given), str(work), str(shared_path("models/tiny-nli"))]
    return Run("tests.e2e.test_workbench", args, environment_of({}))


def has_words(work: Path) -> bool:
    """`fill` is running: some of its words are in the journal, and its table does not exist yet."""
    journal = work / JOURNAL
    return journal.exists() and journal.read_bytes().count(b"\n") > 2 and not (work / "filled.csv").exists()


def has_predictions(work: Path) -> bool:
    """`filter` is running: the store has predictions, and its table does not exist yet."""
    if not (work / STORE).exists() or (work / "filtered.csv").exists():
        return False
    try:
        with closing(sqlite3.connect(f"file:{work / STORE}?mode=ro", uri=True)) as store:
            return bool(store.execute("SELECT count(*) FROM predictions").fetchone()[0])
    except sqlite3.Error:
        return False


def kill_when(run: Run, is_time: Callable[[], bool]) -> bool:
    """Kill a run at a certain moment; return whether that came before its end."""
    while not run.is_over():
        if is_time():
            run.kill()
            break
        time.sleep(0.001)
    return run.finish().returncode == -signal.SIGKILL


def test_killed_in_the_middle_it_makes_the_same_release(tmp_path: Path) -> None:
    for path in write_large_suite(tmp_path / "data", n_premises=6).rglob("*.json"):
        # Controls that real models can read.
        plain = [["A workshop is open.", 2], ["The workshop is closed.", 0], ["The workshop is old.", 1]]
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "test_hypothesis": plain})
        )  # real models read these
    save_lm(tmp_path / "lm", "bert")
    started = time.monotonic()
    whole = start(tmp_path, tmp_path / "whole").finish()
    assert whole.returncode == 0, whole.stdout
    seconds = time.monotonic() - started
    work = tmp_path / "killed"
    assert kill_when(start(tmp_path, work), lambda: has_words(work))
    assert kill_when(start(tmp_path, work), lambda: has_predictions(work))
    at_random = time.monotonic() + random.uniform(0.5, 0.9) * seconds
    kill_when(start(tmp_path, work), lambda: time.monotonic() > at_random)
    again = start(tmp_path, work).finish()
    assert again.returncode == 0, again.stdout
    killed, undisturbed = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "release").iterdir()}
        for name in ("killed", "whole")
    )
    assert killed == undisturbed


if __name__ == "__main__":
    run_steps(*sys.argv[1:])
