"""Confidence intervals for means of pair values in [0, 1], when pairs share templates.

Pairs written from the same templates tend to fail together, so a thousand pairs can be worth far fewer
independent observations. Each interval here is a Clopper-Pearson interval whose sample size is the number
of independent observations the pairs are worth (Korn & Graubard 1998). Where premises and hypotheses are crossed,
both count (Cameron, Gelbach & Miller 2011). That number is estimated after adding one imagined cluster of failures and
one of successes, so that seeing nothing never counts as certainty. What other subtopics show about the spread between
templates (`Spread`) can make an interval wider, never narrower. No random numbers are used. The reasons and the
measured coverage are in docs/decisions/0002-intervals.md.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from bbnli_audit.measures.statistics.design import Block, Design, Grouping

_Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean, or a difference of two means, with its confidence interval; nan when there is no data.

    `n_effective` is how many independent observations the `n` pairs are worth, never more than `n`. It is a little
    smaller at a higher confidence when templates are few. For a difference it is the smaller of the two.
    """

    value: float
    low: float
    high: float
    n: int
    n_clusters: int
    n_effective: float


_NOTHING = Estimate(math.nan, math.nan, math.nan, 0, 0, 0.0)


class Spread(NamedTuple):
    """How alike two pairs are that share something, over many subtopics; 0 not at all, 1 wholly."""

    pair: float  # the variance of a value, as a share of that of a yes-or-no value with the same mean
    cluster: float
    first: float  # they share the first factor only
    second: float

    def worth(self, block: Block) -> float:
        """Return how many independent observations the pairs of a subtopic are worth."""
        n = len(block.rows)
        in_cells = block.cells.n_together
        variance = n * self.pair + (in_cells - n) * self.cluster
        for factor, alike in zip(block.factors, (self.first, self.second), strict=False):
            variance += (factor.n_together - in_cells) * alike
        return n * n / variance if variance > 0 else math.inf  # no spread at all


def find_spreads(values: ArrayLike, design: Design) -> list[Spread]:
    """Find the spread of each column over all blocks: mean products of residuals of two pairs that share something.

    Pairs that share nothing are slightly unlike because residuals are about the mean of their block; this is taken off.
    """
    columns = _as_columns(np.asarray(values, dtype=np.float64))
    sums = np.zeros(
        (5, columns.shape[1])
    )  # of products: own, same cluster, first factor, second factor, nothing shared
    weights = np.zeros_like(sums)
    for block in design.blocks:
        here = columns[block.rows]
        n, cells = len(here), block.cells
        residuals = here - here.mean(axis=0)
        shrunk = _shrink(here.sum(axis=0), n, cells)
        size = shrunk * (1.0 - shrunk)
        own, within = (residuals**2).sum(axis=0), (cells.totals(residuals) ** 2).sum(axis=0)
        found = [(own, float(n)), (within - own, cells.n_together - n)]
        both = [((each.totals(residuals) ** 2).sum(axis=0), each.n_together) for each in block.factors]
        found += [(total - within, couples - cells.n_together) for total, couples in both] or [(0.0 * own, 0.0)] * 2
        shared = sum(total for total, _ in both) - within if both else within
        couples = sum(n_couples for _, n_couples in both) - cells.n_together if both else cells.n_together
        found.append((-shared, n * n - couples))
        for kind, (total, n_couples) in enumerate(found):
            sums[kind] += total
            weights[kind] += n_couples * size
    alike = np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)
    pair, cluster, first, second = alike[:4] - alike[4]
    first, second = np.maximum(first, 0.0), np.maximum(second, 0.0)
    cluster = np.maximum(cluster, np.maximum(first, second))
    return [Spread(*map(float, each)) for each in zip(pair, cluster, first, second, strict=True)]


class _Sample(NamedTuple):
    """What is known of each column in each subtopic. Arrays are (blocks, columns)."""

    design: Design
    sizes: _Floats  # (blocks,)
    means: _Floats  # (columns,), the plain means over all pairs
    shrunk_means: _Floats  # the means that include the imagined clusters
    squares: _Floats  # summed squares of residuals, in the two-way sense, imagined clusters included
    correlations: _Floats  # (blocks,), of the first two columns; 0 if there is one
    spreads: Sequence[Spread]


def estimate_means(
    values: ArrayLike, clusters: "Design | ArrayLike", confidence: float = 0.95, spreads: Sequence[Spread] = ()
) -> list[Estimate]:
    """Estimate the mean of each column with an interval that respects the templates.

    Values lie in [0, 1], in shape (n,) for one measure or (n, m) for several on the same pairs. Clusters are a design,
    or the integers or names that make one. The confidence is at least 0.5 and below 1. Anything else is a ValueError.
    """
    _check_confidence(confidence)
    columns, design = _checked(values, clusters)
    if columns.shape[0] == 0:
        return [_NOTHING] * columns.shape[1]
    return _estimates(_sample(columns, design, spreads), confidence)


