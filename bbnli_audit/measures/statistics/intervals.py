"""Confidence intervals for means of pair values in [0, 1], when pairs share templates.

Pairs written from the same templates tend to fail together, so a thousand pairs can be worth far fewer
independent observations. The interval of a mean is a Clopper-Pearson interval whose sample size is the number
of independent observations the pairs are worth (Korn & Graubard 1998). The interval of a difference combines two such
intervals. If premises and hypotheses are crossed, both count (Cameron, Gelbach & Miller 2011). What pairs are worth is
estimated after adding one imagined cluster of failures and one of successes, so that zero failures never give
certainty. The spread between templates in other subtopics (`Spread`) can make an interval wider, never narrower. No
random numbers are used. The reasons and the measured coverage are in docs/decisions/0002-intervals.md.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from bbnli_audit.measures.statistics.design import Design, Grouping
from bbnli_audit.measures.statistics.shared import Ties

_Floats = NDArray[np.float64]
# Where a decision may take more than this many times as many templates, nobody will write them: no number is named.
MOST_TIMES = 10.0


class Estimate(NamedTuple):
    """A mean, or a difference of two means, with its confidence interval; nan when there is no data.

    `n_effective` is how many independent observations the `n` pairs are worth, never more than `n`. With few templates
    it is a little smaller at a higher confidence. For a difference, it is the smaller `n_effective` of its two means.
    """

    value: float
    low: float
    high: float
    n: int
    n_clusters: int
    n_effective: float


_NOTHING = Estimate(math.nan, math.nan, math.nan, 0, 0, 0.0)


class Spread(NamedTuple):
    """How alike the values of two pairs are if they share a template, over many subtopics (0 not at all, 1 fully)."""

    pair: float  # the variance of one value, divided by that of a yes-or-no value with the same mean
    cluster: float
    first: float  # they share the first factor only
    second: float


def find_spreads(values: ArrayLike, design: Design) -> list[Spread]:
    """Find the spread of each column over all blocks: for pairs that share a template, the mean product of residuals.

    The residuals of a block add up to 0, so pairs that share no template have a slightly negative mean product. That
    product is subtracted.
    """
    columns = _as_columns(np.asarray(values, dtype=np.float64))
    totals = design.blocks.totals(columns)
    residuals = columns - (totals / design.sizes[:, np.newaxis])[design.block_of]
    shrunk = _shrink(totals, design)
    size = shrunk * (1.0 - shrunk)

    def products(groups: Grouping) -> _Floats:
        return groups.by_block(groups.totals(residuals) ** 2)

    own, within = design.blocks.totals(residuals**2), products(design.cells)
    first, second = map(products, design.factors)
    n, in_cells = design.sizes, design.cells.n_together
    of_first, of_second = (factor.n_together for factor in design.factors)
    found = (
        (own, n),
        (within - own, in_cells - n),
        (first - within, of_first - in_cells),
        (second - within, of_second - in_cells),
        (
            within - first - second,
            n**2 - (of_first + of_second - in_cells),
        ),  # they share nothing
    )
    sums = np.array([total.sum(axis=0) for total, _ in found])
    weights = np.array([n_couples @ size for _, n_couples in found])
    alike = np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)
    pair, cluster, one, other = alike[:4] - alike[4]
    one, other = np.maximum(one, 0.0), np.maximum(other, 0.0)
    cluster = np.maximum(cluster, np.maximum(one, other))
    return [Spread(*map(float, each)) for each in zip(pair, cluster, one, other, strict=True)]


class _Tied(NamedTuple):
    """What subtopics share. All are shares: of each subtopic's standard deviation, or of its variance."""

    residuals: Sequence[_Floats]  # totals over the pairs of a shared template in one subtopic; (groups, columns)
    imagined: _Floats  # what the imagined clusters add to the variance; (blocks, columns)
    disagreeing: _Floats  # what they add to the covariance of a measure with its partner; (blocks, columns / 2)


class _Sample(NamedTuple):
    """The estimates for each column in each subtopic. Arrays are (blocks, columns)."""

    design: Design
    means: _Floats  # (columns,), the plain means over all pairs
    shrunk_means: _Floats  # the means that include the imagined clusters
    own_worths: _Floats  # what the pairs are worth, taking their own estimated spread as certain
    pooled_worths: _Floats  # what they are worth by the spread of the run; infinite if that is not known
    correlations: _Floats  # of the two measures of each difference; empty if there is none
    tied: "_Tied | None"


