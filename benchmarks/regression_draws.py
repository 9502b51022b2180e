"""Simulated comparisons with a baseline: changes whose true increase is known, and the rule on all of them at once.

The rule is computed from sums over clusters; in every cell some repetitions are given to `measure_increase` as well,
and the two must agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, stdtr, stdtrit

from bbnli_audit.measures.statistics.growth import measure_increase

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

CONFIDENCE = 0.95
LEVEL = 1.0 - CONFIDENCE
MARGINS = (0.02, 0.03, 0.05)
N_CHECKED = 2  # repetitions of a cell in which the package is asked as well
CHUNK = 1000  # repetitions drawn at a time


class Structure(NamedTuple):
    """How changes fall into clusters."""

    name: str
    size: int = 1  # mean size of a cluster
    correlation: float = 0.0  # between the changes of two pairs of a cluster
    is_whole: bool = False  # the pairs of a cluster change together or not at all
    has_halves: bool = False  # two changes in three are by a half
    is_uneven: bool = False  # sizes run from a fifth to nine fifths of the mean

    @property
    def is_unit(self) -> bool:
        """Clusters that change as one need only be counted."""
        return self.is_whole or self.size == 1


SINGLE = Structure("1")
LOOSE = Structure("10", 10)
CLUSTERED = Structure("10, correlation 0.3", 10, 0.3)
TIGHT = Structure("10, correlation 0.7", 10, 0.7)
WHOLE = Structure("10, change wholly", 10, is_whole=True)
PLAIN = (SINGLE, LOOSE, CLUSTERED, TIGHT, WHOLE)
FURTHER = (
    Structure("1, halves", has_halves=True),
    Structure("10, correlation 0.3, halves", 10, 0.3, has_halves=True),
    Structure("2 to 18, correlation 0.3", 10, 0.3, is_uneven=True),
)


class Cell(NamedTuple):
    """One simulated situation: pairs change for the worse at `background + increase`, else at `background`."""

    structure: Structure
    n_pairs: int
    background: float
    increase: float

    @property
    def sizes(self) -> Counts:
        size = self.structure.size
        n_clusters = self.n_pairs // size
        if self.structure.is_uneven:
            return np.rint(size * np.linspace(0.2, 1.8, n_clusters)).astype(np.int64)
        return np.full(n_clusters, size)

    def kinds(self) -> tuple[Floats, Floats]:
        """Give the changes that a pair can show and their chances; the last is no change."""
        up, down = self.background + self.increase, self.background
        if self.structure.has_halves:
            # A half as often by 1 as by ½, so that the mean is what it would be without halves.
            changes, chances = [1.0, 0.5, -0.5, -1.0, 0.0], [up / 2, up, down, down / 2]
        else:
            changes, chances = [1.0, -1.0, 0.0], [up, down]
        return np.array(changes), np.array([*chances, 1.0 - sum(chances)])


class Changes(NamedTuple):
    """What is known of each repetition: sums over its clusters, each of shape (repetitions,)."""

    sizes: Counts  # (clusters,)
    up: Floats  # what all pairs that count more add to the measure
    down: Floats
    up_up: Floats  # sum over clusters of the squared total
    down_down: Floats
    up_down: Floats
    up_size: Floats  # sum over clusters of total times size
    down_size: Floats
    n_worse: Floats
    n_better: Floats
    clusters_worse: Floats
    clusters_better: Floats

    @property
    def n(self) -> int:
        return int(self.sizes.sum())

    @property
    def value(self) -> Floats:
        return (self.up - self.down) / self.n


def draw_kinds(
    chances: Floats, structure: Structure, sizes: Counts, n_reps: int, random: np.random.Generator
) -> Counts:
    """Draw how many pairs of each cluster show each kind of change: (repetitions, clusters, kinds).

    Within a cluster the kinds are Dirichlet-multinomial. Drawing one distribution over all kinds, not one rate for
    each, keeps the expected increase what it is meant to be.
    """
    shape = (n_reps, len(sizes))
    if structure.is_whole:
        return random.multinomial(1, chances, shape) * sizes[:, np.newaxis]
    if structure.correlation == 0.0:
        return random.multinomial(sizes, chances, shape)
    strength = (1.0 - structure.correlation) / structure.correlation
    weights = random.standard_gamma(chances * strength, (*shape, len(chances)))
    return random.multinomial(sizes, weights / weights.sum(axis=-1, keepdims=True))


def sum_up(kinds: Counts, changes: Floats, sizes: Counts) -> Changes:
    counts = kinds.astype(np.float64)
    up, down = counts @ np.maximum(changes, 0.0), counts @ np.maximum(-changes, 0.0)
    n_worse, n_better = kinds[..., changes > 0.0].sum(axis=(1, 2)), kinds[..., changes < 0.0].sum(axis=(1, 2))
    return Changes(
        sizes=sizes,
        up=up.sum(axis=1),
        down=down.sum(axis=1),
        up_up=np.einsum("rc,rc->r", up, up),
        down_down=np.einsum("rc,rc->r", down, down),
        up_down=np.einsum("rc,rc->r", up, down),
        up_size=up @ sizes.astype(np.float64),
        down_size=down @ sizes.astype(np.float64),
        n_worse=n_worse.astype(np.float64),
        n_better=n_better.astype(np.float64),
        clusters_worse=(up > down).sum(axis=1).astype(np.float64),
        clusters_better=(up < down).sum(axis=1).astype(np.float64),
    )


def sum_up_units(units: Counts, changes: Floats, sizes: Counts) -> Changes:
    """Do the same for equal clusters that change as one, given how many show each kind: (repetitions, kinds)."""
    size = int(sizes[0])
    up, down = np.maximum(changes, 0.0) * size, np.maximum(-changes, 0.0) * size
    worse = units[:, changes > 0.0].sum(axis=1).astype(np.float64)
    better = units[:, changes < 0.0].sum(axis=1).astype(np.float64)
    return Changes(
        sizes=sizes,
        up=units @ up,
        down=units @ down,
        up_up=units @ up**2,
        down_down=units @ down**2,
        up_down=np.zeros(len(units)),
        up_size=units @ up * size,
        down_size=units @ down * size,
        n_worse=worse * size,
        n_better=better * size,
        clusters_worse=worse,
        clusters_better=better,
    )


# --- The rule, for all repetitions at once -------------------------------------------------------------------


def sign_test(n_worse: Floats, n_better: Floats) -> Floats:
    return np.where(n_worse > 0, betainc(np.maximum(n_worse, 1.0), n_better + 1.0, 0.5), 1.0)


def standard_error(changes: Changes) -> Floats:
    n, n_clusters = changes.n, len(changes.sizes)
    total = changes.up - changes.down
    square = changes.up_up + changes.down_down - 2.0 * changes.up_down
    # n² times the sum of squared residuals: whole numbers, or quarters, so that alike clusters give exactly 0.
    squares = n**2 * square - 2.0 * n * total * (changes.up_size - changes.down_size)
    squares += total**2 * float((changes.sizes**2).sum())
    error: Floats = np.sqrt(squares * n_clusters / (n_clusters - 1)) / n**2
    return error


def t_test(changes: Changes, margin: float) -> Floats:
    error = standard_error(changes)
    known = error > 1e-12
    p_known = stdtr(len(changes.sizes) - 1, (margin - changes.value) / np.where(known, error, 1.0))
    return np.where(known, p_known, np.where(changes.value > margin, 0.0, 1.0))


def p_values(changes: Changes, margin: float) -> Floats:
    p_pairs = sign_test(changes.n_worse, changes.n_better)
    p_clusters = sign_test(changes.clusters_worse, changes.clusters_better)
    return np.maximum(t_test(changes, margin), np.maximum(p_pairs, p_clusters))


class Column(NamedTuple):
    """One direction of change as a rate, with the bounds of measures/statistics/intervals.py."""

    rate: Floats
    low: Floats
    high: Floats
    shrunk: Floats
    squares: Floats

    @classmethod
    def of(cls, total: Floats, square: Floats, by_size: Floats, sizes: Counts) -> Column:
        n = float(sizes.sum())
        typical = float((sizes**2).sum()) / n
        shrunk = (total + typical) / (n + 2.0 * typical)
        squares = square - 2.0 * shrunk * by_size + shrunk**2 * n * typical
        squares = squares + typical**2 * ((1.0 - shrunk) ** 2 + shrunk**2)
        many, few = stdtrit(np.array([n - 1.0, len(sizes) - 1.0]), CONFIDENCE)
        worth = n * shrunk * (1.0 - shrunk) * (n + 2.0 * typical) / squares * float(many / few) ** 2
        worth = np.clip(worth, n / typical, n)
        rate = total / n
        return cls(rate, lower(rate, worth), 1.0 - lower(1.0 - rate, worth), shrunk, squares)


def lower(rate: Floats, n: Floats) -> Floats:
    some = rate > 0.0
    bound = betaincinv(np.where(some, rate * n, 1.0), n - rate * n + 1.0, LEVEL)
    return np.where(some, bound, 0.0)


def bounds(changes: Changes) -> tuple[Floats, Floats]:
    """Give both bounds by square-and-add; the rule uses the upper one alone."""
    worse = Column.of(changes.up, changes.up_up, changes.up_size, changes.sizes)
    better = Column.of(changes.down, changes.down_down, changes.down_size, changes.sizes)
    n, typical = changes.n, float((changes.sizes**2).sum()) / changes.n
    one, other = worse.shrunk, better.shrunk
    products = changes.up_down - one * changes.down_size - other * changes.up_size + one * other * n * typical
    products = products - typical**2 * ((1.0 - one) * other + one * (1.0 - other))
    correlation = products / np.sqrt(worse.squares * better.squares)

    def square_and_add(left: Floats, right: Floats) -> Floats:
        total: Floats = np.sqrt(np.maximum(left**2 + right**2 - 2.0 * correlation * left * right, 0.0))
        return total

    below = square_and_add(worse.rate - worse.low, better.high - better.rate)
    above = square_and_add(worse.high - worse.rate, better.rate - better.low)
    return np.maximum(changes.value - below, -1.0), np.minimum(changes.value + above, 1.0)


def check_mean(changes: Changes, increase: float) -> None:
    """See that the true increase is what is claimed, within six standard errors of the simulation."""
    error = float(changes.value.std()) / np.sqrt(len(changes.value))
    assert abs(float(changes.value.mean()) - increase) <= 6.0 * error + 1e-9, (increase, error)


def check(changes: Changes, rep: int, by_pair: Floats, clusters: Counts) -> None:
    """Compare with the package, which sees the pairs."""
    for margin in MARGINS:
        expected = measure_increase(np.maximum(-by_pair, 0.0), np.maximum(by_pair, 0.0), clusters, margin, CONFIDENCE)
        np.testing.assert_allclose(changes.value[rep], expected.value, atol=1e-12)
        np.testing.assert_allclose(p_values(changes, margin)[rep], expected.p_value, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(bounds(changes)[1][rep], expected.high, rtol=1e-7, atol=1e-12)


def simulate(cell: Cell, n_reps: int, random: np.random.Generator) -> Changes:
    """Draw a cell, and compare the rule with the package on its first repetitions."""
    sizes, structure = cell.sizes, cell.structure
    changes, chances = cell.kinds()
    if structure.is_unit:
        units = random.multinomial(len(sizes), chances, n_reps)
        found = sum_up_units(units, changes, sizes)
        shown = [np.repeat(np.repeat(changes, units[rep]), structure.size) for rep in range(N_CHECKED)]
    else:
        parts, shown = [], []
        for start in range(0, n_reps, CHUNK):
            kinds = draw_kinds(chances, structure, sizes, min(CHUNK, n_reps - start), random)
            parts.append(sum_up(kinds, changes, sizes))
            shown += [np.repeat(np.tile(changes, len(sizes)), rep.ravel()) for rep in kinds[: N_CHECKED - len(shown)]]
        found = Changes(
            sizes, *(np.concatenate(columns) for columns in zip(*(part[1:] for part in parts), strict=True))
        )
    check_mean(found, cell.increase)
    first = Changes(sizes, *(column[:N_CHECKED] for column in found[1:]))
    for rep, by_pair in enumerate(shown):
        check(first, rep, by_pair, np.repeat(np.arange(len(sizes)), sizes))
    return found
