"""Guards strict runs against PYTEST_ADDOPTS, an environment variable that adds arguments to the pytest command."""

import os
import re
import shlex
from pathlib import Path

import pytest

from bbnli_audit.core.printable import printable
from bbnli_audit.frontends.pytest_plugin.settings import is_strict

# Options that change the model or the rules of the audit, or that make pytest run no test.
_OTHERS = {
    *("--model", "--config-file", "--rootdir", "--confcutdir", "--noconftest", "--help", "--version", "--markers"),
    *("--fixtures", "--funcargs", "--fixtures-per-test", "--cache-show"),
}
# Matches the options -c, -h and -V, alone or after other letters, as in -qh. It does not match after a letter that
# takes a value: in -kh, h is the value of -k.
_SHORT = re.compile("-(?!-)[^kmnoprWchV]*[chV]")
_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_NAMES = ("bbnli", "addopts", "pythonpath")  # our options, and settings that must not be replaced with `-o`
_SAYS_STRICT = re.compile("--bbnli-strict|bbnli_strict")


def refuse_foreign_options(config: pytest.Config) -> None:
    """Refuse a strict run if PYTEST_ADDOPTS changes what is audited, or by which rules.

    Call this before pytest's main hook: with `--help`, the hook would only show the help. pytest also reads no option
    after `--help`, so this function looks for `--bbnli-strict` in the command, too.
    """
    found = [arg for arg in _read() if _is_foreign(arg)]
    if found and (is_strict(config) or "--bbnli-strict" in config.invocation_params.args):
        problem = f"the environment variable PYTEST_ADDOPTS changes the audit with {', '.join(found)}"
        advice = "Write that in the command, or in pytest's settings, where everybody sees it."
        raise pytest.UsageError(printable(f"--bbnli-strict asks for the whole audit, but {problem}. {advice}"))


def _is_foreign(arg: str) -> bool:
    """Whether PYTEST_ADDOPTS must not hold an argument. `@FILE` is one of these: the file may hold any argument."""
    is_named = any(name in arg for name in _NAMES)
    return is_named or arg.startswith("@") or arg.split("=")[0] in _OTHERS or _SHORT.match(arg) is not None


def turns_strict_off(config: pytest.Config) -> bool:
    """Whether pytest's settings ask for a strict run, and PYTEST_ADDOPTS may turn that request off.

    PYTEST_ADDOPTS can replace a setting, or make pytest read another settings file.
    """
    args, here = _read(), config.invocation_params.dir
    places = [] if config.inipath is None else [config.inipath]
    if any(arg.split("=")[0] in ("--config-file", "--rootdir") or _SHORT.match(arg) for arg in args):
        places += [folder / name for folder in (here, *here.parents) for name in _FILES]
    elif not any(arg.startswith("@") or "addopts" in arg or "bbnli_strict" in arg for arg in args):
        return False
    return any(map(_asks_for_strict, places))


def _asks_for_strict(path: Path) -> bool:
    try:
        return _SAYS_STRICT.search(path.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def _read() -> list[str]:
    try:
        return shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    except ValueError:  # for example, a quote is missing: pytest itself fails on that
        return []
