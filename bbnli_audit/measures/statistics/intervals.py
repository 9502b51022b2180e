"""Confidence intervals for means of pair values in [0, 1], when pairs share templates.

Pairs written from the same templates tend to fail together, so a thousand pairs can be worth far fewer independent
pairs. The interval of a mean is a Clopper-Pearson interval whose sample size is the *worth* of the pairs: the number of
independent pairs that would tell as much (Korn & Graubard 1998). The interval of a difference combines two such
intervals. If premises and hypotheses are crossed, both count (Cameron, Gelbach & Miller 2011). Before the worth is
estimated, each subtopic gets one imagined cluster of failures and one of successes, so that zero failures never give
certainty. The spread between templates in other subtopics (`Spread`) can make an interval wider, never narrower. No
random numbers are used. The reasons are in docs/decisions/0002-intervals.md, measured coverage in docs/simulations.md.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtrit

from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.shared import Floats, Grouping, Ties

# No figures are given if a decision could take more than MOST_TIMES times the present number of templates, because
# nobody will write so many.
MOST_TIMES = 10.0


class Estimate(NamedTuple):
    """A mean, or a difference of two means, with its confidence interval; nan when there is no data.

    `n_effective` is the worth of the `n` pairs, never more than `n`. With few templates, a higher confidence makes it
    a little smaller. For a difference, it is the smaller `n_effective` of its two means.
    """

    value: float
    low: float
    high: float
    n: int
    n_clusters: int
    n_effective: float


NOTHING = Estimate(math.nan, math.nan, math.nan, 0, 0, 0.0)


class Spread(NamedTuple):
    """How alike the values of two pairs are, over many subtopics: 0 for not at all, 1 for fully."""

    # For a pair and itself: the variance of its value, divided by the variance of a yes or no with the same mean.
    pair: float
    cluster: float  # for two pairs that share both templates
    first: float  # for two pairs that share only the template of the first factor
    second: float  # for two pairs that share only the template of the second factor


def find_spreads(values: ArrayLike, design: Design) -> list[Spread]:
    """Find the spread of each column over all blocks.

    For every couple of pairs in a block, the residuals of the two pairs are multiplied. The products are averaged
    separately for the couples that each field of `Spread` names, and for the couples that share no template. The
    residuals of a block add up to 0, so the last of these averages is slightly negative. It is subtracted from the
    others.
    """
    columns = _as_columns(np.asarray(values, dtype=np.float64))
    totals = design.blocks.totals(columns)
    residuals = columns - (totals / design.sizes[:, np.newaxis])[design.block_of]
    shrunk = _shrink(totals, design)
    size = shrunk * (1.0 - shrunk)

    def products(groups: Grouping) -> Floats:
        return groups.by_block(groups.totals(residuals) ** 2)

    own, within = design.blocks.totals(residuals**2), products(design.cells)
    first, second = map(products, design.factors)
    n, in_cells = design.sizes, design.cells.n_together
    of_first, of_second = (factor.n_together for factor in design.factors)
    # The sums of products, and the numbers of couples, in the order of the fields of `Spread`. The last row is for
    # couples that share no template.
    found = (
        (own, n),
        (within - own, in_cells - n),
        (first - within, of_first - in_cells),
        (second - within, of_second - in_cells),
        (within - first - second, n**2 - (of_first + of_second - in_cells)),
    )
    sums = np.array([total.sum(axis=0) for total, _ in found])
    weights = np.array([n_couples @ size for _, n_couples in found])
    alike = np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)
    pair, cluster, one, other = alike[:4] - alike[4]
    one, other = np.maximum(one, 0.0), np.maximum(other, 0.0)
    cluster = np.maximum(cluster, np.maximum(one, other))
    return [Spread(*map(float, each)) for each in zip(pair, cluster, one, other, strict=True)]


class _Tied(NamedTuple):
    """The effect of templates that subtopics share.

    `residuals` are multiples of a subtopic's standard deviation, the other arrays multiples of its variance.
    """

    ties: Ties
    residuals: Sequence[Floats]  # summed over the pairs of a shared template in one subtopic; (groups, columns)
    imagined: Floats  # what the imagined clusters add to the variance; (blocks, columns)
    disagreeing: Floats  # what these clusters add to the covariance of a difference's measures; (blocks, columns / 2)

    def totals(self, variances: Floats) -> list[Floats]:
        """Return the residuals in the unit of the measures, from the variance of each block."""
        return self.ties.scale(self.residuals, np.sqrt(variances))


class _Sample(NamedTuple):
    """What is known of each column in each subtopic, before a confidence is chosen. Arrays are (blocks, columns)."""

    design: Design
    means: Floats  # (columns,), the plain means over all pairs
    shrunk_means: Floats  # the means that include the imagined clusters
    own_worths: Floats  # the worth of the pairs by the spread in their own subtopic, uncorrected for few templates
    pooled_worths: Floats  # the worth of the pairs by the spread of the run; infinite if that spread is not known
    correlations: Floats  # the correlation of the two measures of each difference; empty if there is no difference
    tied: _Tied | None  # None if subtopics share no templates


def estimate_means(
    values: ArrayLike, clusters: Design | ArrayLike, confidence: float = 0.95, spreads: Sequence[Spread] = ()
) -> list[Estimate]:
    """Estimate the mean of each column, with an interval that allows for shared templates.

    Values lie in [0, 1]: (n,) for one measure, (n, m) for several measures of the same pairs. Clusters are a Design, or
    a name or number for each pair. The confidence is at least 0.5 and below 1. Anything else raises a ValueError.
    """
    _check_confidence(confidence)
    columns, design = _checked(values, clusters)
    if columns.shape[0] == 0:
        return [NOTHING] * columns.shape[1]
    sample = _sample(columns, design, spreads)
    n_effective, _ = _worths(sample, confidence)
    return _listed(design, sample.means, *clopper_pearson(sample.means, n_effective, confidence), n_effective)


def estimate_difference(
    first: ArrayLike,
    second: ArrayLike,
    clusters: Design | ArrayLike,
    confidence: float = 0.95,
    spreads: Sequence[Spread] = (),
) -> Estimate:
    """Estimate mean(first) - mean(second) for two measures of the same pairs.

    The intervals of the two means are combined by square-and-add (Newcombe 1998; Zou & Donner 2008), which keeps their
    asymmetry. The correlation of the measures comes from the residuals of the templates. In the imagined clusters the
    measures disagree, so the interval has a width even if the measures are equal on all pairs. Arguments are as for
    `estimate_means`; the bounds lie in [-1, 1].
    """
    _check_confidence(confidence)
    difference = Difference.of(first, second, clusters, spreads)
    return NOTHING if difference is None else difference.estimate(confidence)


class Difference(NamedTuple):
    """The difference of two measures of the same pairs, ready to be estimated at any confidence."""

    sample: _Sample

    @classmethod
    def of(
        cls, first: ArrayLike, second: ArrayLike, clusters: Design | ArrayLike, spreads: Sequence[Spread] = ()
    ) -> "Difference | None":
        """Take the values of two measures (see `estimate_difference`). Return None if there are no pairs.

        Values are (n,), or (n, m) for m differences at once. `spreads` are those of all first measures, then those of
        all second measures.
        """
        one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if one.ndim not in (1, 2) or one.shape != other.shape:
            raise ValueError(f"first and second must have one shape, (n,) or (n, m), got {one.shape} and {other.shape}")
        columns, design = _checked(np.column_stack([one, other]), clusters)
        return None if columns.shape[0] == 0 else cls(_sample(columns, design, spreads, is_paired=True))

    def estimate(self, confidence: float) -> Estimate:
        """Estimate the difference. If there are several, estimate the first."""
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
    """Estimate how many times as many templates would bring a decision: a lower and an upper figure.

    An interval shrinks with the root of the number of templates. The true value may lie a standard error nearer to the
    limit or further from it, so there are two figures. Return None if the value is too close to the limit: within a
    standard error, or so near that even MOST_TIMES as many templates may not bring a decision.
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


