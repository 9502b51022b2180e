"""Finds the extensions of the project in the working folder, from its conftest.py or from installed packages."""

from pathlib import Path
from typing import Any

from bbnli_audit.audit.extensions import Extensions, from_hooks, join_extensions
from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Pairing
from bbnli_audit.suites.protocol import Suite, check_suite
from bbnli_audit.suites.registry import ALIASES, BUILT_IN, DIVISIONS, open_suite

AUDITS = Path("audits")
IN_PACKAGE = (*BUILT_IN, *DIVISIONS, *ALIASES)  # names of suites


def find_extensions() -> Extensions:
    """Load the project's conftest.py as pytest would, and join its extensions with those of installed packages."""
    found = _ask_hooks([str(AUDITS)] if AUDITS.is_dir() else [])
    if found is None:
        raise OptionError("pytest could not load this project (see above), so its own suites are not known.")
    extensions = join_extensions(found)
    for suite in extensions.suites:
        check_suite(suite)
    return extensions


def _ask_hooks(folders: list[str]) -> tuple[object, ...] | None:
    """Start pytest, and stop before collection. Return what the project's hooks gave, or None if pytest failed."""
    import pytest  # commands must start fast

    found: list[tuple[object, ...]] = []

    class Listener:
        @pytest.hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config: pytest.Config) -> int:
            suites = config.hook.pytest_bbnli_suites(config=config)
            try:
                found.append(from_hooks(suites, config.hook.pytest_bbnli_extensions(config=config)))
            except SuiteError as exc:
                raise pytest.UsageError(str(exc)) from exc
            return 0

    # Pytest warns that the plugin was imported before pytest started. In a project that turns warnings into errors,
    # the warning would end the command.
    quiet = "ignore::pytest.PytestAssertRewriteWarning"
    pytest.main(["-p", "no:cacheprovider", "-W", quiet, *folders], plugins=[Listener()])
    return found[0] if found else None


def find_suite(name: str, data: Path | None = None, pairing: Pairing | None = None) -> Suite:
    """Open a suite of the package or of the project. pytest is started only for a suite that is not in the package."""
    if name in IN_PACKAGE:
        return open_suite(name, data, pairing)
    others: dict[str, Any] = {suite.name: suite for suite in find_extensions().suites}
    return open_suite(name, data, pairing, others)
