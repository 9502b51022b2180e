from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

from bbnli_audit.measures.statistics.growth import Increase, holm, mcnemar, measure_increase

Values = NDArray[np.float64]
Labels = NDArray[np.int64]


def increase_of(change: Values, clusters: Labels, margin: float = 0.02, confidence: float = 0.95) -> Increase:
    """Compare as if every pair that changed for the better had counted before, and no other."""
    return measure_increase(np.maximum(-change, 0.0), np.maximum(change, 0.0), clusters, margin, confidence)


def clusters_of(n_clusters: int, size: int) -> Labels:
    return np.repeat(np.arange(n_clusters), size)


def alike(pattern: list[float], n_clusters: int) -> tuple[Values, Labels]:
    """Every cluster shows the same changes."""
    return np.tile(pattern, n_clusters), clusters_of(n_clusters, len(pattern))


def replicated(change: Values, clusters: Labels, times: int) -> tuple[Values, Labels]:
    copies = [clusters + copy * (clusters.max() + 1) for copy in range(times)]
    return np.tile(change, times), np.concatenate(copies)


def decided(increase: Increase, margin: float) -> bool:
    return increase.high <= margin or increase.low > margin


# --- McNemar -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 10, 37, 200, 1000])
def test_mcnemar_is_the_exact_one_sided_binomial_test(n: int) -> None:
    for n_worse in sorted({*range(0, n + 1, max(n // 20, 1)), 1, n // 2, n}):
        expected = binomtest(n_worse, n, alternative="greater").pvalue
        assert mcnemar(n_worse, n - n_worse) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_without_any_change_says_nothing() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(0, 12) == 1.0


def test_mcnemar_of_changes_in_one_direction_halves_with_each() -> None:
    assert [mcnemar(n, 0) for n in (1, 2, 10)] == pytest.approx([0.5, 0.25, 2.0**-10], rel=1e-12)


# --- Holm --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        ([0.03], [0.03]),
        ([0.01, 0.04], [0.02, 0.04]),
        ([0.04, 0.01], [0.04, 0.02]),
        ([0.01, 0.01, 0.01], [0.03, 0.03, 0.03]),
        ([0.01, 0.3, 0.02, 0.9], [0.04, 0.6, 0.06, 0.9]),
        ([0.02, 0.021], [0.04, 0.04]),  # the second step may not undercut the first
        ([0.7, 0.8], [1.0, 1.0]),
        ([0.0, 1.0], [0.0, 1.0]),
    ],
)
def test_holm(p_values: list[float], expected: list[float]) -> None:
    assert holm(p_values).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("p_values", "weights", "expected"),
    [
        ([0.01, 0.04], [1.0, 1.0], [0.02, 0.04]),  # equal weights: as without
        ([0.01, 0.04], [0.25, 0.75], [0.04, 0.04]),  # 0.01 / 0.25, then 0.04 alone
        ([0.01, 0.04], [0.75, 0.25], [0.01 / 0.75, 0.04]),
        ([0.03, 0.02], [3.0, 1.0], [0.04, 0.04]),  # 0.03 comes first, since 0.01 a unit of weight is the least
    ],
)
def test_holm_with_weights(p_values: list[float], weights: list[float], expected: list[float]) -> None:
    assert holm(p_values, weights).tolist() == pytest.approx(expected)


def test_holm_of_nothing_is_nothing() -> None:
    assert holm([]).shape == (0,)


# --- The increase ------------------------------------------------------------------------------------------


def test_values_of_a_small_example() -> None:
    before = [1.0, 0.0, 0.5, 0.0, 0.0, 0.0]
    after = [0.0, 1.0, 1.0, 0.5, 0.0, 0.0]
    found = measure_increase(before, after, ["a", "a", "b", "b", "c", "c"], margin=0.02)
    assert found.value == 1.0 / 6.0
    assert (found.n_worse, found.n_better) == (3, 1)
    assert found.p_pairs == pytest.approx(5.0 / 16.0)  # at least 3 of 4
    assert 0.05 < found.p_value <= 1.0


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("n_clusters", [12, 50])
def test_the_p_value_is_where_the_lower_bound_meets_the_margin(n_clusters: int, size: int, margin: float) -> None:
    random = np.random.default_rng([n_clusters, size])
    change = random.choice([-0.5, 0.0, 0.5, 1.0], n_clusters * size)
    found = increase_of(change, clusters_of(n_clusters, size), margin)
    assert found.value > margin
    assert 0.0 < found.p_value < 0.5
    at_p = increase_of(change, clusters_of(n_clusters, size), margin, confidence=1.0 - found.p_value)
    assert at_p.low == pytest.approx(margin, abs=1e-6)


@pytest.mark.parametrize("margin", [0.0, 0.02, 0.3])
def test_the_lower_bound_is_square_and_add_of_two_exact_bounds(margin: float) -> None:
    """Clusters of one pair: growth and shrinkage are two binomial shares, combined by hand with their correlation."""
    n_worse, n_better, n = 30, 6, 100
    change = np.array([1.0] * n_worse + [-1.0] * n_better + [0.0] * (n - n_worse - n_better))
    found = increase_of(change, np.arange(n), margin)
    grown, shrunk = (binomtest(k, n).proportion_ci(0.9) for k in (n_worse, n_better))
    columns = np.column_stack([change > 0, change < 0]).astype(float)
    means = (columns.sum(axis=0) + 1) / (n + 2)
    imagined = np.array([[1.0, 0.0], [0.0, 1.0]])
    residuals = np.vstack([columns, imagined]) - means
    r = (residuals[:, 0] * residuals[:, 1]).sum() / math.sqrt(math.prod((residuals**2).sum(axis=0)))
    down, up = n_worse / n - grown.low, shrunk.high - n_better / n
    assert found.low == pytest.approx(found.value - math.sqrt(down**2 + up**2 - 2 * r * down * up), abs=1e-9)


def test_a_cluster_of_many_pairs_weighs_more_in_the_value_but_proves_little() -> None:
    change = np.array([1.0] * 30 + [-1.0] * 3)
    found = increase_of(change, np.array([0] * 30 + [1, 2, 3]))
    assert found.value == pytest.approx(27 / 33)
    assert found.p_pairs < 1e-5
    assert found.p_value > 0.05


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("n_clusters", "size"), [(1, 1), (1, 9), (2, 1), (40, 1), (40, 5), (500, 2)])
def test_nothing_changed_is_not_certainty(level: float, n_clusters: int, size: int) -> None:
    same = np.full(n_clusters * size, level)
    found = measure_increase(same, same, clusters_of(n_clusters, size), 0.02)
    assert found.value == 0.0
    assert found.low == -found.high
    assert found.high == pytest.approx(1.0 - 0.05 ** (1.0 / n_clusters))
    assert (found.p_value, found.n_worse, found.n_better) == (1.0, 0, 0)


