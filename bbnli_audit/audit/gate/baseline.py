"""Compares a run with an earlier result, the baseline, to find measures that grew by more than the margin."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bbnli_audit.audit.gate.compared import Shown, is_same_where_shared
from bbnli_audit.audit.gate.growth import EXTRA_MEASURES, MEASURES, Rule, Test, compare_pairs, list_tests
from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Comparison, LoosenedLimit, Regression
from bbnli_audit.core.results.file import dump, load, read_result
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import level_of
from bbnli_audit.measures.readings.kinds import ANSWERS, reading_of
from bbnli_audit.measures.registry import find_measure


class Regressions:
    """Compares a run with the result that --bbnli-baseline names."""

    def __init__(self, path: Path, source: str, rule: Rule) -> None:
        self.source = source  # the name of the file in messages and results
        try:
            self.result = read_result(path)
        except ResultError as exc:
            raise ResultError(f"--bbnli-baseline: {exc}") from exc
        self._rule = rule
        check_baseline(self.result, f"--bbnli-baseline={source}")
        self._selected: Sequence[Test] = ()
        self._compared: dict[Test, Regression] | None = None
        self._found: dict[Test, Regression] = {}  # comparisons that tests asked for
        self.n_tests = 0

    def tests(self, paths: Iterable[str]) -> list[Test]:
        """List the tests of some subtopics and of the levels above them."""
        return list_tests(paths, find_extra_measures(self.result))

    def select(self, tests: Sequence[Test]) -> None:
        """Record the tests of this run. Holm's correction covers them all, whichever process runs them."""
        self._selected, self.n_tests = tests, len(tests)

    def compare(self, test: Test, model: ModelInfo, collect: Callable[[], Shown], *, is_competent: bool) -> Regression:
        """Return the comparison of one test. Holm's correction needs all tests, so the first call compares all."""
        if self._compared is None:
            check_kinds(model, self.result.model, f"--bbnli-baseline={self.source}")
            found = compare_with(self.result, self._selected, model, collect(), self._rule, is_competent=is_competent)
            self._compared = {(regression.path, regression.measure): regression for regression in found}
        self._found[test] = self._compared[test]
        return self._compared[test]

    def below(self, regression: Regression) -> list[Regression]:
        """Return the comparisons of the subtopics below a suite or domain, the largest growth first.

        Only subtopics in which the measure of `regression` grew are included.
        """
        found = [
            each
            for (path, measure), each in (self._compared or {}).items()
            if level_of(path) == "subtopic"
            and path.startswith(f"{regression.path}/")
            and measure == regression.measure
            and (each.increase.value or 0.0) > 0
        ]
        return sorted(found, key=lambda each: (-(each.increase.value or 0.0), each.path))

    def pack(self, regression: Regression) -> dict[str, Any]:
        return {"regression": dump(regression), "n_tests": self.n_tests}

    def unpack(self, packed: dict[str, Any]) -> None:
        regression = load(Regression, packed["regression"])
        self._found[regression.path, regression.measure] = regression
        self.n_tests = self.n_tests or packed["n_tests"]

    def comparison(self, result: AuditResult) -> Comparison | None:
        if not self._found:
            return None
        return compare_results(result, self.result, self.source, self._found.values(), self.n_tests)


def check_baseline(baseline: AuditResult, source: str) -> None:
    """Refuse the baseline of a model that could not do the task: any competent model would look worse."""
    if not baseline.is_competent:
        raise ResultError(
            f"{source}: {baseline.model.name} was not competent, so it had little chance to show bias, and any model "
            "that does the task would look worse. Give the result of a model that passed the competence limit."
        )


def find_extra_measures(baseline: AuditResult) -> dict[str, tuple[str, ...]]:
    """Return, for each subtopic, those of EXTRA_MEASURES for which the baseline has the data.

    Results of earlier versions have no facts. With such a baseline, the growth of the fact gap is unknown.
    """
    holders = {"fact_gap": baseline.facts}
    return {
        row.path: tuple(
            name for name in EXTRA_MEASURES if name in row.measures and row.path in holders.get(name, baseline.pairs)
        )
        for row in baseline.subtopics
    }


