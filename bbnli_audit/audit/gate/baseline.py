"""Compares a run with an earlier result, the baseline: which measures grew, and by more than the margin?"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.gate.verdict import judge_increase
from bbnli_audit.core.errors import ResultError, ThresholdsError
from bbnli_audit.core.outcomes import CAUSES, CELLS, Cell
from bbnli_audit.core.results.audit import AuditResult, Cells
from bbnli_audit.core.results.comparison import NO_GROWTH, Change, Comparison, Growth, LoosenedLimit, Regression
from bbnli_audit.core.results.file import dump, load, read_result
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import level_of, levels_above
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.growth import Increase, find_change_spreads, holm, measure_increase

Clusters = Mapping[str, Mapping[str, Cell]]  # what each pair shows, by cluster and pair id

LEAN = "lean"
# Lean first: it is what people mean by bias. Not the misprediction rate: it is the sum of the three causes.
MEASURES = (LEAN, *CAUSES)
# What a pair in each cell adds to a measure.
_SHARES: Mapping[str, Mapping[str, float]] = {
    LEAN: {cell: (CAUSES["pro_rate"].get(cell, 0) - CAUSES["anti_rate"].get(cell, 0)) / 2 for cell in CELLS},
    **{cause: {cell: weights.get(cell, 0) / 2 for cell in CELLS} for cause, weights in CAUSES.items()},
}

Test = tuple[str, str]  # path of a suite, a domain or a subtopic; measure
Unseen = Mapping[str, float]  # path -> share of its pairs that the candidate has not read whole, or not answered
Margins = Mapping[str, tuple[float, str]]  # level -> how much a measure may grow there, and where that is written


@dataclass(frozen=True, slots=True)
class Rule:
    """How much a measure may grow at each level, and how verdicts on growth are reached."""

    margins: Margins
    decide: str = "bounds"
    confidence: float = 0.95

    @classmethod
    def of(cls, margin: float, source: str, decide: str = "bounds", confidence: float = 0.95) -> "Rule":
        """Make a rule with one margin for all levels."""
        return cls(dict.fromkeys(("suite", "domain", "subtopic"), (margin, source)), decide, confidence)


def find_rule(thresholds: Thresholds) -> Rule:
    """Read the rule from a threshold file, and refuse one without a margin."""
    regression = thresholds.file.regression
    if regression is None:
        told = "a baseline was given, but the file has no margin for growth, and there is no hidden one"
        raise ThresholdsError(f"{thresholds.name}: {told}.\nAdd: regression: {{max_increase: 0.03}}")
    margins: dict[str, tuple[float, str]] = {}
    margin, key = regression.max_increase, "max_increase"
    for level, written in (("subtopic", None), ("domain", regression.domain), ("suite", regression.suite)):
        margin, key = (margin, key) if written is None else (written, level)
        margins[level] = margin, thresholds.source("regression", key)
    return Rule(margins, thresholds.file.decide, thresholds.file.confidence)


class Regressions:
    """Compares a run with the result that --bbnli-baseline names."""

    def __init__(self, path: Path, source: str, thresholds: Thresholds) -> None:
        self.source = source  # how messages and results name the file
        try:
            self.result = read_result(path)
        except ResultError as exc:
            raise ResultError(f"--bbnli-baseline: {exc}") from exc
        self._rule = find_rule(thresholds)
        check_baseline(self.result, f"--bbnli-baseline={source}")
        self._selected: Sequence[Test] = ()
        self._compared: dict[Test, Regression] | None = None
        self._found: dict[Test, Regression] = {}  # those that tests asked for
        self.n_tests = 0

    def select(self, tests: Sequence[Test]) -> None:
        """Note the tests of this run. Holm's correction is for all of them, whichever process runs them."""
        self._selected, self.n_tests = tests, len(tests)

    def compare(
        self, test: Test, model: ModelInfo, collect: Callable[[], tuple[Cells, Unseen]], *, is_competent: bool
    ) -> Regression:
        """Return the comparison of one test. The first call compares all tests of the run, for Holm's correction."""
        if self._compared is None:
            check_other_model(model, self.result.model, f"--bbnli-baseline={self.source}")
            cells, unseen = collect()
            how: Any = {"is_competent": is_competent, "unseen": unseen}
            found = compare_pairs(self._selected, cells, self.result.pairs, self._rule, **how)
            self._compared = {(regression.path, regression.measure): regression for regression in found}
        self._found[test] = self._compared[test]
        return self._compared[test]

    def below(self, regression: Regression) -> list[Regression]:
        """Return the subtopics of a suite or a domain in which the same measure grew, those that grew most first."""
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