def _as_columns(values: Floats) -> Floats:
    return values[:, np.newaxis] if values.ndim == 1 else values


def _checked(values: ArrayLike, clusters: Design | ArrayLike) -> tuple[Floats, Design]:
    columns = _as_columns(np.asarray(values, dtype=np.float64))
    shape = (len(clusters),) if isinstance(clusters, Design) else np.shape(clusters)
    if columns.ndim != 2 or shape != columns.shape[:1]:
        raise ValueError(f"values must be (n,) or (n, m) and clusters (n,), got {np.shape(values)} and {shape}")
    if not np.all((columns >= 0.0) & (columns <= 1.0)):
        raise ValueError("values must lie in [0, 1] and not be nan")
    return columns, clusters if isinstance(clusters, Design) else Design.of(clusters)


def _shrink(totals: Floats, design: Design) -> Floats:
    """Return the means of each block from its totals, with the two imagined clusters added."""
    sizes, imagined = design.sizes[:, np.newaxis], design.typical_sizes[:, np.newaxis]
    return np.asarray((totals + imagined) / (sizes + 2.0 * imagined), dtype=np.float64)


def _sample(columns: Floats, design: Design, spreads: Sequence[Spread], *, is_paired: bool = False) -> _Sample:
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


def _tie(residuals: Floats, means: Floats, squares: Floats, ties: Ties, design: Design) -> _Tied:
    imagined, half = design.typical_sizes[:, np.newaxis] ** 2, means.shape[1] // 2
    sizes = np.sqrt(squares[:, : 2 * half])
    return _Tied(
        ties=ties,
        residuals=ties.scale(ties.totals(residuals), 1.0 / np.sqrt(squares)),
        imagined=imagined * _agreeing(means) / squares,
        disagreeing=imagined * _disagreeing(means) / (sizes[:, :half] * sizes[:, half:]),
    )


