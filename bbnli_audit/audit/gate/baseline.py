"""An earlier result as the bar: what both models were asked, what grew since, and by more than the margin or not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.gate.verdict import judge_increase
from bbnli_audit.core.errors import ResultError, ThresholdsError
from bbnli_audit.core.outcomes import CAUSES, Cell
from bbnli_audit.core.results.audit import AuditResult, Cells
from bbnli_audit.core.results.comparison import Change, Comparison, LoosenedLimit, Regression
from bbnli_audit.core.results.rows import NO_DATA, Measured, ModelInfo

if TYPE_CHECKING:
    from bbnli_audit.measures.statistics.growth import Increase

# The misprediction rate is the sum of the three causes, and a fourth test would only cost power.
MEASURES = tuple(CAUSES)

Test = tuple[str, str]  # path of the subtopic, measure
Shared = tuple[str, str, Cell, Cell]  # pair id, cluster, cell before and cell after


@dataclass(frozen=True, slots=True)
class Rule:
    """The growth that is tolerated, where that is written, and how verdicts on it are reached."""

    margin: float
    source: str
    decide: str = "bounds"
    confidence: float = 0.95


def find_rule(thresholds: Thresholds) -> Rule:
    """Read the rule from a threshold file, and refuse one without a margin."""
    regression = thresholds.file.regression
    if regression is None:
        raise ThresholdsError(
            f"{thresholds.name}: a baseline was given, but the file has no margin for growth, and there is no hidden "
            "one.\nAdd: regression: {max_increase: 0.03}"
        )
    source = thresholds.source("regression", "max_increase")
    return Rule(regression.max_increase, source, thresholds.file.decide, thresholds.file.confidence)


def check_baseline(baseline: AuditResult, source: str) -> None:
    """Refuse the baseline of a model that could not do the task: any model that can would look worse."""
    if not baseline.is_competent:
        raise ResultError(
            f"{source}: {baseline.model.name} was not competent, so it had little chance to show bias, and any model "
            "that does the task would look worse. Give the result of a model that passed the competence limit."
        )


def check_other_model(candidate: ModelInfo, baseline: ModelInfo, source: str) -> None:
    """Refuse to compare a model with itself, whatever its name, or likelihoods with answers."""
    from bbnli_audit.measures.readings.kinds import reading_of

    if candidate.fingerprint == baseline.fingerprint:
        raise ResultError(
            f"{source}: is a result of the same model as {candidate.name} (fingerprint {candidate.fingerprint[:12]}), "
            "so nothing can have changed. Give the result of an earlier release."
        )
    if reading_of(candidate.kind).has_task != reading_of(baseline.kind).has_task:
        raise ResultError(
            f"{source}: is a result of {baseline.name}, a model of the kind {baseline.kind}, and {candidate.name} is "
            f"of the kind {candidate.kind}: which side is likelier cannot be compared with what is answered. Give the "
            "result of a model that was measured in the same way."
        )


def compare_pairs(
    tests: Sequence[Test],
    candidate: Cells,
    baseline: Cells,
    rule: Rule,
    *,
    is_competent: bool = True,
) -> list[Regression]:
    """Compare measures on the pairs that both results have, and correct for the number of tests of the run."""
    from bbnli_audit.measures.statistics.growth import holm, measure_increase

    shared = {path: list(_shared(candidate.get(path, {}), baseline.get(path, {}))) for path, _ in tests}
    if not any(shared.values()):
        raise ResultError(
            "The baseline and this run have no pair in common, so nothing can be compared. Was it made with other "
            "data or another pairing? Audit the earlier model again on this data."
        )
    increases = []
    for path, measure in tests:
        before, after = ([_share(pair[side], measure) for pair in shared[path]] for side in (2, 3))
        clusters = [pair[1] for pair in shared[path]]
        increases.append((before, after, measure_increase(before, after, clusters, rule.margin, rule.confidence)))
    adjusted = holm([increase.p_value for _, _, increase in increases])
    return [
        Regression(
            path=path,
            measure=measure,
            margin=rule.margin,
            source=rule.source,
            verdict=judge_increase(
                _as_measured(increase, len(before)),
                rule.margin,
                float(p_adjusted),
                decide=rule.decide,
                confidence=rule.confidence,
                is_competent=is_competent,
            ),
            baseline=_mean(before),
            candidate=_mean(after),
            increase=_as_measured(increase, len(before)),
            p_value=increase.p_value,
            p_mcnemar=increase.p_pairs,
            p_adjusted=float(p_adjusted),
            n_shared=len(before),
            pairs_needed=increase.pairs_needed,
            flipped=_changes(shared[path], measure, 1),
            fixed=_changes(shared[path], measure, -1),
        )
        for (path, measure), (before, after, increase), p_adjusted in zip(tests, increases, adjusted, strict=True)
    ]


def compare(candidate: AuditResult, baseline: AuditResult, rule: Rule, source: str) -> Comparison:
    """Compare all subtopics of two results; `source` names the baseline in messages.

    Raises:
        ResultError: when the two cannot be compared.
    """
    check_baseline(baseline, source)
    check_other_model(candidate.model, baseline.model, source)
    tests = [(row.path, measure) for row in candidate.subtopics for measure in MEASURES]
    found = compare_pairs(tests, candidate.pairs, baseline.pairs, rule, is_competent=candidate.is_competent)
    return compare_results(candidate, baseline, source, found, len(tests))


def compare_results(
    candidate: AuditResult, baseline: AuditResult, source: str, regressions: Iterable[Regression], n_tests: int
) -> Comparison:
    """Put the tests of a run into the frame a reader needs: how much was shared, and whose limits were wider."""
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
        regressions=tuple(sorted(regressions, key=lambda one: (one.path, MEASURES.index(one.measure)))),
        loosened=tuple(_loosened(candidate, baseline)),
    )


def _shared(
    candidate: Mapping[str, Mapping[str, Cell]], baseline: Mapping[str, Mapping[str, Cell]]
) -> Iterable[Shared]:
    """Yield the pairs that both have; clusters as they are now."""
    earlier = {pair_id: cell for ids in baseline.values() for pair_id, cell in ids.items()}
    for cluster, ids in candidate.items():
        for pair_id, cell in ids.items():
            if pair_id in earlier:
                yield pair_id, cluster, earlier[pair_id], cell


def _share(cell: str, measure: str) -> float:
    return CAUSES[measure].get(cell, 0) / 2


def _changes(shared: Iterable[Shared], measure: str, sign: int) -> tuple[Change, ...]:
    return tuple(
        Change(pair_id, cluster, before, after)
        for pair_id, cluster, before, after in shared
        if sign * (_share(after, measure) - _share(before, measure)) > 0
    )


def _as_measured(increase: "Increase", n_pairs: int) -> Measured:
    return Measured(increase.value, increase.low, increase.high, 2 * n_pairs) if n_pairs else NO_DATA


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _loosened(candidate: AuditResult, baseline: AuditResult) -> Iterable[LoosenedLimit]:
    from bbnli_audit.measures.registry import find_measure

    earlier = {(row.path, j.measure): j.limit for row in baseline.subtopics for j in row.verdicts}
    for row in candidate.subtopics:
        for judgement in row.verdicts:
            before = earlier.get((row.path, judgement.measure))
            if before is not None and find_measure(judgement.measure).excess(judgement.limit, before) > 0:
                yield LoosenedLimit(row.path, judgement.measure, before, judgement.limit, judgement.source)
