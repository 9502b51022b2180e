"""Confidence intervals for means of pair values in [0, 1] when pairs come in clusters.

Pairs written from the same templates tend to fail together, so a thousand pairs can be worth far fewer
independent observations. Each interval here is a Clopper-Pearson interval whose sample size is the number
of independent observations the pairs are worth (Korn & Graubard 1998). That number is estimated after adding
one imagined cluster of failures and one of successes, so that seeing nothing never counts as certainty.
No random numbers are used. The reasons and the measured coverage are in docs/decisions/0002-intervals.md.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

LARGEST_PAIR_COUNT = 10_000_000  # beyond this many pairs `pairs_needed` calls the limit undecidable

_Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean, or a difference of two means, with its confidence interval; nan when there is no data.

    `n_effective` is how many independent observations the `n` pairs are worth, never more than `n`. It is a little
    smaller at a higher confidence when clusters are few. For a difference it is the smaller of the two.
    """

    value: float
    low: float
    high: float
    n: int
    n_clusters: int
    n_effective: float


_NOTHING = Estimate(math.nan, math.nan, math.nan, 0, 0, 0.0)


class _Sample(NamedTuple):
    """Cluster totals, one column per measure, and what follows from them."""

    sizes: _Floats  # (clusters,)
    residuals: _Floats  # (clusters, columns), about the mean that includes the imagined clusters
    typical_size: float  # size of the cluster of a randomly chosen pair
    means: _Floats  # (columns,), the plain means
    shrunk_means: _Floats  # (columns,), the means that include the imagined clusters
    squares: _Floats  # (columns,), sum of squared residuals, imagined clusters included


def estimate_means(values: ArrayLike, clusters: ArrayLike, confidence: float = 0.95) -> list[Estimate]:
    """Estimate the mean of each column with an interval that respects the clusters.

    Values lie in [0, 1], in shape (n,) for one measure or (n, m) for several on the same pairs. Clusters are integers
    or strings. The confidence is at least 0.5 and below 1. Anything else is a ValueError.
    """
    _check_confidence(confidence)
    columns, labels = _checked(values, clusters)
    if columns.shape[0] == 0:
        return [_NOTHING] * columns.shape[1]
    return _estimates(_sample(columns, labels), confidence)


