"""The pytest plugin: its options, markers and fixtures.

Nothing heavy is imported here, so a project that does not audit loses no time. The work is in `session`, which is
loaded only when a model is given.
"""

import argparse
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bbnli_audit.core.options import find_options
from bbnli_audit.frontends.pytest_plugin.addopts import turns_strict_off
from bbnli_audit.frontends.pytest_plugin.exit_code import ExitGuard, decided_key, is_green, restarted_key
from bbnli_audit.frontends.pytest_plugin.settings import get_setting, is_audit, is_strict, spell
from bbnli_audit.frontends.pytest_plugin.without_model import (
    AUDIT_KEYWORD,
    WithoutModel,
    how_to_give_one,
    model_is_taken,
)

if TYPE_CHECKING:
    from bbnli_audit.frontends.pytest_plugin import handles
    from bbnli_audit.frontends.pytest_plugin.session import AuditSession

_session_key: "pytest.StashKey[AuditSession]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bbnli", "bias audit (bbnli-audit)")
    for name, option in find_options().items():
        group.addoption(spell(name), metavar=option.metavar, help=option.help)
        parser.addini(f"bbnli_{name}", f"{spell(name)} unless given: {option.help}")
    group.addoption("--bbnli-no-store", action="store_true", help="neither use nor keep stored predictions")
    group.addoption("--bbnli-reveal", action="store_true", help="show the sentences of the suites in the output")
    whole = "pass only if the whole audit ran: all subtopics and limits, nothing deselected (docs/ci.md)"
    group.addoption("--bbnli-strict", action="store_true", help=whole)
    parser.addini("bbnli_strict", f"as --bbnli-strict: {whole}", type="bool", default=False)
    told = "write figures as properties into the JUnit file"
    parser.addini("bbnli_junit_properties", told, type="bool", default=True)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from bbnli_audit.frontends.pytest_plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    config = early_config
    ours = {spell(name) for name, option in find_options().items() if option.metavar in ("CHECKPOINT", "FILE", "DIR")}
    _restart_if_joined(config, args, ours)
    try:
        result = yield
    except SystemExit as exc:
        if is_green(exc.code) and _names_audit(config, args):
            raise pytest.UsageError("a conftest ended the run before it began, so nothing was audited.") from exc
        raise
    config.pluginmanager.register(ExitGuard(config))
    # Our --model is added after the first conftests are loaded, so that a project or plugin with its own --model keeps
    # it. A conftest that is loaded later may define --model too. So ours is added only if the command line has --model
    # or --help.
    if any(str(arg).split("=")[0] in ("--model", "--help", "-h") for arg in args):
        told = "the same as --bbnli-model"
        try:
            parser.getgroup("bbnli").addoption("--model", dest="bbnli_model", metavar="CHECKPOINT", help=told)
        except (ValueError, argparse.ArgumentError):
            early_config.stash[model_is_taken] = True
            return result
        _restart_if_joined(config, args, {"--model"})
    return result


def _names_audit(config: pytest.Config, args: list[str]) -> bool:
    """Whether arguments ask for an audit. They are read as plain text, because pytest has not parsed them yet.

    `--model` counts only if the start folder has a thresholds.yaml: another project may have an option `--model`.
    """
    has_limits = (config.invocation_params.dir / "thresholds.yaml").exists()
    ours = ("--bbnli-model", "--bbnli-strict", *(["--model"] if has_limits else []))
    return any(str(arg).split("=")[0] in ours for arg in args)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> "int | pytest.ExitCode | None":
    """If pytest was started again, return the exit code of the second run, and run nothing here."""
    return config.stash.get(restarted_key, None)


def _restart_if_joined(config: pytest.Config, args: list[str], options: set[str]) -> None:
    """If an option and its path are two arguments, start pytest again with the two joined by `=`.

    pytest does not know our options yet when it looks for its root folder. So it takes the DIR of `--bbnli-data DIR`
    for a test path, and may choose a root folder that does not have the project's settings.
    """
    given = [str(arg) for arg in config.invocation_params.args]
    spelled = join_values(given, options)
    if spelled != given:
        config.stash[restarted_key] = pytest.main(spelled, plugins=config.invocation_params.plugins)
        # What remains of this first run must not load or refuse anything.
        config.known_args_namespace.noconftest = True
        args.clear()