def check_kinds(candidate: ModelInfo, baseline: ModelInfo, source: str) -> None:
    """Refuse to compare likelihoods with answers, or a yes-or-no answer with an answer of three labels.

    In the cells, "no" counts as neutral, the correct label. But "no" may also mean contradiction, which is an error.
    """
    readings = [reading_of(model.kind) for model in (candidate, baseline)]
    problem = None
    if readings[0].has_task != readings[1].has_task:
        problem = "likelihoods cannot be compared with answers"
    elif (readings[0] is ANSWERS) != (readings[1] is ANSWERS):
        problem = "a no cannot be compared with neutral or contradiction"
    if problem is not None:
        kinds = f"is of the kind {baseline.kind}, and {candidate.name} is of the kind {candidate.kind}"
        raise ResultError(f"{source}: {baseline.name} {kinds}: {problem}. Give the result of a model of one kind.")


def compare_with(
    baseline: AuditResult, tests: Sequence[Test], model: ModelInfo, shown: Shown, rule: Rule, *, is_competent: bool
) -> list[Regression]:
    """Compare a model's findings with the baseline.

    If the model has the fingerprint of the baseline's model and answers as before, nothing has grown. A served model
    may keep its fingerprint and still change its answers. Such a model is compared like any other.
    """
    earlier = Shown.of(baseline)
    is_same = model.fingerprint == baseline.model.fingerprint and is_same_where_shared(shown, earlier)
    return compare_pairs(tests, shown, earlier, rule, is_competent=is_competent, is_unchanged=is_same)


def compare(candidate: AuditResult, baseline: AuditResult, rule: Rule, source: str) -> Comparison:
    """Compare all subtopics of two results; `source` names the baseline in messages."""
    check_baseline(baseline, source)
    check_kinds(candidate.model, baseline.model, source)
    tests = list_tests((row.path for row in candidate.subtopics), find_extra_measures(baseline))
    is_competent = candidate.is_competent
    found = compare_with(baseline, tests, candidate.model, Shown.of(candidate), rule, is_competent=is_competent)
    return compare_results(candidate, baseline, source, found, len(tests))


def compare_results(
    candidate: AuditResult, baseline: AuditResult, source: str, regressions: Iterable[Regression], n_tests: int
) -> Comparison:
    """Make a Comparison from the tests of a run: add how many pairs are shared, and which limits were loosened."""
    ours, theirs = (
        {(path, pair_id) for path, found in result.pairs.items() for ids in found.values() for pair_id in ids}
        for result in (candidate, baseline)
    )
    audited = {row.path for row in candidate.subtopics}
    theirs = {key for key in theirs if key[0] in audited}
    order = (*MEASURES, *EXTRA_MEASURES)
    found = sorted(regressions, key=lambda one: (one.path.count("/"), one.path, order.index(one.measure)))
    is_same_model = candidate.model.fingerprint == baseline.model.fingerprint
    return Comparison(
        baseline=baseline.model,
        source=source,
        is_same_data=sorted(candidate.suites, key=str) == sorted(baseline.suites, key=str),
        n_shared=len(ours & theirs),
        n_only_candidate=len(ours - theirs),
        n_only_baseline=len(theirs - ours),
        n_tests=n_tests,
        regressions=tuple(found),
        loosened=tuple(_loosened(candidate, baseline)),
        is_unchanged=is_same_model and all(one.increase.high in (0.0, None) for one in found),
    )


def _loosened(candidate: AuditResult, baseline: AuditResult) -> Iterable[LoosenedLimit]:
    earlier = {(row.path, j.measure): j.limit for row in baseline.all_rows for j in row.verdicts}
    for row in candidate.all_rows:
        for judgement in row.verdicts:
            before = earlier.get((row.path, judgement.measure))
            if before is not None and find_measure(judgement.measure).excess(judgement.limit, before) > 0:
                yield LoosenedLimit(row.path, judgement.measure, before, judgement.limit, judgement.source)