def estimate_difference(first: ArrayLike, second: ArrayLike, clusters: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Estimate mean(first) - mean(second) for two measures of the same pairs.

    The two single intervals are combined by square-and-add (Newcombe 1998; Zou & Donner 2008), which keeps
    their asymmetry. The correlation between the measures is taken from the cluster residuals. In the imagined
    clusters the measures disagree, so even two measures that never differed leave room for a difference. Arguments are
    as for `estimate_means`; the bounds lie in [-1, 1].
    """
    _check_confidence(confidence)
    difference = Difference.of(first, second, clusters)
    return _NOTHING if difference is None else difference.estimate(confidence)


class Difference(NamedTuple):
    """The difference of two measures of the same pairs, ready to be estimated at any confidence."""

    sample: _Sample
    correlation: float

    @classmethod
    def of(cls, first: ArrayLike, second: ArrayLike, clusters: ArrayLike) -> "Difference | None":
        """Take the values of two measures (see `estimate_difference`); None when there are no pairs."""
        one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if one.ndim != 1 or one.shape != other.shape:
            raise ValueError(f"first and second must have one shape (n,), got {one.shape} and {other.shape}")
        columns, labels = _checked(np.column_stack([one, other]), clusters)
        if columns.shape[0] == 0:
            return None
        sample = _sample(columns, labels)
        return cls(sample, _correlation(sample))

    def estimate(self, confidence: float, growth: float = 1.0) -> Estimate:
        """Bound the difference, as if there were `growth` times as many pairs of the same kind."""
        left, right = _estimates(self.sample, confidence, growth)
        value = left.value - right.value
        below = _square_and_add(left.value - left.low, right.high - right.value, self.correlation)
        above = _square_and_add(left.high - left.value, right.value - right.low, self.correlation)
        low, high = max(value - below, -1.0), min(value + above, 1.0)
        return Estimate(value, low, high, left.n, left.n_clusters, min(left.n_effective, right.n_effective))


def pairs_needed(estimate: Estimate, limit: float, confidence: float = 0.95) -> int | None:
    """Count the pairs, seen ones included, after which the interval of a mean would lie on one side of the limit.

    None if no number up to `LARGEST_PAIR_COUNT` would do. The rate and the worth of one pair (`n_effective / n`) are
    held as they are. More clusters usually raise that worth, so the answer errs on the high side. The rate may move.
    """
    _check_confidence(confidence)
    if estimate.n == 0 or math.isnan(estimate.value):
        return None

    def decides(n_pairs: int) -> bool:
        n_effective = np.array([estimate.n_effective * n_pairs / estimate.n])
        low, high = _clopper_pearson(np.array([estimate.value]), n_effective, confidence)
        return bool(high[0] <= limit) if estimate.value <= limit else bool(low[0] > limit)

    return fewest_pairs(estimate.n, decides)


def difference_pairs_needed(estimate: Estimate, limit: float, _confidence: float) -> int | None:
    """Count the pairs after which the interval of a difference would lie on one side of a limit on its size.

    The reach of an interval falls with the root of the number of pairs; the value is held as it is.
    """
    size = abs(estimate.value)
    if math.isnan(size) or size == limit:
        return None
    towards_zero, outwards = estimate.value - estimate.low, estimate.high - estimate.value
    if estimate.value < 0:
        towards_zero, outwards = outwards, towards_zero
    reach = outwards if size < limit else towards_zero
    needed = math.ceil(estimate.n * (reach / (size - limit)) ** 2)
    return max(needed, estimate.n) if needed <= LARGEST_PAIR_COUNT else None


def fewest_pairs(n: int, decides: Callable[[int], bool]) -> int | None:
    """Find the smallest number of pairs, `n` or more, that decides; None if none up to `LARGEST_PAIR_COUNT` does."""
    if decides(n):
        return n
    undecided, decided = n, LARGEST_PAIR_COUNT
    if undecided >= decided or not decides(decided):
        return None
    while decided - undecided > 1:
        middle = (undecided + decided) // 2
        if decides(middle):
            decided = middle
        else:
            undecided = middle
    return decided


def _check_confidence(confidence: float) -> None:
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence}")


def _checked(values: ArrayLike, clusters: ArrayLike) -> tuple[_Floats, NDArray[Any]]:
    columns = np.asarray(values, dtype=np.float64)
    labels = np.asarray(clusters)
    if columns.ndim == 1:
        columns = columns[:, np.newaxis]
    if columns.ndim != 2 or labels.shape != columns.shape[:1]:
        raise ValueError(f"values must be (n,) or (n, m) and clusters (n,), got {np.shape(values)} and {labels.shape}")
    if not np.all((columns >= 0.0) & (columns <= 1.0)):
        raise ValueError("values must lie in [0, 1] and not be nan")
    return columns, labels


def _sample(columns: _Floats, labels: NDArray[Any]) -> _Sample:
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    totals: _Floats = np.add.reduceat(columns[order], starts, axis=0)
    sizes = counts.astype(np.float64)
    n = float(sizes.sum())
    successes = totals.sum(axis=0)
    typical_size = float((sizes**2).sum()) / n
    shrunk_means = (successes + typical_size) / (n + 2.0 * typical_size)
    residuals = totals - sizes[:, np.newaxis] * shrunk_means
    imagined = typical_size**2 * ((1.0 - shrunk_means) ** 2 + shrunk_means**2)
    return _Sample(
        sizes=sizes,
        residuals=residuals,
        typical_size=typical_size,
        means=successes / n,
        shrunk_means=shrunk_means,
        squares=(residuals**2).sum(axis=0) + imagined,
    )


def _estimates(sample: _Sample, confidence: float, growth: float = 1.0) -> list[Estimate]:
    n_effective = growth * _effective_sizes(sample, confidence)
    low, high = _clopper_pearson(sample.means, n_effective, confidence)
    n, n_clusters = int(sample.sizes.sum()), len(sample.sizes)
    return [
        Estimate(float(value), float(lower), float(upper), n, n_clusters, float(worth))
        for value, lower, upper, worth in zip(sample.means, low, high, n_effective, strict=True)
    ]


def _effective_sizes(sample: _Sample, confidence: float) -> _Floats:
    """Estimate what the pairs are worth, between the effective number of clusters and all pairs.

    The lower end is the worth when every cluster is all failure or all success; it is certain, so the
    correction for an uncertain variance (Student's t for few clusters) never goes below it.
    """
    n = float(sample.sizes.sum())
    enlarged = n + 2.0 * sample.typical_size
    design_effect = sample.squares / (sample.shrunk_means * (1.0 - sample.shrunk_means) * enlarged)
    correction = 0.0  # a variance cannot be estimated from one cluster at all
    if len(sample.sizes) > 1:
        many, few = stdtrit(np.array([n - 1.0, len(sample.sizes) - 1.0]), (1.0 + confidence) / 2.0)
        correction = float(many / few) ** 2
    n_effective = n / design_effect * correction
    return np.asarray(np.clip(n_effective, n / sample.typical_size, n), dtype=np.float64)


def _clopper_pearson(value: _Floats, n: _Floats, confidence: float) -> tuple[_Floats, _Floats]:
    """Bound a proportion from `value * n` successes in `n` trials, neither of them necessarily whole."""
    tail = (1.0 - confidence) / 2.0
    low = _lower_bound(value, n, tail)
    high = np.maximum(1.0 - _lower_bound(1.0 - value, n, tail), value)
    return low, high


def _lower_bound(value: _Floats, n: _Floats, tail: float) -> _Floats:
    successes = value * n
    some = successes > 0.0
    bound = betaincinv(np.where(some, successes, 1.0), n - successes + 1.0, tail)
    return np.asarray(np.where(some, np.minimum(bound, value), 0.0), dtype=np.float64)


def _correlation(sample: _Sample) -> float:
    """Correlate the cluster residuals of two columns that disagree in both imagined clusters."""
    one, other = sample.shrunk_means
    imagined = sample.typical_size**2 * ((1.0 - one) * -other + -one * (1.0 - other))
    products = float((sample.residuals[:, 0] * sample.residuals[:, 1]).sum()) + imagined
    return float(products / math.sqrt(float(sample.squares[0] * sample.squares[1])))


def _square_and_add(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))