def estimate_means(
    values: ArrayLike, clusters: "Design | ArrayLike", confidence: float = 0.95, spreads: Sequence[Spread] = ()
) -> list[Estimate]:
    """Estimate the mean of each column, with an interval that allows for shared templates.

    Values lie in [0, 1], in shape (n,) for one measure or (n, m) for several on the same pairs. Clusters are a Design,
    or one name or number for each pair. The confidence is at least 0.5 and below 1. Anything else is a ValueError.
    """
    _check_confidence(confidence)
    columns, design = _checked(values, clusters)
    if columns.shape[0] == 0:
        return [_NOTHING] * columns.shape[1]
    sample = _sample(columns, design, spreads)
    n_effective, _ = _worths(sample, confidence)
    return _listed(design, sample.means, *clopper_pearson(sample.means, n_effective, confidence), n_effective)


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
        """Take the values of two measures (see `estimate_difference`); return None without pairs.

        Values are (n,), or (n, m) for m differences at once. `spreads` has those of all
        first measures, then those of all second ones.
        """
        one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if one.ndim not in (1, 2) or one.shape != other.shape:
            raise ValueError(f"first and second must have one shape, (n,) or (n, m), got {one.shape} and {other.shape}")
        columns, design = _checked(np.column_stack([one, other]), clusters)
        return None if columns.shape[0] == 0 else cls(_sample(columns, design, spreads, is_paired=True))

    def estimate(self, confidence: float) -> Estimate:
        """Estimate the difference; if there are several, the first."""
        return self.estimates(confidence)[0]

    def estimates(self, confidence: float) -> list[Estimate]:
        """Estimate all differences."""
        sample, half = self.sample, self.sample.correlations.shape[1]
        n_effective, variances = _worths(sample, confidence)
        low, high = clopper_pearson(sample.means, n_effective, confidence)
        below, above = sample.means - low, high - sample.means
        correlation = _correlate(sample, variances)
        value = sample.means[:half] - sample.means[half:]
        least = np.maximum(value - _square_and_add(below[:half], above[half:], correlation), -1.0)
        most = np.minimum(value + _square_and_add(above[:half], below[half:], correlation), 1.0)
        return _listed(sample.design, value, least, most, np.minimum(n_effective[:half], n_effective[half:]))


def times_needed(estimate: Estimate, limit: float, confidence: float) -> tuple[float, float] | None:
    """Estimate by what factor the number of templates must grow to bring a decision: a lower and an upper figure.

    An interval shrinks with the root of the number of templates. The true value may lie a standard error nearer to the
    limit or further from it, hence two figures. None if it is too close to call: the limit is within a standard error,
    or so near that even MOST_TIMES as many templates may not decide.
    """
    distance = abs(estimate.value - limit)
    reach = estimate.high - estimate.value if estimate.value <= limit else estimate.value - estimate.low
    error = (estimate.high - estimate.low) / 2.0 / float(ndtri((1.0 + confidence) / 2.0))
    if math.isnan(distance) or distance <= error:
        return None
    least, most = (max((reach / each) ** 2, 1.0) for each in (distance + error, distance - error))
    return (least, most) if most <= MOST_TIMES else None


def _check_confidence(confidence: float) -> None:
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence}")


def _as_columns(values: _Floats) -> _Floats:
    return values[:, np.newaxis] if values.ndim == 1 else values


def _checked(values: ArrayLike, clusters: "Design | ArrayLike") -> tuple[_Floats, Design]:
    columns = _as_columns(np.asarray(values, dtype=np.float64))
    shape = (len(clusters),) if isinstance(clusters, Design) else np.shape(clusters)
    if columns.ndim != 2 or shape != columns.shape[:1]:
        raise ValueError(f"values must be (n,) or (n, m) and clusters (n,), got {np.shape(values)} and {shape}")
    if not np.all((columns >= 0.0) & (columns <= 1.0)):
        raise ValueError("values must lie in [0, 1] and not be nan")
    return columns, clusters if isinstance(clusters, Design) else Design.of(clusters)


