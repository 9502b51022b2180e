"""Measure by simulation how often verdicts of a whole run are wrong, what they find, and how long they take.

`python -m benchmarks.error_rates` writes the section "Whole runs" of docs/simulations.md: runs with any FAIL although
no rate is above its limit, runs with any regression FAIL although nothing grew beyond the margin, the chance to find
growth, the rates that are decided, and the time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from bbnli_audit.measures.statistics.intervals import find_spreads
from benchmarks import power_table
from benchmarks.growth_runs import SAME_MARGIN, Comparison, places_of
from benchmarks.limit_runs import LIMITS, any_fail
from benchmarks.page import Figure, figures_table, table, write_simulations
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
)
from benchmarks.statistics_time import time_audits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Found = dict[tuple[str, float, float], tuple[float, float]]  # effects, step, flips -> growth everywhere, in one

WHICH = (NONE, MODERATE, STRONG, FITTED_PRO, FITTED_BRITTLE, Effects(2, 2, 2))
GROWING = 10  # the number of the subtopic that grows alone
FLIPS = (0.02, 0.05, 0.1)
OTHERS = ("winoqueer", "occupations")
DECIDED = ("limit", "level", "premise, hypothesis, cell", "PASS at or below", "FAIL at or above, alone")


def limits_table(n_runs: int, random: Random) -> tuple[str, Figure]:
    alike: Mapping[str, Mapping[str, Effects]] = {str(each): dict.fromkeys(LIMITS, each) for each in WHICH}
    fitted = {**dict.fromkeys(LIMITS, FITTED_PRO), "brittleness_rate": FITTED_BRITTLE}
    rows = []
    for name, effects in {**alike, "as fitted to each measure": fitted}.items():
        at_limit, below = (any_fail(closeness, effects, n_runs, random) for closeness in (1.0, 0.8))
        shares = (at_limit.corrected, below.corrected, at_limit.plain, below.plain)
        rows.append([name, *(f"{each.mean():.3f}" for each in shares)])
    header = ["at the limit", "at 80 % of it", "at the limit, without Holm", "at 80 %, without"]
    most = max(float(row[1]) for row in rows)
    figure = Figure("any FAIL in a run, no rate above its limit", 0.05, 0.03, most, "{:.3f}", is_upper=True)
    return table(["premise, hypothesis, cell", *header], rows), figure


def regressions_table(n_runs: int, random: Random) -> tuple[str, list[Figure]]:
    rows = []
    one_worse = [Effects(2, 2, 2)] + [NONE] * (len(quads().clusters) - 1)
    for effects in (*WHICH, one_worse):
        for flips, step in ((0.02, 1.0), (0.1, 1.0), (0.1, 0.5)):
            row = [str(effects) if isinstance(effects, Effects) else "one subtopic 2, 2, 2; the others 0"]
            row += [f"{flips:g}", f"{step:g}"]
            for growth in (0.0, 0.03):
                compared = Comparison(flips, growth, effects, step)
                row.append(f"{compared.any_fail(SAME_MARGIN, n_runs, random).mean():.3f}")
            rows.append(row)
    names = ("no growth", "all at the margin")
    figures = [
        Figure(f"any regression FAIL, {name}", 0.05, 0.03, max(float(row[at]) for row in rows), "{:.3f}", is_upper=True)
        for at, name in enumerate(names, 3)
    ]
    return table(["premise, hypothesis, cell", "flips", "step", *names], rows), figures


def find_growth(n_runs: int, random: Random) -> Found:
    alone = np.zeros(len(quads().clusters))
    alone[GROWING] = 0.1
    subtopic, found = len(places_of("pro_rate")) - len(alone) + GROWING, {}
    for effects in (NONE, MODERATE, STRONG, FITTED_PRO, FITTED_BRITTLE):
        for step in (1.0, 0.5):
            for flips in FLIPS:
                everywhere, one = (Comparison(flips, growth, effects, step) for growth in (0.03, alone))
                found[str(effects), step, flips] = (
                    float(everywhere.found(0, {**SAME_MARGIN, "suite": 0.01}, n_runs, random).mean()),
                    float(one.found(subtopic, SAME_MARGIN, n_runs, random).mean()),
                )
    return found


def found_table(found: Found) -> str:
    rows: dict[tuple[str, float], list[str]] = {}
    for (effects, step, _), shares in found.items():
        row = rows.setdefault((effects, step), [effects, f"{step:g}"])
        row.append(" / ".join(f"{share:.2f}" for share in shares))
    return table(["premise, hypothesis, cell", "step", *(f"flips {each:g}" for each in FLIPS)], list(rows.values()))


def found_figures(found: Found) -> Iterator[Figure]:
    """What is asked of the chance to find growth: of moderate effects if one subtopic grows, else of all."""
    for step, sides in ((0.5, "one side"), (1.0, "both sides")):
        for flips in FLIPS:
            told = f"{flips:.0%} flips, pairs change on {sides}"
            shares = [each for (_, *key), each in found.items() if key == [step, flips]]
            name = f"growth of 0.03 everywhere found in the suite, {told}"
            yield Figure(name, 0.8, 0.95, min(everywhere for everywhere, _ in shares), "{:.2f}")
            name = f"growth of 0.10 found in one of 24 subtopics, {told}"
            yield Figure(name, 0.2, 0.5, found[str(MODERATE), step, flips][1], "{:.2f}")


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


def write_section(n_runs: int, seed: int) -> str:
    start, layout, random = time.process_time(), quads(), np.random.default_rng(seed)
    limits, limit_figure = limits_table(n_runs, random)
    regressions, regression_figures = regressions_table(n_runs, random)
    found = find_growth(n_runs, random)
    n_tests, n_limits = Comparison(0.0, 0.0, NONE).n_tests, len(layout.clusters) * len(LIMITS)
    decided = [
        row
        for effects in (MODERATE, FITTED_PRO)
        for row in power_table.rows(layout, effects, max(n_runs // 200, 1) * 100, random)
    ]
    others = [
        [name, *(cell for place, cell in enumerate(row) if place != 2)]
        for name in OTHERS
        for row in power_table.rows(Layout.of_suite(name), MODERATE, max(n_runs // 300, 1) * 100, random)
        if not row[1].startswith("domain")
    ]
    names = ("wrong PASS", "wrong FAIL")
    shares = peeking(layout, 10 * n_runs, np.random.default_rng(seed + 1))
    peeked = ", ".join(f"{name} {once:.3f} and {ever:.3f}" for name, (once, ever) in zip(names, shares, strict=True))
    times = time_audits()
    took = f"statistics {times.statistics:.2f} s, with tables and verdicts around them {times.in_all:.2f} s"
    figures = [
        limit_figure,
        *regression_figures,
        *found_figures(found),
        Figure("statistics of an audit with a baseline, seconds", 0.5, 0.2, times.statistics, "{:.2f}", is_upper=True),
        Figure("the same, with tables and verdicts around them", 0.5, 0.2, times.in_all, "{:.2f}", is_upper=True),
    ]
    seconds = time.process_time() - start
    return "\n".join(
        (
            f"`make error-rates`: {n_runs} runs a cell, seed {seed}, {seconds:.0f} s of one core.\n",
            figures_table(figures),
            f"### Runs with any FAIL, {n_limits} limits, no rate above its limit\n",
            limits,
            f"### Runs with any regression FAIL, {n_tests} tests, margin 0.03 at every level\n",
            regressions,
            f"### Growth found in pro_rate as one of {n_tests} tests\n",
            "0.03 everywhere, in the suite at margin 0.01 / 0.10 in one subtopic of 24, there at margin 0.03.\n",
            found_table(found),
            "### Rates that are decided with a chance of 80 %\n",
            table([*DECIDED, f"as one of {n_limits}"], decided),
            f"Other suites, if templates differ moderately ({MODERATE}); a run has {len(LIMITS)} limits a subtopic:\n",
            table(["suite", *(name for name in DECIDED if "cell" not in name), "as one of the run"], others),
            "### Adding pairs until a verdict comes, and time\n",
            f"A rate at its limit, at one look and if pairs are added up to seven times: {peeked}.\n",
            f"One audit of bbnli against a baseline in which every measure grew, processor time, best of five: {took}.",
        )
    )


def main() -> None:
    write_simulations("Whole runs", write_section, __doc__)


if __name__ == "__main__":
    main()
