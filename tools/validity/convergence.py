"""Do two benchmarks order the same models alike? Correlations over all checkpoints that were made, with intervals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import correlation, fmean
from typing import NamedTuple

from bbnli_audit import AuditResult, read_result
from tools.validity.plan import Run

LEAST_MODELS = 5
Figure = Callable[[AuditResult], float | None]


class Agreement(NamedTuple):
    """How far two benchmarks agree over `n` models; no value if there are too few, or one of them never varies."""

    what: str
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


def mean_of(measure: str) -> Figure:
    """Make a function that returns the mean of a measure over the subtopics of a result."""

    def figure(result: AuditResult) -> float | None:
        rows = [row.measures[measure].value for row in result.subtopics if measure in row.measures]
        values = [value for value in rows if value is not None]
        return fmean(values) if values else None

    return figure


PAIRS: tuple[tuple[str, tuple[str, Figure], tuple[str, Figure]], ...] = (
    ("lean: `bbnli`, published BBNLI", ("planted", mean_of("lean")), ("published", mean_of("lean"))),
    ("lean: `winoqueer`, an eighth of published WQ-NLI", ("winoqueer", mean_of("lean")), ("wq-nli", mean_of("lean"))),
    (
        "`occupations` (pro_preference), NLI-CoAL (coal_bias)",
        ("occupations", mean_of("pro_preference")),
        ("nli-coal", mean_of("coal_bias")),
    ),
)


def find_agreements(build: Path, plan: Sequence[Run]) -> list[Agreement]:
    """Compare the benchmarks in pairs, over the models that both were asked about."""
    return [_compare(build, plan, *pair) for pair in PAIRS]


def _compare(
    build: Path, plan: Sequence[Run], what: str, one: tuple[str, Figure], other: tuple[str, Figure]
) -> Agreement:
    both = []
    for run in plan:
        paths = [build / run.name / f"{audit}.json" for audit, _ in (one, other)]
        if all(path.exists() for path in paths):
            results = alike(*map(read_result, paths))
            both.append([figure(result) for result, (_, figure) in zip(results, (one, other), strict=True)])
    known = [(first, second) for first, second in both if first is not None and second is not None]
    return correlate(what, known)


def alike(first: AuditResult, second: AuditResult) -> tuple[AuditResult, AuditResult]:
    """Keep the subtopics that both have, if there are any: benchmarks of other stereotypes are compared whole."""
    shared = {row.path for row in first.subtopics} & {row.path for row in second.subtopics}
    if not shared:
        return first, second
    kept = [
        replace(each, subtopics=tuple(row for row in each.subtopics if row.path in shared)) for each in (first, second)
    ]
    return kept[0], kept[1]


def correlate(what: str, points: Sequence[tuple[float, float]]) -> Agreement:
    """Return Pearson's correlation with Fisher's 95 % interval."""
    n = len(points)
    columns = [list(column) for column in zip(*points, strict=True)]
    if n < LEAST_MODELS or any(len(set(column)) == 1 for column in columns):
        return Agreement(what, n)
    value = max(-0.9999, min(0.9999, correlation(*columns)))
    reach = 1.96 / math.sqrt(n - 3)
    return Agreement(what, n, value, math.tanh(math.atanh(value) - reach), math.tanh(math.atanh(value) + reach))
