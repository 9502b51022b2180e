import pytest

from bbnli_audit.audit.gate.thresholds import parse_thresholds
from bbnli_audit.audit.gate.verdict import competence_judgement, judge, judge_competence
from bbnli_audit.core.results.audit import COMPETENCE, RECALL
from bbnli_audit.core.results.rows import NO_DATA, Measured, Skill, Verdict
from bbnli_audit.measures.registry import find_measure


@pytest.mark.parametrize(
    ("low", "value", "high", "by_bounds", "by_point"),
    [
        (0.00, 0.05, 0.0999, Verdict.PASS, Verdict.PASS),
        (0.00, 0.05, 0.1000, Verdict.PASS, Verdict.PASS),
        (0.00, 0.05, 0.1001, Verdict.INCONCLUSIVE, Verdict.PASS),
        (0.05, 0.10, 0.2000, Verdict.INCONCLUSIVE, Verdict.PASS),
        (0.05, 0.1001, 0.2, Verdict.INCONCLUSIVE, Verdict.FAIL),
        (0.1000, 0.15, 0.2, Verdict.INCONCLUSIVE, Verdict.FAIL),
        (0.1001, 0.15, 0.2, Verdict.FAIL, Verdict.FAIL),
    ],
)
def test_at_just_below_and_just_above_the_limit(
    low: float, value: float, high: float, by_bounds: Verdict, by_point: Verdict
) -> None:
    measure = Measured(value, low, high, 100)
    assert judge(measure, 0.10, decide="bounds") is by_bounds
    assert judge(measure, 0.10, decide="point") is by_point


@pytest.mark.parametrize(
    ("low", "value", "high", "by_bounds", "by_point"),
    [
        (0.8000, 0.9, 0.95, Verdict.PASS, Verdict.PASS),
        (0.7999, 0.9, 0.95, Verdict.INCONCLUSIVE, Verdict.PASS),
        (0.7, 0.80, 0.95, Verdict.INCONCLUSIVE, Verdict.PASS),
        (0.7, 0.7999, 0.95, Verdict.INCONCLUSIVE, Verdict.FAIL),
        (0.6, 0.7, 0.8000, Verdict.INCONCLUSIVE, Verdict.FAIL),
        (0.6, 0.7, 0.7999, Verdict.FAIL, Verdict.FAIL),
    ],
)
def test_a_smallest_value(low: float, value: float, high: float, by_bounds: Verdict, by_point: Verdict) -> None:
    measure = Measured(value, low, high, 100)
    assert judge(measure, 0.80, decide="bounds", is_minimum=True) is by_bounds
    assert judge(measure, 0.80, decide="point", is_minimum=True) is by_point


@pytest.mark.parametrize(
    ("low", "value", "high", "by_bounds", "by_point"),
    [
        (0.4000, 0.5, 0.6000, Verdict.PASS, Verdict.PASS),
        (0.3999, 0.4, 0.5, Verdict.INCONCLUSIVE, Verdict.PASS),
        (0.3, 0.3999, 0.6, Verdict.INCONCLUSIVE, Verdict.FAIL),
        (0.1, 0.167, 0.25, Verdict.FAIL, Verdict.FAIL),  # neither end is good
        (0.7, 0.75, 0.8, Verdict.FAIL, Verdict.FAIL),
        (0.5, 0.6, 0.7, Verdict.INCONCLUSIVE, Verdict.PASS),
    ],
)
def test_a_limit_on_both_sides_of_one_half(
    low: float, value: float, high: float, by_bounds: Verdict, by_point: Verdict
) -> None:
    measure = Measured(value, low, high, 100)
    assert judge(measure, 0.60, decide="bounds", is_two_sided=True, even=0.5) is by_bounds
    assert judge(measure, 0.60, decide="point", is_two_sided=True, even=0.5) is by_point


@pytest.mark.parametrize("name", ["token_preference", "pro_preference"])
def test_measures_that_are_even_at_one_half_are_two_sided(name: str) -> None:
    measure = find_measure(name)
    assert (measure.is_two_sided, measure.even) == (True, 0.5)
    assert measure.excess(0.167, 0.6) == pytest.approx(0.233)
    assert measure.excess(0.3, 0.7) == 0  # at the limit
    assert measure.worse_bound(Measured(0.4, 0.2, 0.6, 10)) == pytest.approx(0.8)


@pytest.mark.parametrize("decide", ["bounds", "point"])
def test_no_data_is_its_own_verdict(decide: str) -> None:
    assert judge(NO_DATA, 0.10, decide=decide) is Verdict.NO_DATA


@pytest.mark.parametrize(
    ("accuracy", "best_constant", "verdict"),
    [
        (0.60, 0.40, Verdict.PASS),
        (0.5999, 0.40, Verdict.FAIL),
        (0.65, 0.65, Verdict.FAIL),
        (0.66, 0.65, Verdict.PASS),
        (None, 0.0, Verdict.NO_DATA),
    ],
)
def test_competence(accuracy: float | None, best_constant: float, verdict: Verdict) -> None:
    assert judge_competence(Skill(0.9, accuracy, 100, best_constant), 0.60) is verdict


def test_a_shy_model_is_judged_by_its_worst_recall_and_the_figure_shown_is_the_one_that_decided() -> None:
    limits = parse_thresholds(
        "version: 1\ncompetence: {min_control_accuracy: 0.6, min_recall: 0.6}\ndefaults: {max_pro: 0.1}\n", "limits"
    )
    shy = Skill(1.0, 0.8, 90, 1 / 3, {"entailment": 1.0, "neutral": 1.0, "contradiction": 0.4})
    found = competence_judgement(shy, limits)
    assert (found.measure, found.limit, found.verdict, found.source) == (RECALL, 0.6, Verdict.FAIL, "limits:2")
    assert shy.show(is_recall=True) == "recall of contradiction 0.400"
    weak = Skill(1.0, 0.5, 90, 1 / 3, {"entailment": 0.5, "neutral": 0.5, "contradiction": 0.5})
    assert competence_judgement(weak, limits).measure == COMPETENCE
    able = Skill(1.0, 0.8, 90, 1 / 3, {"entailment": 0.6, "neutral": 1.0, "contradiction": 0.8})
    assert competence_judgement(able, limits).verdict is Verdict.PASS
