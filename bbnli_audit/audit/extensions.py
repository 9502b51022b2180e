"""Extensions by other projects: suites, measures, kinds of models and reports (docs/extending.md)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, TypeVar

from bbnli_audit.core.errors import OptionError, SuiteError

if TYPE_CHECKING:
    from bbnli_audit.measures.measure import Measure
    from bbnli_audit.models.options import ModelKind
    from bbnli_audit.reports.report import Report
    from bbnli_audit.suites.protocol import Suite

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """The extensions of one project. An installed package has them as an entry point of the group `bbnli_audit`."""

    suites: "tuple[Suite, ...] | list[Suite]" = ()
    measures: "tuple[Measure, ...] | list[Measure]" = ()
    models: "tuple[ModelKind, ...] | list[ModelKind]" = ()
    reports: "tuple[Report, ...] | list[Report]" = ()


def join_extensions(given: tuple[object, ...]) -> Extensions:
    """Join the extensions of installed packages with those given for this run."""
    known: list[Extensions] = []
    for each in (*map(_load, entry_points(group="bbnli_audit")), *given):
        if not isinstance(each, Extensions):
            raise OptionError(f"An extension was given as a {type(each).__name__}; expected bbnli_audit.Extensions.")
        known.append(each)
    return Extensions(
        suites=[suite for each in known for suite in each.suites],
        measures=[_expect(measure, "Measure") for each in known for measure in each.measures],
        models=[_expect(kind, "ModelKind") for each in known for kind in each.models],
        reports=[_expect(report, "Report") for each in known for report in each.reports],
    )


def from_hooks(suites: Iterable[object], extensions: Iterable[object]) -> tuple[object, ...]:
    """Return the extensions of a project. `suites` has the list that each of its hooks pytest_bbnli_suites returned."""
    found: list[Suite] = []
    for given in suites:
        if not isinstance(given, list | tuple):
            raise SuiteError(f"pytest_bbnli_suites returned a {type(given).__name__}; expected a list of suites.")
        found.extend(given)
    return (Extensions(suites=found), *extensions) if found else tuple(extensions)


def _expect(given: T, name: str) -> T:
    """Refuse an object that is not of the public type `name`."""
    if not isinstance(given, getattr(import_module("bbnli_audit"), name)):
        raise OptionError(f"An extension has a {type(given).__name__} where a bbnli_audit.{name} is expected.")
    return given


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as exc:  # another package may raise anything when it is imported
        name, told = f"{entry.name} ({entry.value}) of bbnli_audit", f"{type(exc).__name__}: {exc}"
        raise OptionError(f"The extension {name} cannot be loaded: {told}. Fix or remove it.") from exc


@contextmanager
def using(extensions: Extensions) -> Iterator[None]:
    """Register the extensions' measures and kinds of models inside the `with` block."""
    # Imported here, because a conftest.py that adds a suite must import fast.
    from bbnli_audit.measures.registry import adding_measures
    from bbnli_audit.models.find import add_kinds

    with adding_measures(extensions.measures), add_kinds(extensions.models):
        yield
