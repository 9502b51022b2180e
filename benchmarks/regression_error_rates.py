"""Measure by simulation how often a comparison with a baseline is wrong, and how often it sees a change.

Prints Markdown tables: false alarms and wrong passes of one test and of a run of 48, the chance of seeing true
increases, what an unchanged model gets, the least increase that is seen, the rules that were not chosen, and a
shape of clusters that the rule is not safe from.
"""

from __future__ import annotations

import argparse
import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtrit

from bbnli_audit.measures.statistics.growth import holm
from benchmarks.interval_coverage import ROUNDING, table
from benchmarks.regression_draws import (
    CLUSTERED,
    CONFIDENCE,
    FURTHER,
    LEVEL,
    LOOSE,
    MARGINS,
    N_CHECKED,
    PLAIN,
    SINGLE,
    WHOLE,
    Cell,
    Changes,
    Counts,
    Floats,
    Structure,
    bounds,
    check_mean,
    draw_kinds,
    p_values,
    sign_test,
    simulate,
    standard_error,
    sum_up,
    sum_up_units,
    t_test,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

PAIRS = (50, 200, 1000)
BACKGROUNDS = (0.0, 0.02, 0.1)
INCREASES = (0.05, 0.1, 0.2)
N_SUBTOPICS = 16
N_CAUSES = 3
N_TESTS = N_SUBTOPICS * N_CAUSES
BOOTSTRAP_RESAMPLES = 500
STAYS_BAD = 0.15  # share of pairs that count before and after; matters to the unpaired comparison alone


# --- One test ------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """Shares of repetitions, of one cell at one margin."""

    cell: Cell
    margin: float
    fail: float  # one test
    corrected: float  # the same as one of 48, of which the others did not change
    passed: float


def corrected_share(p_value: Floats, unchanged: Floats, random: np.random.Generator) -> float:
    """Take the other 47 p values from repetitions in which nothing changed, and apply Holm's correction."""
    others = random.choice(unchanged, (len(p_value), N_TESTS - 1))
    ranks = (others < p_value[:, np.newaxis]).sum(axis=1)
    stepped = np.sort(np.column_stack([p_value, others]), axis=1) * np.arange(N_TESTS, 0, -1)
    corrected = np.maximum.accumulate(stepped, axis=1)[np.arange(len(p_value)), ranks]
    expected = [holm([p_value[rep], *others[rep]])[0] for rep in range(N_CHECKED)]
    np.testing.assert_allclose(np.minimum(corrected[:N_CHECKED], 1.0), expected)
    return float((corrected <= LEVEL).mean())


def one_test(structure: Structure, n_pairs: int, background: float, n_reps: int, seed: int) -> Iterator[Found]:
    """Evaluate every true increase at every margin; the boundary of margin m is the increase m."""
    random = np.random.default_rng([seed, n_pairs, round(background * 100), *map(ord, structure.name)])
    unchanged = {}
    for increase in (0.0, *sorted({*MARGINS, *INCREASES})):
        cell = Cell(structure, n_pairs, background, increase)
        changes = simulate(cell, n_reps, random)
        high = bounds(changes)[1]
        for margin in (0.0, *MARGINS) if increase == 0.0 else MARGINS:
            p_value = p_values(changes, margin)
            if increase == 0.0:
                unchanged[margin] = p_value
            corrected = corrected_share(p_value, unchanged[margin], random) if increase in INCREASES else np.nan
            passed = float((high <= margin + ROUNDING).mean())
            yield Found(cell, margin, float((p_value <= LEVEL).mean()), corrected, passed)


def spread(share: float, n_reps: int) -> float:
    """Give the Monte Carlo standard error."""
    return float(np.sqrt(max(share, 1.0 / n_reps) * (1.0 - share) / n_reps))


def is_suspect(share: float, n_reps: int) -> bool:
    """Tell what is above the level by more than one standard error: among so many cells, mostly by chance."""
    return share > LEVEL + spread(LEVEL, n_reps)


def repeat_suspects(found: list[Found], n_reps: int, random: np.random.Generator) -> Iterator[list[str]]:
    """Measure again, ten times as long and with new numbers, what seems to be above the level."""
    for one in found:
        at_margin = one.cell.increase == one.margin
        alarming = one.cell.increase <= one.margin and is_suspect(one.fail, n_reps)
        if alarming or (at_margin and one.margin > 0.0 and is_suspect(one.passed, n_reps)):
            changes = simulate(one.cell, 10 * n_reps, random)
            fail = float((p_values(changes, one.margin) <= LEVEL).mean())
            passed = float((bounds(changes)[1] <= one.margin + ROUNDING).mean()) if at_margin else np.nan
            shares = [f"{share:.4f}" for share in (one.fail, fail, one.passed, passed)]
            yield [*describe(one.cell), f"{one.margin:g}", f"{one.cell.increase:g}", *shares]


def describe(cell: Cell) -> list[str]:
    return [cell.structure.name, f"{cell.n_pairs}", f"{cell.background:g}"]


def worst(found: list[Found], structure: Structure, n_pairs: int) -> list[str]:
    """Give the worst over backgrounds and margins."""
    here = [one for one in found if one.cell.structure == structure and one.cell.n_pairs == n_pairs]
    boundary = [one for one in here if one.cell.increase == one.margin > 0.0]
    rates = [
        max(one.fail for one in boundary),
        max(one.fail for one in here if one.cell.increase == one.margin == 0.0),
        max(one.fail for one in here if one.cell.increase == 0.0 < one.margin),
        max(one.passed for one in boundary),
    ]
    return [structure.name, f"{n_pairs}", *(f"{rate:.3f}" for rate in rates)]


# --- A run of 48 tests ---------------------------------------------------------------------------------------


class Run(NamedTuple):
    """Subtopics of one kind. Each pair changes in at most one of the causes, which all grow alike."""

    structure: Structure
    n_pairs: int
    background: float
    increase: float

    def least_p_values(self, margins: tuple[float, ...], n_reps: int, random: np.random.Generator) -> Floats:
        """Give the least p value of each run, one row per margin."""
        sizes = Cell(*self).sizes
        chances = np.array([self.background + self.increase, self.background] * N_CAUSES)
        chances = np.append(chances, 1.0 - chances.sum())
        least = np.ones((len(margins), n_reps))
        for _ in range(N_SUBTOPICS):
            if self.structure.is_unit:
                units = random.multinomial(len(sizes), chances, n_reps)
            else:
                kinds = draw_kinds(chances, self.structure, sizes, n_reps, random)
            for cause in range(N_CAUSES):
                own = np.zeros(len(chances))
                own[2 * cause : 2 * cause + 2] = 1.0, -1.0
                changes = sum_up_units(units, own, sizes) if self.structure.is_unit else sum_up(kinds, own, sizes)
                for row, margin in enumerate(margins):
                    least[row] = np.minimum(least[row], p_values(changes, margin))
        return least


def whole_runs(n_reps: int, random: np.random.Generator) -> tuple[list[list[str]], list[list[str]]]:
    """Give the share of runs with any FAIL although nothing grew by more than the margin; and suspects again."""
    rows, again = [], []
    for structure, n_pairs, background in itertools.product(PLAIN, PAIRS, BACKGROUNDS[1:]):
        row = describe(Cell(structure, n_pairs, background, 0.0))
        for increase, margins in ((0.02, (0.02,)), (0.05, (0.05,)), (0.0, (0.0, 0.02))):
            run = Run(structure, n_pairs, background, increase)
            for margin, least in zip(margins, run.least_p_values(margins, n_reps, random), strict=True):
                # Holm rejects something exactly when the least p value, times their number, is small enough.
                share = float((least * N_TESTS <= LEVEL).mean())
                uncorrected = f" ({float((least <= LEVEL).mean()):.2f})" if increase == margin else ""
                row.append(f"{share:.3f}{uncorrected}")
                if is_suspect(share, n_reps):
                    parts = [run.least_p_values((margin,), n_reps, random) for _ in range(10)]
                    longer = float((np.concatenate(parts, axis=1) * N_TESTS <= LEVEL).mean())
                    again.append([*row[:3], f"{margin:g}", f"{increase:g}", f"{share:.4f}", f"{longer:.4f}"])
        rows.append(row)
    return rows, again


def least_increases(n_reps: int, random: np.random.Generator) -> Iterator[list[str]]:
    """Find the least increase, in steps of 0.01, that four of five comparisons see, alone and as one of 48."""
    for structure, background in itertools.product((SINGLE, LOOSE, CLUSTERED, WHOLE), BACKGROUNDS[1:]):
        found = [
            least_increase(Cell(structure, n_pairs, background, 0.0), n_tests, n_reps, random)
            for n_pairs, n_tests in itertools.product(PAIRS, (1, N_TESTS))
        ]
        yield [structure.name, f"{background:g}", *("none" if one is None else f"{one:.2f}" for one in found)]


def least_increase(cell: Cell, n_tests: int, n_reps: int, random: np.random.Generator) -> float | None:
    margin = 0.02

    def is_seen(steps: int) -> bool:
        changes = simulate(cell._replace(increase=steps / 100), n_reps, random)
        return float((p_values(changes, margin) * n_tests <= LEVEL).mean()) >= 0.8

    low, high = 3, 80
    if not is_seen(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_seen(middle) else (middle + 1, high)
    return high / 100


# --- Rules that were not chosen ------------------------------------------------------------------------------


class Rates(NamedTuple):
    fail: NDArray[np.bool_]
    passed: NDArray[np.bool_] | None  # None where the rule has no way to pass


def alternatives(cell: Cell, margin: float, n_reps: int, random: np.random.Generator) -> dict[str, Rates]:
    changes_by_kind, chances = cell.kinds()
    sizes = cell.sizes
    chances = np.concatenate([chances[:-1], [STAYS_BAD, chances[-1] - STAYS_BAD]])
    kinds = draw_kinds(chances, cell.structure, sizes, n_reps, random)
    values = np.concatenate([changes_by_kind, [0.0]])
    changes = sum_up(kinds, values, sizes)
    low, high = bounds(changes)
    p_t, p_value = t_test(changes, margin), p_values(changes, margin)
    p_pairs = sign_test(changes.n_worse, changes.n_better)
    p_clusters = sign_test(changes.clusters_worse, changes.clusters_better)
    tolerance = margin + ROUNDING

    totals = kinds @ values  # (repetitions, clusters)
    weights = random.multinomial(len(sizes), np.full(len(sizes), 1.0 / len(sizes)), BOOTSTRAP_RESAMPLES)
    means = (weights @ totals.T) / (weights @ sizes)[:, np.newaxis]
    boot_low, boot_high = np.percentile(means, [100.0 * LEVEL, 100.0 * CONFIDENCE], axis=0)

    stays = kinds[..., -2]
    before, after = stays + kinds @ np.maximum(-values, 0.0), stays + kinds @ np.maximum(values, 0.0)
    n, n_clusters = changes.n, len(sizes)
    variance = sum(
        ((side - sizes * side.sum(axis=1, keepdims=True) / n) ** 2).sum(axis=1) * n_clusters / (n_clusters - 1)
        for side in (before, after)
    )
    reach = float(stdtrit(2 * n_clusters - 2, CONFIDENCE)) * np.sqrt(variance) / n
    return {
        "chosen": Rates(p_value <= LEVEL, high <= tolerance),
        "t over clusters alone": Rates(p_t <= LEVEL, changes.value + t_reach(changes) <= tolerance),
        "t and McNemar on pairs": Rates(np.maximum(p_t, p_pairs) <= LEVEL, None),
        "t and McNemar on clusters": Rates(np.maximum(p_t, p_clusters) <= LEVEL, None),
        "square-and-add, lower bound": Rates(low > tolerance, high <= tolerance),
        "percentile cluster bootstrap": Rates(boot_low > tolerance, boot_high <= tolerance),
        "McNemar on pairs, value over margin": Rates((p_pairs <= LEVEL) & (changes.value > tolerance), None),
        "unpaired t over clusters": Rates(changes.value - reach > tolerance, changes.value + reach <= tolerance),
    }


def t_reach(changes: Changes) -> Floats:
    return float(stdtrit(len(changes.sizes) - 1, CONFIDENCE)) * standard_error(changes)


def compare_rules(n_reps: int, random: np.random.Generator) -> Iterator[list[str]]:
    """Give each rule's worst rates over cells, and its mean power over them."""
    margin = 0.03
    cells = list(itertools.product((SINGLE, CLUSTERED, WHOLE), PAIRS, BACKGROUNDS))
    names: dict[str, dict[str, list[float]]] = {}
    for structure, n_pairs, background in cells:
        for title, increase in (("none", 0.0), ("boundary", margin), ("seen", 0.1)):
            found = alternatives(Cell(structure, n_pairs, background, increase), margin, n_reps, random)
            for name, rates in found.items():
                shares = names.setdefault(name, {})
                shares.setdefault(f"{title} fail", []).append(float(rates.fail.mean()))
                if rates.passed is not None:
                    shares.setdefault(f"{title} pass", []).append(float(rates.passed.mean()))
    for name, shares in names.items():
        has_pass = "none pass" in shares
        power = dict(zip(cells, shares["seen fail"], strict=True))
        yield [
            name,
            f"{max(shares['none fail']):.3f}",
            f"{max(shares['boundary fail']):.3f}",
            f"{max(shares['boundary pass']):.3f}" if has_pass else "–",
            f"{np.mean(shares['none pass']):.2f}" if has_pass else "–",
            f"{np.mean(shares['seen fail']):.2f}",
            *(f"{power[cell]:.2f}" for cell in itertools.product((SINGLE, CLUSTERED), (200, 1000), (0.02,))),
        ]


# --- A shape of clusters that the rule is not safe from ------------------------------------------------------


def lopsided(n_reps: int, random: np.random.Generator) -> Iterator[list[str]]:
    """Most clusters worsen a little and a few improve wholly, the mean growth being the margin; and the reverse."""
    margin = 0.02
    shapes = ((5, 10), (10, 10), (20, 10), (50, 10), (100, 10), (140, 2))
    for (n_clusters, size), rate in itertools.product(shapes, (0.05, 0.1, 0.2, 0.4)):
        sizes = np.full(n_clusters, size)

        def draw(sign: float, rate: float = rate, sizes: Counts = sizes) -> Changes:
            share = (rate - sign * margin) / (1.0 + rate)  # of clusters that change wholly, against the others
            whole = random.random((n_reps, len(sizes))) < share
            others = random.binomial(sizes, rate, (n_reps, len(sizes)))
            kinds = np.stack([np.where(whole, 0, others), np.where(whole, sizes, 0)], axis=-1)
            return sum_up(kinds, np.array([sign, -sign]), sizes)

        grown, shrunk = draw(1.0), draw(-1.0)
        check_mean(grown, margin)
        check_mean(shrunk, margin)
        p_value, p_t = p_values(grown, margin), t_test(grown, margin)
        alarms = [p_value <= LEVEL, p_value * N_TESTS <= LEVEL, p_t <= LEVEL, p_t * N_TESTS <= LEVEL]
        alarms += [bounds(grown)[0] > margin + ROUNDING, bounds(shrunk)[1] <= margin + ROUNDING]
        yield [f"{n_clusters}", f"{size}", f"{rate:g}", *(f"{float(alarm.mean()):.3f}" for alarm in alarms)]


def main() -> None:
    """Run the simulation and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=4000, help="repetitions per cell; runs of 48 take half as many")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulated data")
    arguments = parser.parse_args()
    n_reps, n_runs = arguments.reps, arguments.reps // 2
    random = np.random.default_rng(arguments.seed)

    found = [
        one
        for structure, n_pairs, background in itertools.product((*PLAIN, *FURTHER), PAIRS, BACKGROUNDS)
        for one in one_test(structure, n_pairs, background, n_reps, arguments.seed)
    ]
    print(
        f"{n_reps} repetitions per cell, {n_runs} runs. Monte Carlo standard error at 0.05: "
        f"{spread(0.05, n_reps):.4f} for one test, {spread(0.05, n_runs):.4f} for a run; at 0.5: "
        f"{spread(0.5, n_reps):.4f}.\n"
    )
    print("Wrong decisions of one test, the worst over background flips 0, 0.02, 0.1 and margins 0.02, 0.03, 0.05\n")
    header = ["pairs a cluster", "pairs"]
    columns = ["FAIL at the margin", "FAIL, no change, margin 0", "FAIL, no change", "PASS at the margin"]
    rows = [worst(found, structure, n_pairs) for structure in (*PLAIN, *FURTHER) for n_pairs in PAIRS]
    print(table([*header, *columns], rows))
    print("Cells more than one standard error above 0.05, measured again ten times as long\n")
    again = ["background", "margin", "true increase", "FAIL", "again", "PASS", "again"]
    print(table([*header, *again], list(repeat_suspects(found, n_reps, random))))

    print("Runs of 48 tests with any FAIL (in brackets: without Holm's correction)\n")
    columns = ["all at margin 0.02", "all at margin 0.05", "no change, margin 0", "no change, margin 0.02"]
    runs, suspects = whole_runs(n_runs, random)
    print(table([*header, "background", *columns], runs))
    print("Of these more than one standard error above 0.05, measured again ten times as long\n")
    print(table([*header, "background", "margin", "true increase", "any FAIL", "again"], suspects))

    print("Chance of FAIL: one test / one of 48 of which the others did not change\n")
    columns = [f"+{increase:g}, margin {margin:g}" for margin in MARGINS for increase in INCREASES]
    print(table([*header, "background", *columns], power_rows(found)))
    print("Chance that an unchanged model passes, one test\n")
    columns = [f"margin {margin:g}" for margin in MARGINS]
    print(table([*header, "background", *columns], unchanged_rows(found)))

    print("Least increase seen 4 times in 5 at margin 0.02: one test, one of 48\n")
    columns = [f"{n} pairs, {tests}" for n in PAIRS for tests in ("one", "of 48")]
    print(table(["pairs a cluster", "background", *columns], list(least_increases(max(n_reps // 4, 100), random))))

    print("Rules, margin 0.03: worst over 1, 10 (correlation 0.3) and 10 (wholly) pairs a cluster, all sizes\n")
    columns = ["FAIL, no change", "FAIL at the margin", "PASS at the margin", "mean PASS, no change", "mean FAIL, +0.1"]
    columns += [f"FAIL, +0.1, {n} × {size}" for size in (1, 10) for n in (200, 1000)]
    print(table(["rule", *columns], list(compare_rules(n_reps // 2, random))))

    print("Most clusters change a little one way and a few wholly the other way; true increase = margin = 0.02\n")
    columns = ["FAIL", "FAIL, of 48", "by t alone", "by t alone, of 48", "by square-and-add", "PASS (reversed)"]
    print(table(["clusters", "pairs in each", "rate of the many", *columns], list(lopsided(n_reps, random))))


def power_rows(found: list[Found]) -> list[list[str]]:
    shares = {(one.cell, one.margin): f"{one.fail:.2f} / {one.corrected:.2f}" for one in found}
    rows = []
    for place in itertools.product((*PLAIN, *FURTHER), PAIRS, BACKGROUNDS):
        # At the margin or below it there is nothing to see.
        grid = [(margin, increase) for margin in MARGINS for increase in INCREASES]
        cells = [shares[Cell(*place, increase), margin] if increase > margin else "–" for margin, increase in grid]
        rows.append([*describe(Cell(*place, 0.0)), *cells])
    return rows


def unchanged_rows(found: list[Found]) -> list[list[str]]:
    shares = {(one.cell, one.margin): f"{one.passed:.2f}" for one in found if one.cell.increase == 0.0}
    places = itertools.product((*PLAIN, *FURTHER), PAIRS, BACKGROUNDS)
    cells = [Cell(*place, 0.0) for place in places]
    return [[*describe(cell), *(shares[cell, margin] for margin in MARGINS)] for cell in cells]


if __name__ == "__main__":
    main()
