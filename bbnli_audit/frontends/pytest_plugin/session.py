"""One run of pytest with a model: verdicts become test outcomes, and workers send their results to the controller.

Registered only when a model is given. Under xdist every worker has its own session. It attaches what it found to the
test reports, as plain Python values; they may arrive in any order.
"""

from collections.abc import Generator
from functools import partial
from typing import Any

import pytest

from bbnli_audit.audit.audit import Audit, Surroundings
from bbnli_audit.audit.findings import Finding
from bbnli_audit.audit.gate.verdict import why_not_green
from bbnli_audit.core.errors import AuditError, LimitExceeded
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.values import levels_above
from bbnli_audit.frontends.pytest_plugin import handles
from bbnli_audit.frontends.pytest_plugin.collection import REGRESSION, Collection, path_of, regression_of
from bbnli_audit.frontends.pytest_plugin.processes import Processes
from bbnli_audit.frontends.pytest_plugin.settings import FIXTURES, is_audit, read_options
from bbnli_audit.reports.terminal import write_summary


class AuditSession:
    """One run of pytest with a model."""

    _is_prepared = False
    _broken: AuditError | None = None
    _result: AuditResult | None = None
    _trouble: str | None = None

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._processes = Processes(config)
        surroundings = Surroundings(config.rootpath, self._processes.here, self._processes.show_progress)
        self.audit = self._processes.audit = Audit(read_options(config), surroundings)
        if not self._processes.is_worker and not config.getoption("collectonly"):
            self.audit.outputs.prepare()  # last, because it removes an earlier report: a wrong option must not
        self._has_properties = bool(config.getini("bbnli_junit_properties"))
        config.pluginmanager.register(self._processes, "bbnli_audit_processes")
        config.pluginmanager.register(Collection(self.audit), "bbnli_audit_collection")
        self._selected: set[str] = set()
        self._sent: set[str] = set()
        self._required: set[tuple[str, str]] = set()

    def pytest_report_header(self) -> list[str]:
        audit, limits = self.audit, self.audit.thresholds.file
        shown = ", ".join(f"{suite.name} {suite.version} ({suite.pairing})" for suite in audit.items.suites)
        options = ", ".join(reading.option for reading in audit.readings)
        return [
            f"bbnli: model {audit.options.model}; suites: {shown}, {len(audit.subtopics)} subtopics",
            f"bbnli: limits {audit.thresholds.name}, decide {limits.decide} at {limits.confidence:.0%}, "
            f"inconclusive: {limits.inconclusive}",
            *([f"bbnli: second reading {options}"] if options else []),
        ]

    # Measuring

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        named = {path for item in session.items if (path := path_of(item)) is not None}
        self._selected = {path for path in self.audit.subtopics if named & {path, *levels_above(path)}}
        if self.audit.regressions is not None:
            tests = [test for item in session.items if (test := regression_of(item)) is not None]
            self.audit.regressions.select(tests)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Predict everything before the first audit, outside of any test, so that no test's set-up time includes it."""
        if is_audit(item) and not self._is_prepared:
            self._is_prepared = True
            self.audit.prepare(self._selected)
        return (yield)

    def open_subtopic(self, item: pytest.Item, path: str) -> handles.SubtopicHandle:
        return handles.SubtopicHandle(self.audit, partial(self._record, item), self._measure(path))

    def open_answers(self, item: pytest.Item, test: tuple[str, str]) -> handles.AnswersHandle:
        return handles.AnswersHandle(self.audit, partial(self._record, item), self._measure(test[0]), test[1])

    def open_measure(self, item: pytest.Item, test: tuple[str, str]) -> handles.OneMeasureHandle:
        return handles.OneMeasureHandle(self.audit, partial(self._record, item), self._measure(test[0]), test[1])

    def open_model(self, item: pytest.Item) -> handles.ModelHandle:
        self._prove()
        return handles.ModelHandle(self.audit, partial(self._record, item))

    def open_regression(self, item: pytest.Item, test: tuple[str, str]) -> handles.RegressionHandle:
        self._prove()
        row = self.audit.measure_row(test[0])
        return handles.RegressionHandle(self.audit, partial(self._record, item), row, self.audit.compare(test))

    def open_level(self, item: pytest.Item, test: tuple[str, str]) -> handles.LevelHandle:
        self._prove()
        return handles.LevelHandle(self.audit, partial(self._record, item), self.audit.measure_row(test[0]), test[1])

    def _measure(self, path: str) -> Finding:
        self._prove()
        return self.audit.measure(path)

    def _prove(self) -> None:
        """Open and check the model once. The first test shows an error in full, later ones only its first line."""
        if self._broken is not None:
            raise type(self._broken)(f"Not measured: {str(self._broken).splitlines()[0]}")
        try:
            _ = self.audit.facts
        except AuditError as exc:
            self._broken = exc
            raise

    def _record(self, item: pytest.Item, **figures: object) -> None:
        """Put figures into the JUnit file; `user_properties` survive xdist."""
        if self._has_properties:
            item.user_properties.extend((f"bbnli_{name}", figure) for name, figure in figures.items())

    # Sending results to the controller

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: "pytest.CallInfo[None]"
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, AuditError | LimitExceeded):
            report.longrepr = _as_text(call.excinfo)
        funcargs = getattr(item, "funcargs", {})
        handle = next((funcargs[name] for name in FIXTURES if name in funcargs), None)
        if report.when == "call" and isinstance(handle, handles.Handle):
            report.bbnli = self._pack(handle)  # type: ignore[attr-defined]  # xdist sends extra attributes too
        return report

    def _pack(self, handle: handles.Handle) -> dict[str, Any]:
        """Return what a test required; in a worker also what was found, once per subtopic."""
        packed: dict[str, Any] = {"required": handle.required, "usage": self._processes.usage()}
        regression = handle.regression if isinstance(handle, handles.RegressionHandle) else None
        if regression is not None:
            packed["growth"] = regression.verdict.value
        if self._processes.is_worker:
            unsent = [path for path in handle.paths if path not in self._sent]
            packed["found"] = [self.audit.pack(path) for path in unsent] or [self.audit.pack(None)]
            self._sent.update(unsent)
            if regression is not None and self.audit.regressions is not None:
                packed["regression"] = self.audit.regressions.pack(regression)
        return packed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        packed = getattr(report, "bbnli", None)
        if packed is None:
            return
        self._required.update((path, measure) for path, measure, _ in packed["required"])
        self._processes.gather(packed["usage"])
        if "found" in packed and not self._processes.is_worker:
            for found in packed["found"]:
                self.audit.unpack(found)
            if "regression" in packed and self.audit.regressions is not None:
                self.audit.regressions.unpack(packed["regression"])

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        packed = getattr(report, "bbnli", {})
        verdicts = [verdict for _, _, verdict in packed.get("required", ())] + [packed.get("growth")]
        if report.skipped and Verdict.INCONCLUSIVE in verdicts:
            return "inconclusive", "?", ("INCONCLUSIVE", {"yellow": True})
        return None

    # The end

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._processes.is_worker or self._config.getoption("collectonly"):
            return
        self._result = self.audit.conclude(self._required)
        if session.exitstatus == pytest.ExitCode.OK:
            self._trouble = self._why_not_green()
            if self._trouble is not None:
                is_nothing = self._result is None
                session.exitstatus = pytest.ExitCode.USAGE_ERROR if is_nothing else pytest.ExitCode.TESTS_FAILED
            elif self.audit.troubles:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self._result is not None:
            has_passed = session.exitstatus == pytest.ExitCode.OK
            self.audit.outputs.write(self._result, self.audit.pairs, has_passed=has_passed)
            if self.audit.outputs.troubles:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _why_not_green(self) -> str | None:
        if self._result is None:
            model = self.audit.options.model
            return f"a model was given ({model}), but no pair was audited: no test with the fixture `bbnli` ran."
        regressions = self.audit.regressions
        if self._result.is_competent and regressions is not None and self._result.comparison is None:
            given = f"a baseline was given ({regressions.source})"
            return f"{given}, but nothing was compared with it: no test with the fixture `{REGRESSION}` ran."
        return why_not_green(self._result)

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        write, audit, result = terminalreporter.write_line, self.audit, self._result
        if result is not None:
            terminalreporter.section(f"bias audit of {result.model.name}")
            write_summary(result, write)
            if result.settings.agreement is not None:
                write(f"Computed with {result.model.backend}, {result.model.dtype}: {result.settings.agreement}.")
            if audit.excluded:
                write(f"Left out by --bbnli-exclude: {', '.join(audit.excluded)}.")
            n_missing = len(audit.subtopics) - len(result.subtopics)
            if n_missing:
                write(f"{n_missing} of {len(audit.subtopics)} subtopics were not audited (not selected, or in error).")
        for line in (*self._processes.summary(), *audit.outputs.notes):
            write(line)
        for trouble in filter(None, (*audit.troubles, *audit.outputs.troubles, self._trouble)):
            write(f"ERROR: {trouble}", red=True)


def _as_text(excinfo: "pytest.ExceptionInfo[BaseException]") -> Any:
    """Show our own errors as their text alone: the traceback would lead into this package."""
    shown = excinfo.getrepr(style="value", chain=False)
    if shown.reprcrash is not None:
        # What `pytest -rf` prints behind the test's name; the path is in the name already.
        first = str(excinfo.value).partition("\n")[0]
        shown.reprcrash.message = first.partition(": ")[2] or first
    return shown
