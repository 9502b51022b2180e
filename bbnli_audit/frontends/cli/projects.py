"""What the project in the working folder adds: with hooks in its conftest.py, or as an installed package."""

from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.audit.extensions import Extensions, join_extensions
from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.values import Pairing
from bbnli_audit.suites.protocol import Suite, check_suite
from bbnli_audit.suites.registry import ALIASES, BUILT_IN, DIVISIONS, open_suite

AUDITS = Path("audits")


class _Listener:
    """A plugin that asks the hooks of a project, and ends the run before anything is collected."""

    def __init__(self) -> None:
        self.found: list[object] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        suites = [suite for given in config.hook.pytest_bbnli_suites(config=config) for suite in given]
        self.found = [Extensions(suites=suites), *config.hook.pytest_bbnli_extensions(config=config)]
        return 0


def find_extensions() -> Extensions:
    """Load the project's conftest.py as pytest would, and join what it adds with what is installed."""
    listener = _Listener()
    folders = [str(AUDITS)] if AUDITS.is_dir() else []
    pytest.main(["-p", "no:cacheprovider", *folders], plugins=[listener])
    if listener.found is None:
        raise OptionError("pytest could not load this project (see above), so its own suites are not known.")
    extensions = join_extensions(tuple(listener.found))
    for suite in extensions.suites:
        check_suite(suite)
    return extensions


def find_suite(name: str, data: Path | None = None, pairing: Pairing | None = None) -> Suite:
    """Open a suite of the package or of the project; pytest is asked only for names that are not ours."""
    if name in (*BUILT_IN, *DIVISIONS, *ALIASES):
        return open_suite(name, data, pairing)
    others: dict[str, Any] = {suite.name: suite for suite in find_extensions().suites}
    return open_suite(name, data, pairing, others)
