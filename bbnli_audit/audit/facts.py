"""Checks whether a model that is read by its likelihoods finds true facts likelier than false ones.

A likelihood is neither right nor wrong. But if one statement follows from a premise and another one contradicts it, the
true statement should be likelier. Two statements are used only if another premise makes the true one false and the
false one true. So a model that does not read the premise is right in exactly half of the cases.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import product

from bbnli_audit.core.results.rows import NO_DATA, Measured, Skill
from bbnli_audit.core.values import Control, Label, Pair, TextPair
from bbnli_audit.measures.readings.table import Reading
from bbnli_audit.models.protocol import Predictor, check_predictions
from bbnli_audit.suites.probe import find_controls

# A model without any knowledge would pass this check in 1 of 200 cases.
CONFIDENCE = 0.99
_MOST = 480  # largest number of facts: more would cost more time than they are worth


def find_facts(controls: Iterable[Control]) -> list[Pair]:
    """Find facts. A fact is a premise with a true statement (`pro`) and a false statement (`anti`).

    The same two statements occur with two premises. One premise makes the first statement true and the second false.
    The other premise does the reverse. If there are too many facts, some are drawn by a hash of their texts. If the
    controls have no facts, the facts of our own benchmark are used.
    """
    premises = _premises_of(controls) or _premises_of(find_controls([]))
    facts = [
        (_fact(cluster, premise, true, false), _fact(cluster, other, false, true))
        for (true, false), mine in premises.items()
        if true < false
        for premise, other in zip(sorted(mine), sorted(premises[false, true]), strict=False)
        for cluster in [sha256("\t".join((premise, other, true, false)).encode()).hexdigest()[:12]]
    ]
    drawn = sorted(facts, key=lambda both: both[0].cluster)[: _MOST // 2]
    return [fact for both in drawn for fact in both]


def _premises_of(controls: Iterable[Control]) -> dict[tuple[str, str], set[str]]:
    """Find the premises that make one statement true and another false, if other premises do the reverse."""
    labels: dict[str, dict[Label, set[str]]] = {}
    for control in controls:
        labels.setdefault(control.text.premise, {}).setdefault(control.expected, set()).add(control.text.hypothesis)
    premises: dict[tuple[str, str], set[str]] = {}
    for premise, of in labels.items():
        for statements in product(of.get(Label.ENTAILMENT, ()), of.get(Label.CONTRADICTION, ())):
            premises.setdefault(statements, set()).add(premise)
    return {(true, false): found for (true, false), found in premises.items() if (false, true) in premises}


def _fact(cluster: str, premise: str, true: str, false: str) -> Pair:
    return Pair(cluster, TextPair(premise, true), TextPair(premise, false))


def texts_of_facts(reading: Reading, facts: Sequence[Pair]) -> list[TextPair]:
    """Return the texts to predict: for each fact, its true version beside its false version."""
    return [reading.ask(fact)[0] for fact in facts]


def prove_facts(predictor: Predictor, reading: Reading, facts: Sequence[Pair]) -> Skill:
    """Measure the share of facts whose true version is likelier; a tie counts half."""
    import numpy as np

    from bbnli_audit.measures.statistics.intervals import estimate_means

    found = NO_DATA
    if facts:
        predictions = predictor.predict(texts_of_facts(reading, facts))
        true, false, _ = check_predictions(predictions, len(facts), predictor.info.name).probabilities.T
        clusters = np.array([fact.cluster for fact in facts])
        [estimate] = estimate_means((1 + np.sign(true - false)) / 2, clusters, CONFIDENCE)
        found = Measured(estimate.value, estimate.low, estimate.high, estimate.n)
    return Skill(None, None, n_controls=0, best_constant=0.0, facts=found)
