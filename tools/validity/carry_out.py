"""Carries out runs: plants, audits with the package itself, and writes down what was done.

A run's folder holds `checkpoint/`, a result of each audit (`planted.json`, ...) and `facts.json`. What the page needs
is kept as a record (`records.py`). What is there is not made again, so a plan that was stopped goes on where it was, on
another machine too. The same recipe gives other weights on another machine, so a record is of one folder alone.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bbnli_audit import AuditOptions, AuditResult, read_result, run_audit, write_result
from bbnli_audit.core.values import Pairing
from bbnli_audit.suites.bbnli import Bbnli, BbnliFirst
from tools.validity.examples import HELD_OUT, WORDINGS
from tools.validity.plan import BASES, Run, shared_folder
from tools.validity.published import write_halves, write_sample
from tools.validity.records import RECORDS, Record, read_record, rows_of, write_record

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "validity"
SMALL = BUILD / "small"  # what the small plans make; the pages of the docs are left alone
FACTS = "facts.json"
WQ_SAMPLE = "wq-nli-sample.csv"
MAIN = ("held_out", "planted", "rest")  # the audits of every run
SECOND = ("published", "winoqueer", "wq-nli", "occupations", "nli-coal", "first")  # for the convergence of benchmarks


def carry_out(run: Run, audits: Sequence[str], build: Path = BUILD, records: Path = RECORDS) -> None:
    """Do what is missing of a run, and keep a record of all of it.

    If its folder is gone, another checkpoint is made, so audits that were on record are made again too.
    """
    kept = read_record(run, records)
    if kept is not None and kept.has(audits):
        return
    wanted = dict.fromkeys((*audits, *(kept.audits if kept else ())))
    folder, begun = build / run.name, time.process_time()
    wordings = WORDINGS if run.route == "own" else _published(build)
    if not (folder / FACTS).exists():
        _plant(run, folder, wordings)
    found = {name: rows_of(result) if (result := _audit(name, run, wordings, folder)) else () for name in wanted}
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    write_record(run, Record(facts["accuracy"], facts["n_planted"], found), records)
    print(f"{run.name}: {time.process_time() - begun:.0f} s of computing", flush=True)


def _audit(name: str, run: Run, wordings: Path, folder: Path) -> AuditResult | None:
    """Return the result of an audit, None where the suite has no subtopic that was planted."""
    options, path = audit_options(name, run, wordings, folder), folder / f"{name}.json"
    sample = folder.parent / WQ_SAMPLE
    if options.data == sample and not sample.exists():
        write_sample(shared_folder() / "data" / "wq_nli" / "winoqueer_nli.csv", sample)
    if options.subtopics != () and not path.exists():
        write_result(run_audit(options), path)
    return read_result(path) if path.exists() else None


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


def audit_options(name: str, run: Run, wordings: Path, folder: Path) -> AuditOptions:
    """Say what an audit reads. All audits of a run share a store, so no text is read twice."""
    data = shared_folder() / "data"
    planted = tuple(f"bbnli/{path}" for path in run.planted)
    fixed = Pairing.HYPOTHESIS.value  # published files are read as ours are: the premise stays, in both directions
    read: dict[str, dict[str, Any]] = {
        "held_out": {
            "suite": "bbnli",
            "data": wordings / HELD_OUT,
            "subtopics": planted,
            "pairing": None if run.route == "own" else fixed,
        },
        "planted": {"suite": "bbnli", "subtopics": planted},
        "rest": {"suite": "bbnli", "size": "small", "subtopics": _rest(planted)},
        "first": {"suite": "bbnli@1", "subtopics": tuple(path for path in planted if path in _first())},
        "published": {"suite": "bbnli", "data": data / "bbnli", "pairing": fixed},
        "occupations": {"suite": "occupations"},
        "nli-coal": {"suite": "coal", "data": data / "nli_coal"},
        "winoqueer": {"suite": "winoqueer"},
        "wq-nli": {"suite": "winoqueer", "data": folder.parent / WQ_SAMPLE},
    }
    return AuditOptions(
        model=str(folder / "checkpoint"),
        thresholds=ROOT / "thresholds.yaml",
        store=folder / "store.sqlite",
        **read[name],
    )


def _first() -> set[str]:
    return {subtopic.path for subtopic in BbnliFirst().subtopics()}


def _rest(planted: Iterable[str]) -> tuple[str, ...]:
    return tuple(subtopic.path for subtopic in Bbnli().subtopics() if subtopic.path not in set(planted))
