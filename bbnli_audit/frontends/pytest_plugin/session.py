"""What happens between pytest and the audit: subtopics become tests, verdicts become outcomes, results travel home.

Registered only when a model is given. Under xdist every worker has its own; results go to the controller on the
test reports, as plain builtins, in any order.
"""

from collections.abc import Generator, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from bbnli_audit.audit import audit
from bbnli_audit.audit.assembly import SubtopicAudit, assemble
from bbnli_audit.core.errors import AuditError, LimitExceeded, suggest
from bbnli_audit.core.results.audit import AuditResult, ModelInfo, Skill, SubtopicResult, Verdict
from bbnli_audit.frontends.pytest_plugin.handles import AnswersHandle, ModelHandle, RegressionHandle, SubtopicHandle
from bbnli_audit.frontends.pytest_plugin.plugin import is_audit
from bbnli_audit.frontends.pytest_plugin.session_baseline import FIXTURE as REGRESSION
from bbnli_audit.frontends.pytest_plugin.session_baseline import SessionBaseline
from bbnli_audit.frontends.pytest_plugin.session_model import SessionModel, SessionProcesses
from bbnli_audit.frontends.pytest_plugin.session_reports import SessionReports
from bbnli_audit.frontends.pytest_plugin.session_second import FIXTURE as ANSWERS
from bbnli_audit.frontends.pytest_plugin.session_second import SessionSecond, read_answers
from bbnli_audit.frontends.pytest_plugin.session_settings import SessionSettings, is_asked
from bbnli_audit.models.inference.fast_paths import Agreement
from bbnli_audit.reports.terminal import write_summary
from bbnli_audit.suites.registry import BUILT_IN

if TYPE_CHECKING:
    import pandas as pd

    from bbnli_audit.core.values import Subtopic

# How the model is computed. Of a second model only the device is said.
COMPUTING = ("labels", "device", "dtype", "backend", "engine", "ray_address", "max_disagreement")
# Fixtures that give one measure of one subtopic: its parameter is path and measure.
TESTS = (REGRESSION, ANSWERS)


