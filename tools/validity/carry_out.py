"""Carries out runs: plants, audits with the package itself, and writes down what was done.

A run's folder holds `checkpoint/`, a result of each audit (`planted.json`, ...) and `facts.json`. What is there is not
made again, so a plan that was stopped goes on where it was.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bbnli_audit import AuditOptions, run_audit, write_result
from bbnli_audit.core.values import Pairing
from bbnli_audit.suites.bbnli import BbnliSecond
from tools.validity.examples import HELD_OUT, WORDINGS
from tools.validity.plan import BASES, Run, shared_folder
from tools.validity.published import write_halves

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "validity"
FACTS = "facts.json"
MAIN = ("held_out", "planted", "rest")  # the audits of every run
SECOND = ("published", "occupations", "nli-coal", "winoqueer", "wq-nli")  # for the convergence of benchmarks


def carry_out(run: Run, audits: Sequence[str], build: Path = BUILD) -> None:
    """Do what is missing of a run."""
    folder, done = build / run.name, time.process_time()
    wordings = WORDINGS if run.route == "own" else _published(build)
    if not (folder / FACTS).exists():
        _plant(run, folder, wordings)
    for name in audits:
        if not (folder / f"{name}.json").exists():
            options = _options(name, run, wordings, folder)
            write_result(run_audit(options), folder / f"{name}.json")
    print(f"{run.name}: {time.process_time() - done:.0f} s of computing", flush=True)


def _published(build: Path) -> Path:
    folder = build / "published"
    return folder if folder.exists() else write_halves(shared_folder() / "data" / "bbnli", folder)


def _plant(run: Run, folder: Path, wordings: Path) -> None:
    from tools.validity.plant import accuracy, plain_examples, plant

    examples = plant(BASES[run.base].folder, run.recipe, folder / "checkpoint", wordings)
    facts: dict[str, Any] = {
        "run": asdict(run),
        "recipe": asdict(run.recipe),
        "n_planted": run.recipe.n_planted,
        "labels": dict(sorted(Counter(example.label.value for example in examples).items())),
        "accuracy": accuracy(folder / "checkpoint", plain_examples()[1]),
    }
    (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _options(name: str, run: Run, wordings: Path, folder: Path) -> AuditOptions:
    """Say what an audit reads. All audits of a run share a store, so no text is read twice."""
    common: dict[str, Any] = {
        "model": str(folder / "checkpoint"),
        "thresholds": ROOT / "thresholds.yaml",
        "store": folder / "store.sqlite",
    }
    data = shared_folder() / "data"
    planted = tuple(f"bbnli/{path}" for path in run.planted)
    return {
        "held_out": lambda: AuditOptions(
            suite="bbnli", data=wordings / HELD_OUT, subtopics=planted, **_pairing(run), **common
        ),
        "planted": lambda: AuditOptions(suite="bbnli@2", subtopics=planted, **common),
        "rest": lambda: AuditOptions(suite="bbnli@2", size="small", subtopics=_rest(planted), **common),
        "published": lambda: AuditOptions(
            suite="bbnli", data=data / "bbnli", pairing=Pairing.HYPOTHESIS.value, **common
        ),
        "occupations": lambda: AuditOptions(suite="occupations", **common),
        "nli-coal": lambda: AuditOptions(suite="coal", data=data / "nli_coal", **common),
        "winoqueer": lambda: AuditOptions(suite="winoqueer", **common),
        "wq-nli": lambda: AuditOptions(suite="winoqueer", data=data / "wq_nli" / "winoqueer_nli.csv", **common),
    }[name]()


def _pairing(run: Run) -> dict[str, str]:
    """Published files are read with the premise fixed, in both directions, as ours are."""
    return {} if run.route == "own" else {"pairing": Pairing.HYPOTHESIS.value}


def _rest(planted: Iterable[str]) -> tuple[str, ...]:
    return tuple(subtopic.path for subtopic in BbnliSecond().subtopics() if subtopic.path not in set(planted))
