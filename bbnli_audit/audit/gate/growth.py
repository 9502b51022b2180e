"""Tests which measures grew by more than the margin, on the pairs that two results share."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from bbnli_audit.audit.gate.compared import Column, Compared, Shown, largest_change
from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.gate.thresholds_schema import GROWTH_MEASURES
from bbnli_audit.audit.gate.unseen import SEEN, Unseen
from bbnli_audit.audit.gate.verdict import judge_increase
from bbnli_audit.core.errors import ResultError, ThresholdsError
from bbnli_audit.core.results.comparison import NO_GROWTH, Growth, Regression
from bbnli_audit.core.results.rows import Verdict, Waiver
from bbnli_audit.core.values import Subtopic, level_of, levels_above
from bbnli_audit.measures.statistics.growth import Increase, find_change_spreads, holm, measure_increase

EXTRA_MEASURES = GROWTH_MEASURES[-2:]  # measures that only some data have
MEASURES = GROWTH_MEASURES[:-2]  # measures that all pairs have

Test = tuple[str, str]  # path of a suite, a domain or a subtopic; measure
_NO_INCREASE = Increase(0.0, 0.0, 0.0, p_value=1.0, p_pairs=1.0, n_worse=0, n_better=0, times_needed=None)
# How much of the allowed chance of a wrong FAIL each level gets. A suite has few tests and the most pairs, so a small
# share is enough to find growth that is the same everywhere. Most of the chance is left for the subtopics.
LEVEL_SHARES = {"suite": 0.2, "domain": 0.2, "subtopic": 0.6}
Margins = Mapping[str, tuple[float, str]]  # level -> the largest allowed growth, and the line where it is written


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


def list_tests(paths: Iterable[str], extra: Mapping[str, Sequence[str]] | None = None) -> list[Test]:
    """List the tests of some subtopics and of the levels above them, from the widest to the narrowest.

    `extra` maps the path of a subtopic to those of `EXTRA_MEASURES` that the subtopic has. A suite or domain has the
    extra measures of all its subtopics.
    """
    found = list(paths)
    levels = [levels_above(path) for path in found]
    every = dict.fromkeys([*(suite for suite, _ in levels), *(domain for _, domain in levels), *found])
    added: dict[str, set[str]] = {}
    for path in found:
        for place in (*levels_above(path), path):
            added.setdefault(place, set()).update((extra or {}).get(path, ()))
    return [(path, name) for path in every for name in GROWTH_MEASURES if name in MEASURES or name in added[path]]


def weigh(tests: Iterable[Test]) -> list[float]:
    """Return the weight of each test in Holm's correction: the tests of a level divide the level's share equally."""
    levels = [level_of(path) for path, _ in tests]
    n_tests = Counter(levels)
    return [LEVEL_SHARES[level] / n_tests[level] for level in levels]


def compare_pairs(
    tests: Sequence[Test],
    candidate: Shown,
    baseline: Shown,
    rule: Rule,
    *,
    is_competent: bool = True,
    is_unchanged: bool = False,
) -> list[Regression]:
    """Compare measures on the pairs and facts that both results have, and correct for the number of tests of the run.

    A suite or a domain is compared on the pairs of all its subtopics. Holm's correction covers all levels together, and
    each level has its share of the error rate. So with `decide: bounds`, the chance of any wrong FAIL in the whole run
    is at most 1 - confidence. `is_unchanged` says that both results are of the same model with the same answers. In
    this case no growth is reported, and no interval is computed.
    """
    compared = {path: Compared.of(path, candidate, baseline) for path in dict.fromkeys(path for path, _ in tests)}
    if not any(one.pairs for one in compared.values()):
        raise ResultError(
            "The baseline and this run have no pair in common, so nothing can be compared. Was the baseline made with "
            "other data, another pairing, or the first benchmark (now --bbnli-suite=bbnli@1)? Audit the earlier model "
            "again on this data."
        )
    columns = {(path, measure): compared[path].column(measure) for path, measure in tests}
    if is_unchanged:
        increases = [_NO_INCREASE for _ in tests]
    else:
        suites = {
            (suite, measure): columns.get((suite, measure)) or Compared.of(suite, candidate, baseline).column(measure)
            for suite, measure in dict.fromkeys((path.partition("/")[0], measure) for path, measure in tests)
        }
        increases = list(_find_increases(columns, suites, rule))
    adjusted = holm([increase.p_value for increase in increases], weigh(tests))
    unseen = {test: candidate.unseen.get(test[0], SEEN) for test in tests}
    return [
        _judge(test, columns[test], increase, float(p_adjusted), rule, unseen[test], is_competent)
        for test, increase, p_adjusted in zip(tests, increases, adjusted, strict=True)
    ]


def _find_increases(columns: Mapping[Test, Column], suites: Mapping[Test, Column], rule: Rule) -> Iterator[Increase]:
    """Estimate how much the measure of each test grew. The spread between templates comes from the whole suite."""
    spreads = {
        test: find_change_spreads(one.before, one.after, one.design) if len(one) else [] for test, one in suites.items()
    }
    for (path, measure), one in columns.items():
        margin, _ = rule.margins[level_of(path)]
        scale = largest_change(measure)  # changes are compared as shares of the largest possible change
        alike = spreads[path.partition("/")[0], measure] if len(one) else []
        found = measure_increase(one.before, one.after, one.design, margin / scale, rule.confidence, alike)
        yield found._replace(value=found.value * scale, low=found.low * scale, high=found.high * scale)


def _judge(
    test: Test,
    column: Column,
    found: Increase,
    p_adjusted: float,
    rule: Rule,
    unseen: Unseen,
    is_competent: bool,
) -> Regression:
    (path, measure), n = test, len(column)
    scale, is_leaf = largest_change(measure), level_of(path) == "subtopic"
    margin, source = rule.margins[level_of(path)]
    increase = Growth(found.value, found.low, found.high, 2 * n) if n else NO_GROWTH
    how: Any = {"decide": rule.decide, "confidence": rule.confidence}
    verdict = judge_increase(
        increase, margin, p_adjusted, **how, is_competent=is_competent, unseen=unseen, largest=scale
    )
    waiver = rule.waivers.get(test)
    if waiver is not None and waiver.is_expired:
        verdict = Verdict.FAIL
    return Regression(
        path=path,
        measure=measure,
        margin=margin,
        source=source,
        verdict=verdict,
        baseline=scale * sum(column.before) / n if n else None,
        candidate=scale * sum(column.after) / n if n else None,
        increase=increase,
        p_value=found.p_value,
        p_mcnemar=found.p_pairs,
        p_adjusted=p_adjusted,
        n_shared=n,
        times_needed=found.times_needed,
        flipped=column.changes(1) if is_leaf else (),
        fixed=column.changes(-1) if is_leaf else (),
        waiver=waiver,
    )
