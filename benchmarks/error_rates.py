"""Measure by simulation how often verdicts of a whole run are wrong, what they find, and how long they take.

Prints Markdown tables: runs with any FAIL although no rate is above its limit, runs with any regression FAIL although
nothing grew beyond the margin, the chance to find growth, the rates that are decided, and the time.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np

from bbnli_audit.measures.statistics.intervals import find_spreads
from benchmarks import power_table
from benchmarks.growth_runs import SAME_MARGIN, Comparison
from benchmarks.limit_runs import LIMITS, any_fail
from benchmarks.simulated_runs import (
    CHUNK,
    FITTED_BRITTLE,
    FITTED_PRO,
    MODERATE,
    NONE,
    STRONG,
    Effects,
    Layout,
    Random,
    bound_place,
    quads,
    table,
)
from benchmarks.statistics_time import time_audits

if TYPE_CHECKING:
    from collections.abc import Mapping

WHICH = (NONE, MODERATE, STRONG, FITTED_PRO, FITTED_BRITTLE, Effects(2, 2, 2))
GROWING = 10  # the number of the subtopic that grows alone


def limits_table(n_runs: int, random: Random) -> str:
    alike: Mapping[str, Mapping[str, Effects]] = {str(each): dict.fromkeys(LIMITS, each) for each in WHICH}
    fitted = {**dict.fromkeys(LIMITS, FITTED_PRO), "brittleness_rate": FITTED_BRITTLE}
    rows = []
    for name, effects in {**alike, "as fitted to each measure": fitted}.items():
        at_limit, below = (any_fail(closeness, effects, n_runs, random) for closeness in (1.0, 0.8))
        shares = (at_limit.corrected, below.corrected, at_limit.plain, below.plain)
        rows.append([name, *(f"{each.mean():.3f}" for each in shares)])
    header = [
        "premise, hypothesis, cell",
        "at the limit",
        "at 80 % of it",
        "at the limit, without Holm",
        "at 80 %, without",
    ]
    return table(header, rows)


def regressions_table(layout: Layout, n_runs: int, random: Random) -> str:
    rows = []
    one_worse = [Effects(2, 2, 2)] + [NONE] * (len(layout.clusters) - 1)
    for effects in (*WHICH, one_worse):
        for flips, step in ((0.02, 1.0), (0.1, 1.0), (0.1, 0.5)):
            row = [str(effects) if isinstance(effects, Effects) else "one subtopic 2, 2, 2; the others 0"]
            row += [f"{flips:g}", f"{step:g}"]
            for growth in (0.0, 0.03):
                compared = Comparison(layout, flips, growth, effects, step)
                row.append(f"{compared.any_fail(SAME_MARGIN, n_runs, random).mean():.3f}")
            rows.append(row)
    return table(["premise, hypothesis, cell", "flips", "step", "no growth", "all at the margin"], rows)


def found_table(layout: Layout, n_runs: int, random: Random) -> str:
    alone = np.zeros(len(layout.clusters))
    alone[GROWING] = 0.1
    rows = []
    for effects in (NONE, MODERATE, STRONG, FITTED_PRO, FITTED_BRITTLE):
        for step in (1.0, 0.5):
            row = [str(effects), f"{step:g}"]
            for flips in (0.02, 0.05, 0.1):
                everywhere = Comparison(layout, flips, 0.03, effects, step)
                one = Comparison(layout, flips, alone, effects, step)
                subtopic = len(one.places) - len(layout.clusters) + GROWING
                shares = (
                    everywhere.found(0, {**SAME_MARGIN, "suite": 0.01}, n_runs, random),
                    one.found(subtopic, SAME_MARGIN, n_runs, random),
                )
                row.append(" / ".join(f"{each.mean():.2f}" for each in shares))
            rows.append(row)
    return table(["premise, hypothesis, cell", "step", "flips 0.02", "0.05", "0.1"], rows)


def peeking(layout: Layout, n_runs: int, random: Random, n_looks: int = 8) -> list[tuple[float, float]]:
    """Return how often a rate at its limit passes and fails: at one look, and if pairs are added until it does.

    Every look adds as many new templates as the first one had.
    """
    batches, passed, failed = layout.first(n_looks), [], []
    for _ in range(0, n_runs, CHUNK):
        values = batches.draw(0.1, MODERATE, CHUNK, random)
        spreads = find_spreads(values, batches.run)
        bounds = [bound_place(batches.place(range(n + 1)), values, spreads) for n in range(n_looks)]
        passed.append([each.high <= 0.1 for each in bounds])
        failed.append([each.low > 0.1 for each in bounds])
    found = [np.concatenate(each, axis=1) for each in (passed, failed)]
    return [(float(each[0].mean()), float(each.any(axis=0).mean())) for each in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="simulated runs per cell")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    n_runs, random = arguments.runs, np.random.default_rng(arguments.seed)
    start, layout = time.process_time(), quads()
    error = (0.03 * 0.97 / n_runs) ** 0.5
    print(f"{n_runs} runs a cell, seed {arguments.seed}; standard error {error:.3f} at 0.03. Structure of bbnli.\n")
    print("Runs with any FAIL, 24 subtopics × 6 limits, no rate above its limit\n")
    print(limits_table(n_runs, random), flush=True)
    print("Runs with any regression FAIL, 128 tests (32 rows × 4 measures), margin 0.03 at every level\n")
    print(regressions_table(layout, n_runs, random), flush=True)
    print("Growth found in pro_rate as one of 128 tests: 0.03 everywhere, in the suite at margin 0.01 /")
    print("0.10 in one subtopic of 24, there at margin 0.03\n")
    print(found_table(layout, n_runs // 2, random), flush=True)
    print("Rates that are decided with a chance of 80 %\n")
    header = [
        "limit",
        "level",
        "premise, hypothesis, cell",
        "PASS at or below",
        "FAIL at or above, alone",
        "as one of 144",
    ]
    rows = [
        row
        for effects in (MODERATE, FITTED_PRO)
        for row in power_table.rows(layout, effects, max(n_runs // 200, 1) * 100, random)
    ]
    print(table(header, rows), flush=True)
    names = ("wrong PASS", "wrong FAIL")
    shares = peeking(layout, 10 * n_runs, np.random.default_rng(arguments.seed + 1))
    told = ", ".join(f"{name} {once:.3f} and {ever:.3f}" for name, (once, ever) in zip(names, shares, strict=True))
    print(f"A rate at its limit, at one look and if pairs are added up to seven times until a verdict comes: {told}.\n")
    times = time_audits()
    told = f"statistics {times.statistics:.2f} s, with tables and verdicts around them {times.in_all:.2f} s"
    print(f"One audit of bbnli against a baseline: {told}.")
    print(f"\n{time.process_time() - start:.0f} s of one core.")


if __name__ == "__main__":
    main()
