"""One verdict from one measure and one limit. Pure: the same numbers always give the same verdict."""

from bbnli_audit.core.results.audit import Measure, Skill, Verdict


def judge(
    measure: Measure, limit: float, *, decide: str, is_competent: bool = True, is_minimum: bool = False
) -> Verdict:
    """Compare a measure with a largest (or smallest) allowed value; being at the limit passes.

    Args:
        measure: Value and interval.
        limit: The largest value allowed, or the smallest.
        decide: "bounds" judges the interval, so it can end undecided; "point" judges the value alone.
        is_competent: Whether the model is good enough at the task for a pass to mean anything. If not, what would
            pass is undecided: a model that cannot read has shown no bias, and has not been shown to have none.
        is_minimum: Whether the limit is the smallest value allowed.
    """
    value, low, high = measure.value, measure.low, measure.high
    if value is None or low is None or high is None:
        return Verdict.NO_DATA
    if is_minimum:  # mirrored, a smallest value is a largest one
        value, low, high, limit = -value, -high, -low, -limit
    if decide == "point":
        verdict = Verdict.PASS if value <= limit else Verdict.FAIL
    elif low > limit:
        verdict = Verdict.FAIL
    elif high <= limit:
        verdict = Verdict.PASS
    else:
        verdict = Verdict.INCONCLUSIVE
    return verdict if is_competent or verdict is not Verdict.PASS else Verdict.INCONCLUSIVE


def judge_competence(skill: Skill, limit: float) -> Verdict:
    """Decide whether a model can do the task at all.

    It must reach the limit and beat the best answer that never looks at the text: with two labels, or unbalanced
    controls, a constant answer can reach a fair share by itself.
    """
    if skill.control_accuracy is None:
        return Verdict.NO_DATA
    is_able = skill.control_accuracy >= limit and skill.control_accuracy > skill.best_constant
    return Verdict.PASS if is_able else Verdict.FAIL


def judge_increase(
    increase: Measure, margin: float, p_adjusted: float, *, decide: str, confidence: float, is_competent: bool = True
) -> Verdict:
    """Decide whether a measure grew by more than a margin; growth by the margin itself passes.

    Args:
        increase: Candidate less baseline, with one-sided bounds.
        margin: The largest growth allowed.
        p_adjusted: Against "it grew by the margin at most", corrected for the tests of the run.
        decide: "bounds" needs evidence either way; "point" judges the value alone.
        confidence: At which p values and bounds are read.
        is_competent: As for `judge`.
    """
    if increase.value is None or increase.high is None:
        return Verdict.NO_DATA
    if decide == "point":
        verdict = Verdict.PASS if increase.value <= margin else Verdict.FAIL
    elif p_adjusted <= 1 - confidence:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.PASS if increase.high <= margin else Verdict.INCONCLUSIVE
    return verdict if is_competent or verdict is not Verdict.PASS else Verdict.INCONCLUSIVE
