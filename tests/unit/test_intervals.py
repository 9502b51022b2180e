from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from bbnli_audit.measures.statistics.intervals import (
    MOST_TIMES,
    Estimate,
    estimate_difference,
    estimate_means,
    times_needed,
)

if TYPE_CHECKING:
    from random import Random

Values = NDArray[np.float64]
Labels = NDArray[np.int64]
Data = tuple[Values, Labels]

levels = st.sampled_from([0.0, 0.5, 1.0])


@st.composite
def clustered(draw: st.DrawFn) -> Data:
    groups = draw(st.lists(st.lists(levels, min_size=1, max_size=8), min_size=1, max_size=8))
    values = np.array([value for group in groups for value in group])
    return values, np.repeat(np.arange(len(groups)), [len(group) for group in groups])


@st.composite
def clustered_pairs(draw: st.DrawFn) -> tuple[Values, Values, Labels]:
    first, labels = draw(clustered())
    second = draw(st.lists(levels, min_size=len(first), max_size=len(first)))
    return first, np.array(second), labels


def single(values: ArrayLike, clusters: ArrayLike, confidence: float = 0.95) -> Estimate:
    (estimate,) = estimate_means(np.asarray(values), np.asarray(clusters), confidence)
    return estimate


def equal_clusters(n_clusters: int, size: int, failing: int) -> Data:
    """The first `failing` clusters fail wholly, the others not at all."""
    values = np.repeat(np.arange(n_clusters) < failing, size).astype(np.float64)
    return values, np.repeat(np.arange(n_clusters), size)


def replicated(values: Values, clusters: Labels, times: int) -> Data:
    copies = [clusters + copy * (clusters.max() + 1) for copy in range(times)]
    return np.tile(values, times), np.concatenate(copies)


# --- Means -------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(clustered(), st.floats(0.5, 0.999))
def test_bounds_are_ordered_and_inside_the_unit_interval(data: Data, confidence: float) -> None:
    values, clusters = data
    estimate = single(values, clusters, confidence)
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.n == len(values)
    assert estimate.n_clusters == len(set(clusters.tolist()))
    sizes = np.bincount(clusters)
    assert len(values) ** 2 / (sizes**2).sum() - 1e-9 <= estimate.n_effective <= estimate.n


@settings(deadline=None, max_examples=60)
@given(clustered())
def test_no_data_however_uniform_gives_certainty(data: Data) -> None:
    values, clusters = data
    nothing, everything = estimate_means(np.column_stack([values * 0.0, values * 0.0 + 1.0]), clusters)
    assert nothing.low == 0.0
    assert nothing.high >= 1.0 - 0.025 ** (1.0 / len(values)) - 1e-9
    assert everything.high == 1.0
    assert everything.low == pytest.approx(1.0 - nothing.high)


@pytest.mark.parametrize("sizes", [[1] * 30, [7] * 12, [1, 2, 3, 40]])
def test_nothing_seen_is_worth_the_effective_number_of_clusters(sizes: list[int]) -> None:
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    worth = sum(sizes) ** 2 / sum(size**2 for size in sizes)
    estimate = single(np.zeros(len(clusters)), clusters)
    assert estimate.n_effective == pytest.approx(worth)
    assert estimate.high == pytest.approx(1.0 - 0.025 ** (1.0 / worth))


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 50), (1, 50), (7, 50), (25, 50), (199, 200)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_singletons_give_the_exact_binomial_interval(successes: int, n: int, confidence: float) -> None:
    values = (np.arange(n) < successes).astype(np.float64)
    estimate = single(values, np.arange(n), confidence)
    exact = binomtest(successes, n).proportion_ci(confidence, method="exact")
    assert estimate.low == pytest.approx(exact.low, abs=1e-9)
    assert estimate.high == pytest.approx(exact.high, abs=1e-9)
    assert estimate.n_effective == pytest.approx(n)


