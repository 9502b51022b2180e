"""The baseline of a run: which regressions are tested, and what becomes of them."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bbnli_audit.audit.gate import baseline
from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.outputs import name_from
from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.results.audit import AuditResult, Cells
from bbnli_audit.core.results.comparison import Comparison, Regression
from bbnli_audit.core.results.file import dump, load, read_result
from bbnli_audit.core.results.rows import ModelInfo

Test = baseline.Test


class Regressions:
    """Compares a run with the result that --bbnli-baseline names."""

    def __init__(self, path: Path, thresholds: Thresholds, root: Path) -> None:
        self.source = name_from(path, root)
        try:
            self.result = read_result(path)
        except ResultError as exc:
            raise ResultError(f"--bbnli-baseline: {exc}") from exc
        self._rule = baseline.find_rule(thresholds)
        baseline.check_baseline(self.result, f"--bbnli-baseline={self.source}")
        self._selected: list[Test] = []
        self._compared: dict[Test, Regression] | None = None
        self._found: dict[Test, Regression] = {}  # those that were asked for
        self._n_tests = 0

    @staticmethod
    def tests(paths: Iterable[str]) -> list[Test]:
        """List the tests of some subtopics: path and measure."""
        return [(path, measure) for path in paths for measure in baseline.MEASURES]

    def select(self, tests: Sequence[Test]) -> None:
        """Note which tests this run holds: the correction is for all of them, on whichever process they run."""
        self._selected = list(tests)

    @property
    def n_tests(self) -> int:
        return len(self._selected) or self._n_tests

    @property
    def title(self) -> str:
        return f"{self.result.model.name} ({self.source})"

    def compare(
        self, test: Test, model: ModelInfo, collect_cells: Callable[[Iterable[str]], Cells], *, is_competent: bool
    ) -> Regression:
        """Compare one test. All tests of the run are compared at the first, because of the correction."""
        if self._compared is None:
            baseline.check_other_model(model, self.result.model, f"--bbnli-baseline={self.source}")
            cells = collect_cells(dict.fromkeys(path for path, _ in self._selected))
            found = baseline.compare_pairs(
                self._selected, cells, self.result.pairs, self._rule, is_competent=is_competent
            )
            self._compared = {(regression.path, regression.measure): regression for regression in found}
        self._found[test] = self._compared[test]
        return self._compared[test]

    def pack(self, regression: Regression) -> dict[str, Any]:
        return {"regression": dump(regression), "n_tests": self.n_tests}

    def unpack(self, packed: dict[str, Any]) -> None:
        regression = load(Regression, packed["regression"])
        self._found[regression.path, regression.measure] = regression
        self._n_tests = packed["n_tests"]

    def comparison(self, result: AuditResult) -> Comparison | None:
        if not self._found:
            return None
        return baseline.compare_results(result, self.result, self.source, self._found.values(), self.n_tests)
