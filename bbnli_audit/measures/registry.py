"""All measures by name. A new one is a file with `MEASURES` and a line here; others add theirs (docs/extending.md)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from bbnli_audit.core.errors import OptionError, SuiteError, suggest
from bbnli_audit.core.results.audit import COMPETENCE
from bbnli_audit.measures import answers, likelihood, occupations, rates, winoqueer
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.readings.table import Reading

_COMPETENCE = Measure(
    name=COMPETENCE,
    sentence="Share of control samples that are right: can the model do the task at all?",
    limit="min_control_accuracy",
    unit="samples",
    source="controls",
)
_BUILT_IN = (
    *rates.MEASURES,
    *answers.MEASURES,
    *likelihood.MEASURES,
    *occupations.MEASURES,
    *winoqueer.MEASURES,
    _COMPETENCE,
)
_known: dict[str, Measure] = {measure.name: measure for measure in _BUILT_IN}


def all_measures() -> tuple[Measure, ...]:
    return tuple(_known.values())


def limited_measures() -> tuple[Measure, ...]:
    """Return the measures that a threshold file can limit in a subtopic."""
    return tuple(measure for measure in _known.values() if measure.limit is not None and measure.source != "controls")


@contextmanager
def adding_measures(measures: Iterable[Measure]) -> Iterator[None]:
    """Know further measures for a while.

    Raises:
        OptionError: for one whose name or limit is taken, or that says neither what a pair adds nor how to estimate it.
    """
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
        raise OptionError(
            f"The limit of the measure {measure.name!r} is {measure.limit!r}; it must begin with max_ or min_."
        )
    if (measure.values is None) == (measure.estimate is None):
        raise OptionError(f"The measure {measure.name!r} needs either `values` or `estimate`.")


def find_measure(name: str) -> Measure:
    """Return a measure by its name; one that only a file knows gets no more than its name."""
    return _known.get(name) or Measure(name=name, sentence="A measure of another project.")


def find_limited(name: str) -> Measure:
    """Return the measure of a name, or of a short name such as `pro`.

    Raises:
        OptionError: when no limit can be set on it.
    """
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
            raise SuiteError(
                f"The suite {suite!r} has the family of measures {family!r}, which does not exist. "
                f"{suggest(family, known)}"
            )


def measures_of(reading: Reading, families: Sequence[str] = ()) -> list[Measure]:
    """Return the measures that a reading has on a suite with some families."""
    return [
        measure
        for measure in _known.values()
        if measure.source == "pairs"
        and reading.name in measure.readings
        and (measure.family is None or measure.family in families)
    ]