@pytest.mark.parametrize(("margin", "needed"), [(0.02, 149), (0.03, 99), (0.05, 59)])
def test_clusters_that_an_unchanged_model_needs_to_pass(margin: float, needed: int) -> None:
    def high(n_clusters: int) -> float:
        return increase_of(np.zeros(n_clusters), np.arange(n_clusters), margin).high

    assert high(needed) <= margin < high(needed - 1)


@pytest.mark.parametrize("change", [[1.0], [1.0] * 500, [1.0] * 9 + [0.0], [0.5] * 40, [-1.0] * 5])
def test_one_cluster_never_shows_growth(change: list[float]) -> None:
    found = increase_of(np.array(change), np.zeros(len(change), dtype=np.int64))
    assert found.p_value > 0.2
    assert found.low < 0.02


@pytest.mark.parametrize("size", [1, 10])
@pytest.mark.parametrize(("n_clusters", "is_shown"), [(2, False), (4, False), (8, True), (20, True)])
def test_a_flip_of_everything_needs_some_clusters(n_clusters: int, size: int, is_shown: bool) -> None:
    found = increase_of(np.ones(n_clusters * size), clusters_of(n_clusters, size))
    assert found.value == found.high == 1.0
    assert (found.p_value <= 0.05) == is_shown


@pytest.mark.parametrize("pattern", [[1.0, 0.0], [0.5], [1.0, 1.0, -1.0, 0.0], [0.5, 0.0, 0.0]])
def test_clusters_that_all_changed_alike_do_not_make_the_lower_bound_certain(pattern: list[float]) -> None:
    found = increase_of(*alike(pattern, 12))
    assert found.low < found.value - 0.05
    assert found.p_value > 0.0
    assert increase_of(*alike(pattern, 12), margin=found.value).p_value == 1.0


def test_few_large_clusters_do_not_fail_on_the_pairs_alone() -> None:
    # 60 pairs for the worse and none for the better would be overwhelming, were they independent.
    found = increase_of(np.repeat([1.0, 1.0, 1.0] + [0.0] * 17, 20), clusters_of(20, 20))
    assert found.p_pairs < 1e-15
    assert found.p_value >= 0.05


