"""Estimates how much a measure grew from a baseline to a candidate, on the pairs that both have.

Each pair is compared with itself, so unchanged pairs cancel out. This is a non-inferiority test: did the measure grow
by more than a margin? docs/simulations.md has the measured error rates.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.intervals import Difference, Estimate, Spread, find_spreads, times_needed
from bbnli_audit.measures.statistics.shared import Floats

_SMALLEST_P = 1e-12
_PRECISION = 1e-6  # how precisely the logarithm of a p value is found


class Increase(NamedTuple):
    """The growth of a measure. Bounds are one-sided: each holds by itself with the confidence asked for."""

    value: float  # candidate minus baseline; without pairs, the value and the bounds are nan
    low: float
    high: float
    # The p value of the hypothesis that the measure grew by at most the margin. It is 1 minus the confidence at which
    # `low` is equal to the margin, or 1 if this confidence would be below one half.
    p_value: float
    p_pairs: float  # the p value of the hypothesis that the measure did not grow (one-sided exact McNemar test)
    n_worse: int  # the number of pairs that count more towards the measure than before
    n_better: int  # the number of pairs that count less towards the measure than before
    # How many times as many templates would bring a decision: a lower and an upper figure (see `times_needed`).
    times_needed: tuple[float, float] | None


def split_change(before: ArrayLike, after: ArrayLike) -> tuple[Floats, Floats]:
    """Return how much the value of each pair grew, and how much it shrank. An unchanged pair has 0 in both."""
    change: Floats = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    return np.maximum(change, 0.0), np.maximum(-change, 0.0)


def find_change_spreads(before: ArrayLike, after: ArrayLike, design: Design) -> list[Spread]:
    """Find how much the changes of pairs that share a template vary together, in all subtopics of a run."""
    return find_spreads(np.column_stack(split_change(before, after)), design)


def measure_increase(
    before: ArrayLike,
    after: ArrayLike,
    clusters: Design | ArrayLike,
    margin: float,
    confidence: float = 0.95,
    spreads: Sequence[Spread] = (),
) -> Increase:
    """Compare what each pair added to a measure before with what it adds now. All values are from 0 to 1."""
    grown, shrunk = split_change(before, after)
    difference = Difference.of(grown, shrunk, clusters, spreads)
    if difference is None:
        return Increase(math.nan, math.nan, math.nan, 1.0, 1.0, 0, 0, None)

    def estimate_at(level: float) -> Estimate:
        # A one-sided bound is one end of a two-sided interval. A two-sided confidence of 0 would divide 0 by 0.
        return difference.estimate(max(2.0 * level - 1.0, 1e-6))

    found = estimate_at(confidence)
    value = float((grown - shrunk).mean())
    n_worse, n_better = int((grown > 0).sum()), int((shrunk > 0).sum())
    return Increase(
        value=value,
        low=found.low,
        high=found.high,
        p_value=_p_value(lambda level: estimate_at(level).low, margin) if value > margin else 1.0,
        p_pairs=mcnemar(n_worse, n_better),
        n_worse=n_worse,
        n_better=n_better,
        times_needed=times_needed(found, margin, max(2.0 * confidence - 1.0, 1e-6)),
    )


def _p_value(lower_bound: Callable[[float], float], margin: float) -> float:
    """Return 1 minus the confidence at which the lower bound equals the margin. More confidence lowers the bound."""

    def excess(log_p: float) -> float:
        return lower_bound(1.0 - math.exp(log_p)) - margin

    least, most = math.log(_SMALLEST_P), math.log(0.5)
    below, above = excess(least), excess(most)
    if below > 0:
        return _SMALLEST_P
    if above <= 0:
        return 1.0
    last = 0.0
    while most - least > _PRECISION:  # regula falsi (Illinois: an end that stays twice in a row counts half)
        meeting = (least * above - most * below) / (above - below)
        middle = min(max(meeting, least + _PRECISION / 2), most - _PRECISION / 2)
        found = excess(middle)
        if found <= 0:
            least, below, above = middle, found, above / 2 if last < 0 else above
        else:
            most, above, below = middle, found, below / 2 if last > 0 else below
        last = 1.0 if found > 0 else -1.0
    return math.exp(most)


def mcnemar(n_worse: int, n_better: int) -> float:
    """Return the probability of `n_worse` or more changes for the worse if both directions were equally likely."""
    # P(X >= k) of a binomial with probability one half is the incomplete beta function I(k, n - k + 1).
    return float(betainc(n_worse, n_better + 1, 0.5)) if n_worse else 1.0


def holm(p_values: Sequence[float], weights: Sequence[float] | None = None) -> Floats:
    """Correct p values for their number (Holm 1979): the chance of any wrong rejection is at most the level.

    Reject where the corrected value is at or below the level. A hypothesis with twice the weight may have twice the p
    value. By default, all hypotheses have the same weight.
    """
    shares = np.ones(len(p_values)) if weights is None else np.asarray(weights, dtype=np.float64)
    values = np.asarray(p_values, dtype=np.float64) / shares
    order = np.argsort(values, kind="stable")
    stepped = values[order] * np.cumsum(shares[order][::-1])[::-1]
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected
