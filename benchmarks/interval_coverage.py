"""Measure by simulation how often the intervals of bbnli_audit.measures.statistics.intervals cover the truth.

Prints five Markdown tables: the rule on beta-binomial clusters, the rule on clusters some of which fail
wholly (a shape the rule was not built from), the variants that were considered, over all cells of both, the
difference of two measures, and what remains of the coverage when clusters share templates.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from bbnli_audit.measures.statistics.intervals import estimate_difference, estimate_means

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]

CONFIDENCE = 0.95
BOOTSTRAP_RESAMPLES = 500
ROUNDING = 1e-12
OUR_RULE = "Clopper-Pearson, weight 1, t, floor"


class Cell(NamedTuple):
    """One simulated situation."""

    n_clusters: int
    mean_size: int
    rate: float
    correlation: float  # between pairs of a cluster; unused when failing_share is set
    halves: bool  # values 0, 0.5 and 1 instead of 0 and 1
    failing_share: float = 0.0  # share of clusters in which every pair fails


class Score(NamedTuple):
    """How the intervals of one method did in one cell."""

    coverage: float
    width: float
    upper_below: float
    lower_above: float


def beta_binomial_cells() -> Iterator[Cell]:
    """Cross the designs with the true rates and the intra-cluster correlations."""
    for halves, designs in ((False, ((200, 1), (40, 5), (10, 20))), (True, ((40, 1), (40, 5), (40, 20)))):
        for n_clusters, mean_size in designs:
            for rate in (0.0, 0.02, 0.1, 0.3):
                for correlation in (0.0, 0.3, 0.7):
                    without_effect = rate == 0.0 or (mean_size == 1 and not halves)
                    if correlation == 0.0 or not without_effect:
                        yield Cell(n_clusters, mean_size, rate, correlation, halves)


def failing_cells() -> Iterator[Cell]:
    """Some clusters fail wholly and the others at a low rate."""
    for n_clusters, mean_size in ((10, 20), (40, 5), (40, 20), (100, 10)):
        for failing_share in (0.02, 0.05, 0.1):
            for other_rate in (0.0, 0.05, 0.1):
                rate = failing_share + (1.0 - failing_share) * other_rate
                yield Cell(n_clusters, mean_size, rate, 0.0, False, failing_share)


def cluster_sizes(cell: Cell) -> NDArray[np.int64]:
    """Spread the sizes evenly from a fifth of the mean size to nine fifths of it."""
    spread = np.rint(cell.mean_size * np.linspace(0.2, 1.8, cell.n_clusters))
    return np.maximum(spread, 1.0).astype(np.int64) if cell.mean_size > 1 else np.ones(cell.n_clusters, np.int64)


def draw(cell: Cell, clusters: NDArray[np.int64], n_reps: int, random: np.random.Generator) -> Floats:
    """Draw pair values, one repetition per column."""
    shape = (cell.n_clusters, n_reps)
    if cell.failing_share > 0.0:
        other_rate = (cell.rate - cell.failing_share) / (1.0 - cell.failing_share)
        rates = np.where(random.random(shape) < cell.failing_share, 1.0, other_rate)
    elif cell.correlation > 0.0 and cell.rate > 0.0:
        strength = (1.0 - cell.correlation) / cell.correlation
        rates = random.beta(cell.rate * strength, (1.0 - cell.rate) * strength, shape)
    else:
        rates = np.full(shape, cell.rate)
    samples = [random.random((len(clusters), n_reps)) < rates[clusters] for _ in range(2 if cell.halves else 1)]
    values: Floats = np.mean(samples, axis=0, dtype=np.float64)
    return values


def clopper_pearson(rate: Floats, n: Floats) -> Bounds:
    """Bound from below by Beta(successes, failures + 1), from above by Beta(successes + 1, failures)."""
    return beta_bounds(rate, n, own=0.0, opposite=1.0)


def jeffreys(rate: Floats, n: Floats) -> Bounds:
    """Take the quantiles of Beta(successes + 1/2, failures + 1/2), with the ends 0 and 1 kept."""
    return beta_bounds(rate, n, own=0.5, opposite=0.5)


def beta_bounds(rate: Floats, n: Floats, own: float, opposite: float) -> Bounds:
    """Bound from below by Beta(successes + own, failures + opposite), from above by its mirror image."""
    tail = (1.0 - CONFIDENCE) / 2.0

    def lower(share: Floats) -> Floats:
        some = share > 0.0
        bound = betaincinv(np.where(some, share * n + own, 1.0), (1.0 - share) * n + opposite, tail)
        return np.where(some, bound, 0.0)

    return lower(rate), 1.0 - lower(1.0 - rate)


def wilson(rate: Floats, n: Floats) -> Bounds:
    """Invert the score test."""
    normal = float(ndtri((1.0 + CONFIDENCE) / 2.0))
    middle = (rate + normal**2 / (2.0 * n)) / (1.0 + normal**2 / n)
    half = normal * np.sqrt(rate * (1.0 - rate) / n + (normal / (2.0 * n)) ** 2) / (1.0 + normal**2 / n)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


class Variant(NamedTuple):
    """A rule that differs from the chosen one in the marked respects."""

    interval: Callable[[Floats, Floats], Bounds] = clopper_pearson
    weight: float = 1.0  # of the two imagined clusters
    student: bool = True  # correct for few clusters
    floor: bool = True  # never below the effective number of clusters
    worst_case: bool = False  # always the effective number of clusters

    def bounds(self, totals: Floats, sizes: Floats) -> Bounds:
        """Compute the bounds, one per column of cluster totals."""
        n = float(sizes.sum())
        typical_size = float((sizes**2).sum()) / n
        floor = n / typical_size
        extra = self.weight * typical_size
        rate = totals.sum(axis=0) / n
        if self.worst_case:
            return self.interval(rate, np.full_like(rate, floor))
        shrunk = (totals.sum(axis=0) + extra) / (n + 2.0 * extra)
        squares = ((totals - np.outer(sizes, shrunk)) ** 2).sum(axis=0)
        squares += extra * typical_size * ((1.0 - shrunk) ** 2 + shrunk**2)
        spread = shrunk * (1.0 - shrunk) * (n + 2.0 * extra)
        n_effective = np.where(squares > 0.0, n * spread / np.where(squares > 0.0, squares, 1.0), n)
        if self.student:
            many, few = stdtrit(np.array([n - 1.0, len(sizes) - 1.0]), (1.0 + CONFIDENCE) / 2.0)
            n_effective = n_effective * float(many / few) ** 2
        return self.interval(rate, np.clip(n_effective, floor if self.floor else 1e-6, n))


VARIANTS = {
    OUR_RULE: Variant(),
    "weight 0, without floor": Variant(weight=0.0, floor=False),
    "weight 0.5": Variant(weight=0.5),
    "weight 2": Variant(weight=2.0),
    "without t": Variant(student=False),
    "without floor": Variant(floor=False),
    "Wilson in place of Clopper-Pearson": Variant(interval=wilson),
    "Jeffreys in place of Clopper-Pearson": Variant(interval=jeffreys),
    "always the effective number of clusters": Variant(worst_case=True),
}
BOOTSTRAP = "cluster percentile bootstrap"


def bootstrap(totals: Floats, sizes: Floats, random: np.random.Generator) -> Bounds:
    """Take percentiles over resampled clusters; one set of resamples serves all repetitions."""
    n_clusters = len(sizes)
    weights = random.multinomial(n_clusters, np.full(n_clusters, 1.0 / n_clusters), BOOTSTRAP_RESAMPLES)
    means = (weights @ totals) / (weights @ sizes)[:, np.newaxis]
    tail = 50.0 * (1.0 - CONFIDENCE)
    low, high = np.percentile(means, [tail, 100.0 - tail], axis=0)
    return low, high


def score(bounds: Bounds, rate: float) -> Score:
    """Compare the bounds with the true rate."""
    low, high = bounds
    above, below = low > rate + ROUNDING, high < rate - ROUNDING
    width = float((high - low).mean())
    return Score(1.0 - float((above | below).mean()), width, float(below.mean()), float(above.mean()))


def simulate(cell: Cell, n_reps: int, random: np.random.Generator) -> dict[str, Score]:
    """Score the package's rule (from pair values) and the variants (from cluster totals) in one cell."""
    whole_sizes = cluster_sizes(cell)
    clusters = np.repeat(np.arange(cell.n_clusters), whole_sizes)
    values = draw(cell, clusters, n_reps, random)
    estimates = estimate_means(values, clusters, CONFIDENCE)
    ours = np.array([e.low for e in estimates]), np.array([e.high for e in estimates])

    sizes = whole_sizes.astype(np.float64)
    totals: Floats = np.add.reduceat(values, np.cumsum(whole_sizes) - whole_sizes, axis=0)
    scores = {name: score(rule.bounds(totals, sizes), cell.rate) for name, rule in VARIANTS.items()}
    scores[OUR_RULE] = score(ours, cell.rate)
    scores[BOOTSTRAP] = score(bootstrap(totals, sizes, random), cell.rate)
    return scores