def _agreeing(means: Floats) -> Floats:
    """Return the sum of squared residuals of the two imagined clusters, if each had one pair."""
    return np.asarray((1.0 - means) ** 2 + means**2, dtype=np.float64)


def _disagreeing(means: Floats) -> Floats:
    """Return the sum of products of two measures' residuals in the two imagined clusters, if each had one pair.

    In each of these clusters, one measure is 1 and the other 0.
    """
    half = means.shape[1] // 2
    one, other = means[:, :half], means[:, half : 2 * half]
    return np.asarray(-((1.0 - one) * other + one * (1.0 - other)), dtype=np.float64)


def _pooled_worths(spreads: Sequence[Spread], design: Design) -> Floats:
    """Return the worth of the pairs of each block if their spread is that of the run."""
    n, in_cells = design.sizes, design.cells.n_together
    of_first, of_second = (factor.n_together for factor in design.factors)
    couples = np.column_stack([n, in_cells - n, of_first - in_cells, of_second - in_cells])
    variance = couples @ np.array(spreads).T
    without_spread: Floats = np.full_like(variance, math.inf)
    worths: Floats = np.divide(n[:, np.newaxis] ** 2, variance, out=without_spread, where=variance > 0)
    return worths


def _squares(residuals: Floats, means: Floats, design: Design, *, is_paired: bool) -> tuple[Floats, Floats]:
    """Return, for each block, the summed squares of the totals of its templates, imagined clusters included.

    A sum is never below the sum over the clusters alone. For a difference, also return the correlation of its two
    measures. These disagree in the imagined clusters.
    """
    imagined, totals = design.typical_sizes[:, np.newaxis] ** 2, design.totals(residuals)
    squares = np.maximum(*design.sum_products(totals, totals, imagined * _agreeing(means)))
    if not is_paired:
        return squares, squares[:, :0]
    half = means.shape[1] // 2
    first, second = ([each[:, part] for each in totals] for part in (slice(half), slice(half, None)))
    products, _ = design.sum_products(first, second, imagined * _disagreeing(means))
    return squares, np.clip(products / np.sqrt(squares[:, :half] * squares[:, half:]), -1.0, 1.0)


