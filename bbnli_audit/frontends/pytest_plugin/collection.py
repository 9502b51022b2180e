"""Makes the audit tests: one per subtopic, or one per measure of a subtopic, a domain or a suite."""

from collections.abc import Generator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest

from bbnli_audit.audit.audit import Audit
from bbnli_audit.audit.gate.growth import Test
from bbnli_audit.core.errors import suggest
from bbnli_audit.measures.registry import find_measure

SUBTOPIC, ANSWERS, SUITE = "bbnli", "bbnli_answers", "bbnli_suite"
LEVEL, REGRESSION = "bbnli_level", "bbnli_regression"


class Collection:
    """Decides which audit tests exist."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if SUBTOPIC in metafunc.fixturenames:
            _parametrize(metafunc, SUBTOPIC, {path: path for path in self._paths_of(metafunc)})
        if REGRESSION in metafunc.fixturenames:
            given = self._audit.regressions
            tests = [] if given is None else given.tests(self._paths_of(metafunc))
            _parametrize(metafunc, REGRESSION, _with_ids(tests))
        if LEVEL in metafunc.fixturenames:
            _parametrize(metafunc, LEVEL, _with_ids(self._audit.level_tests(self._paths_of(metafunc))))
        if ANSWERS in metafunc.fixturenames:
            _parametrize(metafunc, ANSWERS, _with_ids(self._audit.answer_tests(self._paths_of(metafunc))))
        if SUITE in metafunc.fixturenames:
            _parametrize(metafunc, SUITE, _with_ids(self._audit.suite_tests(self._paths_of(metafunc))))

    def _paths_of(self, metafunc: pytest.Metafunc) -> list[str]:
        """Return the subtopics of a test: all that this run has, or those of them that the test's marker names."""
        known = self._audit.subtopics
        patterns = [str(pattern) for mark in metafunc.definition.iter_markers("bbnli") for pattern in mark.args]
        paths = [path for path in known if not patterns or any(fnmatchcase(path, pattern) for pattern in patterns)]
        left_out = self._audit.known_suites - {suite.name for suite in self._audit.items.suites}
        if not paths and not all(pattern.partition("/")[0] in left_out for pattern in patterns):
            mark = f"{metafunc.definition.nodeid}: bbnli({', '.join(map(repr, patterns))})"
            raise pytest.Collector.CollectError(f"{mark} names no subtopic. {suggest(patterns[0], known)}")
        return paths

    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makeitem(self) -> Generator[None, Any, Any]:
        """Leave out tests that have nothing to audit, for example without a baseline. Their parameter is None."""
        found = yield
        return [item for item in found if not _is_idle(item)] if isinstance(found, list) else found

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        path = path_of(item)
        if path in self._audit.subtopics:
            # With this, `-k` also finds a subtopic by its aliases.
            item.extra_keyword_matches.update(self._audit.subtopics[path].aliases)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Under --dist=load, return a scheduler that keeps the tests of a subtopic on one worker. Else return None."""
        if config.getvalue("dist") != "load":
            return None
        from bbnli_audit.frontends.pytest_plugin.scheduling import SubtopicScheduling

        return SubtopicScheduling(config, log, self._audit.subtopics)


def _with_ids(tests: Sequence[Test]) -> dict[str, Test]:
    """Name each test by its path and measure, such as `bbnli/gender/man_is_to_programmer-pro`."""
    return {f"{path}-{find_measure(measure).short}": (path, measure) for path, measure in tests}


def _parametrize(metafunc: pytest.Metafunc, fixture: str, parameters: dict[str, Any]) -> None:
    parameters = parameters or {"none": None}
    metafunc.parametrize(fixture, list(parameters.values()), indirect=True, ids=list(parameters))


def _params(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _is_idle(item: pytest.Item) -> bool:
    return any(_params(item).get(name, "") is None for name in (SUBTOPIC, ANSWERS, SUITE, LEVEL, REGRESSION))


def regression_of(item: pytest.Item) -> Test | None:
    """Return the path and measure that a test compares with the baseline. Return None if it compares nothing."""
    return _params(item).get(REGRESSION)


def path_of(item: pytest.Item) -> str | None:
    """Return the path of the subtopic, domain or suite that a test is about."""
    params = _params(item)
    test = next((params[name] for name in (REGRESSION, ANSWERS, SUITE, LEVEL) if params.get(name) is not None), None)
    return params.get(SUBTOPIC) if test is None else test[0]
