"""Templates that subtopics share: pairs of different subtopics are then alike, and pooled rows must count it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import beta

from bbnli_audit.measures.statistics.association import kappa_interval, rank_interval
from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.growth import measure_increase
from bbnli_audit.measures.statistics.intervals import estimate_difference, estimate_means
from bbnli_audit.suites.occupations import Occupations
from bbnli_audit.suites.winoqueer import Winoqueer
from tests.unit.test_two_way import ByHand, Place, crossed

if TYPE_CHECKING:
    from collections.abc import Callable

Values = NDArray[np.float64]
Block = tuple[list[Place], Values, Values]


def is_shared(name: str) -> bool:
    return name.endswith("*")


def same_premise(one: Place, other: Place) -> bool:
    return one[0] == other[0] and is_shared(one[0])


def same_hypothesis(one: Place, other: Place) -> bool:
    return one[1] == other[1] and is_shared(one[1])


def same_cell(one: Place, other: Place) -> bool:
    return same_premise(one, other) and same_hypothesis(one, other)


class PooledByHand:
    """A pooled row over couples of pairs: within subtopics, and across them where they share a template."""

    def __init__(self, blocks: list[list[Place]], values: list[Values], confidence: float) -> None:
        self.rows = [ByHand(*each) for each in zip(blocks, values, strict=True)]
        self.n = sum(row.n for row in self.rows)
        own = [row.mean * (1 - row.mean) for row in self.rows]
        self.variances = [
            (row.n / self.n) ** 2 * each / row.worth(confidence) for row, each in zip(self.rows, own, strict=True)
        ]
        # Residuals, such that the sum of their products over a subtopic is its variance.
        self.scaled = [
            row.residuals * math.sqrt(variance / row.square)
            for row, variance in zip(self.rows, self.variances, strict=True)
        ]

    def few(self, at: int, place: int) -> float:
        n_levels = len({each[place] for each in self.rows[at].pairs})
        return n_levels / (n_levels - 1)

    def across(self, other: PooledByHand, alike: Callable[[Place, Place], bool], place: int | None) -> float:
        total = 0.0
        for s, one in enumerate(self.rows):
            for t, two in enumerate(other.rows):
                if s == t:
                    continue
                few = 1.0 if place is None else math.sqrt(self.few(s, place) * self.few(t, place))
                for i, a in enumerate(one.pairs):
                    for j, b in enumerate(two.pairs):
                        total += few * self.scaled[s][i] * other.scaled[t][j] * alike(a, b)
        return total

    @property
    def kinds(self) -> list[tuple[Callable[[Place, Place], bool], int | None]]:
        return [(same_premise, 0), (same_hypothesis, 1), (same_cell, None)]

    def covariance(self, other: PooledByHand) -> tuple[float, float]:
        premise, hypothesis, cell = (self.across(other, *kind) for kind in self.kinds)
        return premise + hypothesis - cell, cell

    @property
    def real(self) -> float:
        return float(max(*self.covariance(self), 0.0))

    def alike(self, s: int) -> float:
        """How alike real templates are across subtopics, times how many other subtopics have those of a pair."""
        found = [0.0]
        for alike, place in self.kinds:
            # The most that the products over couples of subtopics can be: each total as large in the others.
            most = sum(
                self.n_others(b, pair, alike)
                * (1.0 if place is None else self.few(b, place))
                * self.scaled[b][i]
                * sum(self.scaled[b][j] for j, other in enumerate(row.pairs) if alike(pair, other))
                for b, row in enumerate(self.rows)
                for i, pair in enumerate(row.pairs)
            )
            share = min(max(self.across(self, alike, place) / most, 0.0), 1.0) if most > 0 else 0.0
            n_others = sum(self.n_others(s, pair, alike) for pair in self.rows[s].pairs) / self.rows[s].n
            found.append(share * n_others)
        return max(found)

    def n_others(self, s: int, pair: Place, alike: Callable[[Place, Place], bool]) -> int:
        return sum(any(alike(pair, other) for other in row.pairs) for t, row in enumerate(self.rows) if t != s)

    @property
    def variance(self) -> float:
        imagined = sum(
            self.alike(s) * row.size**2 * (row.mean**2 + (1 - row.mean) ** 2) * variance / row.square
            for s, (row, variance) in enumerate(zip(self.rows, self.variances, strict=True))
        )
        return float(sum(self.variances) + self.real + imagined)

    @property
    def worth(self) -> float:
        mean = sum(row.n * row.mean for row in self.rows) / self.n
        together = 0
        for s, one in enumerate(self.rows):
            for t, two in enumerate(self.rows):
                for a in one.pairs:
                    for b in two.pairs:
                        own = s == t and (a[0] == b[0] or a[1] == b[1])
                        together += own or (s != t and (same_premise(a, b) or same_hypothesis(a, b)))
        return float(min(max(mean * (1 - mean) / self.variance, self.n**2 / together), self.n))

    def bounds(self, confidence: float) -> tuple[float, float]:
        n, tail = self.worth, (1 - confidence) / 2
        mean = float(np.concatenate([row.values for row in self.rows]).mean())
        low = beta.ppf(tail, mean * n, n - mean * n + 1) if mean > 0 else 0.0
        high = beta.ppf(1 - tail, mean * n + 1, n - mean * n) if mean < 1 else 1.0
        return min(float(low), mean), max(float(high), mean)

    def correlation(self, other: PooledByHand) -> float:
        total = 0.0
        for s, (one, two) in enumerate(zip(self.rows, other.rows, strict=True)):
            size = math.sqrt(self.variances[s] * other.variances[s])
            imagined = -(one.size**2) * ((1 - one.mean) * two.mean + one.mean * (1 - two.mean))
            r = one.crossed(two, imagined)[0] / math.sqrt(one.square * two.square)
            total += float(np.clip(r, -1, 1)) * size
            shared = math.sqrt(self.alike(s) * other.alike(s))
            total += shared * imagined / math.sqrt(one.square * two.square) * size
        most = math.sqrt(self.real * other.real)
        total += float(np.clip(self.covariance(other)[0], -most, most))
        return float(np.clip(total / math.sqrt(self.variance * other.variance), -1, 1))


def starred(block: Block, stars: tuple[str, str]) -> list[Place]:
    return [(first + stars[0], second + stars[1]) for first, second in block[0]]


def design(blocks: list[list[Place]]) -> Design:
    labels = np.array(["/".join(place) for block in blocks for place in block], dtype=object)
    return Design.of(labels, np.repeat(np.arange(len(blocks)), [len(block) for block in blocks]))


SHARING = st.sampled_from([("*", ""), ("", "*"), ("*", "*")])


@settings(deadline=None, max_examples=40)
@given(st.lists(crossed(), min_size=2, max_size=3), SHARING, st.sampled_from([0.8, 0.95]))
def test_a_pooled_row_is_that_over_couples(blocks: list[Block], stars: tuple[str, str], confidence: float) -> None:
    pairs = [starred(block, stars) for block in blocks]
    by_hand = PooledByHand(pairs, [block[1] for block in blocks], confidence)
    (found,) = estimate_means(np.concatenate([block[1] for block in blocks]), design(pairs), confidence)
    assert found.n_effective == pytest.approx(by_hand.worth, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(by_hand.bounds(confidence), abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.lists(crossed(), min_size=2, max_size=3), SHARING)
def test_a_pooled_difference_is_that_over_couples(blocks: list[Block], stars: tuple[str, str]) -> None:
    pairs, confidence = [starred(block, stars) for block in blocks], 0.95
    columns = [block[1] for block in blocks], [block[2] for block in blocks]
    first, second = map(np.concatenate, columns)
    one, other = (PooledByHand(pairs, values, confidence) for values in columns)
    found = estimate_difference(first, second, design(pairs), confidence)
    r, value = one.correlation(other), float(first.mean() - second.mean())
    (low1, high1), (low2, high2) = one.bounds(confidence), other.bounds(confidence)
    for bound, sign, here, there in (
        (found.low, -1, first.mean() - low1, high2 - second.mean()),
        (found.high, 1, high1 - first.mean(), second.mean() - low2),
    ):
        reach = math.sqrt(max(here**2 + there**2 - 2 * r * here * there, 0.0))
        assert bound == pytest.approx(float(np.clip(value + sign * reach, -1, 1)), abs=1e-7)


N_PREMISES, N_SUBTOPICS = 24, 8


def layout(star: str) -> Design:
    names = [f"p{premise}{star}" for premise in range(N_PREMISES) for _ in range(3)]
    return Design.of(np.array(names * N_SUBTOPICS, dtype=object), np.repeat(np.arange(N_SUBTOPICS), len(names)))


def draw(n_runs: int, deviation: float, seed: int = 0) -> tuple[Values, float]:
    """Draw failures whose chance depends on the premise, which all subtopics share; and their true rate."""
    random = np.random.default_rng(seed)
    rate = float(expit(-1.5 + deviation * np.random.default_rng(1).standard_normal(400_000)).mean())
    chances = expit(-1.5 + deviation * random.standard_normal((N_PREMISES, n_runs)))
    of_pairs = np.tile(np.repeat(chances, 3, axis=0), (N_SUBTOPICS, 1))
    return (random.random(of_pairs.shape) < of_pairs).astype(np.float64), rate


def covered(design: Design, values: Values, rate: float) -> float:
    return float(np.mean([each.low <= rate <= each.high for each in estimate_means(values, design)]))


@pytest.mark.parametrize("deviation", [1.0, 2.0])
def test_pooled_rows_cover_the_truth_where_premises_are_shared(deviation: float) -> None:
    values, rate = draw(300, deviation)
    assert covered(layout(""), values, rate) < 0.85, "as if subtopics were independent"
    assert covered(layout("*"), values, rate) >= 0.93


def test_sharing_costs_little_where_premises_do_not_matter() -> None:
    values, _ = draw(50, 0.0)
    apart, together = (estimate_means(values, layout(star)) for star in ("", "*"))
    widths = [sum(each.high - each.low for each in found) for found in (apart, together)]
    assert widths[0] < widths[1] < 1.25 * widths[0]


def test_no_growth_is_not_found_as_growth() -> None:
    """Premises change for better or worse in all subtopics alike: the mean moves by chance alone."""
    random = np.random.default_rng(3)
    alarms = {"": 0, "*": 0}
    for _ in range(100):
        signs = np.tile(np.repeat(random.choice([-1.0, 0.0, 1.0], N_PREMISES), 3), N_SUBTOPICS)
        is_changed = random.random(len(signs)) < 0.5
        before = np.where(is_changed & (signs < 0), 1.0, 0.0)
        after = np.where(is_changed & (signs > 0), 1.0, 0.0)
        for star in alarms:
            alarms[star] += measure_increase(before, after, layout(star), 0.0).p_value <= 0.05
    assert alarms[""] > 20
    assert alarms["*"] <= 8


def test_agreement_of_two_models_counts_shared_premises() -> None:
    values, _ = draw(2, 2.0)
    first, second = values.T.astype(np.intp)
    (low, high), (shared_low, shared_high) = (
        kappa_interval(first, second, layout(s), 0.95) or (0, 0) for s in ("", "*")
    )
    assert shared_low < low < high < shared_high
    random = np.random.default_rng(0)
    one, other = (each + random.normal(size=len(each)) for each in (first, second))
    apart, together = (rank_interval(one, other, layout(star), 0.95) or (0, 0) for star in ("", "*"))
    assert together[0] < apart[0] < apart[1] < together[1]


def test_one_subtopic_shares_with_none() -> None:
    values = (np.arange(72) % 5 == 0).astype(float)
    names = [f"p{n // 3}" for n in range(72)]
    alone = Design.of(np.array([f"{name}*" for name in names], dtype=object))
    assert alone.ties is None
    assert estimate_means(values, alone) == estimate_means(values, np.array(names, dtype=object))


def test_suites_do_not_share_with_each_other() -> None:
    names, subtopics = np.array(["p0*", "p1*", "p0*", "p1*"], dtype=object), ["a/x/x", "a/x/x", "b/x/x", "b/x/x"]
    assert Design.of(names, subtopics, ["a", "a", "b", "b"]).ties is None
    assert Design.of(names, subtopics).ties is not None


def test_a_template_of_several_subtopics_counts_once() -> None:
    assert layout("").n_templates == (N_PREMISES * N_SUBTOPICS,)
    assert layout("*").n_templates == (N_PREMISES,)


def test_occupations_share_their_premises() -> None:
    suite = Occupations()
    found = [{pair.cluster for pair in suite.items(each).usable} for each in suite.subtopics()]
    assert all(each == found[0] for each in found)
    assert all(is_shared(name) for name in found[0])


def test_identities_share_the_predicates_that_have_one_text() -> None:
    suite = Winoqueer()
    clusters: dict[str, set[str]] = {}
    for subtopic in suite.subtopics():
        for pair in suite.items(subtopic).usable:
            clusters.setdefault(pair.cluster, set()).add(subtopic.path)
    shared = {name for name in clusters if is_shared(name)}
    assert shared
    assert all(len(clusters[name]) > 1 for name in shared)
