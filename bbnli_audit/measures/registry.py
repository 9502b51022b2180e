"""All measures by name. A new measure is a file with `MEASURES` and a line here.

Other projects can add their own measures (docs/extending.md).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from bbnli_audit.core.errors import OptionError, SuiteError, suggest
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.audit import COMPETENCE, FACT_PREFERENCE, RECALL
from bbnli_audit.core.results.rows import NO_DATA, Measured
from bbnli_audit.core.values import Control
from bbnli_audit.measures import answers, coal, direction, occupations, rates, winoqueer
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.readings.kinds import LIKELIHOOD, READINGS
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.statistics.intervals import Estimate

_BUILT_IN = (
    *direction.MEASURES,
    *rates.MEASURES,
    *answers.MEASURES,
    rates.TOKEN_PREFERENCE,
    *occupations.MEASURES,
    *winoqueer.MEASURES,
    *coal.MEASURES,
    Measure(
        name=COMPETENCE,
        sentence="Share of control samples that are right: can the model do the task at all?",
        limit="min_control_accuracy",
        unit="samples",
        source="controls",
    ),
    Measure(
        name=RECALL,
        sentence="Share of the controls of one label that are right, for the label that the model finds least often.",
        limit="min_recall",
        unit="samples",
        source="controls",
    ),
    Measure(
        name=FACT_PREFERENCE,
        sentence="Share of the controls' facts whose true version is likelier than the false one; 0.5 is chance.",
        limit="min_fact_preference",
        source="controls",
        readings=(LIKELIHOOD.name,),
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
    """Register more measures inside the `with` block, and remove them at its end."""
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
    given = cast("object", measure.readings)  # another project wrote it, so it may be anything
    if not isinstance(given, tuple) or not given:
        told = f"has readings {given!r}; expected a tuple of names"
        raise OptionError(f"The measure {measure.name!r} {told}, such as ('labels',).")
    for found, allowed, name in (
        *((reading, [each.name for each in READINGS], "readings") for reading in measure.readings),
        (measure.unit, ["pairs", "samples"], "unit"),
        (measure.source, ["pairs"], "source"),
    ):
        if found not in allowed:
            raise OptionError(f"The measure {measure.name!r} has {found!r} as `{name}`. {suggest(found, allowed)}")


def find_measure(name: str) -> Measure:
    """Return a measure by its name.

    The name may be unknown, as in a result.json of another project: then return a measure with only that name.
    """
    return _known.get(name) or Measure(name=name, sentence="A measure of another project.")


def find_limited(name: str) -> Measure:
    """Return the measure with this name or short name, such as `pro`. Refuse a measure that cannot have a limit."""
    for measure in limited_measures():
        if name in (measure.name, measure.short):
            return measure
    raise OptionError(f"No limit can be set on {name!r}. {suggest(name, [each.name for each in limited_measures()])}")


def limit_key(written: str) -> str:
    """Return the key of a limit. It may be written with the long name of its measure: `max_pro_rate` is `max_pro`."""
    prefix, _, name = written.partition("_")
    keys = (each.limit for each in limited_measures() if each.name == name)
    return next((key for key in keys if key and key.startswith(f"{prefix}_")), written)


def check_families(suite: str, families: Sequence[str]) -> None:
    """Refuse a suite that names a family of measures that does not exist."""
    known = {measure.family for measure in _known.values() if measure.family is not None}
    for family in families:
        if family not in known:
            raise SuiteError(f"Suite {suite!r}: there is no family of measures {family!r}. {suggest(family, known)}")


def check_audits(suite: str, audits: Iterable[str]) -> None:
    """Refuse a suite whose audits name a measure that cannot have a limit."""
    known = [measure.name for measure in limited_measures()]
    for name in audits:
        if name not in known:
            fault = f"its audits name {name!r}, which is not a measure that can have a limit"
            raise SuiteError(f"Suite {suite!r}: {fault}. {suggest(name, known)}")


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """The measures of a table, and the estimates that verdicts need."""

    counts: CellCounts
    n_clusters: int
    measures: Mapping[str, Measured]
    estimates: Mapping[str, Estimate]
    estimate_again: Mapping[str, Callable[[float], Estimate]]  # functions that estimate a measure at any confidence
    n_templates: tuple[int, ...] = ()

    def with_facts(self, controls: Sequence[Control], rights: Sequence[bool], confidence: float) -> "MeasuredTable":
        """Add `fact_gap`, if the controls were predicted and at least one of them has a premise with a direction."""
        if not rights or not any(control.direction for control in controls):
            return self
        name, again = direction.FACT_GAP, partial(direction.estimate_fact_gap, controls, rights)
        estimate = again(confidence)
        return self.adding(name, _measured(_known[name], estimate), estimate, again)

    def adding(
        self, name: str, measured: Measured, estimate: Estimate, again: Callable[[float], Estimate]
    ) -> "MeasuredTable":
        """Return a copy with one more measure."""
        return replace(
            self,
            measures={**self.measures, name: measured},
            estimates={**self.estimates, name: estimate},
            estimate_again={**self.estimate_again, name: again},
        )


def measure_table(table: PairTable, confidence: float, families: Sequence[str] = ()) -> MeasuredTable:
    """Measure the pairs of a subtopic, a domain or a whole run.

    The measures are those that fit the table's reading and the given families.
    """
    measures = [
        measure
        for measure in _known.values()
        if measure.source == "pairs"
        and table.reading.has_measures_of(measure.readings)
        and (measure.family is None or measure.family in families)
    ]
    pairs_of = {each.name: _pairs_for(each, table) for each in measures}
    again = {each.name: partial(_estimate, each, pairs_of[each.name]) for each in measures if len(pairs_of[each.name])}
    estimates = dict(_estimate_all(measures, pairs_of, confidence))
    # Leave out what these pairs cannot give, such as overreach if no premise has a direction.
    measures = [each for each in measures if each.name not in estimates or estimates[each.name].n]
    return MeasuredTable(
        counts=table.count(),
        n_clusters=table.measured.design.n_clusters,
        measures={each.name: _measured(each, estimates.get(each.name)) for each in measures},
        estimates=estimates,
        estimate_again=again,
        n_templates=table.measured.design.n_templates,
    )


def _pairs_for(measure: Measure, table: PairTable) -> PairTable:
    """Return the pairs of a table that a measure is computed on. Return no pairs if they cannot show the measure."""
    found = table if measure.is_over_all else table.measured
    if measure.can_show is None or measure.can_show(found):
        return found
    return found.take(np.zeros(len(found), np.bool_))


def measure_some(table: PairTable, names: Sequence[str], confidence: float) -> dict[str, Measured]:
    """Return the named measures of a table. Measures that the table's reading lacks are left out."""
    measures = [_known[name] for name in names if table.reading.has_measures_of(_known[name].readings)]
    pairs_of = {each.name: _pairs_for(each, table) for each in measures}
    estimates = dict(_estimate_all(measures, pairs_of, confidence))
    return {each.name: _measured(each, estimates.get(each.name)) for each in measures}


