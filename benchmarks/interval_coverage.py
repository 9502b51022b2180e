"""Measure by simulation how often intervals cover the truth, and how often a rate at its limit passes or fails.

`python -m benchmarks.interval_coverage` writes the section "Intervals" of docs/simulations.md: the full grid on crossed
designs, a subtopic whose templates differ more than those of the rest, domains and the suite, differences of two
measures, data with one factor, subtopics that share templates, and other rules.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.intervals import find_spreads
from benchmarks.page import Figure, figures_table, table, write_simulations
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


class Part(NamedTuple):
    """One table, and the coverage, wrong PASS and wrong FAIL of its cells."""

    title: str
    table: str
    cells: Sequence[tuple[float, float, float]] = ()

    @property
    def worst(self) -> tuple[float, float, float]:
        """The lowest coverage, the most wrong PASS, the most wrong FAIL."""
        covered, passed, failed = zip(*self.cells, strict=True)
        return min(covered), max(passed), max(failed)

    def __str__(self) -> str:
        parts = [f"### {self.title}\n", self.table]
        if self.cells:
            covered, passed, failed = self.worst
            parts.append(
                f"{len(self.cells)} cells: lowest coverage {covered:.3f}, most wrong PASS {passed:.3f}, "
                f"most wrong FAIL {failed:.3f}.\n"
            )
        return "\n".join(parts)


class Cells(list[tuple[float, float, float]]):
    """Collects the cells of a table while they are told."""

    def tell(self, bounds: Bounds, rate: float) -> str:
        passed, failed = bounds.misses(rate)
        self.append((1.0 - passed - failed, passed, failed))
        return f"{1.0 - passed - failed:.3f} / {passed:.3f} / {failed:.3f}"


def grid(layouts: Sequence[Layout], n_runs: int, random: Random) -> Part:
    cells, rows = Cells(), []
    for layout in layouts:
        for effects in EFFECTS:
            found = [(rate, coverage(layout, rate, effects, n_runs, random)) for rate in RATES]
            rows.append([layout.name, str(effects), *(cells.tell(bounds, rate) for rate, bounds in found)])
            rows[-1].append(f"{found[2][1].width:.3f}")
    header = ["suite", "premise, hypothesis, cell", *map(str, RATES), "width at 0.1"]
    return Part("A rate at its limit, in one subtopic", table(header, rows), cells)


def worse_subtopics(layout: Layout, n_runs: int, random: Random) -> Part:
    cells, rows = Cells(), []
    for others in (NONE, MODERATE):
        for worse in (STRONG, FITTED_PRO, FITTED_BRITTLE, Effects(2, 2, 2)):
            found = [(rate, worse_subtopic(layout, rate, worse, others, 5 * n_runs, random)) for rate in (0.1, 0.2)]
            rows.append([str(worse), str(others), *(cells.tell(each, rate) for rate, each in found)])
    title = f"A subtopic whose templates differ more than those of the others, {layout.name}"
    return Part(title, table(["this subtopic", "the others", "0.1", "0.2"], rows), cells)


def wider_levels(layout: Layout, n_runs: int, random: Random) -> Part:
    cells, rows = Cells(), []
    for effects in (NONE, MODERATE, STRONG, FITTED_PRO, FITTED_BRITTLE):
        row = [str(effects)]
        for rate in (0.05, 0.1, 0.2):
            domains, suite = levels(layout, rate, effects, 4 * n_runs, random)
            row += [cells.tell(domains, rate), cells.tell(suite, rate)]
        rows.append(row)
    names = [f"{level}, {rate}" for rate in (0.05, 0.1, 0.2) for level in ("domain", "suite")]
    return Part(f"Domains and the suite, {layout.name}", table(["premise, hypothesis, cell", *names], rows), cells)


def differences(layouts: Sequence[Layout], n_runs: int, random: Random) -> Part:
    cells, rows = Cells(), []
    for layout in layouts:
        for effects in EFFECTS:
            row = [layout.name, str(effects)]
            for share, mean in ((0.1, 0.05), (0.3, 0.05), (0.3, 0.15)):
                bounds = difference_coverage(layout, share, mean, effects, n_runs // 2, random)
                row.append(cells.tell(bounds, mean))
            rows.append(row)
    header = ["suite", "premise, hypothesis, cell", "0.05 (0.1)", "0.05 (0.3)", "0.15 (0.3)"]
    return Part(
        "A difference of two measures, such as lean, at its limit (share of pairs that count for either)",
        table(header, rows),
        cells,
    )


def one_factor(n_runs: int, random: Random) -> Part:
    cells, rows = Cells(), []
    for layout in one_factor_layouts():
        for effects in (NONE, Effects(0, 0, 1.5), Effects(0, 0, 3.25)):
            found = [(rate, coverage(layout, rate, effects, 2 * n_runs, random)) for rate in (0.02, 0.1, 0.3)]
            rows.append([layout.name, f"{effects.cell:g}", *(cells.tell(bounds, rate) for rate, bounds in found)])
    return Part("Data with one factor", table(["suite", "cluster", "0.02", "0.1", "0.3"], rows), cells)


def shared_templates(name: str, n_runs: int, random: Random) -> Part:
    layout, cells, rows = Layout.of_suite(name), Cells(), []
    has_domains = len(layout.domain_places) > 1
    for premise, cell in SHARED_EFFECTS:
        row = [f"{premise:g}, {cell:g}"]
        for rate in RATES:
            domains, suite, apart = shared_levels(layout, rate, Effects(premise, 0, cell), n_runs, random)
            row += [cells.tell(domains, rate)] if has_domains else []
            row += [cells.tell(suite, rate), f"{1.0 - sum(apart.misses(rate)):.3f}"]
        rows.append(row)
    levels = [*(["domain"] if has_domains else []), "suite", "apart"]
    header = ["shared, own", *(f"{level}, {rate}" for rate in RATES for level in levels)]
    return Part(f"Subtopics that share templates, {name}", table(header, rows), cells)


def other_rules(layouts: Sequence[Layout], n_runs: int, random: Random) -> Part:
    rows = []
    for layout in layouts:
        for rate, effects in ((0.1, MODERATE), (0.1, FITTED_PRO), (0.2, FITTED_BRITTLE)):
            by_rule = variants(layout, rate, effects, n_runs, random)
            rows.append([layout.name, str(effects), f"{rate:g}", *(Cells().tell(each, rate) for each in by_rule)])
    rules = ["cells as clusters", "own spread alone", "the wider of own and pooled"]
    return Part("Other rules", table(["suite", "premise, hypothesis, cell", "rate", *rules], rows))


def write_section(n_runs: int, seed: int) -> str:
    start, random = time.process_time(), np.random.default_rng(seed)
    layouts = [full_crossing(), sparse_crossing(), quads()]
    first, _, own = layouts
    parts = [
        grid(layouts, n_runs, random),
        wider_levels(own, n_runs, random),
        differences(layouts, n_runs, random),
        one_factor(n_runs, random),
        *(shared_templates(name, 2 * n_runs, random) for name in ("occupations", "winoqueer")),
        *(worse_subtopics(layout, n_runs, random) for layout in (own, first)),
        other_rules([first, own], n_runs, random),
    ]
    figures = [figure for part in parts if part.cells for figure in _figures(part)]
    how = f"`make coverage`: {n_runs} runs a cell, seed {seed}, {time.process_time() - start:.0f} s of one core.\n"
    return "\n".join([how, figures_table(figures), *map(str, parts)])


def _figures(part: Part) -> Iterator[Figure]:
    """What must hold in every cell of the grid, and is asked of the other tables too."""
    covered, passed, failed = part.worst
    title = part.title.partition(" (")[0]
    yield Figure(f"{title}: lowest coverage", 0.93, 0.94, covered, "{:.3f}")
    yield Figure(f"{title}: most wrong verdicts of a kind", 0.045, 0.03, max(passed, failed), "{:.3f}", is_upper=True)


def main() -> None:
    write_simulations("Intervals", write_section, __doc__)


if __name__ == "__main__":
    main()