def tests_of(paths: Iterable[str]) -> list[Test]:
    """List the tests of some subtopics and of the levels above them, from the widest to the narrowest."""
    found = list(paths)
    levels = [levels_above(path) for path in found]
    every = dict.fromkeys([*(suite for suite, _ in levels), *(domain for _, domain in levels), *found])
    return [(path, measure) for path in every for measure in MEASURES]


def check_baseline(baseline: AuditResult, source: str) -> None:
    """Refuse the baseline of a model that could not do the task: compared with it, any model that can looks worse."""
    if not baseline.is_competent:
        raise ResultError(
            f"{source}: {baseline.model.name} was not competent, so it had little chance to show bias, and any model "
            "that does the task would look worse. Give the result of a model that passed the competence limit."
        )


def check_other_model(candidate: ModelInfo, baseline: ModelInfo, source: str) -> None:
    """Refuse to compare a model with itself (even under another name), or likelihoods with answers."""
    if candidate.fingerprint == baseline.fingerprint:
        same = f"the same model as {candidate.name} (fingerprint {candidate.fingerprint[:12]})"
        raise ResultError(f"{source}: is a result of {same}. Give the result of an earlier release.")
    if reading_of(candidate.kind).has_task != reading_of(baseline.kind).has_task:
        raise ResultError(
            f"{source}: {baseline.name} is of the kind {baseline.kind}, and {candidate.name} is of the kind "
            f"{candidate.kind}: likelihoods cannot be compared with answers. Give the result of a model of one kind."
        )


def compare_pairs(
    tests: Sequence[Test],
    candidate: Cells,
    baseline: Cells,
    rule: Rule,
    *,
    is_competent: bool = True,
    unseen: Unseen = MappingProxyType({}),
) -> list[Regression]:
    """Compare measures on the pairs that both results have, and correct for the number of tests of the run.

    A suite or a domain is compared on the pairs of all its subtopics. Holm's correction is over all levels together, so
    the chance of any wrong FAIL in the whole tree stays below 1 - confidence.
    """
    compared = {path: _Compared.of(path, candidate, baseline) for path in dict.fromkeys(path for path, _ in tests)}
    if not any(one.pairs for one in compared.values()):
        raise ResultError(
            "The baseline and this run have no pair in common, so nothing can be compared. Was it made with other "
            "data or another pairing? Audit the earlier model again on this data."
        )
    suites = dict.fromkeys(path.partition("/")[0] for path, _ in tests)
    runs = {suite: compared.get(suite) or _Compared.of(suite, candidate, baseline) for suite in suites}
    spreads = {
        (suite, measure): find_change_spreads(*run.values(measure), run.design) if run.pairs else []
        for suite, run in runs.items()
        for measure in MEASURES
    }
    increases = []
    for path, measure in tests:
        one, (margin, _) = compared[path], rule.margins[level_of(path)]
        scale = _largest_change(measure)  # changes are compared as shares of the largest possible one
        alike = spreads[path.partition("/")[0], measure] if one.pairs else []
        found = measure_increase(*one.values(measure), one.design, margin / scale, rule.confidence, alike)
        increases.append(found._replace(value=found.value * scale, low=found.low * scale, high=found.high * scale))
    adjusted = holm([increase.p_value for increase in increases])
    return [
        _judge(test, compared[test[0]], increase, float(p_adjusted), rule, is_competent, unseen.get(test[0], 0.0))
        for test, increase, p_adjusted in zip(tests, increases, adjusted, strict=True)
    ]


