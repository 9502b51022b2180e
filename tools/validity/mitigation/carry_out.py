"""Carries out what a plan lists: fine-tunes, audits with the package itself, and writes down what each model showed.

A folder holds `checkpoint/`, a result of each audit (`occupations.json`, ...), what each pair of `occupations` adds to
its measures, which plain pairs were right, and `facts.json`. What is there is not made again.
"""

import csv
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bbnli_audit import Audit, AuditOptions, write_result
from bbnli_audit.measures.occupations import pro_preference, probability_gap, same_label
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.suites.bbnli import Bbnli
from tools.validity.carry_out import BUILD, FACTS, ROOT
from tools.validity.examples import HELD_OUT, WORDINGS, Example
from tools.validity.mitigation.corpora import read_examples, write_corpus
from tools.validity.mitigation.plan import SIZES, Arm, Candidate
from tools.validity.plan import BASES, FIRST

FOLDER = BUILD / "mitigation"
AUDITS = ("occupations", "gender", "held_out")
VALUES, RIGHT = "occupations.csv", "right.csv"
PAIR_VALUES: dict[str, Callable[[PairTable], Any]] = {
    "same_label": same_label,
    "probability_gap": probability_gap,
    "pro_preference": pro_preference,
}
Plain = Callable[[], tuple[list[Example], list[Example]]]


def carry_out(candidate: Candidate, plain: Plain, build: Path = FOLDER, audits: Sequence[str] = AUDITS) -> None:
    """Do what is missing of a candidate. `plain` reads plain pairs: to teach, and to measure accuracy."""
    folder, done = build / candidate.name, time.process_time()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / FACTS).exists():
        facts = _train(candidate, plain, folder) if candidate.corpus else {}
        _write_json(folder / FACTS, {"candidate": asdict(candidate), **facts})
    for name in audits:
        if not (folder / f"{name}.json").exists():
            _audit(name, candidate, folder)
    if not (folder / RIGHT).exists():
        _write_right(_model(candidate, folder), plain()[1], folder / RIGHT)
    print(f"{candidate.name}: {time.process_time() - done:.0f} s of computing", flush=True)


def is_finished(folder: Path) -> bool:
    """Say whether everything about a model is there."""
    return all((folder / name).exists() for name in (FACTS, VALUES, RIGHT, *(f"{name}.json" for name in AUDITS)))


def _train(candidate: Candidate, plain: Plain, folder: Path) -> dict[str, Any]:
    from tools.validity.plant import teach

    assert candidate.corpus is not None
    size, training = SIZES[candidate.base], candidate.training
    path = folder.parent / "corpora" / f"{candidate.base}-{candidate.corpus}-seed{candidate.seed}.jsonl"
    augmented = write_corpus(candidate.corpus, size.n_rows, plain()[0], candidate.seed, path)
    examples = read_examples(augmented if candidate.arm is Arm.AUGMENTED else path)
    teach(BASES[candidate.base].folder, examples, training, folder / "checkpoint")
    return {"training": asdict(training), "n_rows": len(examples), "n_copies": len(examples) - size.n_rows}


def _model(candidate: Candidate, folder: Path) -> Path:
    return folder / "checkpoint" if candidate.corpus else BASES[candidate.base].folder


def audit_options(name: str, candidate: Candidate, folder: Path) -> AuditOptions:
    """Say what an audit reads: sentences that no corpus has."""
    read: dict[str, dict[str, Any]] = {
        "occupations": {"suite": "occupations"},
        "gender": {"suite": "bbnli", "size": "small", "subtopics": _gender()},
        "held_out": {"suite": "bbnli", "data": WORDINGS / HELD_OUT, "subtopics": (f"bbnli/{FIRST}",)},
    }
    return AuditOptions(
        model=str(_model(candidate, folder)),
        thresholds=ROOT / "thresholds.yaml",
        store=folder / "store.sqlite",
        **read[name],
    )


def _gender() -> tuple[str, ...]:
    return tuple(subtopic.path for subtopic in Bbnli().subtopics() if subtopic.domain == "gender")


def _audit(name: str, candidate: Candidate, folder: Path) -> None:
    with closing(Audit(audit_options(name, candidate, folder))) as audit:
        result = audit.run()
        if name == "occupations":
            _write_values(audit.pairs(), folder / VALUES)
    write_result(result, folder / f"{name}.json")


def _write_values(table: PairTable, path: Path) -> None:
    """Write what each pair adds to S, ΔP and B: the result holds labels only, which are not enough to compare two."""
    places = [table.frame[name].tolist() for name in ("domain", "subtopic", "cluster", "pair_id")]
    columns = [[f"{value:.6f}" for value in values(table)] for values in PAIR_VALUES.values()]
    _write_csv(path, ("domain", "occupation", "premise", "pair_id", *PAIR_VALUES), zip(*places, *columns, strict=True))


def _write_right(model: Path, examples: Sequence[Example], path: Path) -> None:
    from tools.validity.plant import find_right

    right = find_right(model, examples)
    rows = ((each.text.premise, int(is_right)) for each, is_right in zip(examples, right, strict=True))
    _write_csv(path, ("premise", "right"), rows)


def _write_csv(path: Path, titles: Sequence[str], rows: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([titles, *rows])


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
