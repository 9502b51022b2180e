"""Which measures grew on the pairs that two results share, and by more than the margin?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.gate.thresholds_schema import GROWTH_MEASURES
from bbnli_audit.audit.gate.verdict import judge_increase
from bbnli_audit.core.errors import ResultError, ThresholdsError
from bbnli_audit.core.outcomes import CAUSES, CELLS, Cell
from bbnli_audit.core.results.audit import Cells
from bbnli_audit.core.results.comparison import NO_GROWTH, Change, Growth, Regression
from bbnli_audit.core.results.rows import Verdict, Waiver
from bbnli_audit.core.values import Subtopic, level_of, levels_above
from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.growth import Increase, find_change_spreads, holm, measure_increase

Clusters = Mapping[str, Mapping[str, Cell]]  # what each pair shows, by cluster and pair id

MEASURES = GROWTH_MEASURES
LEAN = MEASURES[0]
# What a pair in each cell adds to a measure.
_SHARES: Mapping[str, Mapping[str, float]] = {
    LEAN: {cell: (CAUSES["pro_rate"].get(cell, 0) - CAUSES["anti_rate"].get(cell, 0)) / 2 for cell in CELLS},
    **{cause: {cell: weights.get(cell, 0) / 2 for cell in CELLS} for cause, weights in CAUSES.items()},
}

Test = tuple[str, str]  # path of a suite, a domain or a subtopic; measure
_NO_INCREASE = Increase(0.0, 0.0, 0.0, p_value=1.0, p_pairs=1.0, n_worse=0, n_better=0, times_needed=None)
Unseen = Mapping[str, float]  # path -> share of its pairs that the candidate has not read whole, or not answered
Shown = tuple[Cells, Unseen]  # what a candidate shows
Margins = Mapping[str, tuple[float, str]]  # level -> how much a measure may grow there, and where that is written


@dataclass(frozen=True, slots=True)
class Rule:
    """How much a measure may grow at each level, and how verdicts on growth are reached."""

    margins: Margins
    decide: str = "bounds"
    confidence: float = 0.95
    waivers: Mapping[Test, Waiver] = field(default_factory=dict)  # for growth that someone has accepted

    @classmethod
    def of(cls, margin: float, source: str, decide: str = "bounds", confidence: float = 0.95) -> "Rule":
        """Make a rule with one margin for all levels."""
        return cls(dict.fromkeys(("suite", "domain", "subtopic"), (margin, source)), decide, confidence)


def find_rule(thresholds: Thresholds, today: date, known: Iterable[Subtopic] = ()) -> Rule:
    """Read the rule from a threshold file, and refuse one without a margin.

    `known` are subtopics that a waiver may call by another name.
    """
    regression = thresholds.file.regression
    if regression is None:
        told = "a baseline was given, but the file has no margin for growth, and there is no default"
        raise ThresholdsError(f"{thresholds.name}: {told}.\nAdd: regression: {{max_increase: 0.03}}")
    margins: dict[str, tuple[float, str]] = {}
    margin, key = regression.max_increase, "max_increase"
    for level, written in (("subtopic", None), ("domain", regression.domain), ("suite", regression.suite)):
        margin, key = (margin, key) if written is None else (written, level)
        margins[level] = margin, thresholds.source("regression", key)
    waivers = {test: waiver.on(today) for test, waiver in thresholds.growth_waivers(known).items()}
    return Rule(margins, thresholds.file.decide, thresholds.file.confidence, waivers)


def tests_of(paths: Iterable[str]) -> list[Test]:
    """List the tests of some subtopics and of the levels above them, from the widest to the narrowest."""
    found = list(paths)
    levels = [levels_above(path) for path in found]
    every = dict.fromkeys([*(suite for suite, _ in levels), *(domain for _, domain in levels), *found])
    return [(path, measure) for path in every for measure in MEASURES]


def compare_pairs(
    tests: Sequence[Test],
    shown: Shown,
    baseline: Cells,
    rule: Rule,
    *,
    is_competent: bool = True,
    is_unchanged: bool = False,
) -> list[Regression]:
    """Compare measures on the pairs that both results have, and correct for the number of tests of the run.

    A suite or a domain is compared on the pairs of all its subtopics. Holm's correction is over all levels together, so
    the chance of any wrong FAIL in the whole tree is at most 1 - confidence (with `decide: bounds`). `is_unchanged`: it
    is the same model with the same answers, so no growth is reported and no interval computed.
    """
    candidate, unseen = shown
    compared = {path: _Compared.of(path, candidate, baseline) for path in dict.fromkeys(path for path, _ in tests)}
    if not any(one.pairs for one in compared.values()):
        raise ResultError(
            "The baseline and this run have no pair in common, so nothing can be compared. Was the baseline made with "
            "other data, another pairing, or the first benchmark (now --bbnli-suite=bbnli@1)? Audit the earlier model "
            "again on this data."
        )
    if is_unchanged:
        increases = [_NO_INCREASE for _ in tests]
    else:
        suites = dict.fromkeys(path.partition("/")[0] for path, _ in tests)
        runs = {suite: compared.get(suite) or _Compared.of(suite, candidate, baseline) for suite in suites}
        increases = list(_find_increases(tests, compared, runs, rule))
    adjusted = holm([increase.p_value for increase in increases])
    return [
        _judge(test, compared[test[0]], increase, float(p_adjusted), rule, unseen.get(test[0], 0.0), is_competent)
        for test, increase, p_adjusted in zip(tests, increases, adjusted, strict=True)
    ]


def _find_increases(
    tests: Sequence[Test], compared: Mapping[str, "_Compared"], runs: Mapping[str, "_Compared"], rule: Rule
) -> Iterator[Increase]:
    """Find how much the measure of each test grew; `runs` are whole suites, which tell how much templates differ."""
    spreads = {
        (suite, measure): find_change_spreads(*run.values(measure), run.design) if run.pairs else []
        for suite, run in runs.items()
        for measure in MEASURES
    }
    for path, measure in tests:
        one, (margin, _) = compared[path], rule.margins[level_of(path)]
        scale = _largest_change(measure)  # changes are compared as shares of the largest possible one
        alike = spreads[path.partition("/")[0], measure] if one.pairs else []
        found = measure_increase(*one.values(measure), one.design, margin / scale, rule.confidence, alike)
        yield found._replace(value=found.value * scale, low=found.low * scale, high=found.high * scale)


def _judge(
    test: Test,
    compared: "_Compared",
    found: Increase,
    p_adjusted: float,
    rule: Rule,
    unseen: float,
    is_competent: bool,
) -> Regression:
    (path, measure), n = test, len(compared.pairs)
    margin, source = rule.margins[level_of(path)]
    increase = Growth(found.value, found.low, found.high, 2 * n) if n else NO_GROWTH
    how: Any = {"decide": rule.decide, "confidence": rule.confidence}
    verdict = judge_increase(increase, margin, p_adjusted, **how, is_competent=is_competent, unseen=unseen)
    waiver = rule.waivers.get(test)
    if waiver is not None and waiver.is_expired:
        verdict = Verdict.FAIL
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
        waiver=waiver,
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """The pairs of a place that both results have, and which templates they share."""

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


def is_same_on_shared_pairs(candidate: Cells, baseline: Cells) -> bool:
    """Whether two results show the same on each pair that both have."""
    return all(
        pair.before == pair.after
        for path, clusters in candidate.items()
        for pair in _shared(clusters, baseline.get(path, {}))
    )
