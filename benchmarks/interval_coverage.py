"""Measure by simulation how often intervals cover the truth, and how often a rate at its limit passes or fails.

Prints Markdown tables: the full grid on crossed designs, a subtopic whose templates differ more than those of the rest,
domains and the suite, differences of two measures, data with one factor, and other rules.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np

from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.intervals import find_spreads
from benchmarks.simulated_runs import (
    CHUNK,
    FITTED_BRITTLE,
    FITTED_PRO,
    MODERATE,
    NONE,
    STRONG,
    Bounds,
    Effects,
    Layout,
    Random,
    bound_differences,
    bound_place,
    bound_places,
    bound_subtopics,
    full_crossing,
    quads,
    sparse_crossing,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RATES = (0.02, 0.05, 0.1, 0.2, 0.3)
EFFECTS = (
    NONE,
    Effects(0, 0, 1.5),
    MODERATE,
    STRONG,
    FITTED_PRO,
    FITTED_BRITTLE,
    Effects(0, 3.25, 0),
    Effects(3.25, 0, 0),
    Effects(2, 2, 2),
)

# Standard deviations of a template that subtopics share, and of the same template in one subtopic.
SHARED_EFFECTS = ((0, 0), (0, 1.5), (0.5, 0.5), (1, 1), (1.75, 1.4), (3.25, 0))


def chunks(n_runs: int) -> Iterator[int]:
    for start in range(0, n_runs, CHUNK):
        yield min(CHUNK, n_runs - start)


def coverage(layout: Layout, rate: float, effects: Effects, n_runs: int, random: Random) -> Bounds:
    """Bound every subtopic of every run."""
    parts = [bound_subtopics(layout, layout.draw(rate, effects, n, random)) for n in chunks(n_runs)]
    return Bounds(*(np.concatenate(each, axis=1) for each in zip(*parts, strict=True)))


def worse_subtopic(layout: Layout, rate: float, worse: Effects, others: Effects, n_runs: int, random: Random) -> Bounds:
    """Bound one subtopic whose templates differ more than those of the rest of the run."""
    effects = [worse] + [others] * (len(layout.clusters) - 1)
    parts = []
    for n in chunks(n_runs):
        values = layout.draw(rate, effects, n, random)
        parts.append(bound_place(layout.places[0], values, find_spreads(values, layout.run)))
    return Bounds(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def levels(layout: Layout, rate: float, effects: Effects, n_runs: int, random: Random) -> tuple[Bounds, Bounds]:
    """Bound all domains, and the suite."""
    of_domains, of_suite = [], []
    for n in chunks(n_runs):
        values = layout.draw(rate, effects, n, random)
        spreads = find_spreads(values, layout.run)
        of_domains.append(bound_places(layout.domain_places, values, spreads))
        of_suite.append(bound_place((np.arange(len(values)), layout.run), values, spreads))
    domains = Bounds(*(np.concatenate(each, axis=1) for each in zip(*of_domains, strict=True)))
    return domains, Bounds(*(np.concatenate(each) for each in zip(*of_suite, strict=True)))


def shared_levels(
    layout: Layout, rate: float, effects: Effects, n_runs: int, random: Random
) -> tuple[Bounds, Bounds, Bounds]:
    """Bound domains and suite where subtopics share premises; and the suite as if they did not."""
    apart, parts = layout.apart(), []
    for n in chunks(n_runs):
        values = layout.draw(rate, effects, n, random)
        spreads, every = find_spreads(values, layout.run), np.arange(len(values))
        places = (layout.domain_places, [(every, layout.run)], [(every, apart.run)])
        parts.append([bound_places(each, values, spreads) for each in places])
    found = zip(*parts, strict=True)
    domains, suite, without = (
        Bounds(*(np.concatenate(each, axis=1) for each in zip(*of_place, strict=True))) for of_place in found
    )
    return domains, suite, without


def print_shared(n_runs: int, random: Random) -> None:
    """Rows of suites whose subtopics share premises or predicates; the others are in the tables above."""
    effects = [Effects(premise, 0, cell) for premise, cell in SHARED_EFFECTS]
    for name in ("occupations", "winoqueer"):
        layout, worst, rows = Layout.of_suite(name), Worst(), []
        for each in effects:
            row = [f"{each.premise:g}, {each.cell:g}"]
            for rate in RATES:
                domains, suite, apart = shared_levels(layout, rate, each, n_runs, random)
                row += [worst.tell(domains, rate)] if name == "occupations" else []
                row += [worst.tell(suite, rate), f"{1.0 - sum(apart.misses(rate)):.3f}"]
            rows.append(row)
        print(f"Rows that pool subtopics which share templates, {name}; last of each rate: as if they shared none\n")
        levels = ["domain", "suite", "apart"] if name == "occupations" else ["suite", "apart"]
        print(table(["shared, own", *(f"{level}, {rate}" for rate in RATES for level in levels)], rows))
        print(worst)


def difference_coverage(
    layout: Layout, share: float, mean: float, effects: Effects, n_runs: int, random: Random
) -> Bounds:
    parts = [bound_differences(layout, *layout.draw_signed(share, mean, effects, n, random)) for n in chunks(n_runs)]
    return Bounds(*(np.concatenate(each, axis=1) for each in zip(*parts, strict=True)))


def one_factor_layouts() -> list[Layout]:
    return [
        Layout.of_suite("winoqueer"),
        Layout.of_suite("occupations").first(9),
        Layout.repeated("no templates", [str(n) for n in range(200)], 9),
    ]


def variants(layout: Layout, rate: float, effects: Effects, n_runs: int, random: Random) -> list[Bounds]:
    """Bound the same runs with cells as the only clusters, by the subtopic's own spread alone, and by the rule."""
    parts: list[list[Bounds]] = [[], [], []]
    cells = [np.unique(names, return_inverse=True)[1] for names in layout.clusters]
    without_factors = [(rows, Design.of(each)) for (rows, _), each in zip(layout.places, cells, strict=True)]
    for n in chunks(n_runs):
        values = layout.draw(rate, effects, n, random)
        parts[0].append(bound_places(without_factors, values, []))
        parts[1].append(bound_places(layout.places, values, []))
        parts[2].append(bound_places(layout.places, values, find_spreads(values, layout.run)))
    return [Bounds(*(np.concatenate(each, axis=1) for each in zip(*part, strict=True))) for part in parts]


