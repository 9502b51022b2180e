"""What happens between pytest and the audit: subtopics become tests, verdicts become outcomes, results travel home.

Registered only when a model is given. Under xdist every worker has its own; results go to the controller on the
test reports, as plain builtins, in any order.
"""

import os
from collections.abc import Generator
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bbnli_audit import audit
from bbnli_audit.errors import AuditError, LimitExceeded, OptionError, SuiteError, ThresholdsError, suggest
from bbnli_audit.handles import ModelHandle, SubtopicHandle
from bbnli_audit.inference.agreement import Agreement
from bbnli_audit.plugin import get_setting, is_audit
from bbnli_audit.report.files import remove_files, write_files
from bbnli_audit.report.terminal import write_summary
from bbnli_audit.results import AuditResult, ModelInfo, Skill, SubtopicResult, Verdict
from bbnli_audit.session_model import SessionModel
from bbnli_audit.suites.bbnli import OWN_DATA, Bbnli
from bbnli_audit.suites.protocol import check_suite
from bbnli_audit.thresholds import Thresholds, read_thresholds
from bbnli_audit.values import Pairing, Subtopic

if TYPE_CHECKING:
    from bbnli_audit.suites.protocol import Suite


class AuditSession:
    """One run of pytest with a model."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._has_properties = bool(config.getini("bbnli_junit_properties"))
        self.model = self._read_model()
        self.is_revealed = bool(config.getoption("bbnli_reveal"))
        self.suites = self._open_suites()
        self.excluded: list[str] = []
        self.subtopics = self._choose_subtopics()
        self.thresholds = self._read_thresholds()
        self._model = SessionModel(config, self.model, self._path)
        self.report_folder = self._prepare_report_folder()  # last: a mistyped option must not cost an earlier report
        config.pluginmanager.register(self._model, "bbnli_audit_model")
        self._auditor = audit.Auditor(
            self.suites, self.thresholds, lambda: self._model.open(self.suites), is_revealed=self.is_revealed
        )
        self._selected: list[Subtopic] = []
        self._is_prepared = False
        self._broken: AuditError | None = None
        self._sent: set[str] = set()
        self._model_info: ModelInfo | None = None
        self._skill: Skill | None = None
        self._gathered: dict[str, audit.SubtopicAudit] = {}
        self._required: set[tuple[str, str]] = set()
        self._agreement: Agreement | None = None
        self._result: AuditResult | None = None
        self._trouble: str | None = None

    # Setting up

    def _open_suites(self) -> "list[Suite]":
        pairing = get_setting(self._config, "pairing") or Pairing.BOTH.value
        if pairing not in list(Pairing):
            raise OptionError(f"--bbnli-pairing={pairing}: there is no such pairing. {suggest(pairing, Pairing)}")
        suites: list[Suite] = [Bbnli(self._path("data") or OWN_DATA, Pairing(pairing))]
        for given in self._config.hook.pytest_bbnli_suites(config=self._config):
            if not isinstance(given, list | tuple):
                raise SuiteError(f"pytest_bbnli_suites gave a {type(given).__name__}; expected a list of suites.")
            suites.extend(given)
        for suite in suites:
            check_suite(suite)
        names = [suite.name for suite in suites]
        for name in names:
            if names.count(name) > 1:
                raise SuiteError(f"Two suites are named {name!r}; results and limits are kept by name. Rename one.")
        return suites

    def _choose_subtopics(self) -> dict[str, Subtopic]:
        known = {subtopic.path: subtopic for suite in self.suites for subtopic in suite.subtopics()}
        patterns = [p.strip() for p in (get_setting(self._config, "exclude") or "").split(",") if p.strip()]
        for pattern in patterns:
            matching = [path for path in known if fnmatchcase(path, pattern)]
            if not matching:
                raise OptionError(f"--bbnli-exclude={pattern}: names no subtopic. {suggest(pattern, known)}")
            self.excluded.extend(path for path in matching if path not in self.excluded)
        if known and len(self.excluded) == len(known):
            raise OptionError("--bbnli-exclude leaves out every subtopic, so there is nothing to audit.")
        return {path: subtopic for path, subtopic in known.items() if path not in self.excluded}

    def _read_thresholds(self) -> Thresholds:
        base = self._config.rootpath
        path = Path(os.path.normpath(self._path("thresholds") or base / "thresholds.yaml"))
        name = path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
        if not path.exists() and self._config.invocation_params.dir != base:
            raise ThresholdsError(
                f"{path}: there is no such file. pytest's root folder is {base}, not the folder it was started in; if "
                "it took an option's value for a test path, write the option with '=': --model=PATH."
            )
        thresholds = read_thresholds(path, name)
        audit.check_thresholds_names(thresholds, self.suites)
        return thresholds

    def _prepare_report_folder(self) -> Path | None:
        folder = self._path("report")
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if not self._is_worker and not self._config.getoption("collectonly"):
                    remove_files(folder)  # a run that breaks must not leave an earlier run's figures behind
            except OSError as exc:
                raise OptionError(f"--bbnli-report={folder}: cannot be made: {exc.strerror}.") from exc
        return folder

    def _path(self, name: str) -> Path | None:
        """Read a path: an option counts from where pytest was started, an ini key from the root folder."""
        value = get_setting(self._config, name)
        is_option = self._config.getoption(f"bbnli_{name}", None) is not None
        base = self._config.invocation_params.dir if is_option else self._config.rootpath
        return None if value is None else base / value

    def _read_model(self) -> str:
        option = self._config.getoption("bbnli_model", None)
        model = get_setting(self._config, "model") or ""
        beside_ini = self._config.rootpath / model
        return str(beside_ini) if option is None and beside_ini.is_dir() else model

    def pytest_report_header(self) -> list[str]:
        settings = self.thresholds.file
        shown = ", ".join(f"{suite.name} {suite.version} ({suite.pairing})" for suite in self.suites)
        return [
            f"bbnli: model {self.model}; suites: {shown}, {len(self.subtopics)} subtopics",
            f"bbnli: limits {self.thresholds.name}, decide {settings.decide} at {settings.confidence:.0%}, "
            f"inconclusive: {settings.inconclusive}",
        ]

    # Subtopics become tests

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "bbnli" in metafunc.fixturenames:
            patterns = [str(p) for mark in metafunc.definition.iter_markers("bbnli") for p in mark.args]
            paths = [path for path in self.subtopics if not patterns or any(fnmatchcase(path, p) for p in patterns)]
            if not paths:
                raise pytest.Collector.CollectError(
                    f"{metafunc.definition.nodeid}: bbnli({', '.join(map(repr, patterns))}) names no subtopic. "
                    f"{suggest(str(patterns[0]), self.subtopics)}"
                )
            metafunc.parametrize("bbnli", paths, indirect=True, ids=paths)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        callspec = getattr(item, "callspec", None)
        if is_audit(item) and callspec is not None and "bbnli" in callspec.params:
            # `-k black_people_use_drugs`: the published file names work beside the papers' names.
            item.extra_keyword_matches.update(self.subtopics[callspec.params["bbnli"]].aliases)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep the tests of a subtopic on one worker, so that its pairs are predicted once."""
        if config.getvalue("dist") != "load":
            return None
        from bbnli_audit.scheduling import SubtopicScheduling

        return SubtopicScheduling(config, log, self.subtopics)

    # Measuring

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        paths = {item.callspec.params.get("bbnli") for item in session.items if hasattr(item, "callspec")}
        self._selected = [subtopic for path, subtopic in self.subtopics.items() if path in paths]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Make the one pass before the first audit, outside of any test: its time is nobody's set-up."""
        if is_audit(item) and not self._is_prepared:
            self._is_prepared = True
            self._auditor.prepare(self._selected)
        return (yield)

    def open_subtopic(self, item: pytest.Item, path: str) -> "SubtopicHandle":
        self._prove()
        return SubtopicHandle(self, item, self._auditor.audit(self.subtopics[path]))

    def open_model(self, item: pytest.Item) -> "ModelHandle":
        self._prove()
        return ModelHandle(self, item)

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
        from bbnli_audit.metrics.frame import without_texts

        funcargs = getattr(item, "funcargs", {})
        handle = funcargs.get("bbnli") or funcargs.get("bbnli_model")
        if report.when == "call" and isinstance(handle, SubtopicHandle | ModelHandle):
            payload: dict[str, Any] = {
                "model": self.info.to_dict(),
                "skill": asdict(self.skill),
                "required": handle.required,
                "usage": self._model.usage(),
                "agreement": None if self._auditor.agreement is None else asdict(self._auditor.agreement),
            }
            if isinstance(handle, SubtopicHandle) and handle.result.path not in self._sent:
                self._sent.add(handle.result.path)
                payload["result"] = handle.result.to_dict()
                frame = without_texts(handle.pairs)
                payload["pairs"] = {str(name): frame[name].tolist() for name in frame}
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
        if "result" in payload:
            import pandas as pd

            result = SubtopicResult.from_dict(payload["result"])
            frame = pd.DataFrame(payload["pairs"])
            self._gathered[result.path] = audit.SubtopicAudit(self.subtopics[result.path], result, frame)

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        required = getattr(report, "bbnli", {}).get("required", ())
        if report.skipped and any(verdict == Verdict.INCONCLUSIVE for _, _, verdict in required):
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
            self._result = audit.assemble(
                self._model_info, self._skill, self.suites, self.thresholds, audits, self._agreement, self._required
            )
            if self.report_folder is not None:
                self._write_files(session, self._result)
        if session.exitstatus == pytest.ExitCode.OK:
            self._trouble = self._why_not_green()
            if self._trouble is not None:
                is_nothing = self._result is None
                session.exitstatus = pytest.ExitCode.USAGE_ERROR if is_nothing else pytest.ExitCode.TESTS_FAILED

    def _write_files(self, session: pytest.Session, result: AuditResult) -> None:
        import pandas as pd

        from bbnli_audit.metrics.frame import with_texts

        assert self.report_folder is not None
        frames = []
        for row in result.subtopics:
            found = self._gathered[row.path]
            suite = next(suite for suite in self.suites if suite.name == found.subtopic.suite)
            frames.append(with_texts(found.frame, suite.items(found.subtopic).usable))
        try:
            write_files(result, pd.concat(frames), self.report_folder)
        except AuditError as exc:
            self._trouble = str(exc)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _why_not_green(self) -> str | None:
        """Say why a run in which no test failed still must not pass."""
        if self._result is None:
            return f"a model was given ({self.model}), but no pair was audited: no test with the fixture `bbnli` ran."
        if not self._result.is_competent:
            return "the model is not competent, so nothing has passed (see Competence above)."
        verdicts = [judgement.verdict for row in self._result.subtopics for judgement in self._result.required_of(row)]
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
            if self.excluded:
                write(f"Left out by --bbnli-exclude: {', '.join(self.excluded)}.")
            n_missing = len(self.subtopics) - len(self._result.subtopics)
            if n_missing:
                write(f"{n_missing} of {len(self.subtopics)} subtopics were not audited (not selected, or in error).")
            if self.report_folder is not None and self._trouble is None:
                write(f"Report: {self.report_folder}")
        for line in self._model.summary():
            write(line)
        if self._trouble is not None:
            write(f"ERROR: {self._trouble}", red=True)

    def record(self, item: pytest.Item, **figures: object) -> None:
        """Put figures into the JUnit file; `user_properties` survive xdist."""
        if self._has_properties:
            item.user_properties.extend((f"bbnli_{name}", figure) for name, figure in figures.items())


def _as_text(excinfo: "pytest.ExceptionInfo[BaseException]") -> Any:
    """Show our own errors as their text alone: the traceback would lead into this package."""
    shown = excinfo.getrepr(style="value", chain=False)
    if shown.reprcrash is not None:
        # What `pytest -rf` prints behind the test's name; the path is in the name already.
        first = str(excinfo.value).partition("\n")[0]
        shown.reprcrash.message = first.partition(": ")[2] or first
    return shown