def differences(n_reps: int, random: np.random.Generator) -> Iterator[list[str]]:
    """Score the difference of two measures whose joint outcomes are Dirichlet-multinomial in a cluster."""
    for n_clusters, mean_size in ((200, 1), (40, 5), (10, 20)):
        sizes = cluster_sizes(Cell(n_clusters, mean_size, 0.0, 0.0, halves=False))
        clusters = np.repeat(np.arange(n_clusters), sizes)
        for shares in (
            (0.3, 0.0, 0.0),
            (0.0, 0.02, 0.0),
            (0.3, 0.05, 0.0),
            (0.5, 0.05, 0.0),
            (0.0, 0.3, 0.3),
        ):
            for correlation in (0.0, 0.7) if mean_size > 1 else (0.0,):
                both, only_first, only_second = shares
                chances = np.array([both, only_first, only_second, 1.0 - sum(shares)])
                rates = np.broadcast_to(chances, (n_clusters, n_reps, 4))
                if correlation > 0.0:
                    strength = (1.0 - correlation) / correlation
                    drawn = random.standard_gamma(np.broadcast_to(chances * strength, rates.shape))
                    rates = drawn / drawn.sum(axis=-1, keepdims=True)
                steps = np.cumsum(rates, axis=-1)[clusters]
                draws = random.random((len(clusters), n_reps))
                first = (draws < steps[..., 1]).astype(np.float64)
                second = ((draws < steps[..., 0]) | ((draws >= steps[..., 1]) & (draws < steps[..., 2]))).astype(
                    np.float64
                )
                estimates = [
                    estimate_difference(first[:, rep], second[:, rep], clusters, CONFIDENCE) for rep in range(n_reps)
                ]
                bounds = np.array([e.low for e in estimates]), np.array([e.high for e in estimates])
                result = score(bounds, only_first - only_second)
                yield [
                    f"{n_clusters}",
                    f"{len(clusters)}",
                    *(f"{share:g}" for share in shares),
                    f"{correlation:g}",
                    *(f"{number:.3f}" for number in result),
                ]


