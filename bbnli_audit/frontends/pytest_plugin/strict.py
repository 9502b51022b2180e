"""With --bbnli-strict, only the whole gate passes: all subtopics and all limits of the threshold file (docs/ci.md)."""

import os
from collections.abc import Iterator

import pytest

from bbnli_audit.audit.audit import Audit
from bbnli_audit.audit.gate.idle import find_idle_limits
from bbnli_audit.core.errors import OptionError, list_some
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.words import counted
from bbnli_audit.models.served.server_client import BASE_URL_VARIABLE, SERVED
from bbnli_audit.suites.sizes import FULL

_DRY = {
    "collectonly": "--collect-only",
    "setupplan": "--setup-plan",
    "setuponly": "--setup-only",
    "showfixtures": "--fixtures",
    "show_fixtures_per_test": "--fixtures-per-test",
    "markers": "--markers",
    "cacheshow": "--cache-show",
}


def check_start(config: pytest.Config, audit: Audit) -> None:
    """Refuse a run that cannot be the whole gate, before it starts."""
    for name, option in _DRY.items():
        if config.getoption(name, default=False):
            raise _refuse(f"{option} audits nothing")
    address = os.environ.get(BASE_URL_VARIABLE)
    if address and audit.options.base_url is None and str(audit.options.model).startswith(SERVED):
        problem = f"the environment variable {BASE_URL_VARIABLE} says where the model is served"
        raise _refuse(problem, "Write --bbnli-base-url in the command, or bbnli_base_url in pytest's settings.")
    if audit.excluded:
        raise _refuse(f"--bbnli-exclude leaves out {', '.join(audit.excluded)}")
    if audit.items.size != FULL:
        raise _refuse(f"--bbnli-size={audit.items.size} audits a part of the pairs")


def find_gaps(audit: Audit, result: AuditResult, fewer: str | None) -> Iterator[str]:
    """Say what a run lacks to be the whole gate. `fewer` is the message about deselected audits, if there are any."""
    missing = result.settings.not_audited
    if missing:
        n_all = len(audit.items.subtopics)
        yield f"{len(missing)} of {n_all} subtopics were not audited ({list_some(missing)})"
    if fewer is not None:
        yield fewer
    if result.comparison is not None and audit.regressions is not None:
        regressions = result.comparison.regressions
        compared = {(one.path, one.measure) for one in regressions if one.verdict is not Verdict.NO_DATA}
        asked = audit.regressions.tests(audit.subtopics)
        lacking = [f"{path} {measure}" for path, measure in asked if (path, measure) not in compared]
        if lacking:
            yield f"not compared with the baseline: {counted(len(lacking), 'measure')} ({list_some(lacking)})"
    idle = find_idle_limits(result)
    if idle:
        yield f"nothing can cross some limits: {list_some(idle)}"


def _refuse(problem: str, advice: str = "Give only one of the two options.") -> OptionError:
    return OptionError(f"--bbnli-strict asks for the whole audit, but {problem}. {advice}")
