"""The suites of the package by name. A new one is a module and a line here."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.values import Pairing
from bbnli_audit.suites.bbnli_next import find_table
from bbnli_audit.suites.protocol import Suite

BUILT_IN: Mapping[str, tuple[str, str]] = {  # the module and the class of each suite
    "bbnli": ("bbnli", "Bbnli"),
    "bbnli@2": ("bbnli", "BbnliSecond"),
    "bbnli-next": ("bbnli_next", "BbnliNext"),
    "nli-coal": ("nli_coal", "NliCoal"),
    "occupations": ("occupations", "Occupations"),
    "winoqueer": ("winoqueer", "Winoqueer"),
}
NEEDS_DATA = ("bbnli-next", "nli-coal")  # the user must give their data
NOT_IN_ALL = (*NEEDS_DATA, "bbnli@2")  # not part of `all`; both benchmarks have the suite name bbnli in results
PAIRED = ("bbnli", "bbnli@2")  # suites with a choice of pairings; for the others their papers fix it
DEFAULT = "bbnli"
# NAME:DIVISION has the pairs and the name of suite NAME, divided into other subtopics. The values are its options.
DIVISIONS: Mapping[str, Mapping[str, bool]] = {"winoqueer:category": {"by_category": True}}


def open_suite(name: str, data: Path | None = None, pairing: Pairing | None = None) -> Suite:
    """Open a suite on its own data, or on data from the user."""
    if name not in (*BUILT_IN, *DIVISIONS):
        raise OptionError(f"There is no suite {name!r}. {suggest(name, (*BUILT_IN, *DIVISIONS))}")
    module, class_name = BUILT_IN[_suite_of(name)]
    suite_class = getattr(import_module(f"bbnli_audit.suites.{module}"), class_name)
    options: Mapping[str, Any] = {"pairing": pairing} if name in PAIRED else DIVISIONS.get(name, {})
    suite: Suite = suite_class(data, **options)
    return suite


def suite_of(data: Path | None) -> str:
    """Return the suite that data belongs to when no suite is named: a table, or its folder, is of `bbnli-next`."""
    return DEFAULT if data is None or find_table(data) is None else "bbnli-next"


def read_names(given: str | None) -> list[str]:
    """Read --bbnli-suite: names with commas between, or all."""
    names = list(dict.fromkeys(name.strip() for name in (given or DEFAULT).split(",") if name.strip()))
    if names == ["all"]:
        return [name for name in BUILT_IN if name not in NOT_IN_ALL]
    for name in names:
        if name not in (*BUILT_IN, *DIVISIONS):
            known = suggest(name, (*BUILT_IN, *DIVISIONS, "all"))
            raise OptionError(f"--bbnli-suite={name}: there is no such suite. {known}")
        if name in DIVISIONS and _suite_of(name) in names:
            fault = f"{name} has the pairs of {_suite_of(name)}, in other subtopics"
            advice = "Audit one of the two in a run; the answers are stored, so the second run costs little."
            raise OptionError(f"--bbnli-suite={given}: {fault}. {advice}")
    return names


def read_data(given: str | None, names: list[str]) -> Mapping[str, str]:
    """Read --bbnli-data: a path for the only suite (or the first), or NAME=PATH with commas between."""
    if given is None:
        return {}
    named = [entry.partition("=") for entry in given.split(",")]
    if not all(equals and name.strip() in BUILT_IN for name, equals, _ in named):
        return {names[0]: given}
    audited = {_suite_of(name): name for name in names}
    found = {}
    for name, _, path in named:
        if name.strip() not in audited:
            advice = "Add it to --bbnli-suite, or leave it out."
            raise OptionError(f"--bbnli-data={given}: {name.strip()} is not audited. {advice}")
        found[audited[name.strip()]] = path.strip()
    return found


def _suite_of(name: str) -> str:
    return name.partition(":")[0]
