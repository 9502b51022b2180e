"""Confidence intervals for the agreement of two raters, such as models: Cohen's kappa, Spearman's correlation.

Each of these two figures is nearly the mean of what the pairs add to it (their influences). So its variance is
estimated over the templates, like the variance of a mean (Cameron, Gelbach & Miller 2011). The variance gives the worth
of the pairs: how many independent pairs would tell as much. No random numbers are used. Measured coverage:
docs/decisions/0018-second-reading.md.
"""

import math
from collections import Counter

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.intervals import clopper_pearson
from bbnli_audit.measures.statistics.kappa import cohens_kappa
from bbnli_audit.measures.statistics.shared import Floats

FEWEST = 3  # a correlation needs this many points, because two points always lie on a line
_SMALLEST = 1e-12  # smaller variances come from rounding
Interval = tuple[float, float]


def kappa_interval(first: ArrayLike, second: ArrayLike, design: Design, confidence: float) -> Interval | None:
    """Bound kappa by the delta method (Fleiss, Cohen & Everitt 1969; for clusters Yang & Zhou 2014).

    The categories are whole numbers from 0. The agreement gets a Clopper-Pearson interval whose sample size is the
    worth of the pairs, so the interval has a width even if the raters agree on all pairs. Return None if kappa is
    undefined: there are no pairs, or both raters put all pairs into one category.
    """
    one, other = np.asarray(first, dtype=np.intp), np.asarray(second, dtype=np.intp)
    by_chance, kappa = cohens_kappa(Counter(zip(one.tolist(), other.tolist(), strict=True)))
    if by_chance is None or kappa is None:
        return None
    n, n_categories = len(one), int(max(one.max(), other.max())) + 1
    shares, other_shares = (np.bincount(each, minlength=n_categories) / n for each in (one, other))
    is_same = (one == other).astype(np.float64)
    agreement = float(is_same.mean())
    # The influence of each pair on kappa, times (1 - by_chance). It comes from what the pair adds to the agreement and
    # to the agreement by chance.
    expected = other_shares[one] + shares[other] - 2.0 * by_chance
    influences = is_same - agreement - (1.0 - kappa) * expected
    sizes = design.typical_sizes
    # As for every mean, each subtopic gets an imagined cluster of pairs that agree and one of pairs that disagree.
    imagined = sizes**2 * ((1.0 - agreement) ** 2 + agreement**2)
    enlarged = n + 2.0 * float(sizes.sum())
    variance = _summed_squares(influences, design, confidence, imagined) / (n * enlarged)
    shrunk = (n * agreement + float(sizes.sum())) / enlarged
    worth = shrunk * (1.0 - shrunk) / variance
    low, high = (float(each[0]) for each in clopper_pearson(np.array([agreement]), np.array([worth]), confidence))
    return max((low - by_chance) / (1.0 - by_chance), -1.0), (high - by_chance) / (1.0 - by_chance)


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Spearman's rank correlation. Return None if there are fewer than three pairs, or a rater never varies."""
    one, other = (_standard_ranks(each) for each in (first, second))
    if len(one) < FEWEST or not (one.any() and other.any()):
        return None
    return float(np.clip((one * other).mean(), -1.0, 1.0))


def _standard_ranks(values: ArrayLike) -> Floats:
    """Return the ranks of values, with mean 0 and standard deviation 1; all 0 if the values are equal."""
    from scipy.stats import rankdata  # takes a second; most runs have one model only

    ranks = rankdata(values)
    if not len(ranks) or np.ptp(ranks) == 0:
        return np.zeros(len(ranks))
    return np.asarray((ranks - ranks.mean()) / ranks.std(), dtype=np.float64)


def rank_interval(first: ArrayLike, second: ArrayLike, design: Design, confidence: float) -> Interval | None:
    """Bound Spearman's rank correlation: Fisher's z with the variance of Bonett & Wright (2000).

    In their formula, the worth of the pairs replaces the number of pairs. If the delta method gives a larger variance,
    that variance is used. Return None if the correlation is undefined.
    """
    rho = rank_correlation(first, second)
    if rho is None:
        return None
    one, other = (_standard_ranks(each) for each in (first, second))
    n = len(one)
    influences = one * other - rho / 2.0 * (one**2 + other**2)
    alone = float((influences**2).sum())
    # At a correlation of 1 or -1 nothing shows how alike the pairs of a template are. They count as fully alike.
    worth, squares = design.least_worth_together, 0.0
    if alone > _SMALLEST * n:
        squares = max(_summed_squares(influences, design, confidence), alone)
        worth = max(n * alone / squares, worth)
    if worth <= 3.0:
        return -1.0, 1.0
    z = math.atanh(math.copysign(min(abs(rho), 1.0 - 1.0 / worth), rho))
    # With ties, a high correlation is less certain than without ties; the delta method takes this into account.
    variance = max((1.0 + rho**2 / 2.0) / (worth - 3.0), squares / n**2 * math.cosh(z) ** 4)
    reach = float(ndtri((1.0 + confidence) / 2.0)) * math.sqrt(variance)
    return min(math.tanh(z - reach), rho), max(math.tanh(z + reach), rho)


def _summed_squares(influences: Floats, design: Design, confidence: float, imagined: Floats | float = 0.0) -> float:
    """Sum the squared totals of influences over templates; divided by n², the sum is the variance of their mean.

    The sum of each subtopic is enlarged for its number of templates, so that a normal quantile can be used in place of
    Student's. Templates that subtopics share add the products of their totals, as in `intervals`.
    """
    levels = design.fewest_levels
    if (levels < 2).any():
        return math.inf  # one cluster cannot show the spread between clusters
    means = design.blocks.totals(influences[:, np.newaxis]) / design.sizes[:, np.newaxis]
    here = influences[:, np.newaxis] - means[design.block_of]
    totals = design.totals(here)
    squares = np.maximum(*design.sum_products(totals, totals, np.asarray(imagined)[..., np.newaxis]))[:, 0]
    quantile = (1.0 + confidence) / 2.0
    widened = (stdtrit(levels - 1.0, quantile) / ndtri(quantile)) ** 2
    summed = float((squares * widened).sum())
    if design.ties is None:
        return summed
    ties, added = design.ties, imagined * widened
    shared = ties.scale(ties.totals(here), np.sqrt(widened)[:, np.newaxis])
    return summed + float(ties.variance(shared)[0] + ties.alike(shared, design.sizes)[:, 0] @ added)