def told(bounds: Bounds, rate: float) -> str:
    passed, failed = bounds.misses(rate)
    return f"{1.0 - passed - failed:.3f} / {passed:.3f} / {failed:.3f}"


class Worst:
    """The lowest coverage and the most wrong verdicts of a table."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float]] = []

    def tell(self, bounds: Bounds, rate: float) -> str:
        passed, failed = bounds.misses(rate)
        self.rows.append((1.0 - passed - failed, passed, failed))
        return told(bounds, rate)

    def __str__(self) -> str:
        covered, passed, failed = zip(*self.rows, strict=True)
        return (
            f"{len(self.rows)} cells: lowest coverage {min(covered):.3f}, most wrong PASS {max(passed):.3f}, "
            f"most wrong FAIL {max(failed):.3f}.\n"
        )


def print_grid(layouts: Sequence[Layout], n_runs: int, random: Random) -> None:
    worst, rows = Worst(), []
    for layout in layouts:
        for effects in EFFECTS:
            found = [(rate, coverage(layout, rate, effects, n_runs, random)) for rate in RATES]
            rows.append([layout.name, str(effects), *(worst.tell(bounds, rate) for rate, bounds in found)])
            rows[-1].append(f"{found[2][1].width:.3f}")
    print("Coverage / wrong PASS / wrong FAIL of a rate at its limit, in one subtopic\n")
    print(table(["suite", "premise, hypothesis, cell", *map(str, RATES), "width at 0.1"], rows))
    print(worst)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="simulated runs per cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shared", action="store_true", help="only subtopics that share templates")
    arguments = parser.parse_args()
    n_runs, random = arguments.runs, np.random.default_rng(arguments.seed)
    start = time.process_time()
    print(f"{n_runs} runs a cell, seed {arguments.seed}. Nominal: 0.95, 0.025, 0.025.\n")
    if arguments.shared:
        print_shared(2 * n_runs, np.random.default_rng(arguments.seed))
        print(f"{time.process_time() - start:.0f} s of one core.")
        return
    layouts = [full_crossing(), sparse_crossing(), quads()]
    print_grid(layouts, n_runs, random)

    worst, rows = Worst(), []
    for layout in (layouts[0], layouts[2]):
        for others in (NONE, MODERATE):
            for worse in (STRONG, FITTED_PRO, FITTED_BRITTLE, Effects(2, 2, 2)):
                found = [(rate, worse_subtopic(layout, rate, worse, others, 5 * n_runs, random)) for rate in (0.1, 0.2)]
                rows.append([layout.name, str(worse), str(others), *(worst.tell(each, rate) for rate, each in found)])
    print("The same in a subtopic whose templates differ more than those of the others\n")
    print(table(["suite", "this subtopic", "the others", "0.1", "0.2"], rows))
    print(worst)

    worst, rows = Worst(), []
    for effects in (NONE, MODERATE, STRONG, FITTED_PRO, FITTED_BRITTLE):
        row = [str(effects)]
        for rate in (0.05, 0.1, 0.2):
            domains, suite = levels(layouts[2], rate, effects, 4 * n_runs, random)
            row += [worst.tell(domains, rate), worst.tell(suite, rate)]
        rows.append(row)
    print("The same in domains and in the suite, bbnli\n")
    names = [f"{level}, {rate}" for rate in (0.05, 0.1, 0.2) for level in ("domain", "suite")]
    print(table(["premise, hypothesis, cell", *names], rows))
    print(worst)

    worst, rows = Worst(), []
    for layout in layouts:
        for effects in EFFECTS:
            row = [layout.name, str(effects)]
            for share, mean in ((0.1, 0.05), (0.3, 0.05), (0.3, 0.15)):
                bounds = difference_coverage(layout, share, mean, effects, n_runs // 2, random)
                row.append(worst.tell(bounds, mean))
            rows.append(row)
    print("A difference of two measures, such as lean, at its limit (share of pairs that count for either)\n")
    print(table(["suite", "premise, hypothesis, cell", "0.05 (0.1)", "0.05 (0.3)", "0.15 (0.3)"], rows))
    print(worst)

    worst, rows = Worst(), []
    for layout in one_factor_layouts():
        for effects in (NONE, Effects(0, 0, 1.5), Effects(0, 0, 3.25)):
            found = [(rate, coverage(layout, rate, effects, 2 * n_runs, random)) for rate in (0.02, 0.1, 0.3)]
            rows.append([layout.name, f"{effects.cell:g}", *(worst.tell(bounds, rate) for rate, bounds in found)])
    print("Data with one factor: clusters only\n")
    print(table(["suite", "cluster", "0.02", "0.1", "0.3"], rows))
    print(worst)

    rows = []
    for layout in (layouts[0], layouts[2]):
        for rate, effects in ((0.1, MODERATE), (0.1, FITTED_PRO), (0.2, FITTED_BRITTLE)):
            by_rule = variants(layout, rate, effects, n_runs, random)
            rows.append([layout.name, str(effects), f"{rate:g}", *(told(each, rate) for each in by_rule)])
    print("Other rules\n")
    header = [
        "suite",
        "premise, hypothesis, cell",
        "rate",
        "cells as clusters",
        "own spread alone",
        "the wider of own and pooled",
    ]
    print(table(header, rows))
    print_shared(2 * n_runs, np.random.default_rng(arguments.seed))
    print(f"{time.process_time() - start:.0f} s of one core.")


if __name__ == "__main__":
    main()