def _shrink(totals: _Floats, design: Design) -> _Floats:
    """Return the means from the sums over each block, with the two imagined clusters added."""
    sizes, imagined = design.sizes[:, np.newaxis], design.typical_sizes[:, np.newaxis]
    return np.asarray((totals + imagined) / (sizes + 2.0 * imagined), dtype=np.float64)


def _sample(columns: _Floats, design: Design, spreads: Sequence[Spread], *, is_paired: bool = False) -> _Sample:
    means = _shrink(design.blocks.totals(columns), design)
    residuals = columns - means[design.block_of]
    squares, correlations = _squares(residuals, means, design, is_paired=is_paired)
    sizes = design.sizes[:, np.newaxis]
    enlarged = sizes + 2.0 * design.typical_sizes[:, np.newaxis]
    return _Sample(
        design=design,
        means=columns.mean(axis=0),
        shrunk_means=means,
        own_worths=sizes * means * (1.0 - means) * enlarged / squares,
        pooled_worths=_pooled_worths(spreads, design) if spreads else np.full_like(means, math.inf),
        correlations=correlations,
        tied=None if design.ties is None else _tie(residuals, means, squares, design.ties, design),
    )


def _tie(residuals: _Floats, means: _Floats, squares: _Floats, ties: Ties, design: Design) -> _Tied:
    imagined, half = design.typical_sizes[:, np.newaxis] ** 2, means.shape[1] // 2
    sizes = np.sqrt(squares[:, : 2 * half])
    return _Tied(
        residuals=ties.scale(ties.totals(residuals), 1.0 / np.sqrt(squares)),
        imagined=imagined * _agreeing(means) / squares,
        disagreeing=imagined * _disagreeing(means) / (sizes[:, :half] * sizes[:, half:]),
    )


def _agreeing(means: _Floats) -> _Floats:
    """Return the sum of squared residuals of the two imagined clusters, of one pair each."""
    return np.asarray((1.0 - means) ** 2 + means**2, dtype=np.float64)


def _disagreeing(means: _Floats) -> _Floats:
    """Return the sum of their products for two measures that disagree in them, each with its partner."""
    half = means.shape[1] // 2
    one, other = means[:, :half], means[:, half : 2 * half]
    return np.asarray(-((1.0 - one) * other + one * (1.0 - other)), dtype=np.float64)


def _pooled_worths(spreads: Sequence[Spread], design: Design) -> _Floats:
    """Return what the pairs of each block are worth if the spread is that of the run."""
    n, in_cells = design.sizes, design.cells.n_together
    of_first, of_second = (factor.n_together for factor in design.factors)
    couples = np.column_stack([n, in_cells - n, of_first - in_cells, of_second - in_cells])
    variance = couples @ np.array(spreads).T
    without_spread: _Floats = np.full_like(variance, math.inf)
    worths: _Floats = np.divide(n[:, np.newaxis] ** 2, variance, out=without_spread, where=variance > 0)
    return worths


def _squares(residuals: _Floats, means: _Floats, design: Design, *, is_paired: bool) -> tuple[_Floats, _Floats]:
    """Sum the residuals of each cluster, and return the sum of the squares of these sums.

    In a crossed block, take this sum for each of the two factors, add the two, and subtract the sum for the
    clusters. The result is never below the sum for the clusters. Also return the correlation of the two measures of
    a difference, which are taken to disagree in the imagined clusters.
    """
    imagined = design.typical_sizes[:, np.newaxis] ** 2
    is_crossed = design.is_crossed[:, np.newaxis]
    few = [each[:, np.newaxis] for each in design.too_small]
    totals = [groups.totals(residuals) for groups in (design.cells, *design.factors)]

    def two_way(one: slice, other: slice, added: _Floats) -> tuple[_Floats, _Floats]:
        cells, first, second = (
            groups.by_block(each[:, one] * each[:, other]) + added
            for groups, each in zip((design.cells, *design.factors), totals, strict=True)
        )
        return np.where(is_crossed, few[0] * first + few[1] * second - cells, cells), cells

    every = slice(None)
    crossed, cells = two_way(every, every, imagined * _agreeing(means))
    squares = np.maximum(crossed, cells)
    if not is_paired:
        return squares, squares[:, :0]
    half = means.shape[1] // 2
    products, _ = two_way(slice(half), slice(half, None), imagined * _disagreeing(means))
    return squares, np.clip(products / np.sqrt(squares[:, :half] * squares[:, half:]), -1.0, 1.0)


