"""The suites of the package by name. A new one is a module and a line here."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from bbnli_audit.errors import OptionError, suggest
from bbnli_audit.suites.protocol import Suite
from bbnli_audit.values import Pairing

BUILT_IN = {
    "bbnli": "bbnli_audit.suites.bbnli:Bbnli",
    "occupations": "bbnli_audit.suites.occupations:Occupations",
    "winoqueer": "bbnli_audit.suites.winoqueer:Winoqueer",
}
DEFAULT = "bbnli"


def open_suite(name: str, data: Path | None = None, pairing: Pairing = Pairing.BOTH) -> Suite:
    """Open a suite on its own data, or on data that a user gives.

    Raises:
        OptionError: for a name that is not known.
    """
    if name not in BUILT_IN:
        raise OptionError(f"There is no suite {name!r}. {suggest(name, BUILT_IN)}")
    module, _, cls = BUILT_IN[name].partition(":")
    suite_class = getattr(import_module(module), cls)
    # Only bbnli can be paired in two ways; the others are what their papers say.
    suite: Suite = suite_class(data, pairing) if name == DEFAULT else suite_class(data)
    return suite


def read_names(given: str | None) -> list[str]:
    """Read --bbnli-suite: names with commas between, or all.

    Raises:
        OptionError: for a name that is not known.
    """
    names = [name.strip() for name in (given or DEFAULT).split(",") if name.strip()]
    if names == ["all"]:
        return list(BUILT_IN)
    for name in names:
        if name not in BUILT_IN:
            raise OptionError(f"--bbnli-suite={name}: there is no such suite. {suggest(name, (*BUILT_IN, 'all'))}")
    return list(dict.fromkeys(names))


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
    found = {name.strip(): path.strip() for name, _, path in named}
    for name in found:
        if name not in names:
            raise OptionError(f"--bbnli-data={given}: {name} is not audited. Add it to --bbnli-suite, or leave it out.")
    return found
