"""The baseline of one run of pytest: which regressions are tested, and what becomes of them."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.audit import audit
from bbnli_audit.audit.gate import baseline
from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.core.errors import AuditError, OptionError, ResultError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Comparison, Regression
from bbnli_audit.core.results.file import read_result, write_result
from bbnli_audit.core.values import Subtopic

FIXTURE = "bbnli_regression"


class SessionBaseline:
    """Compares this run with the result that --bbnli-baseline names."""

    def __init__(self, path: Path, thresholds: Thresholds, root: Path) -> None:
        self.source = _name(path, root)
        self.result = _read(path)
        self._rule = baseline.find_rule(thresholds)
        baseline.check_baseline(self.result, f"--bbnli-baseline={self.source}")
        self._selected: list[baseline.Test] = []
        self._regressions: dict[baseline.Test, Regression] | None = None
        self._gathered: dict[baseline.Test, Regression] = {}
        self._n_tests = 0

    def tests(self, paths: Iterable[str]) -> dict[str, baseline.Test]:
        """Give the tests of some subtopics by the ids they have: `bbnli/gender/man_is_to_programmer-pro`."""
        return {
            f"{path}-{measure.removesuffix('_rate')}": (path, measure)
            for path in paths
            for measure in baseline.MEASURES
        }

    def select(self, items: Iterable[pytest.Item]) -> None:
        """Note which tests this run holds: the correction is for all of them, on whichever worker they run."""
        params = (item.callspec.params for item in items if hasattr(item, "callspec"))
        self._selected = [test for param in params if (test := param.get(FIXTURE)) is not None]

    def compare(self, auditor: audit.Auditor, subtopics: dict[str, Subtopic], test: baseline.Test) -> Regression:
        if self._regressions is None:
            info = auditor.predictor.info
            baseline.check_other_model(info, self.result.model, f"--bbnli-baseline={self.source}")
            found = baseline.compare_pairs(
                self._selected,
                audit.collect_cells(auditor, [subtopics[path] for path in dict.fromkeys(p for p, _ in self._selected)]),
                self.result.pairs,
                self._rule,
                is_competent=auditor.is_competent,
            )
            self._regressions = {(regression.path, regression.measure): regression for regression in found}
        return self._regressions[test]

    @property
    def title(self) -> str:
        return f"{self.result.model.name} ({self.source})"

    @property
    def n_tests(self) -> int:
        return len(self._selected) or self._n_tests

    def payload(self, regression: Regression) -> dict[str, Any]:
        return {"regression": regression.to_dict(), "n_tests": self.n_tests}

    def gather(self, payload: dict[str, Any]) -> None:
        regression = Regression.from_dict(payload["regression"])
        self._gathered[regression.path, regression.measure] = regression
        self._n_tests = payload["n_tests"]

    def comparison(self, result: AuditResult) -> Comparison | None:
        if not self._gathered:
            return None
        return baseline.compare_results(result, self.result, self.source, self._gathered.values(), self.n_tests)


class SavedBaseline:
    """Keeps the result of this run as the baseline of later ones (--bbnli-save-baseline)."""

    def __init__(self, path: Path, root: Path) -> None:
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            problem = "is a folder" if path.is_dir() else "its folder does not exist, or cannot be written to"
            raise OptionError(f"--bbnli-save-baseline={path}: {problem}. Give the name of a file.")
        self._path = path
        self._name = _name(path, root)

    def save(self, result: AuditResult, *, has_passed: bool) -> str:
        """Write the file and say so. A baseline that is there is replaced only by a run that is as good a bar.

        Raises:
            OptionError: when the file cannot be written.
        """
        reason = self._reason_to_keep(result, has_passed=has_passed)
        if reason is not None:
            return (
                f"Baseline not saved: {self._name} is kept, because {reason}. Remove it to save this run all the same."
            )
        try:
            write_result(result, self._path)
        except OSError as exc:
            raise OptionError(f"--bbnli-save-baseline={self._name}: cannot be written: {exc.strerror}.") from exc
        return (
            f"Baseline saved: {self._name} ({len(result.subtopics)} subtopics, {result.total.counts.n_pairs:,} pairs)"
        )

    def _reason_to_keep(self, result: AuditResult, *, has_passed: bool) -> str | None:
        if not self._path.exists():
            return None
        if not has_passed:
            return "this run has not passed"
        try:
            earlier = {row.path for row in read_result(self._path).subtopics}
        except AuditError:
            return "it is no result of an audit"
        missing = earlier - {row.path for row in result.subtopics}
        return f"this run lacks {len(missing)} of its subtopics" if missing else None


def _read(path: Path) -> AuditResult:
    try:
        return read_result(path)
    except ResultError as exc:
        raise ResultError(f"--bbnli-baseline: {exc}") from exc


def _name(path: Path, root: Path) -> str:
    """Name a file from the root folder: results must not name the machine they were made on."""
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.name