def crossed_templates(n_reps: int, random: np.random.Generator) -> Iterator[list[str]]:
    """Score the rule where whole templates, not only their combinations, are more or less prone to failure.

    A pair fails when a normal score, summed over its premise template, its hypothesis template, their
    combination and itself, is low. The truth is the rate over all conceivable templates.
    """
    n_premises, n_hypotheses, size = 8, 8, 16
    combination = np.repeat(np.arange(n_premises * n_hypotheses), size)
    premise, hypothesis = combination // n_hypotheses, combination % n_hypotheses
    for rate in (0.05, 0.2):
        for shares in ((0.0, 0.0, 0.6), (0.15, 0.15, 0.3), (0.3, 0.3, 0.0), (0.6, 0.0, 0.0)):
            total = np.sqrt(1.0 - sum(shares)) * random.standard_normal((len(combination), n_reps))
            for share, group in zip(shares, (premise, hypothesis, combination), strict=True):
                total += np.sqrt(share) * random.standard_normal((group.max() + 1, n_reps))[group]
            values = (total < ndtri(rate)).astype(np.float64)
            row = [f"{rate:g}", *(f"{share:g}" for share in shares)]
            for clusters in (combination, premise):
                estimates = estimate_means(values, clusters, CONFIDENCE)
                bounds = np.array([e.low for e in estimates]), np.array([e.high for e in estimates])
                result = score(bounds, rate)
                row += [f"{result.coverage:.3f}", f"{result.width:.3f}"]
            yield row


