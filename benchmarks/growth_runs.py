"""Simulated comparisons with a baseline: a run of 24 subtopics, in seven domains, and four measures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bbnli_audit.audit.gate.growth import MEASURES
from bbnli_audit.measures.statistics.growth import split_change
from bbnli_audit.measures.statistics.intervals import Difference, find_spreads
from benchmarks.simulated_runs import CHUNK, CONFIDENCE, Effects, Floats, Layout, Random

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bbnli_audit.measures.statistics.design import Design

Flags = NDArray[np.bool_]
SAME_MARGIN: Mapping[str, float] = {"suite": 0.03, "domain": 0.03, "subtopic": 0.03}


@dataclass(frozen=True)
class Comparison:
    """How pairs change from the baseline to the candidate.

    `flips` is the share of pairs that change either way without growth: as many for the better as for the worse. To
    these come the pairs that make the growth. How many change and which way varies with the templates. `step` is by
    how much a pair that changes counts more or less; one of its two samples is a half.
    """

    layout: Layout
    flips: float
    growth: float | Floats  # of the rate; or one for each subtopic
    effects: Effects | Sequence[Effects]
    step: float = 1.0

    @cached_property
    def places(self) -> list[tuple[str, NDArray[np.intp], Design]]:
        every = np.arange(len(self.layout.run))
        return [
            ("suite", every, self.layout.run),
            *(("domain", *place) for place in self.layout.domain_places),
            *(("subtopic", *place) for place in self.layout.places),
        ]

    @property
    def n_tests(self) -> int:
        return len(MEASURES) * len(self.places)

    def draw(self, measure: str, n: int, random: Random) -> tuple[Floats, Floats]:
        """Draw by how much pairs grew and shrank, as shares of the largest possible change: (pairs, runs) each."""
        mean = np.asarray(self.growth) / self.step
        grown, shrunk = self.layout.draw_signed(2.0 * self.flips + mean, mean, self.effects, n, random)
        if measure != "lean":
            return self.step * grown, self.step * shrunk
        # Lean is pro less anti. Its growth is that of pro, and anti changes as often without growing.
        against, back = self.layout.draw_signed(2.0 * self.flips, 0.0, self.effects, n, random)
        change = self.step * (grown - shrunk - against + back) / 2.0
        return split_change(np.zeros_like(change), change)

    def fails(self, measure: str, margins: Mapping[str, float], n: int, random: Random) -> Iterator[tuple[str, Flags]]:
        """Yield for each place which runs have a FAIL there, if no other test of the run has one.

        Holm's correction may find more once something is found, so this is a lower bound where there is growth. Where
        there is none beyond the margin, a run has any FAIL exactly if this has one.
        """
        level = 1.0 - (1.0 - CONFIDENCE) / self.n_tests
        scale = 2.0 if measure == "lean" else 1.0
        grown, shrunk = self.draw(measure, n, random)
        spreads = find_spreads(np.column_stack([grown, shrunk]), self.layout.run)
        for name, rows, design in self.places:
            margin = margins[name] / scale
            found = np.zeros(n, np.bool_)
            # Without growth beyond the margin in the sample there is no FAIL.
            runs = np.flatnonzero((grown[rows] - shrunk[rows]).mean(axis=0) > margin)
            if len(runs):
                one, other = grown[np.ix_(rows, runs)], shrunk[np.ix_(rows, runs)]
                alike = [spreads[run] for run in (*runs, *(runs + n))]
                difference = Difference.of(one, other, design, alike)
                assert difference is not None
                lows = [each.low for each in difference.estimates(2.0 * level - 1.0)]
                found[runs] = np.array(lows) > margin
            yield name, found

    def any_fail(self, margins: Mapping[str, float], n_runs: int, random: Random) -> Flags:
        """Return which runs have any FAIL, in any measure at any level."""
        parts = []
        for at in range(0, n_runs, CHUNK):
            n = min(CHUNK, n_runs - at)
            failed = [each for measure in MEASURES for _, each in self.fails(measure, margins, n, random)]
            parts.append(np.logical_or.reduce(failed))
        return np.concatenate(parts)

    def found(self, place: int, margins: Mapping[str, float], n_runs: int, random: Random) -> Flags:
        """Return in which runs growth of pro_rate is found at one place. The suite is first; subtopics are last."""
        parts = []
        for at in range(0, n_runs, CHUNK):
            n = min(CHUNK, n_runs - at)
            parts.append([each for _, each in self.fails("pro_rate", margins, n, random)][place])
        return np.concatenate(parts)
