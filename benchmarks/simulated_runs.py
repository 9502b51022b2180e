"""Simulated runs: pairs with the structure of a suite, and errors that premises, hypotheses and cells make likelier.

The chance that a pair fails is logistic in the sum of a normal effect of its premise, one of its hypothesis and one of
their cell. The true rate is the mean over all conceivable templates, which is what a verdict speaks of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.intervals import Difference, Spread, estimate_means, find_spreads
from bbnli_audit.suites.registry import open_suite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bbnli_audit.measures.statistics.shared import Grouping

Floats = NDArray[np.float64]
Random = np.random.Generator
CONFIDENCE = 0.95
CHUNK = 100  # runs drawn at a time
ROUNDING = 1e-12
_NORMAL = np.linspace(-8.0, 8.0, 1601)
_WEIGHTS = np.exp(-(_NORMAL**2) / 2.0) / np.exp(-(_NORMAL**2) / 2.0).sum()


class Effects(NamedTuple):
    """Standard deviations on the logit scale."""

    premise: float
    hypothesis: float
    cell: float

    @property
    def total(self) -> float:
        return float(np.sqrt(np.square(self).sum()))

    def __str__(self) -> str:
        return ", ".join(f"{each:g}" for each in self)


NONE, MODERATE, STRONG = Effects(0, 0, 0), Effects(0.5, 0.5, 0.5), Effects(1, 1, 1)
# Fitted to the errors of three checkpoints on benchmark 1.
FITTED_PRO, FITTED_BRITTLE = Effects(1.1, 1.75, 1.4), Effects(1.2, 3.25, 0)


@dataclass(frozen=True)
class Layout:
    """Which pairs there are: the names of their clusters, for each subtopic of a run."""

    name: str
    clusters: tuple[NDArray[np.object_], ...]
    domains: tuple[str, ...]  # of each subtopic

    @classmethod
    def of_suite(cls, name: str, *, is_directed: bool = False) -> Layout:
        """Read the structure of a suite; of the pairs whose premise has a direction if that is asked for."""
        suite = open_suite(name)
        subtopics = suite.subtopics()
        pairs = [suite.items(subtopic).usable for subtopic in subtopics]
        clusters = [[pair.cluster for pair in each if pair.direction or not is_directed] for each in pairs]
        return cls(
            name,
            tuple(np.array(each, dtype=object) for each in clusters),
            tuple(subtopic.domain for subtopic in subtopics),
        )

    @classmethod
    def repeated(cls, name: str, clusters: Sequence[str], n_subtopics: int) -> Layout:
        one = np.array(clusters, dtype=object)
        return cls(name, (one,) * n_subtopics, ("all",) * n_subtopics)

    def first(self, n_subtopics: int) -> Layout:
        return Layout(self.name, self.clusters[:n_subtopics], self.domains[:n_subtopics])

    @cached_property
    def run(self) -> Design:
        subtopics = np.repeat(np.arange(len(self.clusters)), [len(each) for each in self.clusters])
        return Design.of(np.concatenate(self.clusters), subtopics)

    @cached_property
    def places(self) -> list[tuple[NDArray[np.intp], Design]]:
        """The rows and the design of each subtopic."""
        return [self.place([number]) for number in range(len(self.clusters))]

    @cached_property
    def domain_places(self) -> list[tuple[NDArray[np.intp], Design]]:
        names = dict.fromkeys(self.domains)
        return [self.place([n for n, each in enumerate(self.domains) if each == name]) for name in names]

    def apart(self) -> Layout:
        """Return the same pairs as if subtopics shared no template."""
        bare = [[str(name).replace("*", "") for name in each] for each in self.clusters]
        return Layout(self.name, tuple(np.array(each, dtype=object) for each in bare), self.domains)

    def place(self, subtopics: Sequence[int]) -> tuple[NDArray[np.intp], Design]:
        rows = np.flatnonzero(np.isin(self.run.block_of, subtopics))
        return rows, Design.of(np.concatenate(self.clusters)[rows], self.run.block_of[rows])

    @cached_property
    def _groups(self) -> list[NDArray[np.intp]]:
        found = [_members(groups) for groups in (*self.run.factors, self.run.cells)]
        if self.run.ties is None:
            return found
        # Subtopics share premises only: an effect of a premise is the same in all subtopics that have it.
        names, blocks = np.concatenate(self.clusters), self.run.block_of
        owned = [name if name.endswith("*") else f"{name} {block}" for name, block in zip(names, blocks, strict=True)]
        return [np.unique(owned, return_inverse=True)[1], *found[1:]]

    def draw_chances(
        self, rate: float | Floats, effects: Effects | Sequence[Effects], n: int, random: Random
    ) -> Floats:
        """Draw the chance of each pair to fail in n runs: (pairs, runs). Rate and effects may differ by subtopic."""
        n_blocks = len(self.clusters)
        each = [effects] * n_blocks if isinstance(effects, Effects) else list(effects)
        rates = np.broadcast_to(rate, n_blocks)
        middles = {key: middle_for(*key) for key in {(float(r), e.total) for r, e in zip(rates, each, strict=True)}}
        logits = np.array([middles[float(r), e.total] for r, e in zip(rates, each, strict=True)])[self.run.block_of]
        found = np.repeat(logits[:, np.newaxis], n, axis=1)
        for groups, deviations in zip(self._groups, np.array(each).T, strict=True):
            if deviations.any():
                normal = random.standard_normal((groups.max() + 1, n))
                found += deviations[self.run.block_of][:, np.newaxis] * normal[groups]
        return np.asarray(expit(found), dtype=np.float64)

    def draw(self, rate: float | Floats, effects: Effects | Sequence[Effects], n: int, random: Random) -> Floats:
        """Draw which pairs fail, 0 or 1: (pairs, runs)."""
        chances = self.draw_chances(rate, effects, n, random)
        return (random.random(chances.shape) < chances).astype(np.float64)

    def draw_signed(
        self, share: float | Floats, mean: float | Floats, effects: Effects | Sequence[Effects], n: int, random: Random
    ) -> tuple[Floats, Floats]:
        """Draw pairs that count for one of two sides: a share of them, and so many for the first that the mean is met.

        Both the share and the side vary with the templates, independently. All of them may differ by subtopic.
        """
        counts = self.draw(share, effects, n, random)
        is_first = self.draw((1.0 + np.asarray(mean) / share) / 2.0, effects, n, random)
        return counts * is_first, counts * (1.0 - is_first)


def _members(groups: Grouping) -> NDArray[np.intp]:
    found = np.empty(len(groups.order), dtype=np.intp)
    found[groups.order] = np.repeat(np.arange(len(groups)), groups.sizes.astype(np.intp))
    return found


def middle_for(rate: float, deviation: float) -> float:
    """Return the logit around which chances have this mean, if they scatter normally with this deviation."""
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if float(_WEIGHTS @ expit(middle + deviation * _NORMAL)) < rate else (low, middle)
    return middle


@cache
def full_crossing() -> Layout:
    """Benchmark 1: 10 premises by 15 hypotheses, every one with every one, 240 to 310 pairs a subtopic."""
    return Layout.of_suite("bbnli@1")


@cache
def quads() -> Layout:
    """Benchmark 2: 40 premises, 112 hypotheses, each with two premises; 224 cells, 336 pairs, 24 subtopics."""
    return Layout.of_suite("bbnli")


@cache
def layout_of(measure: str) -> Layout:
    """What a measure of `bbnli` is computed on: all pairs, those whose premise has a direction, or facts."""
    if measure == "overreach":
        return Layout.of_suite("bbnli", is_directed=True)
    return _facts() if measure == "fact_gap" else quads()


def _facts() -> Layout:
    """Facts by premise, as `estimate_fact_gap` groups them."""
    suite = open_suite("bbnli")
    subtopics = suite.subtopics()
    facts = [{(each.cluster, each.expected) for each in suite.items(one).controls} for one in subtopics]
    names = tuple(np.array(sorted(cell.partition("/")[0] for cell, _ in each), dtype=object) for each in facts)
    return Layout("facts", names, tuple(subtopic.domain for subtopic in subtopics))


def sparse_crossing(n_subtopics: int = 24) -> Layout:
    """36 premises by 90 hypotheses, each hypothesis with three premises."""
    pairs = np.arange(270)
    premises = (7 * pairs + pairs // 36) % 36
    return Layout.repeated(
        "36 × 90 sparse", [f"p{p}/h{n // 3}" for n, p in zip(pairs, premises, strict=True)], n_subtopics
    )


class Bounds(NamedTuple):
    """Intervals of many runs: (subtopics, runs)."""

    low: Floats
    high: Floats

    def misses(self, rate: float) -> tuple[float, float]:
        """Return how often a rate at its limit passes, and how often it fails."""
        return float((self.high <= rate - ROUNDING).mean()), float((self.low > rate + ROUNDING).mean())

    @property
    def width(self) -> float:
        return float((self.high - self.low).mean())


def bound_place(
    place: tuple[NDArray[np.intp], Design], values: Floats, spreads: Sequence[Spread], confidence: float = CONFIDENCE
) -> Bounds:
    """Estimate the rows of a subtopic, a domain or a suite as an audit does, all runs at once."""
    rows, design = place
    found = estimate_means(values[rows], design, confidence, spreads)
    return Bounds(np.array([each.low for each in found]), np.array([each.high for each in found]))


def bound_places(
    places: Sequence[tuple[NDArray[np.intp], Design]],
    values: Floats,
    spreads: Sequence[Spread],
    confidence: float = CONFIDENCE,
) -> Bounds:
    each = [bound_place(place, values, spreads, confidence) for place in places]
    return Bounds(np.array([one.low for one in each]), np.array([one.high for one in each]))


def bound_subtopics(layout: Layout, values: Floats, confidence: float = CONFIDENCE) -> Bounds:
    return bound_places(layout.places, values, find_spreads(values, layout.run), confidence)


def bound_differences(
    layout: Layout, first: Floats, second: Floats, confidence: float = CONFIDENCE, *, is_pooled: bool = True
) -> Bounds:
    """Bound mean(first) - mean(second) in every subtopic of every run."""
    spreads = find_spreads(np.column_stack([first, second]), layout.run) if is_pooled else []
    low, high = [], []
    for rows, design in layout.places:
        difference = Difference.of(first[rows], second[rows], design, spreads)
        assert difference is not None
        found = difference.estimates(confidence)
        low.append([each.low for each in found])
        high.append([each.high for each in found])
    return Bounds(np.array(low), np.array(high))