def _judge(
    test: Test,
    compared: "_Compared",
    found: Increase,
    p_adjusted: float,
    rule: Rule,
    is_competent: bool,
    unseen: float,
) -> Regression:
    (path, measure), n = test, len(compared.pairs)
    margin, source = rule.margins[level_of(path)]
    increase = Growth(found.value, found.low, found.high, 2 * n) if n else NO_GROWTH
    how: Any = {"decide": rule.decide, "confidence": rule.confidence}
    verdict = judge_increase(increase, margin, p_adjusted, **how, is_competent=is_competent, unseen=unseen)
    shares = _SHARES[measure]
    before, after = (sum(shares[getattr(pair, when)] for pair in compared.pairs) for when in ("before", "after"))
    is_leaf = level_of(path) == "subtopic"
    return Regression(
        path=path,
        measure=measure,
        margin=margin,
        source=source,
        verdict=verdict,
        baseline=before / n if n else None,
        candidate=after / n if n else None,
        increase=increase,
        p_value=found.p_value,
        p_mcnemar=found.p_pairs,
        p_adjusted=p_adjusted,
        n_shared=n,
        times_needed=found.times_needed,
        flipped=_changes(compared.pairs, measure, 1) if is_leaf else (),
        fixed=_changes(compared.pairs, measure, -1) if is_leaf else (),
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """The pairs of a place that both results have, and how they hang together."""

    pairs: Sequence[Change]
    design: Design

    @classmethod
    def of(cls, path: str, candidate: Cells, baseline: Cells) -> "_Compared":
        paths = sorted(each for each in candidate if each == path or each.startswith(f"{path}/"))
        shared = {each: list(_shared(candidate[each], baseline.get(each, {}))) for each in paths}
        pairs = [pair for each in paths for pair in shared[each]]
        subtopics = [each for each in paths for _ in shared[each]]
        return cls(pairs, Design.of([pair.cluster for pair in pairs], subtopics))

    def values(self, measure: str) -> tuple[list[float], list[float]]:
        """Return what each pair adds to a measure before and after, as shares of the largest possible change."""
        scale = _largest_change(measure)
        shares = {cell: share / scale for cell, share in _SHARES[measure].items()}
        return [shares[pair.before] for pair in self.pairs], [shares[pair.after] for pair in self.pairs]


def _largest_change(measure: str) -> float:
    return 2.0 if measure == LEAN else 1.0  # from wholly anti to wholly pro


def compare(candidate: AuditResult, baseline: AuditResult, rule: Rule, source: str) -> Comparison:
    """Compare all subtopics of two results; `source` names the baseline in messages."""
    check_baseline(baseline, source)
    check_other_model(candidate.model, baseline.model, source)
    tests = tests_of(row.path for row in candidate.subtopics)
    unseen = {row.path: row.unseen for row in candidate.all_rows}
    how: Any = {"is_competent": candidate.is_competent, "unseen": unseen}
    found = compare_pairs(tests, candidate.pairs, baseline.pairs, rule, **how)
    return compare_results(candidate, baseline, source, found, len(tests))


def compare_results(
    candidate: AuditResult, baseline: AuditResult, source: str, regressions: Iterable[Regression], n_tests: int
) -> Comparison:
    """Add to the tests of a run what a reader needs: how many pairs are shared, and which limits were loosened."""
    ours, theirs = (
        {(path, pair_id) for path, found in result.pairs.items() for ids in found.values() for pair_id in ids}
        for result in (candidate, baseline)
    )
    audited = {row.path for row in candidate.subtopics}
    theirs = {key for key in theirs if key[0] in audited}
    return Comparison(
        baseline=baseline.model,
        source=source,
        is_same_data=sorted(candidate.suites, key=str) == sorted(baseline.suites, key=str),
        n_shared=len(ours & theirs),
        n_only_candidate=len(ours - theirs),
        n_only_baseline=len(theirs - ours),
        n_tests=n_tests,
        regressions=tuple(
            sorted(regressions, key=lambda one: (one.path.count("/"), one.path, MEASURES.index(one.measure)))
        ),
        loosened=tuple(_loosened(candidate, baseline)),
    )


def _shared(candidate: Clusters, baseline: Clusters) -> Iterable[Change]:
    """Yield the pairs that both results have, changed or not, with the clusters of the candidate."""
    earlier = {pair_id: cell for ids in baseline.values() for pair_id, cell in ids.items()}
    for cluster, ids in candidate.items():
        for pair_id, cell in ids.items():
            if pair_id in earlier:
                yield Change(pair_id, cluster, earlier[pair_id], cell)


def _changes(shared: Iterable[Change], measure: str, sign: int) -> tuple[Change, ...]:
    shares = _SHARES[measure]
    return tuple(one for one in shared if sign * (shares[one.after] - shares[one.before]) > 0)


def _loosened(candidate: AuditResult, baseline: AuditResult) -> Iterable[LoosenedLimit]:
    earlier = {(row.path, j.measure): j.limit for row in baseline.all_rows for j in row.verdicts}
    for row in candidate.all_rows:
        for judgement in row.verdicts:
            before = earlier.get((row.path, judgement.measure))
            if before is not None and find_measure(judgement.measure).excess(judgement.limit, before) > 0:
                yield LoosenedLimit(row.path, judgement.measure, before, judgement.limit, judgement.source)