def table(header: list[str], rows: list[list[str]]) -> str:
    """Render a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def describe(cell: Cell, scores: dict[str, Score]) -> list[str]:
    """Render one cell as a table row."""
    ours = scores[OUR_RULE]
    n_pairs = int(cluster_sizes(cell).sum())
    return [
        f"{cell.n_clusters}",
        f"{n_pairs}",
        "0, ½, 1" if cell.halves else "0, 1",
        f"{cell.rate:.3g}",
        f"{cell.failing_share:g}" if cell.failing_share else f"{cell.correlation:g}",
        f"{ours.coverage:.3f}",
        f"{ours.width:.3f}",
        f"{ours.upper_below:.3f}",
        f"{ours.lower_above:.3f}",
        f"{scores[BOOTSTRAP].coverage:.3f}",
    ]


def compare(results: list[dict[str, Score]]) -> list[list[str]]:
    """Summarise each method over all cells."""
    rows = []
    for name in [*VARIANTS, BOOTSTRAP]:
        scores = [result[name] for result in results]
        ratios = [result[name].width / result[OUR_RULE].width for result in results]
        rows.append(
            [
                name,
                f"{min(s.coverage for s in scores):.3f}",
                f"{sum(s.coverage < 0.94 for s in scores)} of {len(scores)}",
                f"{max(s.upper_below for s in scores):.3f}",
                f"{max(s.lower_above for s in scores):.3f}",
                f"{float(np.mean(ratios)):.2f}",
            ]
        )
    return rows


def main() -> None:
    """Run the simulation and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=2000, help="repetitions per cell")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulated data")
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)

    regular = [(cell, simulate(cell, arguments.reps, random)) for cell in beta_binomial_cells()]
    failing = [(cell, simulate(cell, arguments.reps, random)) for cell in failing_cells()]
    columns = ["coverage", "mean width", "upper below truth", "lower above truth", "bootstrap coverage"]
    start = ["clusters", "pairs", "values", "true rate"]
    print("Beta-binomial clusters\n")
    print(table([*start, "correlation", *columns], [describe(*pair) for pair in regular]))
    print("Clusters some of which fail wholly\n")
    print(table([*start, "share failing", *columns], [describe(*pair) for pair in failing]))
    print("Variants over all cells above with a true rate over 0\n")
    header = ["rule", "lowest coverage", "cells under 0.94", "most upper below", "most lower above", "width"]
    print(table(header, compare([scores for cell, scores in [*regular, *failing] if cell.rate > 0.0])))
    print("Difference of two measures\n")
    start = ["clusters", "pairs", "both", "first only", "second only", "correlation"]
    print(table([*start, *columns[:4]], list(differences(arguments.reps, random))))
    print("Crossed templates: 8 premises x 8 hypotheses x 16 pairs\n")
    start = ["true rate", "share of premise", "share of hypothesis", "share of combination"]
    by_cluster = ["coverage, clusters = combinations", "width", "coverage, clusters = premises", "width"]
    print(table([*start, *by_cluster], list(crossed_templates(arguments.reps, random))))


if __name__ == "__main__":
    main()
