"""Simulated comparisons with a baseline: a run of `bbnli`, 24 subtopics in seven domains, and six measures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bbnli_audit.audit.gate.compared import largest_change
from bbnli_audit.audit.gate.growth import LEVEL_SHARES
from bbnli_audit.audit.gate.thresholds_schema import GROWTH_MEASURES as MEASURES
from bbnli_audit.measures.statistics.growth import split_change
from bbnli_audit.measures.statistics.intervals import Difference, find_spreads
from benchmarks.simulated_runs import CHUNK, CONFIDENCE, Effects, Floats, Random, layout_of

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

    flips: float
    growth: float | Floats  # of the rate; or one for each subtopic
    effects: Effects | Sequence[Effects]
    step: float = 1.0

    @property
    def n_tests(self) -> int:
        return sum(len(places_of(measure)) for measure in MEASURES)

    def draw(self, measure: str, n: int, random: Random) -> tuple[Floats, Floats]:
        """Draw by how much pairs grew and shrank, as shares of the largest possible change: (pairs, runs) each."""
        layout, mean = layout_of(measure), np.asarray(self.growth) / self.step
        grown, shrunk = layout.draw_signed(2.0 * self.flips + mean, mean, self.effects, n, random)
        if largest_change(measure) == 1.0:
            return self.step * grown, self.step * shrunk
        # A difference, as lean is pro less anti. One side of it grows, and the other changes as often without growing.
        against, back = layout.draw_signed(2.0 * self.flips, 0.0, self.effects, n, random)
        change = self.step * (grown - shrunk - against + back) / 2.0
        return split_change(np.zeros_like(change), change)

    def fails(self, measure: str, margins: Mapping[str, float], n: int, random: Random) -> Iterator[tuple[str, Flags]]:
        """Yield for each place which runs have a FAIL there, if no other test of the run has one.

        Holm's correction may find more once something is found, so this is a lower bound where there is growth. Where
        there is none beyond the margin, a run has any FAIL exactly if this has one.
        """
        grown, shrunk = self.draw(measure, n, random)
        spreads = find_spreads(np.column_stack([grown, shrunk]), layout_of(measure).run)
        for name, rows, design in places_of(measure):
            margin = margins[name] / largest_change(measure)
            found = np.zeros(n, np.bool_)
            # Without growth beyond the margin in the sample there is no FAIL.
            runs = np.flatnonzero((grown[rows] - shrunk[rows]).mean(axis=0) > margin)
            if len(runs):
                one, other = grown[np.ix_(rows, runs)], shrunk[np.ix_(rows, runs)]
                alike = [spreads[run] for run in (*runs, *(runs + n))]
                difference = Difference.of(one, other, design, alike)
                assert difference is not None
                confidence = 2.0 * confidence_at(name) - 1.0
                lows = [each.low for each in difference.estimates(confidence)]
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


@cache
def confidence_at(level: str) -> float:
    """Return the confidence at which the first test of a run is found at a level, with Holm's correction."""
    n_tests = sum(name == level for measure in MEASURES for name, _, _ in places_of(measure))
    return 1.0 - (1.0 - CONFIDENCE) * LEVEL_SHARES[level] / n_tests


@cache
def places_of(measure: str) -> list[tuple[str, NDArray[np.intp], Design]]:
    """List the levels at which a measure is compared: name, rows, design."""
    layout = layout_of(measure)
    return [
        ("suite", np.arange(len(layout.run)), layout.run),
        *(("domain", *place) for place in layout.domain_places),
        *(("subtopic", *place) for place in layout.places),
    ]