def estimate_difference(
    first: ArrayLike,
    second: ArrayLike,
    clusters: "Design | ArrayLike",
    confidence: float = 0.95,
    spreads: Sequence[Spread] = (),
) -> Estimate:
    """Estimate mean(first) - mean(second) for two measures of the same pairs.

    The two single intervals are combined by square-and-add (Newcombe 1998; Zou & Donner 2008), which keeps
    their asymmetry. The correlation between the measures is taken from the residuals of the templates. In the imagined
    clusters the measures disagree, so even two measures that never differed leave room for a difference. Arguments are
    as for `estimate_means`; the bounds lie in [-1, 1].
    """
    _check_confidence(confidence)
    difference = Difference.of(first, second, clusters, spreads)
    return _NOTHING if difference is None else difference.estimate(confidence)


class Difference(NamedTuple):
    """The difference of two measures of the same pairs, ready to be estimated at any confidence."""

    sample: _Sample

    @classmethod
    def of(
        cls, first: ArrayLike, second: ArrayLike, clusters: "Design | ArrayLike", spreads: Sequence[Spread] = ()
    ) -> "Difference | None":
        """Take the values of two measures (see `estimate_difference`); None when there are no pairs."""
        one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if one.ndim != 1 or one.shape != other.shape:
            raise ValueError(f"first and second must have one shape (n,), got {one.shape} and {other.shape}")
        columns, design = _checked(np.column_stack([one, other]), clusters)
        return None if columns.shape[0] == 0 else cls(_sample(columns, design, spreads))

    def estimate(self, confidence: float) -> Estimate:
        worths, variances = _worths(self.sample, confidence)
        left, right = _estimates(self.sample, confidence, worths)
        covariance = float((self.sample.correlations * np.sqrt(variances.prod(axis=1))).sum())
        one, other = variances.sum(axis=0)
        correlation = covariance / math.sqrt(float(one * other))
        value = left.value - right.value
        below = _square_and_add(left.value - left.low, right.high - right.value, correlation)
        above = _square_and_add(left.high - left.value, right.value - right.low, correlation)
        low, high = max(value - below, -1.0), min(value + above, 1.0)
        return Estimate(value, low, high, left.n, left.n_clusters, min(left.n_effective, right.n_effective))


def times_needed(estimate: Estimate, limit: float, confidence: float) -> tuple[float, float] | None:
    """Return how many times as many templates of the same kind would bring a decision, from and to.

    An interval shrinks with the root of the number of templates. The true value may lie a standard error nearer to the
    limit or further from it, hence two numbers. None if the limit is within a standard error: too close to call.
    """
    distance = abs(estimate.value - limit)
    reach = estimate.high - estimate.value if estimate.value <= limit else estimate.value - estimate.low
    error = (estimate.high - estimate.low) / 2.0 / float(ndtri((1.0 + confidence) / 2.0))
    if math.isnan(distance) or distance <= error:
        return None
    return tuple(max((reach / each) ** 2, 1.0) for each in (distance + error, distance - error))  # type: ignore[return-value]


def _check_confidence(confidence: float) -> None:
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence}")


def _as_columns(values: _Floats) -> _Floats:
    return values[:, np.newaxis] if values.ndim == 1 else values


def _checked(values: ArrayLike, clusters: "Design | ArrayLike") -> tuple[_Floats, Design]:
    columns = _as_columns(np.asarray(values, dtype=np.float64))
    shape = (sum(len(block.rows) for block in clusters.blocks),) if isinstance(clusters, Design) else np.shape(clusters)
    if columns.ndim != 2 or shape != columns.shape[:1]:
        raise ValueError(f"values must be (n,) or (n, m) and clusters (n,), got {np.shape(values)} and {shape}")
    if not np.all((columns >= 0.0) & (columns <= 1.0)):
        raise ValueError("values must lie in [0, 1] and not be nan")
    return columns, clusters if isinstance(clusters, Design) else Design.of(clusters)


def _typical_size(cells: Grouping) -> float:
    """Return the size of the cluster of a randomly chosen pair."""
    return cells.n_together / float(cells.sizes.sum())


def _shrink(successes: _Floats, n: int, cells: Grouping) -> _Floats:
    """Return the means with the two imagined clusters."""
    return np.asarray((successes + _typical_size(cells)) / (n + 2.0 * _typical_size(cells)), dtype=np.float64)