def _estimate_all(
    measures: Sequence[Measure], pairs_of: Mapping[str, PairTable], confidence: float
) -> Iterator[tuple[str, Estimate]]:
    """Estimate the measures, each on its own pairs. Means over the same pairs are estimated together."""
    means: dict[int, list[Measure]] = {}
    for each in measures:
        table = pairs_of[each.name]
        if len(table) and each.values is not None:
            means.setdefault(id(table), []).append(each)
        elif len(table):
            yield each.name, _estimate(each, table, confidence)
    for together in means.values():
        values = [each.values for each in together if each.values is not None]
        found = pairs_of[together[0].name].means(values, confidence)
        yield from zip((each.name for each in together), found, strict=True)


def _estimate(measure: Measure, table: PairTable, confidence: float) -> Estimate:
    """Estimate a measure. The interval allows for pairs that share a template (docs/decisions/0002-intervals.md)."""
    if measure.estimate is not None:
        return measure.estimate(table, confidence)
    assert measure.values is not None
    return table.mean(measure.values, confidence)


def _measured(measure: Measure, estimate: Estimate | None) -> Measured:
    if estimate is None or estimate.n == 0:
        return NO_DATA
    value, low, high, n, *_ = estimate
    return Measured(value, min(low, value), max(high, value), 2 * n if measure.unit == "samples" else n)
