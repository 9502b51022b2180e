"""The pytest plugin: options, markers, fixtures, and nothing that costs time in a project that does not audit.

Only the standard library and pytest are imported here; the work is in `session`, loaded when a model is given.
"""

import argparse
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bbnli_audit.frontends.pytest_plugin.handles import AnswersHandle, ModelHandle, RegressionHandle, SubtopicHandle
    from bbnli_audit.frontends.pytest_plugin.session import AuditSession

HOW = "give one: pytest --model=CHECKPOINT"
_FIXTURES = ("bbnli", "bbnli_model", "bbnli_answers", "bbnli_regression")

# name, argparse settings. Each but the flags is also an ini key: --bbnli-data is bbnli_data.
_OPTIONS: dict[str, dict[str, str]] = {
    "--bbnli-model": {
        "metavar": "CHECKPOINT",
        "help": "audit this model: a checkpoint's folder, a name on the hub, demo, openai:NAME (served), "
        "predictions:FILE (stored probabilities), module:callable, or planted:KIND",
    },
    "--bbnli-also": {
        "metavar": "CHECKPOINT",
        "help": "read the same pairs with a second model too, and say how far the two agree; held to no limit",
    },
    "--bbnli-thresholds": {
        "metavar": "FILE",
        "help": "the limits (default: thresholds.yaml in the root folder)",
    },
    "--bbnli-suite": {
        "metavar": "NAMES",
        "help": "what to audit: bbnli (default), occupations, winoqueer, with commas between; or all",
    },
    "--bbnli-data": {
        "metavar": "DIR",
        "help": "data of the suite in the published format (default: the package's own); NAME=PATH,... for several",
    },
    "--bbnli-pairing": {
        "metavar": "HOW",
        "help": "where groups are exchanged: both (premise and hypothesis, default) or hypothesis",
    },
    "--bbnli-exclude": {"metavar": "PATHS", "help": "leave out subtopics: paths or patterns, with commas between"},
    "--bbnli-labels": {"metavar": "A,B,C", "help": "what the model's outputs mean, in their order"},
    "--bbnli-device": {"metavar": "DEVICE", "help": "auto (default), cpu, cuda, cuda:N"},
    "--bbnli-dtype": {"metavar": "TYPE", "help": "fp32 (exact, default); bf16, fp16 or int8, checked against fp32"},
    "--bbnli-backend": {"metavar": "NAME", "help": "torch (default) or onnx (ONNX Runtime, checked against torch)"},
    "--bbnli-max-disagreement": {
        "metavar": "SHARE",
        "help": "refuse a fast path that changes more than this share of the labels (default: 0.01)",
    },
    "--bbnli-engine": {"metavar": "NAME", "help": "local (default) or ray"},
    "--bbnli-ray-address": {"metavar": "ADDRESS", "help": "an existing Ray cluster (default: one on this machine)"},
    "--bbnli-prompt": {
        "metavar": "NAME",
        "help": "ask a causal language model: true or entailed (the paper's), or one of --bbnli-prompts; without it "
        "the likelihoods of the two sides are compared",
    },
    "--bbnli-also-prompt": {
        "metavar": "NAME",
        "help": "ask the model with this prompt too, and measure how many answers change",
    },
    "--bbnli-prompts": {"metavar": "FILE", "help": "prompts of your own: a YAML file of names and templates"},
    "--bbnli-answers": {"metavar": "HOW", "help": "read answers from their text (default) or their first-token"},
    "--bbnli-base-url": {"metavar": "URL", "help": "where openai:NAME is served (any OpenAI-compatible server)"},
    "--bbnli-store": {
        "metavar": "FILE",
        "help": "keep predictions there (default: predictions.sqlite in pytest's cache folder)",
    },
    "--bbnli-baseline": {
        "metavar": "FILE",
        "help": "an earlier result.json: also test that no measure grew by more than the margin since",
    },
    "--bbnli-save-baseline": {
        "metavar": "FILE",
        "help": "keep the result of this run there, as a later baseline; one that is there is replaced only by a run "
        "that passed",
    },
    "--bbnli-report": {"metavar": "DIR", "help": "write report.html, result.json, the pairs and more there"},
}
_PATH_OPTIONS = tuple(
    name for name, settings in _OPTIONS.items() if settings["metavar"] in ("CHECKPOINT", "FILE", "DIR")
)