def join_values(args: list[str], options: set[str]) -> list[str]:
    """Turn `--option PATH` into `--option=PATH` if PATH exists."""
    joined: list[str] = []
    for arg in args:
        option = joined[-1] if joined and joined[-1] in options else None
        # In another project --model may be a flag. So the next argument is joined only if it is a checkpoint's folder.
        if option is not None and Path(arg, "config.json" if option == "--model" else "").exists():
            joined[-1] = f"{option}={arg}"
        else:
            joined.append(arg)
    return joined


def pytest_configure(config: pytest.Config) -> None:
    told = "a bias audit; on a test with the fixture `bbnli` it may name the subtopics, as in bbnli('bbnli/gender/*')"
    config.addinivalue_line("markers", f"bbnli(*patterns): {told}")
    if not is_strict(config) and turns_strict_off(config):
        problem = "the environment variable PYTEST_ADDOPTS replaces pytest's settings, which ask for --bbnli-strict"
        advice = "Put the contents of the variable into the command, where everybody sees them."
        raise pytest.UsageError(f"{problem}. {advice}")
    # Register parts without a name. `-p no:NAME` would switch off a part with a name, and the run might pass.
    if not get_setting(config, "model"):
        if config.getoption("bbnli_strict"):
            raise pytest.UsageError(f"--bbnli-strict: no model was given; {how_to_give_one(config)}")
        config.pluginmanager.register(WithoutModel(config))
        return
    from bbnli_audit.core.errors import AuditError, telling_system_errors
    from bbnli_audit.frontends.pytest_plugin.session import AuditSession

    try:
        with telling_system_errors():
            session = config.stash[_session_key] = config.stash[decided_key] = AuditSession(config)
    except AuditError as exc:
        raise pytest.UsageError(str(exc)) from exc
    config.pluginmanager.register(session)


def pytest_itemcollected(item: pytest.Item) -> None:
    if is_audit(item):
        item.add_marker("bbnli")
        item.keywords[AUDIT_KEYWORD] = True


@pytest.fixture
def bbnli(request: pytest.FixtureRequest) -> "handles.SubtopicHandle":
    """One subtopic, measured: `bbnli.require("pro_rate")` holds its pro_rate to the limit."""
    return _get_session(request, "one subtopic").open_subtopic(request.node, request.param)


@pytest.fixture
def bbnli_model(request: pytest.FixtureRequest) -> "handles.ModelHandle":
    """The model, checked: `bbnli_model.require_competence()` fails if the model is not competent."""
    return _get_session(request).open_model(request.node)


@pytest.fixture
def bbnli_answers(request: pytest.FixtureRequest) -> "handles.AnswersHandle":
    """A measure of a prompted model's answers, in one subtopic: `bbnli_answers.require()` holds it to its limit."""
    return _get_session(request, "one measure").open_answers(request.node, request.param)


@pytest.fixture
def bbnli_suite(request: pytest.FixtureRequest) -> "handles.OneMeasureHandle":
    """A measure that a suite brings, in one subtopic: `bbnli_suite.require()` holds it to its limit."""
    return _get_session(request, "one measure").open_measure(request.node, request.param)


@pytest.fixture
def bbnli_level(request: pytest.FixtureRequest) -> "handles.LevelHandle":
    """One measure of a whole domain or suite: `bbnli_level.require()` holds it to its limit under `levels`."""
    return _get_session(request, "one limit").open_level(request.node, request.param)


@pytest.fixture
def bbnli_regression(request: pytest.FixtureRequest) -> "handles.RegressionHandle":
    """One measure of a subtopic, domain or suite, beside its baseline: `require()` holds its growth to the margin."""
    return _get_session(request, "one comparison").open_regression(request.node, request.param)


def _get_session(request: pytest.FixtureRequest, parameter: str | None = None) -> "AuditSession":
    session = request.config.stash.get(_session_key, None)
    if session is None:
        request.node.keywords[AUDIT_KEYWORD] = True  # a test that calls getfixturevalue is not marked yet
        pytest.skip(f"no model to audit; {how_to_give_one(request.config)}")
    if parameter is not None and not hasattr(request, "param"):
        told = f"The fixture `{request.fixturename}` gives a test {parameter}"
        raise pytest.UsageError(f"{told}, so the test function itself must have it as an argument.")
    return session
