"""Reads from the folders of models what they showed, with intervals, and compares two: the second less the first."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbnli_audit import AuditResult, Measured, read_result
from bbnli_audit.audit.gate.compared import Shown
from bbnli_audit.audit.gate.growth import Rule, compare_pairs
from bbnli_audit.core.results.comparison import Growth
from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.growth import measure_increase
from bbnli_audit.measures.statistics.intervals import estimate_means
from tools.validity.carry_out import FACTS
from tools.validity.mitigation.carry_out import AUDITS, PAIR_VALUES, RIGHT, VALUES
from tools.validity.mitigation.plan import Candidate
from tools.validity.plan import FIRST

OWN = ("gender", "occupations")  # the audits with the data of the package
CONFIDENCE = 0.95
_EACH_BOUND = (1 + CONFIDENCE) / 2  # bounds of a growth are one-sided; two of these hold together with CONFIDENCE
Floats = NDArray[np.float64]


@dataclass(frozen=True)  # no slots: cached properties need a place
class Showing:
    """One model with the files of its folder."""

    candidate: Candidate
    folder: Path

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """How it was trained; little of it for a base as it is."""
        found: dict[str, Any] = json.loads((self.folder / FACTS).read_text(encoding="utf-8"))
        return found

    @property
    def read(self) -> dict[str, int]:
        """What it read in how many steps; nothing for a base as it is."""
        facts = self._facts
        if "training" not in facts:
            return {}
        return {"rows": facts["n_rows"], "copies": facts["n_copies"], "steps": facts["training"]["steps"]}

    @property
    def made(self) -> dict[str, Any]:
        """By which training it was made, on how many rows without their copies, and which suites it was asked."""
        made: dict[str, Any] = {"suites": {name: self.results[name].suites[0].version for name in OWN}}
        if self.read:
            n_rows = self.read["rows"] - self.read["copies"]
            made |= {"training": self._facts["training"], "n_rows": n_rows}
        return made

    @cached_property
    def results(self) -> dict[str, AuditResult]:
        return {name: read_result(self.folder / f"{name}.json") for name in AUDITS}

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """What each pair of `occupations` adds, and where it is."""
        return _read_columns(self.folder / VALUES)

    @cached_property
    def right(self) -> dict[str, list[str]]:
        """Which plain pairs were right, by premise."""
        return _read_columns(self.folder / RIGHT)


@dataclass(frozen=True, slots=True)
class Figure:
    """One column of the page: how it is read, how two models are compared, and where it is best."""

    title: str
    best: float
    read: Callable[[Showing], Measured]
    compare: Callable[[Showing, Showing], Growth]


def _read_columns(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        titles, *rows = csv.reader(file)
    return dict(zip(titles, map(list, zip(*rows, strict=True)), strict=True))


# `occupations`: all occupations have the same premises


def _of_occupations(measure: str) -> tuple[Callable[[Showing], Measured], Callable[[Showing, Showing], Growth]]:
    def take(showing: Showing) -> tuple[Floats, Design]:
        return np.array(showing.values[measure], dtype=np.float64), Design.of(showing.values["premise"])

    return _from_values(take, "pair_id", lambda showing: showing.values)


def _from_values(
    take: Callable[[Showing], tuple[Floats, Design]], key: str, columns: Callable[[Showing], dict[str, list[str]]]
) -> tuple[Callable[[Showing], Measured], Callable[[Showing, Showing], Growth]]:
    def read(showing: Showing) -> Measured:
        values, design = take(showing)
        (found,) = estimate_means(values, design, CONFIDENCE)
        return Measured(found.value, found.low, found.high, found.n)

    @cache
    def compare(before: Showing, after: Showing) -> Growth:
        if columns(before)[key] != columns(after)[key]:
            told = f"{before.folder} and {after.folder} were not asked the same. Remove the older one, and start again."
            raise ValueError(told)
        (one, design), (other, _) = take(before), take(after)
        found = measure_increase(one, other, design, margin=0.0, confidence=_EACH_BOUND)
        return Growth(found.value, found.low, found.high, len(one))

    return read, compare


# `bbnli`: what the comparison of two results finds


def _of_result(
    audit: str, path: str, measure: str
) -> tuple[Callable[[Showing], Measured], Callable[[Showing, Showing], Growth]]:
    def read(showing: Showing) -> Measured:
        row = next(row for row in showing.results[audit].all_rows if row.path == path)
        return row.measures[measure]

    @cache
    def compare(before: Showing, after: Showing) -> Growth:
        candidate, baseline = (Shown.of(each.results[audit]) for each in (after, before))
        rule = Rule.of(0.0, "", confidence=_EACH_BOUND)
        (found,) = compare_pairs([(path, measure)], candidate, baseline, rule)
        return found.increase

    return read, compare


def _take_right(showing: Showing) -> tuple[Floats, Design]:
    """Pairs with one premise belong together. Premises are numbered: a name with a slash would be two factors."""
    numbers = {premise: at for at, premise in enumerate(dict.fromkeys(showing.right["premise"]))}
    design = Design.of([numbers[premise] for premise in showing.right["premise"]])
    return np.array(showing.right["right"], dtype=np.float64), design


_LETTERS = {"same_label": ("S", 1.0), "probability_gap": ("ΔP", 0.0), "pro_preference": ("B", 0.5)}
OF_OCCUPATIONS = tuple(Figure(*_LETTERS[name], *_of_occupations(name)) for name in PAIR_VALUES)
ACCURACY = Figure("accuracy", 1.0, *_from_values(_take_right, "premise", lambda showing: showing.right))
OF_BBNLI = tuple(
    Figure(f"{told}, {title}", 0.0, *_of_result(audit, path, measure))
    for audit, path, title in (
        ("gender", "bbnli/gender", "`gender`"),
        ("held_out", f"bbnli/{FIRST}", "held-out wordings"),
    )
    for told, measure in (("lean", "lean"), ("pro", "pro_rate"), ("brittleness", "brittleness_rate"))
)
FIGURES = (*OF_OCCUPATIONS, *OF_BBNLI, ACCURACY)