# Tells audits from other tests on their reports; no folder, test or marker of a project bears that name.
_AUDIT_KEYWORD = "bbnli_audit:is_audit"
_session_key: "pytest.StashKey[AuditSession]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bbnli", "bias audit (bbnli-audit)")
    for name, settings in _OPTIONS.items():
        group.addoption(name, **settings)
        parser.addini(name.removeprefix("--").replace("-", "_"), f"{name} unless given: {settings['help']}")
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
    spelled = join_values([str(arg) for arg in given.args])
    if spelled != [str(arg) for arg in given.args]:
        # `--bbnli-data DIR`: pytest has not known our options when it looked for its root folder, so it took DIR for
        # a test path and moved the root there, away from the project's settings. Start again with --bbnli-data=DIR.
        raise SystemExit(pytest.main(spelled, plugins=given.plugins))
    result = yield
    # After the conftests, and only when it is written, so that a project or plugin that owns --model keeps it, also in
    # a conftest that is loaded later.
    if any(str(arg).split("=")[0] in ("--model", "--help", "-h") for arg in args):
        with suppress(ValueError, argparse.ArgumentError):
            parser.getgroup("bbnli").addoption(
                "--model", dest="bbnli_model", metavar="CHECKPOINT", help="the same as --bbnli-model"
            )
    return result


def join_values(args: list[str]) -> list[str]:
    """Write our options as --option=PATH where a path follows them after a space."""
    joined: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if rest and arg in (*_PATH_OPTIONS, "--model") and _is_value(arg, rest[0]):
            arg = f"{arg}={rest.pop(0)}"
        joined.append(arg)
    return joined


def _is_value(option: str, value: str) -> bool:
    # --model may be somebody else's flag without a value: only a checkpoint is surely meant for us.
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


def get_setting(config: pytest.Config, name: str) -> str | None:
    """Read an option, or the ini key of the same name."""
    option = config.getoption(f"bbnli_{name}", None)
    if option is not None and not str(option).strip():
        raise pytest.UsageError(
            f"--bbnli-{name.replace('_', '-')} (or --model) is empty. Give a value, or leave the option out."
        )
    value = option or config.getini(f"bbnli_{name}")
    return str(value) if value else None


def pytest_itemcollected(item: pytest.Item) -> None:
    if is_audit(item):
        item.add_marker("bbnli")
        item.keywords[_AUDIT_KEYWORD] = True


def is_audit(item: pytest.Item) -> bool:
    return any(fixture in getattr(item, "fixturenames", ()) for fixture in _FIXTURES)


@pytest.fixture
def bbnli(request: pytest.FixtureRequest) -> "SubtopicHandle":
    """One subtopic, measured: `bbnli.require("pro_rate")` holds it to its limit."""
    session = _get_session(request)
    if not hasattr(request, "param"):
        raise pytest.UsageError("The fixture `bbnli` is one subtopic: make it an argument of the test itself.")
    return session.open_subtopic(request.node, request.param)


@pytest.fixture
def bbnli_model(request: pytest.FixtureRequest) -> "ModelHandle":
    """The model, proved: `bbnli_model.require_competence()` holds it to the limit on the controls."""
    return _get_session(request).open_model(request.node)


@pytest.fixture
def bbnli_answers(request: pytest.FixtureRequest) -> "AnswersHandle":
    """How a model that is asked answers in one subtopic: `bbnli_answers.require()` holds it to its limit."""
    session = _get_session(request)
    if not hasattr(request, "param"):
        raise pytest.UsageError("The fixture `bbnli_answers` is one measure: make it an argument of the test itself.")
    return session.open_answers(request.node, request.param)


@pytest.fixture
def bbnli_regression(request: pytest.FixtureRequest) -> "RegressionHandle":
    """One measure of one subtopic against the baseline: `bbnli_regression.require()` holds its growth to the margin."""
    session = _get_session(request)
    if not hasattr(request, "param"):
        raise pytest.UsageError("The fixture `bbnli_regression` is one comparison: make it an argument of the test.")
    return session.open_regression(request.node, request.param)


def _get_session(request: pytest.FixtureRequest) -> "AuditSession":
    session = request.config.stash.get(_session_key, None)
    if session is None:
        pytest.skip(f"no model to audit; {HOW}")
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