@pytest.mark.parametrize("failing", [0, 1, 6, 20])
def test_clusters_that_fail_wholly_count_once_each(failing: int) -> None:
    estimate = single(*equal_clusters(n_clusters=20, size=9, failing=failing))
    exact = binomtest(failing, 20).proportion_ci(0.95, method="exact")
    assert (estimate.low, estimate.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert estimate.n_effective == pytest.approx(20.0)


def test_a_value_worked_out_by_hand() -> None:
    # Four clusters of two with totals 2, 1, 0, 0. With the imagined totals 2 and 0 added: mean 5/12, squared
    # residuals 2 * (7/6)**2 + (1/6)**2 + 3 * (5/6)**2 = 29/6, design effect (29/6) / (5/12 * 7/12 * 12)
    # = 58/35. Worth without Student's correction: 8 * 35/58 = 4.83; with it 2.67; floor 4.
    values = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    few = single(values, np.repeat(np.arange(4), 2))
    assert few.n_effective == pytest.approx(4.0)
    assert (few.low, few.high) == pytest.approx((0.02847, 0.87725), abs=5e-6)  # Beta(1.5, 3.5), Beta(2.5, 2.5)

    # Ten times the same: now the correction is small and the floor of forty does not bind.
    many = single(*replicated(values, np.repeat(np.arange(4), 2), 10))
    mean = 32.0 / 84.0
    squares = 11 * (2 - 2 * mean) ** 2 + 10 * (1 - 2 * mean) ** 2 + 21 * (2 * mean) ** 2
    student = (1.990450210 / 2.022690920) ** 2  # t with 79 and with 39 degrees of freedom
    assert many.n_effective == pytest.approx(80.0 * mean * (1.0 - mean) * 84.0 / squares * student)


@settings(deadline=None, max_examples=60)
@given(clustered())
def test_swapping_successes_and_failures_mirrors_the_interval(data: Data) -> None:
    values, clusters = data
    estimate, mirror = estimate_means(np.column_stack([values, 1.0 - values]), clusters)
    assert mirror.low == pytest.approx(1.0 - estimate.high, abs=1e-12)
    assert mirror.high == pytest.approx(1.0 - estimate.low, abs=1e-12)
    assert mirror.n_effective == pytest.approx(estimate.n_effective)


@settings(deadline=None, max_examples=60)
@given(clustered(), st.randoms(use_true_random=False))
def test_order_of_pairs_and_names_of_clusters_do_not_matter(data: Data, random: Random) -> None:
    values, clusters = data
    order = list(range(len(values)))
    random.shuffle(order)
    names = [f"cluster {n}" for n in range(clusters.max() + 1)]
    random.shuffle(names)
    renamed = np.array([names[code] for code in clusters])
    assert single(values[order], renamed[order]) == pytest.approx(single(values, clusters), abs=1e-12)
    assert single(values, renamed.astype(object)) == pytest.approx(single(values, renamed), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(clustered(), st.floats(0.5, 0.9999), st.floats(0.5, 0.9999))
def test_higher_confidence_never_narrows(data: Data, one: float, other: float) -> None:
    wide, narrow = single(*data, max(one, other)), single(*data, min(one, other))
    assert wide.low <= narrow.low + 1e-12
    assert wide.high >= narrow.high - 1e-12


def test_clustering_widens() -> None:
    values, clusters = equal_clusters(n_clusters=20, size=10, failing=4)
    independent = single(values, np.arange(200))
    together = single(values, clusters)
    scattered = single(values, np.tile(np.arange(20), 10))  # the same values spread evenly over clusters
    assert together.value == scattered.value == independent.value
    assert together.low < scattered.low < independent.low
    assert together.high > scattered.high > independent.high


@pytest.mark.parametrize("values", [[0.0] * 9, [1.0] * 9, [0.0, 0.5, 1.0] * 3, [0.5], [0.0, 1.0]])
def test_one_cluster_is_worth_one_observation(values: list[float]) -> None:
    estimate = single(values, ["only"] * len(values))
    assert estimate.n_effective == pytest.approx(1.0)
    assert estimate.high - estimate.low > 0.9


def test_columns_do_not_influence_each_other() -> None:
    random = np.random.default_rng(1)
    values = random.choice([0.0, 0.5, 1.0], size=(60, 3), p=[0.8, 0.1, 0.1])
    clusters = random.integers(0, 9, 60)
    together = estimate_means(values, clusters)
    assert together == [single(values[:, column], clusters) for column in range(3)]


@pytest.mark.parametrize(("shape", "expected"), [((0,), 1), ((0, 3), 3), ((5, 0), 0)])
def test_empty_input_is_not_a_number(shape: tuple[int, ...], expected: int) -> None:
    estimates = estimate_means(np.zeros(shape), np.zeros(shape[0], dtype=np.int64))
    assert len(estimates) == expected
    for estimate in estimates:
        assert all(math.isnan(number) for number in estimate[:3])
        assert estimate[3:] == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("values", "clusters", "confidence"),
    [
        ([0.0, math.nan], [0, 1], 0.95),
        ([0.0, 1.5], [0, 1], 0.95),
        ([0.0, -0.5], [0, 1], 0.95),
        ([0.0, 1.0], [0], 0.95),
        ([[[0.0]]], [0], 0.95),
        ([0.0, 1.0], [0, 1], 1.0),
        ([0.0, 1.0], [0, 1], 0.4),
    ],
)
def test_unusable_input_is_refused(values: ArrayLike, clusters: ArrayLike, confidence: float) -> None:
    with pytest.raises(ValueError):
        single(values, clusters, confidence)


def test_coverage_where_the_percentile_bootstrap_fails() -> None:
    # Ten clusters of which a tenth fail wholly: the bootstrap covers about six times in ten.
    random = np.random.default_rng(3)
    clusters = np.repeat(np.arange(10), 20)
    values = (random.random((10, 600)) < 0.1)[clusters].astype(np.float64)
    covered = [estimate.low <= 0.1 <= estimate.high for estimate in estimate_means(values, clusters)]
    assert np.mean(covered) > 0.95


# --- Differences -------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(clustered_pairs())
def test_difference_is_ordered_bounded_and_mirrored(data: tuple[Values, Values, Labels]) -> None:
    first, second, clusters = data
    there, back = estimate_difference(first, second, clusters), estimate_difference(second, first, clusters)
    assert -1.0 <= there.low <= there.value <= there.high <= 1.0
    assert there.value == pytest.approx(first.mean() - second.mean(), abs=1e-12)
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low), abs=1e-12)
    assert there.high - there.low > 1.0 / len(first)


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_clusters", [1, 2, 40])
def test_measures_that_never_differ_leave_room_for_a_difference(level: float, n_clusters: int) -> None:
    clusters = np.repeat(np.arange(n_clusters), 5)
    same = np.full(len(clusters), level)
    estimate = estimate_difference(same, same, clusters)
    assert estimate.value == 0.0
    assert estimate.low < -1.0 / n_clusters / 2
    assert estimate.high > 1.0 / n_clusters / 2


