"""The pytest plugin: options, markers, fixtures, and nothing that costs time in a project that does not audit.

Nothing heavy is imported here; the work is in `session`, loaded when a model is given.
"""

import argparse
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bbnli_audit.frontends.pytest_plugin.declared import find_options, get_setting, is_audit, spell

if TYPE_CHECKING:
    from bbnli_audit.frontends.pytest_plugin.handles import (
        AnswersHandle,
        ModelHandle,
        RegressionHandle,
        SubtopicHandle,
    )
    from bbnli_audit.frontends.pytest_plugin.session import AuditSession

HOW = "give one: pytest --model=CHECKPOINT"

# Tells audits from other tests on their reports; no folder, test or marker of a project bears that name.
_AUDIT_KEYWORD = "bbnli_audit:is_audit"
_session_key: "pytest.StashKey[AuditSession]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bbnli", "bias audit (bbnli-audit)")
    for name, option in find_options().items():
        group.addoption(spell(name), metavar=option.metavar, help=option.help)
        parser.addini(f"bbnli_{name}", f"{spell(name)} unless given: {option.help}")
    group.addoption("--bbnli-no-store", action="store_true", help="neither use nor keep stored predictions")
    group.addoption("--bbnli-reveal", action="store_true", help="show the sentences of the suites in the output")
    parser.addini(
        "bbnli_junit_properties", "write figures as properties into the JUnit file", type="bool", default=True
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from bbnli_audit.frontends.pytest_plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    given = early_config.invocation_params
    ours = {spell(name) for name, option in find_options().items() if option.metavar in ("CHECKPOINT", "FILE", "DIR")}
    _restart_if_joined(given, ours)
    result = yield
    # Only when it is written, and after the conftests: a project or plugin that owns --model keeps it, also in a
    # conftest that is loaded later.
    if any(str(arg).split("=")[0] in ("--model", "--help", "-h") for arg in args):
        try:
            parser.getgroup("bbnli").addoption(
                "--model", dest="bbnli_model", metavar="CHECKPOINT", help="the same as --bbnli-model"
            )
        except (ValueError, argparse.ArgumentError):
            return result
        _restart_if_joined(given, {"--model"})
    return result


def _restart_if_joined(given: pytest.Config.InvocationParams, options: set[str]) -> None:
    """Start again with `--bbnli-data=DIR` where `--bbnli-data DIR` was written.

    pytest did not know our options when it looked for its root folder. It took DIR for a test path and moved the root
    there, away from the project's settings.
    """
    spelled = join_values([str(arg) for arg in given.args], options)
    if spelled != [str(arg) for arg in given.args]:
        raise SystemExit(pytest.main(spelled, plugins=given.plugins))


def join_values(args: list[str], options: set[str]) -> list[str]:
    """Write options as --option=PATH where a path follows them after a space."""
    joined: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if rest and arg in options and _is_value(arg, rest[0]):
            arg = f"{arg}={rest.pop(0)}"
        joined.append(arg)
    return joined


def _is_value(option: str, value: str) -> bool:
    # Of --model, which others may spell as a flag, only a checkpoint is surely the value.
    return Path(value, "config.json").is_file() if option == "--model" else Path(value).exists()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "bbnli(*patterns): a bias audit; on a test with the fixture `bbnli` it may name the subtopics, "
        "as in bbnli('bbnli/gender/*')",
    )
    config.pluginmanager.register(AuditTally(), "bbnli_audit_tally")
    if get_setting(config, "model"):
        from bbnli_audit.core.errors import AuditError
        from bbnli_audit.frontends.pytest_plugin.session import AuditSession

        try:
            session = AuditSession(config)
        except AuditError as exc:
            raise pytest.UsageError(str(exc)) from exc
        config.stash[_session_key] = session
        config.pluginmanager.register(session, "bbnli_audit_session")


def pytest_itemcollected(item: pytest.Item) -> None:
    if is_audit(item):
        item.add_marker("bbnli")
        item.keywords[_AUDIT_KEYWORD] = True


@pytest.fixture
def bbnli(request: pytest.FixtureRequest) -> "SubtopicHandle":
    """One subtopic, measured: `bbnli.require("pro_rate")` holds it to its limit."""
    return _get_session(request, "one subtopic").open_subtopic(request.node, request.param)


@pytest.fixture
def bbnli_model(request: pytest.FixtureRequest) -> "ModelHandle":
    """The model, proved: `bbnli_model.require_competence()` holds it to the limit on the controls."""
    return _get_session(request).open_model(request.node)


@pytest.fixture
def bbnli_answers(request: pytest.FixtureRequest) -> "AnswersHandle":
    """How a model that is asked answers in one subtopic: `bbnli_answers.require()` holds it to its limit."""
    return _get_session(request, "one measure").open_answers(request.node, request.param)


@pytest.fixture
def bbnli_regression(request: pytest.FixtureRequest) -> "RegressionHandle":
    """One measure of one subtopic against the baseline: `bbnli_regression.require()` holds its growth to the margin."""
    return _get_session(request, "one comparison").open_regression(request.node, request.param)


def _get_session(request: pytest.FixtureRequest, parameter: str | None = None) -> "AuditSession":
    session = request.config.stash.get(_session_key, None)
    if session is None:
        pytest.skip(f"no model to audit; {HOW}")
    if parameter is not None and not hasattr(request, "param"):
        raise pytest.UsageError(
            f"The fixture `{request.fixturename}` is {parameter}: make it an argument of the test itself."
        )
    return session


class AuditTally:
    """Sees to it that a run of nothing but audits, and without a model, is never green."""

    def __init__(self) -> None:
        self.n_audits = 0
        self.n_measured = 0
        self.n_others = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or (report.when == "setup" and not report.passed):
            if _AUDIT_KEYWORD in report.keywords:
                self.n_audits += 1
                self.n_measured += report.when == "call"
            else:
                self.n_others += 1

    @property
    def has_audited_nothing(self) -> bool:
        return self.n_audits > 0 and self.n_measured == 0 and self.n_others == 0

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.has_audited_nothing and exitstatus == pytest.ExitCode.OK and _session_key not in session.config.stash:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter", config: pytest.Config) -> None:
        if self.has_audited_nothing and _session_key not in config.stash:
            terminalreporter.write_line(f"ERROR: nothing was audited: no model was given; {HOW}", red=True)
