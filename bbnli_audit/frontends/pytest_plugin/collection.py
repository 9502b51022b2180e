"""Subtopics become tests."""

from collections.abc import Generator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest

from bbnli_audit.audit.audit import Audit
from bbnli_audit.audit.regressions import Test
from bbnli_audit.core.errors import suggest
from bbnli_audit.suites.registry import BUILT_IN

SUBTOPIC, ANSWERS, REGRESSION = "bbnli", "bbnli_answers", "bbnli_regression"


class Collection:
    """Decides which tests there are."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if SUBTOPIC in metafunc.fixturenames:
            paths = self._paths_of(metafunc)
            _parametrize(metafunc, SUBTOPIC, dict(zip(paths, paths, strict=True)))
        if REGRESSION in metafunc.fixturenames:
            regressions = self._audit.regressions
            tests = [] if regressions is None else regressions.tests(self._paths_of(metafunc))
            _parametrize(metafunc, REGRESSION, _with_ids(tests))
        if ANSWERS in metafunc.fixturenames:
            tests = self._audit.answer_tests(self._paths_of(metafunc))
            _parametrize(metafunc, ANSWERS, _with_ids(tests))

    def _paths_of(self, metafunc: pytest.Metafunc) -> list[str]:
        """Return the subtopics of a test: those that its marker names, or all. None of a suite that is not audited."""
        known = self._audit.subtopics
        patterns = [str(pattern) for mark in metafunc.definition.iter_markers("bbnli") for pattern in mark.args]
        paths = [path for path in known if not patterns or any(fnmatchcase(path, pattern) for pattern in patterns)]
        if not paths and not self._are_of_other_suites(patterns):
            raise pytest.Collector.CollectError(
                f"{metafunc.definition.nodeid}: bbnli({', '.join(map(repr, patterns))}) names no subtopic. "
                f"{suggest(patterns[0], known)}"
            )
        return paths

    def _are_of_other_suites(self, patterns: Sequence[str]) -> bool:
        """Tell whether patterns name suites of the package that this run leaves out."""
        left_out = set(BUILT_IN) - {suite.name for suite in self._audit.items.suites}
        return bool(patterns) and all(pattern.partition("/")[0] in left_out for pattern in patterns)

    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makeitem(self) -> Generator[None, Any, Any]:
        """Leave out tests with nothing to audit: regressions without a baseline, answers of a model that is not asked.

        Also those of suites that are not audited. They were given None as their only parameter.
        """
        found = yield
        return [item for item in found if not _is_idle(item)] if isinstance(found, list) else found

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        path = path_of(item)
        if path is not None:
            # `-k black_people_use_drugs`: the published file names work beside the papers' names.
            item.extra_keyword_matches.update(self._audit.subtopics[path].aliases)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep the tests of a subtopic on one worker, so that its pairs are predicted once."""
        if config.getvalue("dist") != "load":
            return None
        from bbnli_audit.frontends.pytest_plugin.scheduling import SubtopicScheduling

        return SubtopicScheduling(config, log, self._audit.subtopics)


def _with_ids(tests: Sequence[Test]) -> dict[str, Test]:
    """Name tests as `bbnli/gender/man_is_to_programmer-pro`."""
    from bbnli_audit.measures.registry import find_measure

    return {f"{path}-{find_measure(measure).short}": (path, measure) for path, measure in tests}


def _parametrize(metafunc: pytest.Metafunc, fixture: str, parameters: dict[str, Any]) -> None:
    parameters = parameters or {"none": None}
    metafunc.parametrize(fixture, list(parameters.values()), indirect=True, ids=list(parameters))


def _params(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _is_idle(item: pytest.Item) -> bool:
    return any(name in _params(item) and _params(item)[name] is None for name in (SUBTOPIC, ANSWERS, REGRESSION))


def regression_of(item: pytest.Item) -> Test | None:
    """Return the comparison that a test is about."""
    return _params(item).get(REGRESSION)


def path_of(item: pytest.Item) -> str | None:
    """Return the subtopic that a test is about."""
    params = _params(item)
    test = params.get(REGRESSION) or params.get(ANSWERS)
    return params.get(SUBTOPIC) if test is None else test[0]
