"""Keeps what the tests of a run required, whatever the outcomes of the tests.

A test may be marked as an expected failure, or may catch an exception of a handle. Its limits count all the same:
handles record them before they raise, and all handles are kept. So neither the phase, the process and the outcome of a
test matter, nor what happens to its report.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from bbnli_audit.audit.gate.verdict import Place
from bbnli_audit.core.errors import AuditError
from bbnli_audit.core.results.rows import Verdict
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
    """Whether the report of this phase must say what the test required: after the call, or if there is more since."""
    found = handles_of(item)
    n_required = sum(len(handle.required) for handle in found)
    is_new = bool(found) and (when == "call" or n_required > item.stash.get(_n_told_key, 0))
    item.stash[_n_told_key] = n_required
    return is_new


def pack_requests(handles: Iterable[Handle]) -> dict[str, Any]:
    """Return a test's requirements as plain values."""
    found = list(handles)
    return {
        "required": [each for handle in found for each in handle.required],
        "growth": [handle.regression.verdict.value for handle in found if isinstance(handle, RegressionHandle)],
    }


class Ledger:
    """Gathers the requirements of all tests of a run, from this process and others."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._handles: list[Handle] = []
        self._required_elsewhere: set[Place] = set()
        self.broken: dict[str, str] = {}  # tests that could not measure -> the first line of the error
        self.n_deselected = 0
        self._n_selected = 0
        self._begun: set[str] = set()

    @property
    def n_left(self) -> int:
        """How many audits were selected, and have no report."""
        return self._n_selected - len(self._begun)

    @property
    def required(self) -> set[Place]:
        """Path and measure of all limits that tests asked for."""
        here = {(path, measure) for handle in self._handles for path, measure, _ in handle.required}
        return here | self._required_elsewhere

    def keep(self, item: pytest.Item, handle: H) -> H:
        """Record a handle that a test is given."""
        self._handles.append(handle)
        item.stash.setdefault(_handles_key, []).append(handle)
        return handle

    def note_error(self, report: pytest.TestReport, error: BaseException | None) -> None:
        if isinstance(error, AuditError):
            report.bbnli_broken = str(error).partition("\n")[0]  # type: ignore[attr-defined]  # xdist sends it too

    def gather(self, report: pytest.TestReport, packed: Mapping[str, Any] | None) -> None:
        """Take over the requirements in a report. A worker that crashes later sends nothing at its end."""
        if AUDIT_KEYWORD in report.keywords:
            self._begun.add(report.nodeid)
        if packed is not None:
            self._required_elsewhere.update((path, measure) for path, measure, _ in packed["required"])
        broken = getattr(report, "bbnli_broken", None)
        if broken is not None:
            self.broken[report.nodeid] = broken

    def tell_unmet(self, unmet: Sequence[tuple[Place, Verdict]]) -> str | None:
        """Say which verdicts and errors did not make their tests fail; None if there are none."""
        if unmet:
            (path, measure), verdict = unmet[0]
            first = f"{path} {measure} is {verdict}"
            more = f", and {len(unmet) - 1} more" if len(unmet) > 1 else ""
            told = f"required verdicts are not met, although pytest would have passed: {first}{more}"
            return f"{told}. Only a waiver in the threshold file lets a limit be crossed."
        if self.broken:
            test, error = next(iter(sorted(self.broken.items())))
            return f"{len(self.broken)} audits could not measure, although pytest would have passed. {test}: {error}"
        return None

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        self.n_deselected += sum(is_audit(item) for item in items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._n_selected = len({item.nodeid for item in session.items if is_audit(item)})

    def pytest_sessionfinish(self) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            told = {"required": sorted(self.required), "n_deselected": self.n_deselected}
            output[_OUTPUT] = {**told, "n_selected": self._n_selected}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over a worker's requirements. All workers collect, and deselect, the same tests."""
        told = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if told is not None:
            self._required_elsewhere.update((path, measure) for path, measure in told["required"])
            self.n_deselected = max(self.n_deselected, told["n_deselected"])
            self._n_selected = max(self._n_selected, told["n_selected"])
