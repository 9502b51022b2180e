"""Keeps the exit code that a run decided, whatever hooks of the project do later. Imports nothing heavy."""

import sys
from collections.abc import Generator
from typing import Protocol

import pytest

from bbnli_audit.frontends.pytest_plugin.addopts import refuse_foreign_options
from bbnli_audit.frontends.pytest_plugin.settings import get_setting


class Decided(Protocol):
    """A run that decides its own exit code."""

    @property
    def must_end_with(self) -> int | None: ...


decided_key: "pytest.StashKey[Decided]" = pytest.StashKey()
# The exit code of a run that was started again.
restarted_key: "pytest.StashKey[int | pytest.ExitCode]" = pytest.StashKey()

# Options with which pytest shows something and runs no test.
_SHOWS = ("help", "version", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow", "collectonly")


def only_shows(config: pytest.Config) -> bool:
    return any(config.getoption(name, default=None) for name in _SHOWS)


def wants_audit(config: pytest.Config) -> bool:
    """Whether the command asks for an audit, or pytest's settings name a model."""
    return bool(config.getoption("bbnli_strict", None)) or get_setting(config, "model") is not None


def is_green(code: object) -> bool:
    """Whether a process with this exit code has passed. The system keeps the last eight bits: 256 is 0."""
    return code is None or (isinstance(code, int) and code % 256 == 0)


def hold(code: object, decided: int) -> int | None:
    """Print a message and return `decided` if `code` would turn a failed run into a pass; otherwise return None."""
    if is_green(decided) or not is_green(code):
        return None
    told = "A hook tried to give this run exit code 0, although it has not passed"
    sys.stderr.write(f"\n{told}. The exit code stays {int(decided)}.\n")
    return int(decided)


class ExitGuard:
    """Wraps pytest's main hook. It is registered after the conftests, so it sees the exit code after their hooks."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_main(self) -> Generator[None, object, object]:
        refuse_foreign_options(self._config)
        try:
            code = yield
        except SystemExit as exc:
            held = self._hold(exc.code)
            if held is not None:
                exc.code = held
            raise
        held = self._hold(code)
        return code if held is None else held

    def _hold(self, code: object) -> int | None:
        session = self._config.stash.get(decided_key, None)
        if only_shows(self._config) or restarted_key in self._config.stash:
            return None
        if session is None:  # something ended the run before it began
            is_lost = is_green(code) and wants_audit(self._config)
            return hold(code, pytest.ExitCode.USAGE_ERROR) if is_lost else None
        return None if session.must_end_with is None else hold(code, session.must_end_with)
