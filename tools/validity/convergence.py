"""Do two benchmarks order the same models alike? Correlations over all checkpoints that were made, with intervals."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import correlation, fmean
from typing import NamedTuple

from tools.validity.plan import Run
from tools.validity.records import Row, read_record

LEAST_MODELS = 5
Rows = Sequence[Row]
Figure = Callable[[Rows], float | None]


class Agreement(NamedTuple):
    """How far two benchmarks agree over `n` models; no value if there are too few, or one of them never varies."""

    what: str
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


def mean_of(measure: str) -> Figure:
    """Make a function that returns the mean of a measure over the subtopics of an audit."""

    def figure(rows: Rows) -> float | None:
        found = [row.measures[measure].value for row in rows if measure in row.measures]
        values = [value for value in found if value is not None]
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


def find_agreements(records: Path, plan: Sequence[Run]) -> list[Agreement]:
    """Compare the benchmarks in pairs, over the models that both were asked about."""
    return [_compare(records, plan, *pair) for pair in PAIRS]


def _compare(
    records: Path, plan: Sequence[Run], what: str, one: tuple[str, Figure], other: tuple[str, Figure]
) -> Agreement:
    both = []
    for run in plan:
        record = read_record(run, records)
        if record is not None and record.has(audit for audit, _ in (one, other)):
            rows = alike(*(record.audits[audit] for audit, _ in (one, other)))
            both.append([figure(each) for each, (_, figure) in zip(rows, (one, other), strict=True)])
    known = [(first, second) for first, second in both if first is not None and second is not None]
    return correlate(what, known)


def alike(first: Rows, second: Rows) -> tuple[Rows, Rows]:
    """Keep the subtopics that both have, if there are any: benchmarks of other stereotypes are compared whole."""
    shared = {row.path for row in first} & {row.path for row in second}
    if not shared:
        return first, second
    return [row for row in first if row.path in shared], [row for row in second if row.path in shared]


def correlate(what: str, points: Sequence[tuple[float, float]]) -> Agreement:
    """Return Pearson's correlation with Fisher's 95 % interval."""
    n = len(points)
    columns = [list(column) for column in zip(*points, strict=True)]
    if n < LEAST_MODELS or any(len(set(column)) == 1 for column in columns):
        return Agreement(what, n)
    value = max(-0.9999, min(0.9999, correlation(*columns)))
    reach = 1.96 / math.sqrt(n - 3)
    return Agreement(what, n, value, math.tanh(math.atanh(value) - reach), math.tanh(math.atanh(value) + reach))
