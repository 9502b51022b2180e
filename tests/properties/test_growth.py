"""What holds for any two runs on the same pairs."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bbnli_audit.measures.statistics.growth import Increase, holm, measure_increase

if TYPE_CHECKING:
    from random import Random

Values = NDArray[np.float64]

p_values = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.05, 1.0])), max_size=12)
margins = st.one_of(st.floats(0, 0.9), st.sampled_from([0.0, 0.02, 0.5]))


class Runs(NamedTuple):
    before: Values
    after: Values
    clusters: NDArray[np.int64]

    def increase(self, margin: float = 0.02, confidence: float = 0.95) -> Increase:
        return measure_increase(self.before, self.after, self.clusters, margin, confidence)

    @property
    def change(self) -> Values:
        return self.after - self.before


@st.composite
def two_runs(draw: st.DrawFn) -> Runs:
    level = st.sampled_from([0.0, 0.5, 1.0])
    pair = st.tuples(level, level)
    groups = draw(st.lists(st.lists(pair, min_size=1, max_size=6), min_size=1, max_size=10))
    values = np.array([pair for group in groups for pair in group])
    clusters = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return Runs(values[:, 0], values[:, 1], clusters)


def assert_same(one: Increase, other: Increase) -> None:
    assert (one.n_worse, one.n_better) == (other.n_worse, other.n_better)
    assert one[:5] == pytest.approx(other[:5], rel=1e-5, abs=1e-9)
    assert one.times_needed == (None if other.times_needed is None else pytest.approx(other.times_needed, rel=1e-6))


# --- Holm --------------------------------------------------------------------------------------------------


def n_rejected_step_by_step(values: list[float], level: float) -> int:
    """Holm's procedure as he wrote it: stop at the first that is too large."""
    for step, value in enumerate(sorted(values)):
        if value * (len(values) - step) > level:
            return step
    return len(values)


@given(p_values, st.sampled_from([0.001, 0.01, 0.05, 0.2, 0.7]))
def test_holm_rejects_what_the_procedure_rejects(values: list[float], level: float) -> None:
    assert int((holm(values) <= level).sum()) == n_rejected_step_by_step(values, level)


def rejected_by_closed_testing(values: list[float], weights: list[float], level: float) -> list[bool]:
    """Reject a hypothesis if every group that it belongs to is rejected, each group by weighted Bonferroni."""
    places = range(len(values))
    groups = [group for size in range(1, len(values) + 1) for group in combinations(places, size)]

    def is_rejected(group: tuple[int, ...]) -> bool:
        total = sum(weights[place] for place in group)
        return any(values[place] * total <= level * weights[place] for place in group)

    kept = [group for group in groups if not is_rejected(group)]
    return [all(place not in group for group in kept) for place in places]


