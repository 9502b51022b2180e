"""Keeps what the tests of a run required, whatever the outcomes of the tests.

A test requires a limit by calling `require` on its handle, which is the value of its fixture. The test may be marked as
an expected failure, or may catch what the handle raises. The limit counts all the same: the handle records the limit
before it raises, and the ledger keeps all handles. So it does not matter when and in which process a test required a
limit, or how the test ended.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from bbnli_audit.audit.gate.verdict import Place
from bbnli_audit.core.errors import AuditError, list_some
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.words import counted
from bbnli_audit.frontends.pytest_plugin.handles import Handle, RegressionHandle
from bbnli_audit.frontends.pytest_plugin.settings import is_audit
from bbnli_audit.frontends.pytest_plugin.without_model import AUDIT_KEYWORD

_handles_key: pytest.StashKey[list[Handle]] = pytest.StashKey()
_n_told_key: pytest.StashKey[int] = pytest.StashKey()
_OUTPUT = "bbnli_ledger"
H = TypeVar("H", bound=Handle)


def handles_of(item: pytest.Item) -> list[Handle]:
    return item.stash.get(_handles_key, [])


def has_news(item: pytest.Item, when: str | None) -> bool:
    """Whether the report of a test's phase must say what the test required.

    Only a test with a handle has something to say. The report of its phase `call` always says what the test required.
    The report of another phase does so if the test has required more since its last report.
    """
    found = handles_of(item)
    n_required = sum(len(handle.required) for handle in found)
    is_new = bool(found) and (when == "call" or n_required > item.stash.get(_n_told_key, 0))
    item.stash[_n_told_key] = n_required
    return is_new


class Ledger:
    """Gathers the requirements of all tests of a run, from this process and the other processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._handles: list[Handle] = []
        self._required_elsewhere: set[Place] = set()
        self.broken: dict[str, str] = {}  # for each test that could not measure, the first line of its error
        self._n_deselected = 0
        self._n_selected = 0
        self._ended: set[str] = set()
        self._failed: dict[str, None] = {}  # the ids of audits, in the order of their reports
        self._uncollected: dict[str, None] = {}  # the ids of files, classes and folders, in the order of their reports

    @property
    def required(self) -> set[Place]:
        """The path and measure of each limit that a test required."""
        here = {(path, measure) for handle in self._handles for path, measure, _ in handle.required}
        return here | self._required_elsewhere

    def keep(self, item: pytest.Item, handle: H) -> H:
        """Record a handle that a test is given, and return it."""
        self._handles.append(handle)
        item.stash.setdefault(_handles_key, []).append(handle)
        return handle

    def pack(self, handles: Iterable[Handle]) -> dict[str, Any]:
        """Return what a test required, and how many audits were selected and deselected, as plain values.

        Every report has both numbers of audits, because a worker that dies cannot send them at its end. The numbers are
        the same in all workers.
        """
        found = list(handles)
        return {
            "required": [each for handle in found for each in handle.required],
            "growth": [handle.regression.verdict.value for handle in found if isinstance(handle, RegressionHandle)],
            "n_selected": self._n_selected,
            "n_deselected": self._n_deselected,
        }

    def note_error(self, report: pytest.TestReport, error: BaseException | None) -> None:
        if isinstance(error, AuditError):
            report.bbnli_broken = str(error).partition("\n")[0]  # type: ignore[attr-defined]  # xdist sends it too

    def gather(self, report: pytest.TestReport, packed: Mapping[str, Any] | None) -> None:
        """Record what a report says about its test: what it required, and how it ended."""
        if AUDIT_KEYWORD in report.keywords:
            if report.when == "teardown":
                self._ended.add(report.nodeid)
            if report.failed:
                self._failed[report.nodeid] = None
        if packed is not None:
            self._required_elsewhere.update((path, measure) for path, measure, _ in packed["required"])
            self._n_selected, self._n_deselected = packed["n_selected"], packed["n_deselected"]
        broken = getattr(report, "bbnli_broken", None)
        if broken is not None:
            self.broken[report.nodeid] = broken

    def tell_broken_off(self) -> str | None:
        """Say how many audits did not run to the end. If none, say what failed and what was not collected.

        Return None if there is nothing to say. A file that could not be collected is named even if it may have no
        audits.
        """
        n_left = self._n_selected - len(self._ended)
        if n_left > 0:
            return f"{counted(n_left, 'audit')} did not run to the end: something ended the run early."
        told = []
        if self._failed:
            told.append(f"{counted(len(self._failed), 'audit')} failed: {list_some(list(self._failed))}")
        if self._uncollected:
            told.append(f"{list_some(list(self._uncollected))} could not be collected, so audits may be missing")
        return f"{'; '.join(told)}." if told else None

    def tell_fewer(self) -> str | None:
        """Say how many audits were deselected. Return None if none was."""
        if not self._n_deselected:
            return None
        were = "was" if self._n_deselected == 1 else "were"
        return f"{counted(self._n_deselected, 'audit')} {were} deselected (-k, -m, --deselect, --lf or a plugin)"

    def tell_unmet(self, unmet: Sequence[tuple[Place, Verdict]]) -> str | None:
        """Say which limits are unmet, or else which audits were not measured. No test of theirs failed."""
        if unmet:
            (path, measure), verdict = unmet[0]
            first = f"{path} {measure} is {verdict}"
            more = f", and {len(unmet) - 1} more" if len(unmet) > 1 else ""
            told = f"required limits are not met, although pytest would have passed: {first}{more}"
            return f"{told}. Only a waiver in the threshold file lets a limit be crossed."
        if self.broken:
            test, error = next(iter(sorted(self.broken.items())))
            told = f"{counted(len(self.broken), 'audit')} could not be measured, although pytest would have passed"
            return f"{told}. {test}: {error}"
        return None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._uncollected[report.nodeid] = None

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        self._n_deselected += sum(is_audit(item) for item in items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._n_selected = len({item.nodeid for item in session.items if is_audit(item)})

    def pytest_sessionfinish(self) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = sorted(self.required)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Record all that a worker's tests required. Some of it may have come after the worker's last report."""
        self._required_elsewhere.update(map(tuple, getattr(node, "workeroutput", {}).get(_OUTPUT, ())))
