"""All suites by name: the package's own, and those of other projects.

To add a suite to the package, write a module and add a line to `BUILT_IN`.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.values import Pairing
from bbnli_audit.suites.bbnli_next import find_table
from bbnli_audit.suites.protocol import Suite

BUILT_IN: Mapping[str, tuple[str, str]] = {  # the module and the class of each suite
    "bbnli": ("bbnli", "Bbnli"),
    "bbnli@1": ("bbnli", "BbnliFirst"),
    "bbnli-next": ("bbnli_next", "BbnliNext"),
    "nli-coal": ("nli_coal", "NliCoal"),
    "occupations": ("occupations", "Occupations"),
    "winoqueer": ("winoqueer", "Winoqueer"),
}
NEEDS_DATA = ("bbnli-next", "nli-coal")  # the package has no data for these suites: the user must give a path
NOT_IN_ALL = (*NEEDS_DATA, "bbnli@1")  # `all` leaves these out. Results call bbnli@1 `bbnli`, too
PAIRED = ("bbnli", "bbnli@1")  # suites with a choice of pairings; all other suites have a fixed pairing
DEFAULT = "bbnli"
ALIASES = {"coal": "nli-coal", "bbnli@2": "bbnli"}  # other names that --bbnli-suite accepts, each with its suite
# NAME:DIVISION is the suite NAME, divided into other subtopics. The values are arguments for the suite's class.
DIVISIONS: Mapping[str, Mapping[str, bool]] = {"winoqueer:category": {"by_category": True}}


Others = Mapping[str, Suite]  # the suites of other projects, by name


class Data(NamedTuple):
    """Data from the user. It replaces the suite's own data or, with `is_added` (a + before the path), joins it."""

    path: Path
    is_added: bool = False


def open_suite(
    name: str, data: Path | Data | None = None, pairing: Pairing | None = None, others: Others | None = None
) -> Suite:
    """Open a suite with its own data, or with data from the user."""
    name, others = ALIASES.get(name, name), others or {}
    given = Data(data) if isinstance(data, Path) else data
    if name in others and name not in BUILT_IN:
        return others[name] if given is None else _with_data(others[name], given)
    _check_name(name, others, f"There is no suite {name!r}.")
    module, class_name = BUILT_IN[_suite_of(name)]
    suite_class = getattr(import_module(f"bbnli_audit.suites.{module}"), class_name)
    options: Mapping[str, Any] = {"pairing": pairing} if name in PAIRED else DIVISIONS.get(name, {})
    suite: Suite = (
        suite_class(None, **options) if given is None or given.is_added else suite_class(given.path, **options)
    )
    return _with_data(suite, given) if given is not None and given.is_added else suite


def _with_data(suite: Suite, data: Data) -> Suite:
    """Let the suite's method `with_data` or `adding_data` return the suite with the user's data."""
    take = getattr(suite, "adding_data" if data.is_added else "with_data", None)
    if take is None:
        does = "adds no data to its own" if data.is_added else "takes no data"
        can_replace = data.is_added and (suite.name in BUILT_IN or hasattr(suite, "with_data"))
        advice = "Write the path without +, to replace the suite's own data." if can_replace else "Leave the data out."
        raise OptionError(f"--bbnli-data={suite.name}={data.path}: the suite {suite.name!r} {does}. {advice}")
    found: Suite = take(data.path)
    return found


def suite_of(data: Path | None) -> str:
    """Choose the suite if only data is given: `bbnli-next` for a table or a folder with a table, else the default."""
    return DEFAULT if data is None or find_table(data) is None else "bbnli-next"


def read_names(given: str | None, others: Others | None = None) -> list[str]:
    """Read --bbnli-suite: names with commas between, or `all`. Default: `bbnli` and other projects' suites."""
    others = others or {}
    if given is None:
        return [DEFAULT, *others]
    names = list(dict.fromkeys(ALIASES.get(name.strip(), name.strip()) for name in given.split(",") if name.strip()))
    if names == ["all"]:
        return [*(name for name in BUILT_IN if name not in NOT_IN_ALL), *others]
    for name in names:
        _check_name(name, {**others, "all": None}, f"--bbnli-suite={name}: there is no such suite.")
        if name in DIVISIONS and _suite_of(name) in names:
            fault = f"{name} has the pairs of {_suite_of(name)}, in other subtopics"
            advice = "Audit one of the two in a run; the answers are stored, so the second run costs little."
            raise OptionError(f"--bbnli-suite={given}: {fault}. {advice}")
    return names or [DEFAULT, *others]


def read_data(given: str | None, names: list[str], others: Others | None = None) -> Mapping[str, str]:
    """Read --bbnli-data: a path for the first suite, or NAME=PATH for several, with commas between."""
    if given is None or not names:
        return {}
    named = [entry.partition("=") for entry in given.split(",")]
    known = {*BUILT_IN, *ALIASES, *(others or ())}
    if not all(equals and name.strip() in known for name, equals, _ in named):
        return {names[0]: given}
    audited = {_suite_of(name): name for name in names}
    found = {}
    for name, _, path in named:
        suite = ALIASES.get(name.strip(), name.strip())
        if suite not in audited:
            advice = "Add it to --bbnli-suite, or leave it out."
            raise OptionError(f"--bbnli-data={given}: {suite} is not audited. {advice}")
        found[audited[suite]] = path.strip()
    return found


def place_data(path: str, folder: Path) -> Data:
    """Turn a path of --bbnli-data into `Data`. A relative path starts in `folder`."""
    return Data(folder / path.removeprefix("+"), path.startswith("+"))


def _check_name(name: str, others: Mapping[str, object], fault: str) -> None:
    known = (*BUILT_IN, *DIVISIONS, *others)
    if name not in known or name == "all":
        raise OptionError(f"{fault} {suggest(name, (*known, *ALIASES))}")


def _suite_of(name: str) -> str:
    return name.partition(":")[0]
