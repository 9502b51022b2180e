"""The suites of the package by name. A new one is a module and a line here."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.values import Pairing
from bbnli_audit.suites.protocol import Suite

BUILT_IN = {
    "bbnli": "bbnli_audit.suites.bbnli:Bbnli",
    "bbnli-next": "bbnli_audit.suites.bbnli_next:BbnliNext",
    "occupations": "bbnli_audit.suites.occupations:Occupations",
    "winoqueer": "bbnli_audit.suites.winoqueer:Winoqueer",
}
DEFAULT = "bbnli"
WITHOUT_DATA = ("bbnli-next",)  # only on data that a user gives
# The same pairs under the same suite's name, in other subtopics: NAME:DIVISION, and what makes it.
DIVISIONS: Mapping[str, Mapping[str, bool]] = {"winoqueer:category": {"by_category": True}}


def open_suite(name: str, data: Path | None = None, pairing: Pairing = Pairing.BOTH) -> Suite:
    """Open a suite on its own data, or on data that a user gives.

    Raises:
        OptionError: for a name that is not known.
    """
    if name not in (*BUILT_IN, *DIVISIONS):
        raise OptionError(f"There is no suite {name!r}. {suggest(name, (*BUILT_IN, *DIVISIONS))}")
    module, _, cls = BUILT_IN[_suite_of(name)].partition(":")
    suite_class = getattr(import_module(module), cls)
    # Only bbnli can be paired in two ways; the others are what their papers say.
    suite: Suite = suite_class(data, pairing) if name == DEFAULT else suite_class(data, **DIVISIONS.get(name, {}))
    return suite


def suite_of(data: Path | None) -> str:
    """Say whose data these are when no suite is named: a table, or a folder with one, is of `bbnli-next`."""
    from bbnli_audit.suites.bbnli_next import is_release

    return "bbnli-next" if data is not None and is_release(data) else DEFAULT


def read_names(given: str | None) -> list[str]:
    """Read --bbnli-suite: names with commas between, or all.

    Raises:
        OptionError: for a name that is not known, or a suite that is named in two divisions.
    """
    names = [name.strip() for name in (given or DEFAULT).split(",") if name.strip()]
    if names == ["all"]:
        return [name for name in BUILT_IN if name not in WITHOUT_DATA]
    for name in names:
        if name not in (*BUILT_IN, *DIVISIONS):
            raise OptionError(
                f"--bbnli-suite={name}: there is no such suite. {suggest(name, (*BUILT_IN, *DIVISIONS, 'all'))}"
            )
    names = list(dict.fromkeys(names))
    for name in names:
        if name in DIVISIONS and _suite_of(name) in names:
            raise OptionError(
                f"--bbnli-suite={given}: {name} has the pairs of {_suite_of(name)}, in other subtopics. Audit one of "
                "the two in a run; the answers are stored, so the second run costs little."
            )
    return names


def read_data(given: str | None, names: list[str]) -> Mapping[str, str]:
    """Read --bbnli-data: a path for the only suite (or the first), or NAME=PATH with commas between.

    Raises:
        OptionError: for data of a suite that is not audited.
    """
    if given is None:
        return {}
    named = [entry.partition("=") for entry in given.split(",")]
    if not all(equals and name.strip() in BUILT_IN for name, equals, _ in named):
        return {names[0]: given}
    audited = {_suite_of(name): name for name in names}
    found = {}
    for name, _, path in named:
        if name.strip() not in audited:
            raise OptionError(
                f"--bbnli-data={given}: {name.strip()} is not audited. Add it to --bbnli-suite, or leave it out."
            )
        found[audited[name.strip()]] = path.strip()
    return found


def _suite_of(name: str) -> str:
    return name.partition(":")[0]
