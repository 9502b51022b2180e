"""What a verdict may and may not do when a limit moves."""

from hypothesis import assume, given
from hypothesis import strategies as st

from bbnli_audit.audit.gate.verdict import judge, judge_competence
from bbnli_audit.core.results.rows import Measured, Skill, Verdict
from tests.strategies import measures, shares

STRICTNESS = [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL]
deciding = st.sampled_from(["bounds", "point"])


@given(measures, shares, shares, deciding, st.booleans())
def test_lowering_a_limit_never_softens_a_verdict(
    measure: Measured, one: float, other: float, decide: str, is_competent: bool
) -> None:
    assume(measure.value is not None)
    low, high = sorted((one, other))
    strict = judge(measure, low, decide=decide, is_competent=is_competent)
    mild = judge(measure, high, decide=decide, is_competent=is_competent)
    assert STRICTNESS.index(strict) >= STRICTNESS.index(mild)


@given(measures, shares, deciding)
def test_nothing_passes_without_competence(measure: Measured, limit: float, decide: str) -> None:
    assert judge(measure, limit, decide=decide, is_competent=False) is not Verdict.PASS


@given(measures, shares)
def test_bounds_never_contradict_the_point(measure: Measured, limit: float) -> None:
    by_bounds, by_point = (judge(measure, limit, decide=decide) for decide in ("bounds", "point"))
    assert by_bounds in (by_point, Verdict.INCONCLUSIVE)


@given(shares, shares, shares)
def test_a_constant_answer_is_never_competent(accuracy: float, limit: float, probe: float) -> None:
    assert judge_competence(Skill(probe, accuracy, 100, best_constant=accuracy), limit) is Verdict.FAIL