def _worths(sample: _Sample, confidence: float) -> tuple[_Floats, _Floats]:
    """Return, for each column, what all pairs are worth, and what each block adds to the variance of the mean.

    The worth of a block is between its least possible worth and its number of pairs. What the block's
    own variance says is corrected, because few levels tell little of a variance (Student's t).
    """
    design = sample.design
    sizes, n = design.sizes, float(len(design))
    quantile, levels = (1.0 + confidence) / 2.0, design.fewest_levels
    # A variance cannot be estimated from one level at all.
    ratio = stdtrit(np.maximum(sizes - 1.0, 1.0), quantile) / stdtrit(np.maximum(levels - 1.0, 1.0), quantile)
    certainty = np.where(levels > 1, ratio**2, 0.0)
    worths = np.minimum(sample.own_worths * certainty[:, np.newaxis], sample.pooled_worths)
    worths = np.clip(worths, design.least_worth[:, np.newaxis], sizes[:, np.newaxis])
    variances = (sizes[:, np.newaxis] / n) ** 2 * sample.shrunk_means * (1.0 - sample.shrunk_means) / worths
    if len(sizes) == 1:
        return worths[0], variances
    overall, variance = sizes @ sample.shrunk_means / n, _add_up(sample, variances)
    least = 1.0 if design.ties is None else design.least_worth_together
    return np.clip(overall * (1.0 - overall) / variance, least, n), variances


def _add_up(sample: _Sample, variances: _Floats) -> _Floats:
    """Return the variance of each column's mean: of all subtopics, and of what they share."""
    own: _Floats = variances.sum(axis=0)
    return own if sample.tied is None else own + sum(_shared_variances(sample, sample.tied, variances))


def _shared_variances(sample: _Sample, tied: _Tied, variances: _Floats) -> tuple[_Floats, _Floats]:
    """Return what shared templates add to the variance of each mean: the real ones, and the imagined clusters.

    Imagined clusters are shared as far as the real templates are alike in different subtopics.
    """
    design, ties = sample.design, sample.design.ties
    assert ties is not None
    totals = ties.scale(tied.residuals, np.sqrt(variances))
    shared = ties.alike(totals, design.sizes)
    return ties.variance(totals), (shared * tied.imagined * variances).sum(axis=0)


def _correlate(sample: _Sample, variances: _Floats) -> _Floats:
    """Return the correlation of the means of each measure and its partner."""
    half = variances.shape[1] // 2
    first, second = variances[:, :half], variances[:, half:]
    covariance = (sample.correlations * np.sqrt(first * second)).sum(axis=0)
    if sample.tied is not None:
        covariance = covariance + _shared_covariance(sample, sample.tied, variances)
    summed = _add_up(sample, variances)
    found = np.asarray(covariance / np.sqrt(summed[:half] * summed[half:]), dtype=np.float64)
    return found if sample.tied is None else np.clip(found, -1.0, 1.0)


def _shared_covariance(sample: _Sample, tied: _Tied, variances: _Floats) -> _Floats:
    """Return what shared templates add to the covariance of a measure with its partner."""
    design, ties, half = sample.design, sample.design.ties, variances.shape[1] // 2
    assert ties is not None
    totals = ties.scale(tied.residuals, np.sqrt(variances))
    first, second = [each[:, :half] for each in totals], [each[:, half:] for each in totals]
    most = np.sqrt(ties.variance(first) * ties.variance(second))
    real = np.clip(ties.covariance(first, second), -most, most)
    weights = np.sqrt(ties.alike(totals, design.sizes) * variances)
    imagined = (weights[:, :half] * weights[:, half:] * tied.disagreeing).sum(axis=0)
    return np.asarray(real + imagined, dtype=np.float64)


def _listed(design: Design, values: _Floats, lows: _Floats, highs: _Floats, worths: _Floats) -> list[Estimate]:
    columns = zip(values.tolist(), lows.tolist(), highs.tolist(), worths.tolist(), strict=True)
    n, n_clusters = len(design), design.n_clusters
    return [Estimate(value, low, high, n, n_clusters, worth) for value, low, high, worth in columns]


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


def _square_and_add(one: _Floats, other: _Floats, correlation: _Floats) -> _Floats:
    reach = np.sqrt(np.maximum(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))
    return np.asarray(reach, dtype=np.float64)
