"""A small, seeded version of each simulation of docs/simulations.md, on the benchmarks' own code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bbnli_audit.audit.gate.compared import Shown
from bbnli_audit.audit.gate.growth import Rule, compare_pairs
from bbnli_audit.audit.gate.growth import list_tests as level_tests
from bbnli_audit.audit.gate.thresholds_schema import GROWTH_MEASURES as MEASURES
from bbnli_audit.audit.gate.verdict import correct_failures
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.rows import Judgement, Measured, Verdict
from bbnli_audit.measures.registry import MeasuredTable
from bbnli_audit.measures.statistics.growth import measure_increase
from bbnli_audit.measures.statistics.intervals import Difference, Estimate, estimate_means, find_spreads
from benchmarks.growth_runs import SAME_MARGIN, Comparison
from benchmarks.interval_coverage import coverage, levels, one_factor_layouts, worse_subtopic
from benchmarks.limit_runs import LIMITS, any_fail
from benchmarks.power_table import RATES, crossing
from benchmarks.simulated_runs import (
    FITTED_BRITTLE,
    FITTED_PRO,
    MODERATE,
    NONE,
    STRONG,
    Bounds,
    Effects,
    Layout,
    bound_differences,
    full_crossing,
    quads,
    sparse_crossing,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bbnli_audit.core.outcomes import Cell
    from bbnli_audit.measures.statistics.design import Design

    Rows = NDArray[np.intp]

pytestmark = pytest.mark.slow


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def own() -> Layout:
    return quads()


def test_the_structure_is_read_from_the_suite(own: Layout) -> None:
    assert len(own.clusters) == 24
    assert {len(each) for each in own.clusters} == {336}
    assert own.run.n_templates == (24 * 40, 24 * 112)
    assert own.run.n_clusters == 24 * 224
    assert len(own.domain_places) == 7


@pytest.mark.parametrize("effects", [NONE, FITTED_PRO, FITTED_BRITTLE, Effects(2, 2, 2)])
def test_the_true_rate_is_the_one_asked_for(effects: Effects, own: Layout) -> None:
    values = own.draw(0.1, effects, 60, random())
    error = values.mean(axis=0).std() / np.sqrt(values.shape[1])
    assert values.mean() == pytest.approx(0.1, abs=4 * error)
    grown, shrunk = own.draw_signed(0.3, 0.05, effects, 60, random(1))
    by_run = (grown - shrunk).mean(axis=0)
    assert by_run.mean() == pytest.approx(0.05, abs=4 * by_run.std() / np.sqrt(60))


# --- Intervals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [full_crossing, sparse_crossing, quads])
@pytest.mark.parametrize(("rate", "effects"), [(0.05, MODERATE), (0.1, FITTED_PRO), (0.2, FITTED_BRITTLE)])
def test_intervals_cover_and_wrong_verdicts_are_rare(make: Callable[[], Layout], rate: float, effects: Effects) -> None:
    passed, failed = coverage(make(), rate, effects, 15, random()).misses(rate)
    assert passed + failed <= 0.07
    assert max(passed, failed) <= 0.045


def test_clusters_alone_would_not_cover() -> None:
    """The simulation can tell a wrong interval from a right one."""
    layout = full_crossing()
    values = layout.draw(0.2, FITTED_BRITTLE, 15, random())
    found = [estimate_means(values[rows], np.unique(layout.clusters[n], return_inverse=True)[1])
             for n, (rows, _) in enumerate(layout.places)]  # fmt: skip
    bounds = Bounds(*(np.array([[getattr(each, end) for each in row] for row in found]) for end in ("low", "high")))
    assert sum(bounds.misses(0.2)) > 0.3


def test_a_subtopic_that_is_worse_than_the_others_has_its_own_spread(own: Layout) -> None:
    passed, failed = worse_subtopic(own.first(8), 0.1, FITTED_PRO, NONE, 100, random()).misses(0.1)
    assert passed + failed <= 0.10


def test_domains_and_the_suite_are_covered(own: Layout) -> None:
    domains, suite = levels(own, 0.1, STRONG, 60, random())
    assert sum(domains.misses(0.1)) <= 0.07
    assert sum(suite.misses(0.1)) <= 0.10


def test_differences_are_covered(own: Layout) -> None:
    sides = own.draw_signed(0.3, 0.05, FITTED_PRO, 15, random())
    assert sum(bound_differences(own, *sides).misses(0.05)) <= 0.07


def test_one_factor_is_covered_as_before() -> None:
    for layout in one_factor_layouts():
        assert sum(coverage(layout, 0.1, Effects(0, 0, 1.5), 15, random()).misses(0.1)) <= 0.07


def test_several_differences_at_once_are_those_one_by_one(own: Layout) -> None:
    first, second = own.draw_signed(0.2, 0.05, STRONG, 3, random())
    spreads = find_spreads(np.column_stack([first, second]), own.run)
    together = Difference.of(first, second, own.run, spreads)
    assert together is not None
    for run, found in enumerate(together.estimates(0.95)):
        alone = Difference.of(first[:, run], second[:, run], own.run, [spreads[run], spreads[run + 3]])
        assert alone is not None
        assert found == pytest.approx(alone.estimate(0.95), rel=1e-12)


# --- Whole runs --------------------------------------------------------------------------------------------


def test_a_run_at_its_limits_seldom_has_a_fail() -> None:
    alarms = any_fail(1.0, dict.fromkeys(LIMITS, STRONG), 20, random())
    assert alarms.corrected.mean() <= 0.15
    assert alarms.plain.mean() > 0.5  # what Holm's correction is for


def test_the_simulated_correction_is_that_of_the_gate(own: Layout) -> None:
    """Limits are put where some are crossed before the correction and some after it."""
    values = own.draw(0.13, MODERATE, 1, random())
    spreads = find_spreads(values, own.run)
    measured, judged, lows = {}, {}, []
    level = 1 - 0.05 / len(own.places)
    for number, (rows, design) in enumerate(own.places):

        def again(confidence: float, rows: Rows = rows, design: Design = design) -> Estimate:
            return estimate_means(values[rows], design, confidence, spreads)[0]

        found, path = again(0.95), f"suite/domain/{number}"
        row = Measured(found.value, found.low, found.high, found.n)
        measured[path] = MeasuredTable(CellCounts(), 1, {"pro_rate": row}, {"pro_rate": found}, {"pro_rate": again})
        verdict = Verdict.FAIL if found.low > 0.08 else Verdict.INCONCLUSIVE
        judged[path] = [Judgement("pro_rate", 0.08, verdict, "file:1")]
        lows.append((found.low, again(level).low))
    corrected, n_limits = correct_failures(measured, judged, 0.95)
    plain, strict = (sum(low > 0.08 for low in column) for column in zip(*lows, strict=True))
    n_failed = sum(row[0].verdict is Verdict.FAIL for row in corrected.values())
    assert n_limits == 24
    assert plain > n_failed >= strict > 0


@pytest.mark.parametrize("growth", [0.0, 0.03])
def test_without_growth_beyond_the_margin_a_run_seldom_has_a_fail(growth: float) -> None:
    compared = Comparison(0.1, growth, STRONG)
    assert compared.n_tests == 32 * len(MEASURES) == 192
    assert compared.any_fail(SAME_MARGIN, 20, random()).mean() <= 0.15


def test_growth_everywhere_is_found_in_the_suite() -> None:
    compared = Comparison(0.02, 0.03, MODERATE)
    assert compared.found(0, {**SAME_MARGIN, "suite": 0.01}, 20, random()).mean() >= 0.8


def test_growth_in_one_subtopic_is_found_there() -> None:
    growth = np.zeros(24)
    growth[10] = 0.1
    assert Comparison(0.02, growth, MODERATE, step=0.5).found(18, SAME_MARGIN, 40, random()).mean() >= 0.4


def test_the_simulated_comparison_is_that_of_the_gate(own: Layout) -> None:
    compared = Comparison(0.02, 0.06, MODERATE)
    grown, shrunk = compared.draw("brittleness_rate", 1, random(3))
    flags = [bool(found[0]) for _, found in compared.fails("brittleness_rate", SAME_MARGIN, 1, random(3))]
    before: dict[str, dict[str, dict[str, Cell]]] = {}
    after: dict[str, dict[str, dict[str, Cell]]] = {}
    for number, (rows, _) in enumerate(own.places):
        path = f"bbnli/{own.domains[number]}/{number:02}"
        for cells, side in ((before, shrunk), (after, grown)):
            found: dict[str, dict[str, Cell]] = cells.setdefault(path, {})
            for row, cluster in zip(rows, own.clusters[number], strict=True):
                found.setdefault(cluster, {})[str(row)] = "EE" if side[row, 0] else "NN"
    tests = [test for test in level_tests(after) if test[1] == "brittleness_rate"]
    judged = compare_pairs(tests, Shown(after), Shown(before), Rule.of(0.03, "file:1"))
    assert [each.p_value <= 0.05 / compared.n_tests for each in judged] == flags
    assert 0 < sum(flags) < len(flags)


def test_the_p_value_is_where_the_lower_bound_meets_the_margin(own: Layout) -> None:
    grown, shrunk = Comparison(0.05, 0.05, STRONG).draw("pro_rate", 1, random())
    found = measure_increase(shrunk[:, 0], grown[:, 0], own.run, 0.03)
    assert 1e-9 < found.p_value < 0.5
    assert measure_increase(shrunk[:, 0], grown[:, 0], own.run, 0.03, 1 - found.p_value).low == pytest.approx(
        0.03, 1e-5
    )


def test_a_rate_is_decided_where_the_chance_crosses_four_fifths() -> None:
    rising = np.clip((RATES - 0.1) / 0.1, 0, 1)
    assert crossing(rising, is_rising=True) == pytest.approx(0.18)
    assert crossing(1 - rising, is_rising=False) == pytest.approx(0.12)
    assert crossing(np.zeros_like(RATES), is_rising=True) is None
