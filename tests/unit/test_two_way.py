"""The two-way variance, computed again by brute force over couples of pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import beta, t

from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.intervals import Spread, estimate_difference, estimate_means, find_spreads

if TYPE_CHECKING:
    from collections.abc import Callable

Values = NDArray[np.float64]
Place = tuple[str, str]


@st.composite
def crossed(draw: st.DrawFn) -> tuple[list[Place], Values, Values]:
    """Pairs of two to five premises and two to six hypotheses, some cells empty and some with several pairs."""
    n_premises, n_hypotheses = draw(st.integers(2, 5)), draw(st.integers(2, 6))
    places = [(f"p{i}", f"h{j}") for i in range(n_premises) for j in range(n_hypotheses)]
    counts = draw(st.lists(st.integers(0, 3), min_size=len(places), max_size=len(places)))
    pairs = [place for place, n in zip(places, counts, strict=True) for _ in range(n)]
    pairs += [("p0", "h0"), ("p1", "h1")]
    level = st.sampled_from([0.0, 0.5, 1.0])
    one, other = (np.array(draw(st.lists(level, min_size=len(pairs), max_size=len(pairs)))) for _ in range(2))
    return pairs, one, other


def names(pairs: list[Place]) -> NDArray[np.object_]:
    return np.array(["/".join(place) for place in pairs], dtype=object)


def couples(pairs: list[Place], left: Values, right: Values, alike: Callable[[Place, Place], bool]) -> float:
    """Sum the products of the residuals of all couples that are alike."""
    both = [(a, b) for a in range(len(pairs)) for b in range(len(pairs)) if alike(pairs[a], pairs[b])]
    return float(sum(left[a] * right[b] for a, b in both))


def same_premise(one: Place, other: Place) -> bool:
    return one[0] == other[0]


def same_hypothesis(one: Place, other: Place) -> bool:
    return one[1] == other[1]


def same_cell(one: Place, other: Place) -> bool:
    return one == other


class ByHand:
    """The interval of one measure by the formula of Cameron, Gelbach and Miller, over couples of pairs."""

    def __init__(self, pairs: list[Place], values: Values) -> None:
        self.pairs, self.values, self.n = pairs, values, len(pairs)
        together = sum(same_cell(a, b) for a in pairs for b in pairs)
        self.size = together / self.n
        self.enlarged = self.n + 2 * self.size
        self.mean = (values.sum() + self.size) / self.enlarged
        self.residuals = values - self.mean

    def crossed(self, other: ByHand, imagined: float) -> tuple[float, float]:
        left, right = self.residuals, other.residuals
        g, h = (len({place[at] for place in self.pairs}) for at in (0, 1))
        by_premise = couples(self.pairs, left, right, same_premise) + imagined
        by_hypothesis = couples(self.pairs, left, right, same_hypothesis) + imagined
        by_cell = couples(self.pairs, left, right, same_cell) + imagined
        return g / (g - 1) * by_premise + h / (h - 1) * by_hypothesis - by_cell, by_cell

    @property
    def square(self) -> float:
        return max(self.crossed(self, self.size**2 * (self.mean**2 + (1 - self.mean) ** 2)))

    def worth(self, confidence: float) -> float:
        levels = min(len({place[at] for place in self.pairs}) for at in (0, 1))
        ratio = t.ppf((1 + confidence) / 2, self.n - 1) / t.ppf((1 + confidence) / 2, levels - 1)
        worth = self.n * self.mean * (1 - self.mean) * self.enlarged / self.square * ratio**2
        n_together = [
            sum(alike(a, b) for a in self.pairs for b in self.pairs)
            for alike in (same_premise, same_hypothesis, same_cell)
        ]
        least = self.n**2 / max(n_together[0] + n_together[1] - n_together[2], n_together[2])
        return float(min(max(worth, least), self.n))

    def bounds(self, confidence: float) -> tuple[float, float]:
        n, tail, mean = self.worth(confidence), (1 - confidence) / 2, self.values.mean()
        low = beta.ppf(tail, mean * n, n - mean * n + 1) if mean > 0 else 0.0
        high = beta.ppf(1 - tail, mean * n + 1, n - mean * n) if mean < 1 else 1.0
        return float(low), float(high)


@settings(deadline=None, max_examples=80)
@given(crossed(), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_the_interval_is_the_two_way_one(data: tuple[list[Place], Values, Values], confidence: float) -> None:
    pairs, values, _ = data
    (found,) = estimate_means(values, names(pairs), confidence)
    by_hand = ByHand(pairs, values)
    assert found.n_effective == pytest.approx(by_hand.worth(confidence), rel=1e-9)
    low, high = by_hand.bounds(confidence)
    assert (found.low, found.high) == pytest.approx((min(low, found.value), max(high, found.value)), abs=1e-9)


@settings(deadline=None, max_examples=80)
@given(crossed(), st.sampled_from([0.8, 0.95]))
def test_a_difference_is_squared_and_added_with_the_two_way_correlation(
    data: tuple[list[Place], Values, Values], confidence: float
) -> None:
    pairs, first, second = data
    found = estimate_difference(first, second, names(pairs), confidence)
    one, other = ByHand(pairs, first), ByHand(pairs, second)
    imagined = -(one.size**2) * ((1 - one.mean) * other.mean + one.mean * (1 - other.mean))
    r = float(np.clip(one.crossed(other, imagined)[0] / math.sqrt(one.square * other.square), -1, 1))
    (low1, high1), (low2, high2) = one.bounds(confidence), other.bounds(confidence)
    value = float(first.mean() - second.mean())
    down, up = first.mean() - low1, high2 - second.mean()
    reach = math.sqrt(max(down**2 + up**2 - 2 * r * down * up, 0.0))
    assert found.low == pytest.approx(max(value - reach, -1.0), abs=1e-7)
    up, down = high1 - first.mean(), second.mean() - low2
    reach = math.sqrt(max(down**2 + up**2 - 2 * r * down * up, 0.0))
    assert found.high == pytest.approx(min(value + reach, 1.0), abs=1e-7)


@settings(deadline=None, max_examples=60)
@given(st.lists(crossed(), min_size=2, max_size=3))
def test_the_spread_is_a_mean_of_products_over_couples(blocks: list[tuple[list[Place], Values, Values]]) -> None:
    kinds: dict[str, Callable[[Place, Place], bool]] = {
        "cell": same_cell,
        "premise": lambda a, b: same_premise(a, b) and not same_hypothesis(a, b),
        "hypothesis": lambda a, b: same_hypothesis(a, b) and not same_premise(a, b),
        "nothing": lambda a, b: not same_premise(a, b) and not same_hypothesis(a, b),
    }
    sums, weights = dict.fromkeys([*kinds, "own"], 0.0), dict.fromkeys([*kinds, "own"], 0.0)
    for pairs, values, _ in blocks:
        by_hand = ByHand(pairs, values)
        residuals = values - values.mean()
        size = by_hand.mean * (1 - by_hand.mean)
        sums["own"] += float((residuals**2).sum())
        weights["own"] += len(pairs) * size
        for kind, alike in kinds.items():
            is_self = len(pairs) if kind == "cell" else 0
            own = float((residuals**2).sum()) if kind == "cell" else 0.0
            sums[kind] += couples(pairs, residuals, residuals, alike) - own
            weights[kind] += (sum(alike(a, b) for a in pairs for b in pairs) - is_self) * size
    mean = {kind: sums[kind] / weights[kind] if weights[kind] else 0.0 for kind in sums}
    beyond = {kind: mean[kind] - mean["nothing"] for kind in mean}
    premise, hypothesis = max(beyond["premise"], 0.0), max(beyond["hypothesis"], 0.0)
    values = np.concatenate([values for _, values, _ in blocks])
    labels = np.concatenate([names(pairs) for pairs, _, _ in blocks])
    subtopics = np.repeat(np.arange(len(blocks)), [len(pairs) for pairs, _, _ in blocks])
    (found,) = find_spreads(values, Design.of(labels, subtopics))
    expected = Spread(beyond["own"], max(beyond["cell"], premise, hypothesis), premise, hypothesis)
    assert found == pytest.approx(expected, abs=1e-9)


def test_what_other_subtopics_show_only_widens() -> None:
    labels = np.array([f"p{i}/h{j}" for i in range(6) for j in range(8)], dtype=object)
    values = (np.arange(48) % 7 == 0).astype(float)
    (alone,) = estimate_means(values, labels)
    (calm,) = estimate_means(values, labels, spreads=[Spread(1.0, 0.0, 0.0, 0.0)])
    (wild,) = estimate_means(values, labels, spreads=[Spread(1.0, 0.6, 0.3, 0.5)])
    assert calm == alone
    assert wild.low < alone.low
    assert wild.high > alone.high
    # 48 pairs in 48 cells; 7 couples share a premise only with each pair, 5 a hypothesis only.
    assert wild.n_effective == pytest.approx(48 / (1 + 7 * 0.3 + 5 * 0.5))


def test_nested_factors_count_as_the_coarser_one() -> None:
    """Each hypothesis belongs to one premise: the premises are the clusters."""
    values = np.array([1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0], dtype=float)
    nested = np.array([f"p{i // 3}/h{i}" for i in range(12)], dtype=object)
    (found,) = estimate_means(values, nested)
    by_hand = ByHand([(str(name).split("/")[0], str(name).split("/")[1]) for name in nested], values)
    assert found.n_effective == pytest.approx(by_hand.worth(0.95), rel=1e-9)


@pytest.mark.parametrize("labels", [["p0/h0", "p0/h1", "p0/h2"], ["a", "b", "c"], ["a/x", "b", "c/y"]])
def test_one_varying_factor_is_no_crossing(labels: list[str]) -> None:
    values = np.array([1.0, 0.0, 0.0])
    assert estimate_means(values, np.array(labels, dtype=object)) == estimate_means(values, [0, 1, 2])


def test_variances_of_subtopics_add_up() -> None:
    """A pooled row of two equal subtopics has half the variance of one, so twice its worth."""
    labels = np.array([f"p{i}/h{j}" for i in range(10) for j in range(10)], dtype=object)
    values = np.tile((np.arange(100) % 9 < 2).astype(float), 2)
    both = Design.of(np.tile(labels, 2), np.repeat([0, 1], 100))
    (one,), (two,) = estimate_means(values[:100], labels), estimate_means(values, both)
    assert two.n_effective == pytest.approx(2 * one.n_effective)
    assert two.n_clusters == 2 * one.n_clusters
