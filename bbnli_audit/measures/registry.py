"""All measures by name. A new one is a file with `MEASURES` and a line here; others add theirs (docs/extending.md)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from bbnli_audit.core.errors import OptionError, SuiteError, suggest
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.audit import COMPETENCE
from bbnli_audit.core.results.rows import NO_DATA, Measured
from bbnli_audit.measures import answers, occupations, rates, winoqueer
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.statistics.intervals import Estimate, estimate_means

_BUILT_IN = (
    *rates.MEASURES,
    *answers.MEASURES,
    rates.TOKEN_PREFERENCE,
    *occupations.MEASURES,
    *winoqueer.MEASURES,
    Measure(
        name=COMPETENCE,
        sentence="Share of control samples that are right: can the model do the task at all?",
        limit="min_control_accuracy",
        unit="samples",
        source="controls",
    ),
)
_known: dict[str, Measure] = {measure.name: measure for measure in _BUILT_IN}


def all_measures() -> tuple[Measure, ...]:
    return tuple(_known.values())


def limited_measures() -> tuple[Measure, ...]:
    """Return the measures that a threshold file can limit in a subtopic."""
    return tuple(measure for measure in _known.values() if measure.limit is not None and measure.source != "controls")


@contextmanager
def adding_measures(measures: Iterable[Measure]) -> Iterator[None]:
    """Know further measures for a while."""
    before = dict(_known)
    try:
        for measure in measures:
            _check(measure)
            _known[measure.name] = measure
        yield
    finally:
        _known.clear()
        _known.update(before)


def _check(measure: Measure) -> None:
    for known in _known.values():
        if measure.name == known.name or (measure.limit is not None and measure.limit == known.limit):
            raise OptionError(f"The measure {measure.name!r} has the name or the limit of {known.name!r}. Rename it.")
    if measure.limit is not None and not measure.limit.startswith(("max_", "min_")):
        raise OptionError(f"Measure {measure.name!r} has limit {measure.limit!r}; it must begin with max_ or min_.")
    if (measure.values is None) == (measure.estimate is None):
        raise OptionError(f"The measure {measure.name!r} needs either `values` or `estimate`.")


def find_measure(name: str) -> Measure:
    """Return a measure by its name; one that only a file knows gets no more than its name."""
    return _known.get(name) or Measure(name=name, sentence="A measure of another project.")


def find_limited(name: str) -> Measure:
    """Return the measure of a name, or of a short name such as `pro`; it must be one that can be limited."""
    measures = limited_measures()
    for measure in measures:
        if name in (measure.name, measure.short):
            return measure
    raise OptionError(f"No limit can be set on {name!r}. {suggest(name, [measure.name for measure in measures])}")


def check_families(suite: str, families: Sequence[str]) -> None:
    """Refuse a suite that asks for a family of measures that does not exist."""
    known = {measure.family for measure in _known.values() if measure.family is not None}
    for family in families:
        if family not in known:
            raise SuiteError(f"Suite {suite!r}: there is no family of measures {family!r}. {suggest(family, known)}")


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """What was measured, and what a verdict must know of the uncertainty."""

    counts: CellCounts
    n_clusters: int
    measures: Mapping[str, Measured]
    estimates: Mapping[str, Estimate]


def measure_table(table: PairTable, confidence: float, families: Sequence[str] = ()) -> MeasuredTable:
    """Measure the pairs of one subtopic, one domain or a whole run, as far as its reading and its suite go."""
    measures = [
        measure
        for measure in _known.values()
        if measure.source == "pairs"
        and table.reading.name in measure.readings
        and (measure.family is None or measure.family in families)
    ]
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
    """Estimate measures on the pairs of a table; nothing without pairs, because no data is not zero.

    Pairs of one cluster are not independent, and the intervals know (docs/decisions/0002-intervals.md).
    """
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
    value, low, high, n, *_ = estimate
    return Measured(value, min(low, value), max(high, value), 2 * n if measure.unit == "samples" else n)
