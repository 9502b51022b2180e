"""One run of pytest with a model: verdicts become test outcomes, and workers send their results to the controller.

The session is registered only when a model is given. Under xdist, every worker has its own session, and attaches its
findings to the test reports as plain Python values. The reports may arrive in any order.
"""

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

import pytest

from bbnli_audit.audit.audit import Audit, Surroundings
from bbnli_audit.audit.findings import Finding
from bbnli_audit.audit.gate.idle import find_idle_limits
from bbnli_audit.audit.gate.verdict import find_unmet, why_not_green
from bbnli_audit.audit.outputs import NOT_PASSED
from bbnli_audit.core.errors import AuditError, LimitExceeded, hiding_frames
from bbnli_audit.core.printable import printable, printable_line, printable_lines
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.values import levels_above
from bbnli_audit.core.words import counted
from bbnli_audit.frontends.pytest_plugin import handles, strict
from bbnli_audit.frontends.pytest_plugin.collection import REGRESSION, Collection, path_of, regression_of
from bbnli_audit.frontends.pytest_plugin.exit_code import hold, is_green, only_shows
from bbnli_audit.frontends.pytest_plugin.ledger import Ledger, handles_of, has_news
from bbnli_audit.frontends.pytest_plugin.processes import Processes
from bbnli_audit.frontends.pytest_plugin.settings import is_audit, is_strict, read_options
from bbnli_audit.reports.decision import held_back
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
        self._is_strict = is_strict(config)
        if self._is_strict:
            strict.check_start(config, self.audit)
        if not self._processes.is_worker and not config.getoption("collectonly"):
            self.audit.outputs.prepare()
        self._has_properties = bool(config.getini("bbnli_junit_properties"))
        self._ledger = Ledger(config)
        for part in (self._processes, Collection(self.audit), self._ledger):
            config.pluginmanager.register(part)  # no name, so that `-p no:NAME` cannot switch it off
        self._selected: set[str] = set()
        self._sent: set[str] = set()
        self._decided: tuple[pytest.Session, int | pytest.ExitCode] | None = None

    def pytest_report_header(self) -> list[str]:
        audit, limits = self.audit, self.audit.thresholds.file
        shown = ", ".join(f"{suite.name} {suite.version} ({suite.pairing})" for suite in audit.items.suites)
        options = ", ".join(reading.option for reading in audit.readings)
        lines = [
            f"bbnli: model {audit.options.model}; suites: {shown}, {counted(len(audit.subtopics), 'subtopic')}",
            f"bbnli: limits {audit.thresholds.name}, decide {limits.decide} at {limits.confidence:.0%}, "
            f"inconclusive: {limits.inconclusive}",
            *([f"bbnli: second reading {options}"] if options else []),
        ]
        return list(map(printable_line, lines))

    # Measuring

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        named = {path for item in session.items if (path := path_of(item)) is not None}
        self._selected = {path for path in self.audit.subtopics if named & {path, *levels_above(path)}}
        if self.audit.regressions is not None:
            tests = [test for item in session.items if (test := regression_of(item)) is not None]
            self.audit.regressions.select(tests)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Predict everything before the first audit test starts, so that no test's duration includes predicting."""
        if not is_audit(item):
            return (yield)
        with hiding_frames(is_revealed=self.audit.options.reveal):
            if not self._is_prepared:
                self._is_prepared = True
                self.audit.prepare(self._selected)
            return (yield)

    def open_subtopic(self, item: pytest.Item, path: str) -> handles.SubtopicHandle:
        return self._ledger.keep(
            item, handles.SubtopicHandle(self.audit, partial(self._record, item), self._measure(path))
        )

    def open_answers(self, item: pytest.Item, test: tuple[str, str]) -> handles.AnswersHandle:
        found = self._measure(test[0])
        return self._ledger.keep(item, handles.AnswersHandle(self.audit, partial(self._record, item), found, test[1]))

    def open_measure(self, item: pytest.Item, test: tuple[str, str]) -> handles.OneMeasureHandle:
        found = self._measure(test[0])
        return self._ledger.keep(
            item, handles.OneMeasureHandle(self.audit, partial(self._record, item), found, test[1])
        )

    def open_model(self, item: pytest.Item) -> handles.ModelHandle:
        self._prove()
        return self._ledger.keep(item, handles.ModelHandle(self.audit, partial(self._record, item)))

    def open_regression(self, item: pytest.Item, test: tuple[str, str]) -> handles.RegressionHandle:
        self._prove()
        row, regression = self.audit.measure_row(test[0]), self.audit.compare(test)
        return self._ledger.keep(
            item, handles.RegressionHandle(self.audit, partial(self._record, item), row, regression)
        )

    def open_level(self, item: pytest.Item, test: tuple[str, str]) -> handles.LevelHandle:
        self._prove()
        row = self.audit.measure_row(test[0])
        return self._ledger.keep(item, handles.LevelHandle(self.audit, partial(self._record, item), row, test[1]))

    def _measure(self, path: str) -> Finding:
        self._prove()
        return self.audit.measure(path)

    def _prove(self) -> None:
        """Open and check the model once. The first test shows an error in full; later tests show its first line."""
        if self._broken is not None:
            raise type(self._broken)(f"Not measured: {str(self._broken).splitlines()[0]}")
        try:
            _ = self.audit.facts
        except AuditError as exc:
            self._broken = exc
            raise

    def _record(self, item: pytest.Item, **figures: object) -> None:
        """Put figures into the JUnit file. xdist passes `user_properties` on to the controller."""
        if self._has_properties:
            item.user_properties.extend((f"bbnli_{name}", figure) for name, figure in figures.items())

    # Sending results to the controller

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: "pytest.CallInfo[None]"
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        error = None if call.excinfo is None else call.excinfo.value
        if call.excinfo is not None and isinstance(error, AuditError | LimitExceeded):
            report.longrepr = _as_text(call.excinfo)
        self._ledger.note_error(report, error)
        if has_news(item, report.when):
            report.bbnli = self._pack(handles_of(item))  # type: ignore[attr-defined]  # xdist sends extra attributes too
        return report

    def _pack(self, found: Sequence[handles.Handle]) -> dict[str, Any]:
        """Return what a test required. A worker adds its findings, and sends the finding on a subtopic only once."""
        packed = {**self._ledger.pack(found), "usage": self._processes.usage()}
        if self._processes.is_worker:
            paths = dict.fromkeys(path for handle in found for path in handle.paths)
            unsent = [path for path in paths if path not in self._sent]
            packed["found"] = [self.audit.pack(path) for path in unsent] or [self.audit.pack(None)]
            self._sent.update(unsent)
            if self.audit.regressions is not None:
                compared = [handle.regression for handle in found if isinstance(handle, handles.RegressionHandle)]
                packed["regressions"] = [self.audit.regressions.pack(each) for each in compared]
        return packed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        packed = getattr(report, "bbnli", None)
        self._ledger.gather(report, packed)
        if packed is None:
            return
        self._processes.gather(packed["usage"])
        if "found" in packed and not self._processes.is_worker:
            for found in packed["found"]:
                self.audit.unpack(found)
            if self.audit.regressions is not None:
                for regression in packed["regressions"]:
                    self.audit.regressions.unpack(regression)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        packed = getattr(report, "bbnli", {})
        verdicts = [verdict for _, _, verdict in packed.get("required", ())] + packed.get("growth", [])
        if report.skipped and Verdict.INCONCLUSIVE in verdicts:
            return "inconclusive", "?", ("INCONCLUSIVE", {"yellow": True})
        return None

    # The end

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Decide whether the run passes. Hooks that are not wrappers come before this, the terminal's summary after."""
        try:
            yield
        except (pytest.exit.Exception, SystemExit):  # a hook wants to end the run, perhaps with 0
            self._decide(session)
            raise
        self._decide(session)

    def _decide(self, session: pytest.Session) -> None:
        if self._processes.is_worker or only_shows(self._config):
            return
        self._result = self.audit.conclude(None if self._is_strict else self._ledger.required)
        if is_green(session.exitstatus):
            self._trouble = self._why_not_green()
            if self._trouble is not None:
                is_nothing = self._result is None
                session.exitstatus = pytest.ExitCode.USAGE_ERROR if is_nothing else pytest.ExitCode.TESTS_FAILED
            elif self.audit.troubles:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self._result is None:
            self.audit.outputs.write_nothing()
        else:
            self._result = held_back(self._result, self._trouble or self._ledger.tell_broken_off())
            fewer = self._ledger.tell_fewer()
            why_no_pass = None if fewer is None else f"{fewer}. Run all of them."
            if not is_green(session.exitstatus):
                why_no_pass = NOT_PASSED
            self.audit.outputs.write(self._result, self.audit.pairs, why_no_pass)
            if self.audit.outputs.troubles:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
        self._decided = (session, session.exitstatus)

    @property
    def must_end_with(self) -> int | None:
        """The exit code that was decided, or USAGE_ERROR if none was decided. None in a worker: it decides nothing."""
        if self._processes.is_worker:
            return None
        return pytest.ExitCode.USAGE_ERROR if self._decided is None else self._decided[1]

    def pytest_unconfigure(self) -> None:
        """Restore the exit code if a later hook turned a failed run into a pass."""
        if self._decided is None:
            return
        session, status = self._decided
        held = hold(session.exitstatus, status)
        if held is not None:
            session.exitstatus = held

    def _why_not_green(self) -> str | None:
        """Say why the run must not pass although no test failed. Return None if the run may pass."""
        result, regressions = self._result, self.audit.regressions
        if result is None:
            model = self.audit.options.model
            return (
                f"a model was given ({model}), but no pair was audited: no test with the fixture `bbnli` got a result."
            )
        if result.is_competent and regressions is not None and result.comparison is None:
            given = f"a baseline was given ({regressions.source})"
            return f"{given}, but nothing was compared with it: no test with the fixture `{REGRESSION}` ran."
        gaps = list(strict.find_gaps(self.audit, result, self._ledger.tell_fewer())) if self._is_strict else []
        if gaps:
            return f"--bbnli-strict asks for the whole audit, but {'; '.join(gaps)}."
        return why_not_green(result) or self._ledger.tell_unmet(find_unmet(result)) or self._ledger.tell_broken_off()

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        audit, result = self.audit, self._result

        def write(line: str, **markup: bool) -> None:
            terminalreporter.write_line(printable_line(line), **markup)

        if result is not None:
            terminalreporter.section(printable_line(f"bias audit of {result.model.name}"))
            write_summary(result, write)
            if result.settings.agreement is not None:
                write(f"Computed with {result.model.backend}, {result.model.dtype}: {result.settings.agreement}.")
            if audit.excluded:
                write(f"Left out by --bbnli-exclude: {', '.join(audit.excluded)}.")
            idle = find_idle_limits(result)
            if idle:
                write(f"Nothing can cross these limits, so they decide nothing: {', '.join(idle)}.", yellow=True)
            n_missing = len(audit.subtopics) - len(result.subtopics)
            if n_missing:
                n_all, were = counted(len(audit.subtopics), "subtopic"), "was" if n_missing == 1 else "were"
                write(f"{n_missing} of {n_all} {were} not audited (not selected, or stopped by an error).")
        for line in (*self._processes.summary(), *audit.outputs.notes):
            write(line)
        for command in audit.outputs.commands:
            terminalreporter.write_line(printable(command))
        for trouble in filter(None, (*audit.troubles, *audit.outputs.troubles, self._trouble)):
            terminalreporter.write_line(printable_lines(f"ERROR: {trouble}"), red=True)


def _as_text(excinfo: "pytest.ExceptionInfo[BaseException]") -> Any:
    """Show only the text of our own errors: a traceback would lead into this package."""
    shown = excinfo.getrepr(style="value", chain=False)
    if shown.reprcrash is not None:
        # `pytest -rf` prints this message after the test's name. The name has the path, so leave the path out here.
        first = str(excinfo.value).partition("\n")[0]
        shown.reprcrash.message = first.partition(": ")[2] or first
    return shown
