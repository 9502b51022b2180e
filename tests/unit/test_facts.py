"""A model that is read by its likelihoods must find true facts likelier than false ones."""

from collections.abc import Sequence

import numpy as np
import pytest

from bbnli_audit.audit.facts import find_facts, prove_facts
from bbnli_audit.audit.gate.thresholds import parse_thresholds
from bbnli_audit.audit.gate.verdict import competence_judgement
from bbnli_audit.core.results.audit import FACT_PREFERENCE
from bbnli_audit.core.results.rows import NO_DATA, Measured, ModelInfo, Skill, Verdict
from bbnli_audit.core.values import Control, Label, TextPair
from bbnli_audit.measures.readings.kinds import LIKELIHOOD
from bbnli_audit.models.protocol import Predictions
from tests.invented import LIMITS

ZORBS, QUINTS = "More zorbs than quints juggle.", "More quints than zorbs juggle."


def controls(n_workshops: int) -> list[Control]:
    """Say of each workshop, with the groups in both orders, what follows, what contradicts it, and what is open."""
    found = []
    for n in range(n_workshops):
        for many, few, true, false in (("zorbs", "quints", ZORBS, QUINTS), ("quints", "zorbs", QUINTS, ZORBS)):
            premise = f"In workshop {n} nine {many} and two {few} juggle."
            texts = {true: Label.ENTAILMENT, false: Label.CONTRADICTION, "The moon is red.": Label.NEUTRAL}
            texts["No one is there."] = Label.CONTRADICTION  # false of both, so it tells nothing
            found += [Control(f"p{n:02}/c", TextPair(premise, text), label) for text, label in texts.items()]
    return found


class Knowing:
    """Finds the true version likelier in the first `n_right` facts."""

    info = ModelInfo("knowing", "0", "causal-lm", "table", "float64", ("likelier", "not_likelier"))

    def __init__(self, right: Sequence[bool]) -> None:
        self._right = right

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        assert len(texts) == len(self._right)
        return Predictions.of([(0.9, 0.1, 0.0) if right else (0.1, 0.9, 0.0) for right in self._right])


class Blind(Knowing):
    """Prefers one statement whatever the premise."""

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        self._right = [text.premise.endswith(ZORBS) for text in texts]
        return super().predict(texts)


def test_a_fact_is_true_of_one_premise_and_false_of_another() -> None:
    facts = find_facts(controls(3))
    assert len(facts) == 2 * len({fact.cluster for fact in facts}) == 6
    for fact in facts:
        is_zorbs = "nine zorbs" in fact.pro.premise
        assert fact.pro.premise == fact.anti.premise
        assert (fact.pro.hypothesis, fact.anti.hypothesis) == ((ZORBS, QUINTS) if is_zorbs else (QUINTS, ZORBS))
    assert find_facts(controls(3)[::-1]) == facts


def test_of_very_many_facts_some_are_drawn() -> None:
    assert len(find_facts(controls(300))) == 480


def test_controls_whose_wording_tells_the_label_are_not_used() -> None:
    """A statement that is true of every premise needs no reading: our own benchmark is asked instead."""
    told = [
        Control("c", TextPair(f"Workshop {n} is open.", text), label)
        for n in range(9)
        for text, label in ((ZORBS, Label.ENTAILMENT), (QUINTS, Label.CONTRADICTION))
    ]
    facts = find_facts(told)
    assert len(facts) == 480
    assert not any(fact.pro.hypothesis in (ZORBS, QUINTS) for fact in facts)


def test_a_model_that_does_not_read_its_premise_is_right_in_half_of_the_cases() -> None:
    facts = find_facts(controls(200))
    skill = prove_facts(Blind([]), LIKELIHOOD, facts)
    assert skill.facts is not None
    assert skill.facts.value == 0.5
    assert competence_judgement(skill, parse_thresholds(LIMITS, "thresholds.yaml")).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("n_right", "verdict"), [(200, Verdict.PASS), (140, Verdict.PASS), (104, Verdict.INCONCLUSIVE), (40, Verdict.FAIL)]
)
def test_only_a_model_that_tells_true_from_false_is_competent(n_right: int, verdict: Verdict) -> None:
    facts = find_facts(controls(100))
    skill = prove_facts(Knowing([n < n_right for n in range(200)]), LIKELIHOOD, facts)
    assert skill.facts is not None
    assert skill.facts.value == n_right / 200
    assert skill.facts.n == 200
    judgement = competence_judgement(skill, parse_thresholds(LIMITS, "thresholds.yaml"))
    assert (judgement.measure, judgement.verdict, judgement.limit) == (FACT_PREFERENCE, verdict, 0.5)
    assert judgement.source == "thresholds.yaml:2"


def test_chance_is_not_taken_for_knowledge() -> None:
    """Of 400 models that know nothing, hardly one is taken for able."""
    facts, chance = find_facts(controls(30)), np.random.default_rng(0)
    skills = [prove_facts(Knowing(list(chance.random(60) < 0.5)), LIKELIHOOD, facts) for _ in range(400)]
    lows = [skill.facts.low for skill in skills if skill.facts is not None]
    assert sum(low is not None and low >= 0.5 for low in lows) <= 6


def test_without_facts_nothing_is_known() -> None:
    skill = prove_facts(Knowing([]), LIKELIHOOD, [])
    assert skill.facts == NO_DATA
    assert competence_judgement(skill, parse_thresholds(LIMITS, "thresholds.yaml")).verdict is Verdict.NO_DATA


def test_a_file_may_ask_for_more_than_chance() -> None:
    limits = LIMITS.replace("{min_control_accuracy: 0.60}", "{min_control_accuracy: 0.60, min_fact_preference: 0.60}")
    skill = Skill(None, None, 0, 0.0, facts=Measured(0.65, 0.58, 0.72, 400))
    assert competence_judgement(skill, parse_thresholds(limits, "thresholds.yaml")).verdict is Verdict.INCONCLUSIVE
