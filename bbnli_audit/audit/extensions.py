"""What other projects add: suites, measures, kinds of models and reports (docs/extending.md)."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeVar

from bbnli_audit.core.errors import OptionError

if TYPE_CHECKING:
    from bbnli_audit.measures.measure import Measure
    from bbnli_audit.models.kind import ModelKind
    from bbnli_audit.reports.report import Report
    from bbnli_audit.suites.protocol import Suite

ENTRY_POINTS = "bbnli_audit"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """What one project adds. An installed package names it as an entry point of the group `bbnli_audit`."""

    suites: "tuple[Suite, ...] | list[Suite]" = ()
    measures: "tuple[Measure, ...] | list[Measure]" = ()
    models: "tuple[ModelKind, ...] | list[ModelKind]" = ()
    reports: "tuple[Report, ...] | list[Report]" = ()


def join_extensions(given: tuple[object, ...]) -> Extensions:
    """Put the extensions of installed packages and of a run together."""
    found = [*(_load(entry) for entry in entry_points(group=ENTRY_POINTS)), *given]
    for each in found:
        if not isinstance(each, Extensions):
            raise OptionError(f"An extension was given as a {type(each).__name__}; expected bbnli_audit.Extensions.")
    known = [each for each in found if isinstance(each, Extensions)]
    return Extensions(
        suites=[suite for each in known for suite in each.suites],
        measures=[_expect(measure, "Measure") for each in known for measure in each.measures],
        models=[_expect(kind, "ModelKind") for each in known for kind in each.models],
        reports=[_expect(report, "Report") for each in known for report in each.reports],
    )


def _expect(given: T, name: str) -> T:
    """Refuse what is not of the public type that an extension must use."""
    if not isinstance(given, getattr(import_module("bbnli_audit"), name)):
        raise OptionError(f"An extension has a {type(given).__name__} where a bbnli_audit.{name} is expected.")
    return given


def _load(entry: object) -> object:
    name = f"{getattr(entry, 'name', entry)} ({getattr(entry, 'value', '')})"
    try:
        return entry.load()  # type: ignore[attr-defined]  # an EntryPoint
    except Exception as exc:  # whatever another package does when it is imported
        raise OptionError(
            f"The extension {name} of bbnli_audit cannot be loaded: {type(exc).__name__}: {exc}. Fix or remove it."
        ) from exc


@contextmanager
def using(extensions: Extensions) -> Iterator[None]:
    """Know the measures and kinds of models of extensions for a while."""
    from bbnli_audit.measures.registry import adding_measures
    from bbnli_audit.models.find import add_kinds

    with ExitStack() as stack:
        stack.enter_context(adding_measures(extensions.measures))
        stack.enter_context(add_kinds(extensions.models))
        yield
