"""Handles audits when no model was given. Imports nothing heavy: projects that do not audit load this module, too."""

from collections.abc import Generator

import pytest

from bbnli_audit.core.words import counted
from bbnli_audit.frontends.pytest_plugin.settings import is_strict

# A keyword that marks the reports of audits. pytest also uses the names of folders, tests and markers as keywords; no
# folder, test or marker has this name.
AUDIT_KEYWORD = "bbnli_audit:is_audit"
model_is_taken: pytest.StashKey[bool] = pytest.StashKey()  # True if another plugin or a conftest has --model


def how_to_give_one(config: pytest.Config) -> str:
    if config.stash.get(model_is_taken, False):
        return "--model belongs to another plugin or a conftest here, so write --bbnli-model=CHECKPOINT"
    return "give one: pytest --model=CHECKPOINT"


class WithoutModel:
    """Reports skipped audits. They fail a run that is strict, and a run that has no tests besides audits."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._n_audits = 0
        self._n_others = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or (report.when == "setup" and not report.passed):
            is_left_out = AUDIT_KEYWORD in report.keywords
            self._n_audits += is_left_out
            self._n_others += not is_left_out

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        yield
        is_gate = not self._n_others or is_strict(self._config)
        if self._n_audits and is_gate and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._n_audits:
            were = "was" if self._n_audits == 1 else "were"
            skipped = f"{counted(self._n_audits, 'audit')} {were} skipped, because no model was given"
            told = f"ERROR: nothing was audited: {skipped}; {how_to_give_one(self._config)}"
            terminalreporter.write_line(told, red=True)