class AuditSession:
    """One run of pytest with a model."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self.settings = settings = SessionSettings(config)
        self.suites, self.subtopics, self.thresholds = settings.suites, settings.subtopics, settings.thresholds
        baseline = settings.path("baseline")
        self.baseline = None if baseline is None else SessionBaseline(baseline, self.thresholds, config.rootpath)
        processes = SessionProcesses(config, settings.path)
        asking = settings.read_asking()
        self._model = SessionModel(processes, settings.model, processes.read_inference(asking, *COMPUTING))
        self._auditor = audit.Auditor(
            self.suites, self.thresholds, lambda: self._model.open(self.suites), is_revealed=settings.is_revealed
        )
        self.second = SessionSecond(settings, processes, self._auditor)
        self._is_asked = is_asked(settings.model, asking)
        self._reports = SessionReports(config, settings.path)  # last: a wrong option must not cost an earlier report
        config.pluginmanager.register(processes, "bbnli_audit_processes")
        self._selected: list[Subtopic] = []
        self._is_prepared = False
        self._broken: AuditError | None = None
        self._sent: set[str] = set()
        self._model_info: ModelInfo | None = None
        self._skill: Skill | None = None
        self._gathered: dict[str, SubtopicAudit] = {}
        self._required: set[tuple[str, str]] = set()
        self._agreement: Agreement | None = None
        self._result: AuditResult | None = None
        self._trouble: str | None = None

    def pytest_report_header(self) -> list[str]:
        limits = self.thresholds.file
        shown = ", ".join(f"{suite.name} {suite.version} ({suite.pairing})" for suite in self.suites)
        return [
            f"bbnli: model {self.settings.model}; suites: {shown}, {len(self.subtopics)} subtopics",
            f"bbnli: limits {self.thresholds.name}, decide {limits.decide} at {limits.confidence:.0%}, "
            f"inconclusive: {limits.inconclusive}",
            *([f"bbnli: second reading {', '.join(self.second.options)}"] if self.second.options else []),
        ]

    # Subtopics become tests

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "bbnli" in metafunc.fixturenames:
            paths = self._paths_of(metafunc)
            metafunc.parametrize("bbnli", paths or [None], indirect=True, ids=paths or ["none"])
        if REGRESSION in metafunc.fixturenames:
            tests = {} if self.baseline is None else self.baseline.tests(self._paths_of(metafunc))
            metafunc.parametrize(REGRESSION, list(tests.values()) or [None], indirect=True, ids=list(tests) or ["none"])
        if ANSWERS in metafunc.fixturenames:
            tests = self.second.answer_tests(self._paths_of(metafunc)) if self._is_asked else {}
            metafunc.parametrize(ANSWERS, list(tests.values()) or [None], indirect=True, ids=list(tests) or ["none"])

    def _paths_of(self, metafunc: pytest.Metafunc) -> list[str]:
        """Give the subtopics of a test: those that its marker names, or all. None of a suite that is not audited."""
        patterns = [str(p) for mark in metafunc.definition.iter_markers("bbnli") for p in mark.args]
        paths = [path for path in self.subtopics if not patterns or any(fnmatchcase(path, p) for p in patterns)]
        if not paths and not self._are_of_other_suites(patterns):
            raise pytest.Collector.CollectError(
                f"{metafunc.definition.nodeid}: bbnli({', '.join(map(repr, patterns))}) names no subtopic. "
                f"{suggest(str(patterns[0]), self.subtopics)}"
            )
        return paths

    def _are_of_other_suites(self, patterns: Sequence[str]) -> bool:
        """Tell whether patterns name suites of the package that this run leaves out."""
        left_out = set(BUILT_IN) - {suite.name for suite in self.suites}
        return bool(patterns) and all(pattern.partition("/")[0] in left_out for pattern in patterns)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        path = _path_of(item)
        if path is not None:
            # `-k black_people_use_drugs`: the published file names work beside the papers' names.
            item.extra_keyword_matches.update(self.subtopics[path].aliases)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, obj: object) -> list[pytest.Item] | None:
        """Without a baseline there are no tests of regressions, nor of answers of a model that is asked nothing.

        Nor of suites that are not audited.
        """
        code = getattr(obj, "__code__", None)
        arguments = () if code is None else code.co_varnames[: code.co_argcount]
        missing = {REGRESSION: self.baseline is None, ANSWERS: not self._is_asked}
        is_idle = any(missing[fixture] for fixture in TESTS if fixture in arguments)
        marks = [mark for mark in getattr(obj, "pytestmark", ()) if getattr(mark, "name", "") == "bbnli"]
        is_elsewhere = self._are_of_other_suites([str(pattern) for mark in marks for pattern in mark.args])
        return [] if is_elsewhere or is_idle else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Nor those that say so by other means: a fixture of their own, or a marker of their module."""
        items[:] = [item for item in items if not _has_nothing_to_audit(item)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep the tests of a subtopic on one worker, so that its pairs are predicted once."""
        if config.getvalue("dist") != "load":
            return None
        from bbnli_audit.frontends.pytest_plugin.scheduling import SubtopicScheduling

        return SubtopicScheduling(config, log, self.subtopics)

    # Measuring

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        paths = {_path_of(item) for item in session.items}
        if self.baseline is not None:
            self.baseline.select(session.items)
        self._selected = [subtopic for path, subtopic in self.subtopics.items() if path in paths]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Make the one pass before the first audit, outside of any test: its time is nobody's set-up."""
        if is_audit(item) and not self._is_prepared:
            self._is_prepared = True
            self._auditor.prepare(self._selected)
            self.second.prepare(self._selected)
        return (yield)

    def open_subtopic(self, item: pytest.Item, path: str) -> "SubtopicHandle":
        return SubtopicHandle(self, item, self._measure(path))

    def open_answers(self, item: pytest.Item, test: tuple[str, str]) -> "AnswersHandle":
        return AnswersHandle(self, item, self._measure(test[0]), test[1])

    def open_model(self, item: pytest.Item) -> "ModelHandle":
        self._prove()
        return ModelHandle(self, item)

    def open_regression(self, item: pytest.Item, test: tuple[str, str]) -> "RegressionHandle":
        assert self.baseline is not None
        found = self._measure(test[0])
        return RegressionHandle(
            self, item, found, self.baseline, self.baseline.compare(self._auditor, self.subtopics, test)
        )

    def _measure(self, path: str) -> SubtopicAudit:
        self._prove()
        return self.second.extend(self._auditor.audit(self.subtopics[path]))

    def read_answers(self, subtopic: "Subtopic") -> "pd.DataFrame":
        """Give all pairs of a subtopic, those with unreadable answers too."""
        return read_answers(self._auditor, subtopic)

    def _prove(self) -> None:
        """Open and prove the model once; what went wrong is told in full once, and in one line after that."""
        if self._broken is not None:
            raise type(self._broken)(f"Not measured: {str(self._broken).splitlines()[0]}")
        try:
            self._model_info, self._skill = self._auditor.predictor.info, self._auditor.proof.skill
        except AuditError as exc:
            self._broken = exc
            raise

    @property
    def is_competent(self) -> bool:
        return self._auditor.is_competent

    @property
    def skill(self) -> Skill:
        return self._auditor.proof.skill

    @property
    def info(self) -> ModelInfo:
        return self._auditor.predictor.info

    # Results travel home

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: "pytest.CallInfo[None]"
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, AuditError | LimitExceeded):
            report.longrepr = _as_text(call.excinfo)
        from bbnli_audit.measures.frame import without_texts

        funcargs = getattr(item, "funcargs", {})
        handle = next((funcargs[name] for name in ("bbnli", *TESTS, "bbnli_model") if name in funcargs), None)
        if report.when == "call" and isinstance(handle, SubtopicHandle | RegressionHandle | ModelHandle):
            payload: dict[str, Any] = {
                "model": self.info.to_dict(),
                "skill": asdict(self.skill),
                "required": handle.required,
                "usage": self._model.usage(),
                "agreement": None if self._auditor.agreement is None else asdict(self._auditor.agreement),
            }
            if isinstance(handle, RegressionHandle) and self.baseline is not None:
                payload["baseline"] = self.baseline.payload(handle.regression)
            if not isinstance(handle, ModelHandle) and handle.result.path not in self._sent:
                self._sent.add(handle.result.path)
                payload["result"] = handle.result.to_dict()
                frame = without_texts(handle.pairs)
                payload["pairs"] = {str(name): frame[name].tolist() for name in frame}
                payload["second"] = self.second.payload(handle.found)
            report.bbnli = payload  # type: ignore[attr-defined]  # reports carry extra attributes to the controller
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        payload = getattr(report, "bbnli", None)
        if payload is None:
            return
        self._model_info = ModelInfo.from_dict(payload["model"])
        self._skill = Skill(**payload["skill"])
        self._required.update((path, measure) for path, measure, _ in payload["required"])
        self._model.gather(payload["usage"])
        self._agreement = Agreement(**payload["agreement"]) if payload["agreement"] else None
        if self.baseline is not None and "baseline" in payload:
            self.baseline.gather(payload["baseline"])
        if "result" in payload:
            import pandas as pd

            result = SubtopicResult.from_dict(payload["result"])
            frame = pd.DataFrame(payload["pairs"])
            self._gathered[result.path] = SubtopicAudit(self.subtopics[result.path], result, frame)
            self.second.gather(payload["second"])

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        payload = getattr(report, "bbnli", {})
        verdicts = [verdict for _, _, verdict in payload.get("required", ())]
        if "baseline" in payload:
            verdicts.append(payload["baseline"]["regression"]["verdict"])
        if report.skipped and Verdict.INCONCLUSIVE in verdicts:
            return "inconclusive", "?", ("INCONCLUSIVE", {"yellow": True})
        return None

    # The end

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_worker or self._config.getoption("collectonly"):
            return
        if self._gathered:
            assert self._model_info is not None
            assert self._skill is not None
            audits = list(self._gathered.values())
            self._result = assemble(
                self._model_info, self._skill, self.suites, self.thresholds, audits, self._agreement, self._required
            )
            self._result = self.second.attach(self._result)
            if self.baseline is not None:
                self._result = replace(self._result, comparison=self.baseline.comparison(self._result))
        if session.exitstatus == pytest.ExitCode.OK:
            self._trouble = self._why_not_green()
            if self._trouble is not None:
                is_nothing = self._result is None
                session.exitstatus = pytest.ExitCode.USAGE_ERROR if is_nothing else pytest.ExitCode.TESTS_FAILED
            elif self.second.troubles:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self._result is not None:
            has_passed = session.exitstatus == pytest.ExitCode.OK
            self._reports.write(self._result, self._pairs, has_passed=has_passed)
            if self._reports.troubles:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _pairs(self) -> "pd.DataFrame":
        """Give the pair table of the run, in the order of the result, with the sentences of the suites."""
        import pandas as pd

        from bbnli_audit.measures.frame import with_texts

        assert self._result is not None
        frames = []
        for row in self._result.subtopics:
            found = self._gathered[row.path]
            suite = next(suite for suite in self.suites if suite.name == found.subtopic.suite)
            frames.append(with_texts(found.frame, suite.items(found.subtopic).usable))
        return pd.concat(frames, ignore_index=True)

    def _why_not_green(self) -> str | None:
        """Say why a run in which no test failed still must not pass."""
        if self._result is None:
            model = self.settings.model
            return f"a model was given ({model}), but no pair was audited: no test with the fixture `bbnli` ran."
        if not self._result.is_competent:
            return "the model is not competent, so nothing has passed (see Competence above)."
        comparison = self._result.comparison
        if self.baseline is not None and comparison is None:
            return (
                f"a baseline was given ({self.baseline.source}), but nothing was compared with it: no test with the "
                f"fixture `{REGRESSION}` ran."
            )
        verdicts = [judgement.verdict for row in self._result.subtopics for judgement in self._result.required_of(row)]
        verdicts += [] if comparison is None else [regression.verdict for regression in comparison.regressions]
        if not verdicts:
            return "no test required a limit (bbnli.require), so nothing has passed."
        if not any(verdict in (Verdict.PASS, Verdict.FAIL) for verdict in verdicts):
            return (
                "no limit could be decided on these pairs, so nothing has passed. Add pairs, or set 'decide: point' in "
                "the threshold file."
            )
        return None

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        write = terminalreporter.write_line
        if self._result is not None:
            terminalreporter.section(f"bias audit of {self._result.model.name}")
            write_summary(self._result, write)
            if self._agreement is not None:
                info = self._result.model
                write(f"Computed with {info.backend}, {info.dtype}: {self._agreement}.")
            if self.settings.excluded:
                write(f"Left out by --bbnli-exclude: {', '.join(self.settings.excluded)}.")
            n_missing = len(self.subtopics) - len(self._result.subtopics)
            if n_missing:
                write(f"{n_missing} of {len(self.subtopics)} subtopics were not audited (not selected, or in error).")
        for line in (*self._model.summary(), *self.second.summary(), *self._reports.lines()):
            write(line)
        for trouble in filter(None, (*self.second.troubles, *self._reports.troubles, self._trouble)):
            write(f"ERROR: {trouble}", red=True)

    def record(self, item: pytest.Item, **figures: object) -> None:
        """Put figures into the JUnit file; `user_properties` survive xdist."""
        if self.settings.has_properties:
            item.user_properties.extend((f"bbnli_{name}", figure) for name, figure in figures.items())


def _has_nothing_to_audit(item: pytest.Item) -> bool:
    params = getattr(getattr(item, "callspec", None), "params", {})
    return any(name in params and params[name] is None for name in ("bbnli", *TESTS))


def _path_of(item: pytest.Item) -> str | None:
    """Give the subtopic that a test is about."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    test = next((params[name] for name in TESTS if params.get(name) is not None), None)
    return params.get("bbnli") if test is None else test[0]


def _as_text(excinfo: "pytest.ExceptionInfo[BaseException]") -> Any:
    """Show our own errors as their text alone: the traceback would lead into this package."""
    shown = excinfo.getrepr(style="value", chain=False)
    if shown.reprcrash is not None:
        # What `pytest -rf` prints behind the test's name; the path is in the name already.
        first = str(excinfo.value).partition("\n")[0]
        shown.reprcrash.message = first.partition(": ")[2] or first
    return shown
