"""Measures a pair table: every measure that its reading and its suite have, with intervals.

Intervals come from the pairs, because pairs of one cluster are not independent (docs/decisions/0002-intervals.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.rows import NO_DATA, Measured
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.registry import measures_of
from bbnli_audit.measures.statistics.intervals import Estimate, estimate_means


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """What was measured, and what a verdict must know of the uncertainty."""

    counts: CellCounts
    n_clusters: int
    measures: Mapping[str, Measured]
    estimates: Mapping[str, Estimate]


def measure_table(table: PairTable, confidence: float, families: Sequence[str] = ()) -> MeasuredTable:
    """Measure the pairs of one subtopic, one domain or a whole run."""
    measures = measures_of(table.reading, families)
    estimates = {
        **_estimate(table.measured, [each for each in measures if not each.is_over_all], confidence),
        **_estimate(table, [each for each in measures if each.is_over_all], confidence),
    }
    return MeasuredTable(
        counts=table.count(),
        n_clusters=len(np.unique(table.measured.clusters)),
        measures={each.name: _measured(each, estimates.get(each.name)) for each in measures},
        estimates=estimates,
    )


def _estimate(table: PairTable, measures: Sequence[Measure], confidence: float) -> dict[str, Estimate]:
    """Estimate measures on the pairs of a table; nothing without pairs, because no data is not zero."""
    if not len(table) or not measures:
        return {}
    found = {each.name: each.estimate(table, confidence) for each in measures if each.estimate is not None}
    columns = {each.name: each.values(table) for each in measures if each.values is not None}
    if columns:
        means = estimate_means(np.column_stack(list(columns.values())), table.clusters, confidence)
        found.update(zip(columns, means, strict=True))
    return found


def _measured(measure: Measure, estimate: Estimate | None) -> Measured:
    if estimate is None:
        return NO_DATA
    value = estimate.value
    n = 2 * estimate.n if measure.unit == "samples" else estimate.n
    return Measured(value, min(estimate.low, value), max(estimate.high, value), n)