def _sample(columns: _Floats, design: Design, spreads: Sequence[Spread]) -> _Sample:
    n_blocks, n_columns = len(design.blocks), columns.shape[1]
    shrunk_means, squares = np.zeros((n_blocks, n_columns)), np.zeros((n_blocks, n_columns))
    correlations = np.zeros(n_blocks)
    for at, block in enumerate(design.blocks):
        here = columns[block.rows]
        shrunk_means[at] = _shrink(here.sum(axis=0), len(here), block.cells)
        squares[at], correlations[at] = _squares(here - shrunk_means[at], shrunk_means[at], block)
    sizes = np.array([len(block.rows) for block in design.blocks], dtype=np.float64)
    return _Sample(design, sizes, columns.mean(axis=0), shrunk_means, squares, correlations, spreads)


def _squares(residuals: _Floats, means: _Floats, block: Block) -> tuple[_Floats, float]:
    """Sum squared residuals over clusters or, if they are crossed, over both factors less clusters.

    The second figure is the correlation of the first two columns, which disagree in both imagined clusters.
    """
    imagined = _typical_size(block.cells) ** 2
    alone = imagined * ((1.0 - means) ** 2 + means**2)

    def summed(groups: Grouping, one: int | slice, other: int | slice) -> _Floats:
        totals = groups.totals(residuals)
        return np.asarray((totals[:, one] * totals[:, other]).sum(axis=0), dtype=np.float64)

    def two_way(one: int | slice, other: int | slice, added: _Floats) -> tuple[_Floats, _Floats]:
        cells = summed(block.cells, one, other) + added
        if not block.factors:
            return cells, cells
        both = [len(each) / (len(each) - 1) * (summed(each, one, other) + added) for each in block.factors]
        return np.asarray(both[0] + both[1] - cells, dtype=np.float64), cells

    every = slice(None)
    crossed, cells = two_way(every, every, alone)
    squares = np.maximum(crossed, cells)
    if len(means) < 2:
        return squares, 0.0
    disagreeing = imagined * (-(1.0 - means[0]) * means[1] - means[0] * (1.0 - means[1]))
    products, _ = two_way(0, 1, disagreeing)
    return squares, float(np.clip(products / math.sqrt(float(squares[0] * squares[1])), -1.0, 1.0))


def _worths(sample: _Sample, confidence: float) -> tuple[_Floats, _Floats]:
    """Return what all pairs are worth, for each column, and the variances of the sums, for each block and column.

    The worth is between the least that is certain and the number of pairs.
    """
    blocks, n = sample.design.blocks, float(sample.sizes.sum())
    bernoulli = sample.shrunk_means * (1.0 - sample.shrunk_means)
    worths = np.array(
        [
            _own_worth(block, size, squares, confidence)
            for block, size, squares in zip(blocks, bernoulli, sample.squares, strict=True)
        ]
    )
    if sample.spreads:
        pooled = [[spread.worth(block) for spread in sample.spreads] for block in blocks]
        worths = np.minimum(worths, pooled)
    least, most = np.array([block.least_worth for block in blocks]), sample.sizes
    worths = np.clip(worths, least[:, np.newaxis], most[:, np.newaxis])
    variances = (sample.sizes[:, np.newaxis] / n) ** 2 * bernoulli / worths
    if len(blocks) == 1:
        return worths[0], variances
    overall = (sample.sizes[:, np.newaxis] * sample.shrunk_means).sum(axis=0) / n
    return np.clip(overall * (1.0 - overall) / variances.sum(axis=0), 1.0, n), variances


def _own_worth(block: Block, bernoulli: _Floats, squares: _Floats, confidence: float) -> _Floats:
    """Estimate the worth from the block itself, corrected for an uncertain variance (Student's t for few levels)."""
    n, levels = float(len(block.rows)), block.fewest_levels
    if levels < 2:
        return np.zeros_like(squares)  # a variance cannot be estimated from one cluster at all
    many, few = stdtrit(np.array([n - 1.0, levels - 1.0]), (1.0 + confidence) / 2.0)
    enlarged = n + 2.0 * _typical_size(block.cells)
    return np.asarray(n * bernoulli * enlarged / squares * float(many / few) ** 2, dtype=np.float64)


def _estimates(sample: _Sample, confidence: float, worths: _Floats | None = None) -> list[Estimate]:
    n_effective = _worths(sample, confidence)[0] if worths is None else worths
    low, high = clopper_pearson(sample.means, n_effective, confidence)
    n, n_clusters = int(sample.sizes.sum()), sample.design.n_clusters
    return [
        Estimate(float(value), float(lower), float(upper), n, n_clusters, float(worth))
        for value, lower, upper, worth in zip(sample.means, low, high, n_effective, strict=True)
    ]


def clopper_pearson(value: _Floats, n: _Floats, confidence: float) -> tuple[_Floats, _Floats]:
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


def _square_and_add(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))
