"""By how much a measure grew from a baseline to a candidate, on the pairs both were asked.

Each pair is compared with itself, so what did not change cancels out. The question is that of non-inferiority:
did the measure grow by more than a margin? Why three tests must agree before the answer is yes, and how often
the answer is wrong or missed, is in docs/decisions/0011-regression.md.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, stdtr, stdtrit

from bbnli_audit.measures.statistics.intervals import Difference, fewest_pairs

_Floats = NDArray[np.float64]


class Increase(NamedTuple):
    """The growth of a measure. Bounds are one-sided: each holds by itself with the confidence asked for."""

    value: float  # candidate less baseline; nan without pairs, as are the bounds
    low: float
    high: float
    p_value: float  # against "it grew by the margin at most": the largest of the three that follow
    p_margin: float  # Student's t over clusters, at the margin
    p_pairs: float  # exact McNemar test on the pairs that changed, one-sided, against "it did not grow"
    p_clusters: float  # the same on clusters, each counted once for the direction in which it changed on the whole
    n_worse: int  # pairs that count more towards the measure than before
    n_better: int
    pairs_needed: int | None  # that would bring a decision if nothing else changed; None when no number would


def measure_increase(
    before: ArrayLike, after: ArrayLike, clusters: ArrayLike, margin: float, confidence: float = 0.95
) -> Increase:
    """Compare what each pair added to a measure, in [0, 1], before and after."""
    change: _Floats = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    # Growth and shrinkage are two rates of the same pairs; what stayed as it was is in neither.
    difference = Difference.of(np.maximum(change, 0.0), np.maximum(-change, 0.0), clusters)
    if difference is None:
        return Increase(math.nan, math.nan, math.nan, 1.0, 1.0, 1.0, 1.0, 0, 0, None)
    spread = _Spread.of(change, np.asarray(clusters))

    def bounds(growth: float) -> tuple[float, float]:
        # Two-sided: at 0 the ratio of Student quantiles in it would be 0 / 0.
        estimate = difference.estimate(max(2.0 * confidence - 1.0, 1e-6), growth)
        return (spread.low(confidence, growth) if spread.is_known else estimate.low), estimate.high

    def decides(n_pairs: int) -> bool:
        low, high = bounds(n_pairs / len(change))
        return high <= margin or low > margin

    low, high = bounds(1.0)
    n_worse, n_better = int((change > 0).sum()), int((change < 0).sum())
    p_margin = spread.p_value(margin)
    p_pairs = mcnemar(n_worse, n_better)
    p_clusters = mcnemar(int((spread.totals > 0).sum()), int((spread.totals < 0).sum()))
    return Increase(
        value=spread.mean,
        low=low,
        high=high,
        p_value=max(p_margin, p_pairs, p_clusters),
        p_margin=p_margin,
        p_pairs=p_pairs,
        p_clusters=p_clusters,
        n_worse=n_worse,
        n_better=n_better,
        pairs_needed=fewest_pairs(len(change), decides),
    )


class _Spread(NamedTuple):
    """How much the change differs between clusters."""

    totals: _Floats  # (clusters,)
    mean: float  # over pairs
    standard_error: float  # of the mean; nan when there is one cluster only

    @classmethod
    def of(cls, change: _Floats, clusters: NDArray[np.generic]) -> "_Spread":
        _, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        totals = np.bincount(codes, weights=change).astype(np.float64)
        mean, n = float(change.mean()), len(sizes)
        squares = float(((totals - mean * sizes) ** 2).sum())
        error = math.sqrt(squares * n / (n - 1)) / len(change) if n > 1 else math.nan
        return cls(totals, mean, error)

    @property
    def is_known(self) -> bool:
        """Clusters that all changed alike, or not at all, do not tell how far others might differ."""
        return self.standard_error > 1e-12

    def low(self, confidence: float, growth: float) -> float:
        below = float(stdtrit(len(self.totals) - 1, confidence)) * self.standard_error / math.sqrt(growth)
        return max(self.mean - below, -1.0)

    def p_value(self, margin: float) -> float:
        if self.is_known:
            return float(stdtr(len(self.totals) - 1, (margin - self.mean) / self.standard_error))
        # Every cluster changed alike: the two sign tests say how sure that is.
        return 0.0 if len(self.totals) > 1 and self.mean > margin else 1.0


def mcnemar(n_worse: int, n_better: int) -> float:
    """Return the chance of at least so many changes for the worse if both directions were equally likely."""
    # P(X >= k) of a binomial with probability one half is the incomplete beta function I(k, n - k + 1).
    return float(betainc(n_worse, n_better + 1, 0.5)) if n_worse else 1.0


def holm(p_values: Sequence[float]) -> _Floats:
    """Correct p values for their number: the chance that any of them rejects wrongly stays at the level.

    Reject where the corrected value is at or below the level (Holm 1979).
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    stepped = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected
