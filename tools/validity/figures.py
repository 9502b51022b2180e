"""Reads the records of the runs, and counts: by base, kind and dose, in the planted subtopic and around it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from tools.validity.carry_out import MAIN
from tools.validity.examples import Kind
from tools.validity.plan import Run
from tools.validity.records import Record, Row, read_record

MEASURES = ("lean", "pro_rate", "anti_rate", "brittleness_rate", "overreach")
ENOUGH = 0.8  # of the runs must FAIL: four of five
LEAST_RUNS = 5
LEARNT = (-1.0, 0.1, 0.3, 0.5, 1.01)  # bounds of lean on held-out wordings


class Place(StrEnum):
    """Where a figure is from, seen from what was planted."""

    HELD_OUT = "held-out wordings"
    PLANTED = "planted subtopic"
    DOMAIN = "same domain"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Finding:
    """One run that is done: how good it still is at plain pairs, and its rows by place."""

    run: Run
    accuracy: float
    n_planted: int
    rows: dict[Place, tuple[Row, ...]]

    def mean(self, place: Place, measure: str) -> float | None:
        """Return the mean of a measure over the rows of a place."""
        values = [value for row in self.rows[place] if (value := row.measures[measure].value) is not None]
        return fmean(values) if values else None

    def n_failed(self, place: Place, measure: str) -> int:
        """Count the rows of a place in which the limit of a measure is crossed."""
        return sum(measure in row.failed for row in self.rows[place])

    @property
    def is_seen(self) -> bool:
        """Whether the planted subtopic FAILs for the stereotype: its lean is too high, or its pro rate."""
        row = self.rows[Place.PLANTED][0]
        lean = row.measures["lean"].value
        failed = self.n_failed(Place.PLANTED, "lean") + self.n_failed(Place.PLANTED, "pro_rate")
        return failed > 0 and lean is not None and lean > 0

    @property
    def has_sign(self) -> bool:
        """Whether the planted subtopic leans the way that was planted: towards the stereotype, or against it."""
        lean = self.rows[Place.PLANTED][0].measures["lean"].value or 0.0
        return lean < 0 if self.run.kind is Kind.ANTI else lean > 0


def read_findings(records: Path, plan: Sequence[Run]) -> list[Finding]:
    """Read the runs of a plan that are done, in the order of the plan."""
    return [found for run in plan for found in _read(records, run)]


def _read(records: Path, run: Run) -> Iterable[Finding]:
    record = read_record(run, records)
    if record is None or not record.has(MAIN):
        return
    held_out, planted, rest = (record.audits[name] for name in MAIN)
    if not run.dose:  # nothing was planted: it stands beside every subtopic that other runs plant
        for subtopic in run.planted:
            path = f"bbnli/{subtopic}"
            own, asked = ([row for row in rows if row.path == path] for rows in (planted, held_out))
            others = [row for row in (*planted, *rest) if row.path != path]
            yield _finding(Run(run.base, run.kind, 0.0, subtopic, run.seed, run.route), record, asked, own, others)
        return
    yield _finding(run, record, held_out, planted, rest)


def _finding(
    run: Run,
    record: Record,
    held_out: Sequence[Row],
    planted: Sequence[Row],
    others: Sequence[Row],
) -> Finding:
    domain = f"bbnli/{run.subtopic.partition('/')[0]}/"
    rows = {
        Place.HELD_OUT: tuple(held_out),
        Place.PLANTED: tuple(planted),
        Place.DOMAIN: tuple(row for row in others if row.path.startswith(domain)),
        Place.ELSEWHERE: tuple(row for row in others if not row.path.startswith(domain)),
    }
    return Finding(run, record.accuracy, record.n_planted, rows)


def find_row(records: Path, run: Run, audit: str, path: str) -> Row | None:
    """Return one subtopic of another audit of a run, if it was asked for."""
    record = read_record(run if run.dose else replace(run, subtopic=""), records)
    rows = record.audits.get(audit, ()) if record else ()
    return next((row for row in rows if row.path == path), None)


def smallest_dose(findings: Sequence[Finding]) -> float | None:
    """Return the smallest dose from which on four of five runs FAIL; None if none does, or too few runs are done."""
    doses = sorted({found.run.dose for found in findings if found.run.dose and found.run.kind is Kind.PRO})
    smallest = None
    for dose in reversed(doses):
        seen = [found.is_seen for found in findings if found.run.dose == dose and found.run.kind is Kind.PRO]
        if len(seen) < LEAST_RUNS or sum(seen) < ENOUGH * len(seen):
            break
        smallest = dose
    return smallest


def smallest_seen(findings: Sequence[Finding]) -> float | None:
    """Return the smallest dose of one series from which on every dose that was planted is seen."""
    smallest = None
    for found in sorted(findings, key=lambda found: -found.run.dose):
        if found.run.kind is Kind.PRO and found.run.dose:
            if not found.is_seen:
                break
            smallest = found.run.dose
    return smallest


def comparable(findings: Sequence[Finding]) -> list[Finding]:
    """Keep runs with the stereotype of subtopics that have every dose: else doses would differ by their subtopics."""
    pro = [found for found in findings if found.run.kind is Kind.PRO]
    doses: dict[str, set[float]] = {}
    for found in pro:
        doses.setdefault(found.run.subtopic, set()).add(found.run.dose)
    most = max(map(len, doses.values()), default=0)
    return [found for found in pro if len(doses[found.run.subtopic]) == most]


def values_by_dose(findings: Sequence[Finding], place: Place, measure: str) -> list[tuple[float, list[float]]]:
    """Return what each run shows of a measure, by the dose of the planted stereotype: the same subtopics at each."""
    found: dict[float, list[float]] = {}
    for each in comparable(findings):
        value = each.mean(place, measure)
        if value is not None:
            found.setdefault(each.run.dose, []).append(value)
    return sorted(found.items())


def mean_by_dose(findings: Sequence[Finding], place: Place, measure: str) -> list[tuple[float, float]]:
    """Return the mean over runs of a measure at each dose."""
    return [(dose, fmean(values)) for dose, values in values_by_dose(findings, place, measure)]


def is_rising(series: Sequence[tuple[float, float]]) -> bool | None:
    """Say whether each dose shows more than the one before; None with fewer than three doses."""
    values = [value for _, value in series]
    return None if len(values) < 3 else all(low < high for low, high in pairwise(values))


@dataclass(frozen=True, slots=True)
class Learnt:
    """Runs in which the stereotype was learnt about as well: the lean of wordings that were not planted."""

    least: float
    most: float
    n_runs: int
    n_seen: int
    lean: float  # the mean lean of the suite in the planted subtopic

    @property
    def told(self) -> str:
        if self.least == -1.0:
            return f"below {self.most:g}"
        return f"{self.least:g} or more" if self.most > 1.0 else f"{self.least:g} to {self.most:g}"


def by_learnt(findings: Sequence[Finding]) -> list[Learnt]:
    """Group the runs that plant the stereotype by how far it was learnt, whatever the dose."""
    known = [
        (held_out, found)
        for found in findings
        if found.run.kind is Kind.PRO
        and found.run.dose
        and (held_out := found.mean(Place.HELD_OUT, "lean")) is not None
    ]
    learnt = []
    for least, most in pairwise(LEARNT):
        runs = [found for held_out, found in known if least <= held_out < most]
        if runs:
            leans = [found.mean(Place.PLANTED, "lean") or 0.0 for found in runs]
            learnt.append(Learnt(least, most, len(runs), sum(found.is_seen for found in runs), fmean(leans)))
    return learnt
