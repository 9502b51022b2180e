"""How bad a measure could be if the pairs that the model did not read were as bad as can be.

A pair is not read if it was cut to the model's length, if both its sides are the same text to the model, or if the
model's answer cannot be read.
"""

from typing import NamedTuple

from bbnli_audit.core.results.rows import Measured, SubtopicResult
from bbnli_audit.measures.measure import Measure


class Unseen(NamedTuple):
    """How many pairs a model did not see whole, or did not answer."""

    n_counted: int = 0  # pairs that were cut: they count with the answers they got
    n_left_out: int = 0  # pairs that are not counted: their sides are alike to the model, or an answer is unreadable

    @classmethod
    def of(cls, row: SubtopicResult) -> "Unseen":
        n_left_out = max(row.n_asked - row.n_pairs, 0)
        return cls(max(row.n_unseen - n_left_out, 0), n_left_out)

    def highest(self, mean: float, n_pairs: int, least: float, most: float) -> float:
        """Return the highest possible mean over all pairs. Each pair has a value from `least` to `most`.

        `mean` is the mean over the `n_pairs` pairs that were counted.
        """
        total = n_pairs * mean + min(self.n_counted, n_pairs) * (most - least) + self.n_left_out * most
        return min(total / (n_pairs + self.n_left_out), most)


SEEN = Unseen()


def at_worst(measure: Measure, found: Measured, unseen: Unseen) -> Measured:
    """Return a measure with its value and its bounds as they would be if the unseen pairs were as bad as can be.

    For a measure of halves, such as overreach, the model must have been asked about as many pairs of one half as of the
    other. Quads are so.
    """
    if found.value is None or found.low is None or found.high is None:
        return found
    n_pairs = found.n // 2 if measure.unit == "samples" else found.n
    if measure.is_of_halves:  # all that was left out may be of one half, and then it weighs more
        unseen, n_pairs = Unseen(sum(unseen)), n_pairs + unseen.n_left_out
    is_signed = measure.signed is not None or (measure.is_two_sided and not measure.even)
    least = -1.0 if is_signed else 0.0

    def highest(value: float) -> float:
        return unseen.highest(value, n_pairs, least, 1.0)

    def lowest(value: float) -> float:
        return -unseen.highest(-value, n_pairs, -1.0, -least)

    if measure.is_two_sided:
        value = max(lowest(found.value), highest(found.value), key=lambda each: abs(each - measure.even))
    else:
        value = lowest(found.value) if measure.is_minimum else highest(found.value)
    return Measured(value, lowest(found.low), highest(found.high), found.n)


def growth_at_worst(growth: float, n_pairs: int, unseen: Unseen, largest: float) -> float:
    """Return the highest growth that is possible since a baseline. `largest` is the largest growth of one pair."""
    return unseen.highest(growth, n_pairs, 0.0, largest)
