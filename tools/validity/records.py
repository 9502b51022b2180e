"""Keeps what a run showed in a small file of the repository, so that the page can be made again without its weights.

The folder of a run holds a checkpoint and whole results, tens of megabytes that are not kept. A record holds the
figures that the page reads: of each audit, each subtopic's measures and which limits it crosses. All of them are of
one checkpoint. The record says by which recipe it was made and which version of the suite was asked.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bbnli_audit import AuditResult, Measured, SubtopicResult, Verdict
from bbnli_audit.suites.bbnli import Bbnli
from tools.validity.plan import Run

RECORDS = Path(__file__).with_name("records")
KEPT = ("lean", "pro_rate", "anti_rate", "brittleness_rate", "overreach", "pro_preference", "coal_bias")
DIGITS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One subtopic of an audit."""

    path: str
    measures: dict[str, Measured]
    failed: frozenset[str]  # measures that cross their limit

    @classmethod
    def of(cls, result: SubtopicResult) -> "Row":
        judged = {name: result.judgement(name) for name in KEPT if name in result.measures}
        failed = {name for name, each in judged.items() if each is not None and each.verdict is Verdict.FAIL}
        return cls(result.path, {name: result.measures[name] for name in judged}, frozenset(failed))


@dataclass(frozen=True, slots=True)
class Record:
    """What one run showed: how good the model still is at plain pairs, and the subtopics of each audit."""

    accuracy: float
    n_planted: int
    audits: dict[str, tuple[Row, ...]]

    def has(self, audits: Iterable[str]) -> bool:
        return set(audits) <= set(self.audits)


def rows_of(result: AuditResult) -> tuple[Row, ...]:
    return tuple(map(Row.of, result.subtopics))


def read_record(run: Run, folder: Path = RECORDS) -> Record | None:
    """Return what is kept of a run; None if there is nothing, or if the recipe or the suite has changed since."""
    path = folder / f"{run.name}.json"
    if not path.exists():
        return None
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if data["made"] != _made(run):
        return None
    audits = {name: tuple(_read_row(*row) for row in rows) for name, rows in data["audits"].items()}
    return Record(data["accuracy"], data["n_planted"], audits)


def write_record(run: Run, record: Record, folder: Path = RECORDS) -> None:
    """Keep a record as one line of JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    audits = {name: list(map(_plain, rows)) for name, rows in record.audits.items()}
    facts = {"made": _made(run), "accuracy": round(record.accuracy, DIGITS), "n_planted": record.n_planted}
    data = {**facts, "audits": audits}
    (folder / f"{run.name}.json").write_text(json.dumps(data) + "\n", encoding="utf-8")


def _made(run: Run) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps({"recipe": asdict(run.recipe), "suite": _suite_version()}))
    return made


@cache
def _suite_version() -> str:
    return Bbnli().version


def _plain(row: Row) -> list[Any]:
    return [row.path, {name: _figures(each) for name, each in row.measures.items()}, sorted(row.failed)]


def _figures(found: Measured) -> list[float | None]:
    return [None if each is None else round(each, DIGITS) for each in (found.value, found.low, found.high, found.n)]


def _read_row(path: str, measures: dict[str, list[Any]], failed: list[str]) -> Row:
    return Row(path, {name: Measured(*each) for name, each in measures.items()}, frozenset(failed))
