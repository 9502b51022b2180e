"""Checks a model that is read by its likelihoods: does it find true facts likelier than false ones?

A likelihood is neither right nor wrong. But a control that follows from its premise and one that contradicts it can be
compared like the sides of a pair. A model that knows nothing finds the true one likelier in half of the cases.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from bbnli_audit.core.results.rows import NO_DATA, Measured, Skill
from bbnli_audit.core.values import Control, Label, Pair, TextPair
from bbnli_audit.measures.readings.table import Reading
from bbnli_audit.models.protocol import Predictor, check_predictions

# A model without any knowledge would be taken for an able one in 1 of 200 cases.
CONFIDENCE = 0.99
_MOST = 480  # facts; more would cost more than they tell


def find_facts(controls: Iterable[Control]) -> list[Pair]:
    """Pair each control that follows from its premise with the most similar one that contradicts the same premise.

    The true side stands as `pro`, the false one as `anti`. Of many facts some are drawn by a hash of their texts.
    """
    by_premise: dict[str, dict[Label, set[str]]] = {}
    for control in controls:
        labels = by_premise.setdefault(control.text.premise, {})
        labels.setdefault(control.expected, set()).add(control.text.hypothesis)
    facts = [
        Pair(sha256(premise.encode()).hexdigest()[:12], TextPair(premise, true), TextPair(premise, false))
        for premise, labels in by_premise.items()
        for true in labels.get(Label.ENTAILMENT, ())
        for false in _most_similar(true, labels.get(Label.CONTRADICTION, set()))
    ]
    return sorted(facts, key=lambda fact: fact.id)[:_MOST]


def _most_similar(sentence: str, others: set[str]) -> list[str]:
    words = set(sentence.lower().split())
    return sorted(others, key=lambda other: (-len(words & set(other.lower().split())), other))[:1]


def texts_of_facts(reading: Reading, facts: Sequence[Pair]) -> list[TextPair]:
    """Return what the model predicts: each true version beside its false one."""
    return [reading.ask(fact)[0] for fact in facts]


def prove_facts(predictor: Predictor, reading: Reading, facts: Sequence[Pair]) -> Skill:
    """Measure the share of facts whose true version is likelier; a tie counts half."""
    import numpy as np

    from bbnli_audit.measures.statistics.intervals import estimate_means

    found = NO_DATA
    if facts:
        predictions = predictor.predict(texts_of_facts(reading, facts))
        true, false, _ = check_predictions(predictions, len(facts), predictor.info.name).probabilities.T
        premises = np.array([fact.cluster for fact in facts])
        [estimate] = estimate_means((1 + np.sign(true - false)) / 2, premises, CONFIDENCE)
        found = Measured(estimate.value, estimate.low, estimate.high, estimate.n)
    return Skill(None, None, n_controls=0, best_constant=0.0, facts=found)