@given(
    st.lists(st.tuples(st.floats(1e-6, 1), st.sampled_from([0.1, 0.5, 1.0, 3.0])), min_size=1, max_size=6),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_weighted_holm_is_closed_testing(drawn: list[tuple[float, float]], level: float) -> None:
    values, weights = [p for p, _ in drawn], [weight for _, weight in drawn]
    corrected = holm(values, weights)
    assume(np.all(np.abs(corrected - level) > 1e-9))
    assert (corrected <= level).tolist() == rejected_by_closed_testing(values, weights, level)


@given(p_values)
def test_holm_is_the_largest_step_up_to_each(values: list[float]) -> None:
    n = len(values)
    for value, corrected in zip(values, holm(values).tolist(), strict=True):
        # Step of q: the number of tests not yet rejected when its turn comes, of equals the earliest.
        steps = [(n - sum(r < q for r in values)) * q for q in values if q <= value]
        assert corrected == pytest.approx(min(max(steps), 1.0))


@given(p_values)
def test_holm_keeps_the_order_and_lies_between_the_value_and_bonferroni(values: list[float]) -> None:
    corrected = holm(values).tolist()
    for value, result in zip(values, corrected, strict=True):
        assert value <= result <= min(value * len(values), 1.0) or result == pytest.approx(value * len(values))
    by_value = [result for _, result in sorted(zip(values, corrected, strict=True))]
    assert by_value == sorted(by_value)


@given(p_values, st.randoms(use_true_random=False))
def test_holm_does_not_depend_on_the_order(values: list[float], random: Random) -> None:
    order = list(range(len(values)))
    random.shuffle(order)
    assert holm([values[place] for place in order]).tolist() == holm(values)[order].tolist()


@given(p_values, st.floats(0, 1))
def test_a_further_test_never_lowers_the_others(values: list[float], further: float) -> None:
    assert np.all(holm([*values, further])[:-1] >= holm(values) - 1e-15)


# --- The increase ------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(two_runs(), margins)
def test_value_bounds_and_p_values_are_what_they_say(runs: Runs, margin: float) -> None:
    found = runs.increase(margin)
    assert found.value == float(sum(map(Fraction, runs.after)) - sum(map(Fraction, runs.before))) / len(runs.after)
    assert -1.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.high > found.value or found.value == 1.0
    assert all(0.0 < p <= 1.0 for p in (found.p_value, found.p_pairs))
    assert found.n_worse == sum(after > before for before, after in zip(runs.before, runs.after, strict=True))
    assert found.n_better == sum(after < before for before, after in zip(runs.before, runs.after, strict=True))


@settings(deadline=None)
@given(two_runs(), margins)
def test_fail_and_pass_exclude_each_other(runs: Runs, margin: float) -> None:
    found = runs.increase(margin)
    assert not (found.p_value <= 0.05 and found.high <= margin)
    if found.p_value <= 0.05:
        assert found.value > margin


@settings(deadline=None)
@given(two_runs(), margins)
def test_the_lower_bound_and_the_test_at_the_margin_agree(runs: Runs, margin: float) -> None:
    found = runs.increase(margin)
    if abs(found.p_value - 0.05) > 1e-6:
        assert (found.low > margin) == (found.p_value < 0.05)


@settings(deadline=None)
@given(two_runs())
def test_exchanging_the_runs_turns_growth_into_shrinkage(runs: Runs) -> None:
    there, back = runs.increase(), Runs(runs.after, runs.before, runs.clusters).increase()
    assert back.value == -there.value
    assert (back.n_worse, back.n_better) == (there.n_better, there.n_worse)
    assert max(there.p_pairs, back.p_pairs) >= 0.5
    # Of a test and its mirror at most one rejects, whatever the margin.
    assert max(there.p_value, back.p_value) >= 0.5


@settings(deadline=None)
@given(two_runs(), margins, margins)
def test_a_wider_margin_never_lowers_the_p_value(runs: Runs, one: float, other: float) -> None:
    narrow, wide = runs.increase(min(one, other)), runs.increase(max(one, other))
    assert wide.p_value >= narrow.p_value - 1e-6
    assert (wide.low, wide.high) == (narrow.low, narrow.high)


@settings(deadline=None)
@given(two_runs(), margins, st.randoms(use_true_random=False))
def test_order_of_pairs_and_names_of_clusters_are_irrelevant(runs: Runs, margin: float, random: Random) -> None:
    order = list(range(len(runs.before)))
    random.shuffle(order)
    names = [f"cluster {name}" for name in random.sample(range(100), int(runs.clusters.max()) + 1)]
    labels = np.array(names)[runs.clusters]
    shuffled = measure_increase(runs.before[order], runs.after[order], labels[order], margin)
    assert_same(shuffled, runs.increase(margin))


@settings(deadline=None)
@given(two_runs())
def test_only_the_change_matters_not_the_level(runs: Runs) -> None:
    # A pair that counted ½ more after than before may have gone from 0 to ½ or from ½ to 1.
    change = runs.change
    lowest = Runs(np.maximum(-change, 0.0), np.maximum(change, 0.0), runs.clusters)
    assert_same(lowest.increase(), runs.increase())


@settings(deadline=None)
@given(two_runs(), st.integers(1, 30), st.booleans())
def test_further_pairs_that_did_not_change_dilute_the_value_and_no_more(
    runs: Runs, n_further: int, is_new_cluster: bool
) -> None:
    # What they do to the test at the margin depends: they lower the value and its spread alike.
    last = int(runs.clusters.max())
    labels = np.concatenate([runs.clusters, np.full(n_further, last + is_new_cluster)])
    further = np.full(n_further, 0.5)
    more = Runs(np.concatenate([runs.before, further]), np.concatenate([runs.after, further]), labels).increase()
    found = runs.increase()
    n = len(runs.before)
    assert more.value == pytest.approx(found.value * n / (n + n_further), abs=1e-12)
    assert more.p_pairs == found.p_pairs
    assert (more.n_worse, more.n_better) == (found.n_worse, found.n_better)


@settings(deadline=None)
@given(two_runs(), st.integers(2, 6))
def test_the_same_again_in_new_clusters_is_stronger_evidence(runs: Runs, times: int) -> None:
    found = runs.increase()
    labels = np.concatenate([runs.clusters + copy * 100 for copy in range(times)])
    more = Runs(np.tile(runs.before, times), np.tile(runs.after, times), labels).increase()
    assert more.value == pytest.approx(found.value, abs=1e-12)
    assert more.high <= found.high + 1e-9
    if found.p_value < 0.5:
        assert more.p_value <= found.p_value + 1e-6