def _worths(sample: _Sample, confidence: float) -> tuple[Floats, Floats]:
    """Return, for each column, the worth of all pairs, and what each block adds to the variance of the mean.

    The worth of a block is between its least possible worth and its number of pairs. The worth that the block's own
    variance gives is corrected, because few templates tell little about a variance (Student's t).
    """
    design = sample.design
    sizes, n = design.sizes, float(len(design))
    quantile, levels = (1.0 + confidence) / 2.0, design.fewest_levels
    # One template tells nothing about a variance.
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


def _add_up(sample: _Sample, variances: Floats) -> Floats:
    """Return the variance of each column's mean: the sum over subtopics, plus what shared templates add."""
    own: Floats = variances.sum(axis=0)
    if sample.tied is None:
        return own
    ties, totals = sample.tied.ties, sample.tied.totals(variances)
    # The more alike the real templates are in different subtopics, the more the imagined clusters count as shared.
    imagined: Floats = (ties.alike(totals, sample.design.sizes) * sample.tied.imagined * variances).sum(axis=0)
    return own + (ties.variance(totals) + imagined)


def _correlate(sample: _Sample, variances: Floats) -> Floats:
    """Return the correlation of the means of the two measures of each difference."""
    half = variances.shape[1] // 2
    first, second = variances[:, :half], variances[:, half:]
    covariance = (sample.correlations * np.sqrt(first * second)).sum(axis=0)
    if sample.tied is not None:
        covariance = covariance + _shared_covariance(sample.tied, variances, sample.design.sizes)
    summed = _add_up(sample, variances)
    found = np.asarray(covariance / np.sqrt(summed[:half] * summed[half:]), dtype=np.float64)
    return found if sample.tied is None else np.clip(found, -1.0, 1.0)


def _shared_covariance(tied: _Tied, variances: Floats, sizes: Floats) -> Floats:
    """Return what shared templates add to the covariance of the two measures of each difference."""
    ties, totals, half = tied.ties, tied.totals(variances), variances.shape[1] // 2
    first, second = [each[:, :half] for each in totals], [each[:, half:] for each in totals]
    most = np.sqrt(ties.variance(first) * ties.variance(second))
    real = np.clip(ties.covariance(first, second), -most, most)
    weights = np.sqrt(ties.alike(totals, sizes) * variances)
    imagined = (weights[:, :half] * weights[:, half:] * tied.disagreeing).sum(axis=0)
    return np.asarray(real + imagined, dtype=np.float64)


def _listed(design: Design, values: Floats, lows: Floats, highs: Floats, worths: Floats) -> list[Estimate]:
    columns = zip(values.tolist(), lows.tolist(), highs.tolist(), worths.tolist(), strict=True)
    n, n_clusters = len(design), design.n_clusters
    return [Estimate(value, low, high, n, n_clusters, worth) for value, low, high, worth in columns]


def clopper_pearson(value: Floats, n: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Bound a proportion from `value * n` successes in `n` trials. Neither number has to be whole."""
    tail = (1.0 - confidence) / 2.0
    low = _lower_bound(value, n, tail)
    high = np.maximum(1.0 - _lower_bound(1.0 - value, n, tail), value)
    return low, high


def _lower_bound(value: Floats, n: Floats, tail: float) -> Floats:
    successes = value * n
    some = successes > 0.0
    bound = betaincinv(np.where(some, successes, 1.0), n - successes + 1.0, tail)
    return np.asarray(np.where(some, np.minimum(bound, value), 0.0), dtype=np.float64)


def _square_and_add(one: Floats, other: Floats, correlation: Floats) -> Floats:
    reach = np.sqrt(np.maximum(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))
    return np.asarray(reach, dtype=np.float64)
