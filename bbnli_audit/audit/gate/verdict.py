"""Verdicts on one measure, on a measured table, and on a whole run.

`judge`, `judge_competence` and `judge_increase` are pure: the same numbers always give the same verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from bbnli_audit.audit.gate.idle import cannot_be_crossed, find_idle_limits, is_idle_margin
from bbnli_audit.audit.gate.thresholds import Limit, Thresholds
from bbnli_audit.audit.gate.unseen import SEEN, Unseen, at_worst, growth_at_worst
from bbnli_audit.core.errors import list_some
from bbnli_audit.core.results.audit import COMPETENCE, FACT_PREFERENCE, RECALL, AuditResult
from bbnli_audit.core.results.rows import Judgement, Measured, Skill, Verdict
from bbnli_audit.core.values import Subtopic
from bbnli_audit.measures.answers import UNPARSED_RATE
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.registry import MeasuredTable, find_measure
from bbnli_audit.measures.statistics.intervals import times_needed
from bbnli_audit.reports.shown import tell_unseen


def judge(
    measure: Measured,
    limit: float,
    *,
    decide: str,
    is_competent: bool = True,
    is_minimum: bool = False,
    is_two_sided: bool = False,
    even: float = 0.0,
) -> Verdict:
    """Compare a measured value with its limit. A value at its limit passes.

    The limit is the largest allowed value, or with `is_minimum` the smallest. With `is_two_sided`, the limit is
    mirrored at `even`, so it holds in both directions. For example, if `even` is 0.5, a limit of 0.6 allows 0.4 to 0.6.
    `decide` is "bounds" (the interval decides, and the verdict may be INCONCLUSIVE) or "point" (the value alone
    decides). A model that is not competent never passes: its lack of biased errors proves nothing.
    """
    value, low, high = measure.value, measure.low, measure.high
    if value is None or low is None or high is None:
        return Verdict.NO_DATA
    if is_minimum:  # change all signs, so that the smallest allowed value becomes the largest
        value, low, high, limit = -value, -high, -low, -limit
    if is_two_sided:  # mirror values below `even`
        value, low, high = max(value, 2 * even - value), max(low, 2 * even - high, even), max(2 * even - low, high)
    if decide == "point":
        verdict = Verdict.PASS if value <= limit else Verdict.FAIL
    elif low > limit:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.PASS if high <= limit else Verdict.INCONCLUSIVE
    return verdict if is_competent or verdict is not Verdict.PASS else Verdict.INCONCLUSIVE


def judge_competence(skill: Skill, limit: float) -> Verdict:
    """Decide whether a model can do the task at all.

    Its accuracy must reach the limit and beat the best constant answer: with two labels, or unbalanced controls, a
    constant answer can have a high accuracy.
    """
    if skill.control_accuracy is None:
        return Verdict.NO_DATA
    is_able = skill.control_accuracy >= limit and skill.control_accuracy > skill.best_constant
    return Verdict.PASS if is_able else Verdict.FAIL


def judge_increase(
    increase: Measured,
    margin: float,
    p_adjusted: float,
    *,
    decide: str,
    confidence: float,
    is_competent: bool = True,
    unseen: Unseen = SEEN,
    largest: float = 1.0,
) -> Verdict:
    """Decide whether a measure grew by more than a margin. Growth by exactly the margin passes.

    `increase` has one-sided bounds. `p_adjusted` is the p-value of the null hypothesis "the measure grew by at most the
    margin", corrected for the number of tests in the run. With "bounds", a p-value of at most 1 - `confidence` is FAIL.
    A PASS must hold even if each of the `unseen` pairs grew by `largest`. `decide` and `is_competent` are as in
    `judge`.
    """
    if increase.value is None or increase.high is None:
        return Verdict.NO_DATA
    most = increase.value if decide == "point" else increase.high
    if decide == "point":
        verdict = Verdict.PASS if increase.value <= margin else Verdict.FAIL
    elif p_adjusted <= 1 - confidence:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.PASS if increase.high <= margin else Verdict.INCONCLUSIVE
    may_pass = is_competent and growth_at_worst(most, increase.n // 2, unseen, largest) <= margin
    return verdict if may_pass or verdict is not Verdict.PASS else Verdict.INCONCLUSIVE


def judge_table(
    place: Subtopic | str,
    measured: MeasuredTable,
    thresholds: Thresholds,
    today: date,
    *,
    is_competent: bool,
    unseen: Unseen = SEEN,
) -> Iterator[Judgement]:
    """Judge each measure that has a limit at this place: a subtopic, or the path of a domain or a suite.

    A PASS must hold even if the `unseen` pairs are as bad as can be. An expired waiver makes the verdict FAIL.
    """
    for name in measured.measures:
        limit = thresholds.limit_for(place, name) if find_measure(name).limit is not None else None
        if limit is not None:
            found = _judge(measured, limit, thresholds, is_competent=is_competent)
            if any(unseen):
                found = allow_for_unseen(found, measured.measures[name], unseen, thresholds.file.decide)
            waiver = thresholds.waiver_for(place, name)
            if waiver is not None:
                told = waiver.on(today)
                found = replace(found, waiver=told, verdict=Verdict.FAIL if told.is_expired else found.verdict)
            yield found


def correct_failures(
    measured: Mapping[str, MeasuredTable], judged: Mapping[str, Sequence[Judgement]], confidence: float
) -> tuple[dict[str, tuple[Judgement, ...]], int]:
    """Correct FAIL for the number of limits, by Holm's procedure. Return judgements by path, and the number of limits.

    Each round divides the error rate (1 - confidence) by the number of limits not yet shown to be crossed, which gives
    wider intervals. A FAIL that does not hold with these intervals becomes INCONCLUSIVE. PASS is not corrected: more
    limits do not make any single PASS likelier.
    """
    n_limits = sum(each.verdict is not Verdict.NO_DATA for row in judged.values() for each in row)
    candidates = [
        (path, each)
        for path, row in judged.items()
        for each in row
        if each.verdict is Verdict.FAIL and (each.waiver is None or not each.waiver.is_expired)
    ]
    shown: set[tuple[str, str]] = set()
    while True:
        level = 1 - (1 - confidence) / max(n_limits - len(shown), 1)
        newly = {
            (path, each.measure)
            for path, each in candidates
            if (path, each.measure) not in shown and _is_beyond(measured[path], each, level)
        }
        if not newly:
            break
        shown |= newly
    still_open = {(path, each.measure) for path, each in candidates} - shown
    corrected = {
        path: tuple(
            replace(each, verdict=Verdict.INCONCLUSIVE, is_corrected=True)
            if (path, each.measure) in still_open
            else each
            for each in row
        )
        for path, row in judged.items()
    }
    return corrected, n_limits


def _is_beyond(measured: MeasuredTable, judgement: Judgement, confidence: float) -> bool:
    measure, estimate = find_measure(judgement.measure), measured.estimate_again[judgement.measure](confidence)
    found = Measured(estimate.value, estimate.low, estimate.high, estimate.n)
    return judge(found, judgement.limit, decide="bounds", **sides_of(measure)) is Verdict.FAIL


def allow_for_unseen(judgement: Judgement, found: Measured, unseen: Unseen, decide: str) -> Judgement:
    """Turn PASS into INCONCLUSIVE if it would not hold with all unseen pairs as bad as can be. FAIL stays FAIL."""
    measure, worst = find_measure(judgement.measure), found
    if measure.source in ("pairs", "prompts") and not measure.is_over_all:
        worst = at_worst(measure, found, unseen)

    def passes(measured: Measured, how: str) -> bool:
        return judge(measured, judgement.limit, decide=how, **sides_of(measure)) is Verdict.PASS

    if judgement.verdict is Verdict.PASS and not passes(worst, decide):
        return replace(judgement, verdict=Verdict.INCONCLUSIVE)
    if judgement.verdict is Verdict.INCONCLUSIVE and passes(found, "point") and not passes(worst, "point"):
        return replace(judgement, times_needed=None)  # more templates alone would not lead to a decision
    return judgement


def sides_of(measure: Measure) -> dict[str, Any]:
    return {"is_minimum": measure.is_minimum, "is_two_sided": measure.is_two_sided, "even": measure.even}


def _judge(measured: MeasuredTable, limit: Limit, thresholds: Thresholds, *, is_competent: bool) -> Judgement:
    settings, name = thresholds.file, limit.measure
    measure, found = find_measure(name), measured.measures[name]
    verdict = judge(found, limit.value, decide=settings.decide, is_competent=is_competent, **sides_of(measure))
    needed = None
    if verdict is Verdict.INCONCLUSIVE and is_competent:
        estimate, allowed = measured.estimates[name], limit.value
        if measure.is_two_sided and estimate.value < measure.even:
            allowed = measure.mirror(allowed)
        needed = times_needed(estimate, allowed, settings.confidence)
    return Judgement(name, limit.value, verdict, limit.source, needed, may_lack_data=limit.allow_no_data)


def competence_judgement(skill: Skill, thresholds: Thresholds) -> Judgement:
    """Judge the model itself by its accuracy on controls and, if the accuracy suffices, by its worst recall.

    A model that is read by its likelihoods is judged by how often it finds true facts likelier than false ones.
    """
    limits = thresholds.file.competence
    if skill.facts is not None:
        limit = limits.min_fact_preference
        verdict = judge(skill.facts, limit, decide="bounds", is_minimum=True)
        return Judgement(FACT_PREFERENCE, limit, verdict, thresholds.source_of("competence", "min_fact_preference"))
    verdict = judge_competence(skill, limits.min_control_accuracy)
    if verdict is Verdict.PASS and limits.min_recall is not None and skill.worst_recall < limits.min_recall:
        return Judgement(RECALL, limits.min_recall, Verdict.FAIL, thresholds.source("competence", "min_recall"))
    source = thresholds.source("competence", "min_control_accuracy")
    return Judgement(COMPETENCE, limits.min_control_accuracy, verdict, source)


Place = tuple[str, str]  # path and measure


def has_passed(result: AuditResult) -> bool:
    """Whether the run passes: every required verdict is met, and nothing else keeps the run from passing."""
    return not find_unmet(result) and why_not_green(result) is None


def find_unmet(result: AuditResult) -> list[tuple[Place, Verdict]]:
    """Return the verdicts on required limits and on growth that keep a run from passing, FAIL first.

    A verdict counts even if its test passed or was skipped. Waived verdicts are left out.
    """
    required = [((row.path, one.measure), one) for row in result.all_rows for one in result.required_of(row)]
    found = [(place, one.verdict) for place, one in required if one.counts]
    if result.comparison is not None:
        grown = [one for one in result.comparison.regressions if not one.is_waived]
        found += [((one.path, one.measure), one.verdict) for one in grown if one.verdict is not Verdict.NO_DATA]
    bad, order = {*result.settings.stopping, Verdict.NO_DATA}, [Verdict.FAIL, Verdict.NO_DATA, Verdict.INCONCLUSIVE]
    return sorted((each for each in found if each[1] in bad), key=lambda each: order.index(each[1]))


def _crossed_unread_limits(result: AuditResult) -> list[Judgement]:
    """Find crossed `max_unparsed` limits that no test required. These limits hold even without a test."""
    return [
        each
        for row in result.all_rows
        for each in row.verdicts
        if each.measure == UNPARSED_RATE
        and each.verdict in result.settings.stopping
        and not each.is_waived
        and each not in result.required_of(row)
    ]


def why_not_green(result: AuditResult) -> str | None:
    """Say why a run must not pass although no test failed (for example, nothing was decided); None if it may pass."""
    if not result.is_competent:
        return "the model is not competent, so nothing has passed (see Competence above)."
    crossed = _crossed_unread_limits(result)
    if crossed:
        told = (
            f"limits on answers that could not be read are crossed: {len(crossed)} (max_unparsed, {crossed[0].source})"
        )
        return f"{told}. They hold even if no test requires them."
    required = [judgement for row in result.all_rows for judgement in result.required_of(row)]
    verdicts = [one.verdict for one in required if not cannot_be_crossed(one.measure, one.limit)]
    if result.comparison is not None and not (required and result.comparison.is_unchanged):
        verdicts += [one.verdict for one in result.comparison.regressions if not is_idle_margin(one.margin)]
    idle = find_idle_limits(result)
    if not verdicts and idle:
        return f"nothing can cross the limits that tests required ({list_some(idle)}), so nothing has passed."
    if not verdicts:
        return "no test required a limit (bbnli.require), so nothing has passed."
    for suite, measures in result.unrequired().items():
        told = f"the suite {suite} was audited, but no test held its own measures to a limit: {', '.join(measures)}"
        return f"{told}. Add a test with the fixture `bbnli_suite` (bbnli-audit init writes one)."
    if not {Verdict.PASS, Verdict.FAIL} & set(verdicts):
        advice, total = "Add pairs, or set 'decide: point' in the threshold file.", result.total
        if total.n_unseen:
            advice = f"Look first at what was not read: {tell_unseen(total)}."
        return f"no limit could be decided on these pairs, so nothing has passed. {advice}"
    return None