def test_pairs_that_flip_both_ways_show_no_growth() -> None:
    change = np.array([1.0, -1.0] * 100)
    found = increase_of(change, np.arange(200))
    assert found.value == 0.0
    assert found.p_value > 0.5
    assert found.high > increase_of(np.zeros(200), np.arange(200)).high


def test_no_pairs() -> None:
    found = measure_increase([], [], [], 0.02)
    assert all(math.isnan(number) for number in (found.value, found.low, found.high))
    assert found.p_value == found.p_pairs == 1.0
    assert (found.n_worse, found.n_better, found.times_needed) == (0, 0, None)


@pytest.mark.parametrize("confidence", [0.5, 0.5 + 1e-9, 0.6, 0.95, 0.999999])
@pytest.mark.parametrize("size", [1, 5])
def test_any_confidence_that_a_thresholds_file_may_ask_for(confidence: float, size: int) -> None:
    change = np.random.default_rng(0).choice([-1.0, 0.0, 0.0, 0.0, 1.0], 100)
    found = increase_of(change, clusters_of(100 // size, size), confidence=confidence)
    assert -1.0 < found.low <= found.value <= found.high < 1.0
    if confidence < 0.501:  # not the whole range, but hardly more than the value
        assert found.high < found.value + 0.1


def test_bounds_widen_with_the_confidence() -> None:
    change = np.random.default_rng(1).choice([-1.0, 0.0, 0.0, 0.0, 1.0], 100)
    found = [increase_of(change, clusters_of(20, 5), confidence=level) for level in (0.5, 0.6, 0.8, 0.95, 0.99)]
    for narrow, wide in itertools.pairwise(found):
        assert wide.low < narrow.low
        assert narrow.high < wide.high
        assert wide.p_value == narrow.p_value


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError):
        measure_increase([0.0, 1.0], [0.0, 1.0], [0], 0.02)


# --- What would decide -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_worse", "n_better", "margin"), [(0, 0, 0.13), (8, 0, 0.1), (2, 8, 0.02), (5, 4, 0.32)])
@pytest.mark.parametrize("size", [1, 4])
def test_replicating_the_clusters_that_often_decides(n_worse: int, n_better: int, margin: float, size: int) -> None:
    kinds = [1.0] * n_worse + [-1.0] * n_better + [0.0] * (20 - n_worse - n_better)
    change, clusters = np.repeat(kinds, size), clusters_of(20, size)
    found = increase_of(change, clusters, margin)
    assert found.times_needed is not None
    times = math.ceil(found.times_needed[1])
    assert decided(increase_of(*replicated(change, clusters, times), margin), margin)


@pytest.mark.parametrize("margin", [0.0, 0.25, 0.5])
def test_growth_by_the_margin_is_too_close_to_call(margin: float) -> None:
    n_worse = round(40 * margin) + 3
    change = np.array([1.0] * n_worse + [-1.0] * 3 + [0.0] * (37 - n_worse))
    found = increase_of(change, np.arange(40), margin)
    assert found.value == margin
    assert found.times_needed is None


# --- Error rates, as a guard; those on crossed templates are in test_error_rates.py -------------------------


@pytest.mark.parametrize(("n_clusters", "size"), [(100, 1), (20, 10)])
def test_false_alarms_and_wrong_passes_at_the_margin_are_rare(n_clusters: int, size: int) -> None:
    random = np.random.default_rng(7)
    kinds = random.choice([1.0, -1.0, 0.0], (400, n_clusters), p=[0.15, 0.10, 0.75])
    found = [increase_of(np.repeat(row, size), clusters_of(n_clusters, size), 0.05) for row in kinds]
    # Nominal 0.05; three standard errors are 0.033.
    assert np.mean([one.p_value <= 0.05 for one in found]) < 0.083
    assert np.mean([one.high <= 0.05 for one in found]) < 0.083


def test_growth_well_over_the_margin_is_seen() -> None:
    random = np.random.default_rng(8)
    kinds = random.choice([1.0, -1.0, 0.0], (100, 200), p=[0.22, 0.02, 0.76])
    p_values = [increase_of(row, np.arange(200)).p_value for row in kinds]
    assert np.mean([holm([p] + [1.0] * 47)[0] <= 0.05 for p in p_values]) > 0.9
