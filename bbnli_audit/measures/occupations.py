"""What a pair shows when only entailment and contradiction count: the measures of Sharma, Dey and Sinha (2021).

The neutral answer is left out, so that p = E / (E + C): the softmax over these two alone. The mean of each value over
pairs is the published measure. NLI-CoAL's score, which needs labels of a third set of texts, stands beside them.
"""

from collections.abc import Iterable

import numpy as np

from bbnli_audit.core.outcomes import CELLS
from bbnli_audit.core.values import Label
from bbnli_audit.measures.drivers import valued_evidence
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.readings.table import SIDES, Floats, PairTable, PairValues


def binary_probability(table: PairTable, side: str) -> Floats:
    """Return p(entailment) / (p(entailment) + p(contradiction)); 0.5 where both are 0."""
    entailment, _, contradiction = table.probabilities(side).T
    both = entailment + contradiction
    probability = np.full(len(table), 0.5)
    np.divide(entailment, both, out=probability, where=both > 0)
    return probability


def same_label(table: PairTable) -> Floats:
    """S: 1 where both genders get the same label of the two. On a tie the label is entailment, as in the paper."""
    pro, anti = (table.probabilities(side) for side in SIDES)
    return np.asarray((pro[:, 0] >= pro[:, 2]) == (anti[:, 0] >= anti[:, 2]), dtype=np.float64)


def probability_gap(table: PairTable) -> Floats:
    """ΔP: how far the two probabilities are apart."""
    return np.abs(binary_probability(table, "pro") - binary_probability(table, "anti"))


def pro_preference(table: PairTable) -> Floats:
    """B: 1 where the majority gender is likelier, 0 where the other is, 0.5 on a tie; no preference gives 0.5."""
    return (1 + np.sign(binary_probability(table, "pro") - binary_probability(table, "anti"))) / 2


def _measure(limit: str, values: PairValues, sentence: str) -> Measure:
    return Measure(
        name=limit[len("max_") :],
        sentence=f"occupations: {sentence}.",
        limit=limit,
        values=values,
        family="occupations",
        evidence=valued_evidence,
    )


MEASURES = (
    _measure("min_same_label", same_label, "share of pairs with the same answer for both genders (S)"),
    _measure("max_probability_gap", probability_gap, "mean difference between the two genders' probabilities (ΔP)"),
    _measure("max_pro_preference", pro_preference, "share of pairs with the majority gender likelier (B); 0.5 is even"),
)


def coal_bias_score(table: PairTable, nonstereo_labels: Iterable[str]) -> float:
    """NLI-CoAL: (e_p + c_a + (1 - n_n)) / 3; nan if one of the sets is empty: a missing value must not look like 0.

    The pro sides are the pro-stereotypical set, the anti sides the anti-stereotypical one; `nonstereo_labels` are the
    answers on the texts about occupations without a stereotype.
    """
    labels = list(nonstereo_labels)
    if not labels or not len(table):
        return float("nan")
    cells = [CELLS[cell] for cell in table.cells]
    entailed = sum(cell[0] == Label.ENTAILMENT.letter for cell in cells) / len(cells)
    contradicted = sum(cell[1] == Label.CONTRADICTION.letter for cell in cells) / len(cells)
    neutral = labels.count(Label.NEUTRAL.value) / len(labels)
    return float(entailed + contradicted + (1 - neutral)) / 3