def test_equal_halves_that_never_differ_leave_room_too() -> None:
    # Without the imagined clusters the correlation would be 1 and the symmetric interval would be [0, 0].
    values, clusters = equal_clusters(n_clusters=40, size=5, failing=20)
    estimate = estimate_difference(values, values, clusters)
    assert estimate.low < -0.02
    assert estimate.high > 0.02


def test_agreeing_measures_give_a_narrower_difference_than_opposed_ones() -> None:
    values, clusters = equal_clusters(n_clusters=40, size=5, failing=20)
    agreeing = estimate_difference(values, values, clusters)
    unrelated = estimate_difference(values, np.tile(np.arange(40) % 2, (5, 1)).T.ravel(), clusters)
    opposed = estimate_difference(values, 1.0 - values, clusters)
    widths = [estimate.high - estimate.low for estimate in (agreeing, unrelated, opposed)]
    assert widths == sorted(widths)
    assert widths[0] < widths[1] < widths[2]


def test_unrelated_measures_are_squared_and_added() -> None:
    # Every combination equally often: residuals are uncorrelated but for the imagined clusters.
    first = np.tile([0.0, 0.0, 1.0, 1.0], 5000)
    second = np.tile([0.0, 1.0, 0.0, 1.0], 5000)
    clusters = np.arange(len(first))
    estimate = estimate_difference(first, second, clusters)
    half = single(first, clusters).high - 0.5
    assert estimate.high == pytest.approx(math.sqrt(2.0) * half, rel=1e-3)


def test_empty_difference_is_not_a_number() -> None:
    estimate = estimate_difference(np.zeros(0), np.zeros(0), np.zeros(0))
    assert math.isnan(estimate.value)
    assert estimate.n == 0


def test_difference_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match="one shape"):
        estimate_difference(np.zeros(3), np.zeros(2), np.zeros(3))


# --- What would decide -------------------------------------------------------------------------------------


def decided(estimate: Estimate, limit: float) -> bool:
    return estimate.high <= limit if estimate.value <= limit else estimate.low > limit


@pytest.mark.parametrize(("failing", "limit"), [(0, 0.1), (1, 0.2), (4, 0.4), (10, 0.31), (16, 0.6), (20, 0.9)])
def test_as_many_clusters_as_the_upper_figure_decide(failing: int, limit: float) -> None:
    values, clusters = equal_clusters(n_clusters=20, size=4, failing=failing)
    estimate = single(values, clusters)
    assert not decided(estimate, limit)
    needed = times_needed(estimate, limit, 0.95)
    assert needed is not None
    assert 1.0 <= needed[0] < needed[1]
    assert decided(single(*replicated(values, clusters, math.ceil(needed[1]))), limit)


def test_a_limit_within_a_standard_error_is_too_close_to_call() -> None:
    estimate = Estimate(0.12, 0.08, 0.17, 300, 150, 100.0)  # standard error 0.023
    assert times_needed(estimate, 0.10, 0.95) is None
    assert times_needed(estimate, 0.14, 0.95) is None
    assert times_needed(estimate, 0.16, 0.95) is not None


def test_more_templates_than_anyone_writes_are_not_named() -> None:
    limits = [value / 10_000 for value in range(1400, 1900)]
    found = [times_needed(Estimate(0.10, 0.06, 0.16, 300, 150, 100.0), limit, 0.95) for limit in limits]
    named = [each for each in found if each is not None]
    assert found == [None] * (len(limits) - len(named)) + named, "named from some distance on"
    assert 9.0 < named[0][1] <= MOST_TIMES


def test_the_two_figures_worked_out_by_hand() -> None:
    estimate = Estimate(0.10, 0.06, 0.16, 300, 150, 100.0)
    error = 0.05 / 1.959964
    expected = ((0.06 / (0.05 + error)) ** 2, (0.06 / (0.05 - error)) ** 2)
    assert times_needed(estimate, 0.15, 0.95) == pytest.approx((max(expected[0], 1.0), expected[1]))


def test_no_data_decides_nothing() -> None:
    assert times_needed(single([], []), 0.1, 0.95) is None
