"""The structure of a table of pairs: which pairs share a subtopic, and which share templates within it.

The name of a cluster gives the templates: "p03/h05" are the pairs made from premise p03 and hypothesis h05. Each side
of the slash is a factor. Pairs that share a premise tend to fail together, and so do pairs that share a hypothesis. A
name without a slash is a single factor. A template whose name ends in a star, as in "p03*" or "p03*/h05", is the same
template in all subtopics of its suite that have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bbnli_audit.measures.statistics.shared import Ties

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
_SHARED = "*"


@dataclass(frozen=True)  # no slots: cached properties need a place
class Grouping:
    """A grouping of pairs, ready for sums over the groups. Groups of the same block have consecutive numbers."""

    order: Codes
    starts: Codes
    sizes: Floats
    firsts: Codes  # the first group of each block

    @classmethod
    def of(cls, blocks: Codes, codes: Codes) -> "Grouping":
        """Group pairs by the number of their block and a number within it."""
        # The numbers themselves do not matter, only which pairs have equal numbers.
        _, first_rows, groups = np.unique(
            blocks * (codes.max(initial=0) + 1) + codes, return_index=True, return_inverse=True
        )
        sizes = np.bincount(groups, minlength=len(first_rows))
        starts = np.cumsum(sizes) - sizes
        firsts = np.searchsorted(blocks[first_rows], np.arange(blocks.max(initial=-1) + 1))
        return cls(np.argsort(groups, kind="stable"), starts, sizes.astype(np.float64), firsts)

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def n_levels(self) -> Codes:
        """The number of groups in each block."""
        return np.diff(self.firsts, append=len(self))

    @cached_property
    def n_together(self) -> Floats:
        """For each block, the ordered couples of pairs in the same group. A pair forms a couple with itself, too."""
        return self.by_block(self.sizes**2)

    def totals(self, columns: Floats) -> Floats:
        """Sum each column over each group."""
        return np.asarray(np.add.reduceat(columns[self.order], self.starts, axis=0), dtype=np.float64)

    def by_block(self, of_groups: Floats) -> Floats:
        """Sum over the groups of each block."""
        return np.asarray(np.add.reduceat(of_groups, self.firsts, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Design:
    """The structure of a table of pairs. A block is a subtopic."""

    block_of: Codes  # the block of each pair
    blocks: Grouping
    cells: Grouping  # the clusters
    factors: tuple[Grouping, Grouping]  # if a block has only one factor, both are its clusters
    is_crossed: NDArray[np.bool_]  # whether each block has two factors
    ties: Ties | None = None  # the templates that blocks share, if any

    @classmethod
    def of(
        cls, clusters: ArrayLike, subtopics: ArrayLike | None = None, suites: Sequence[str] | None = None
    ) -> "Design":
        """Make a design from each pair's cluster (a name or number) and, if there are several, subtopic and suite."""
        labels = np.asarray(clusters)
        # Cached, because the same pairs are measured repeatedly: as a suite, as the run, and against a baseline.
        within = None if subtopics is None else tuple(np.asarray(subtopics).tolist())
        return _make_design(tuple(labels.tolist()), within, None if suites is None else tuple(suites))

    def __len__(self) -> int:
        return len(self.block_of)

    @property
    def sizes(self) -> Floats:
        """The number of pairs in each block."""
        return self.blocks.sizes

    @cached_property
    def typical_sizes(self) -> Floats:
        """In each block, the size of the cluster of a randomly chosen pair."""
        return self.cells.n_together / self.sizes

    @cached_property
    def fewest_levels(self) -> Codes:
        return np.minimum(*(factor.n_levels for factor in self.factors))

    @cached_property
    def too_small(self) -> tuple[Floats, ...]:
        """For each factor, by how much its variance in each block is too small, because crossed templates are few."""
        return tuple(
            np.where(self.is_crossed, factor.n_levels / np.maximum(factor.n_levels - 1, 1), 1.0)
            for factor in self.factors
        )

    @cached_property
    def least_worth(self) -> Floats:
        """The least that the pairs of each block can be worth: if one factor alone decided whether a pair fails."""
        together = sum(factor.n_together for factor in self.factors) - self.cells.n_together
        return self.sizes**2 / np.maximum(together, self.cells.n_together)

    @cached_property
    def least_worth_together(self) -> float:
        """What all pairs are worth at the least."""
        together = float((self.sizes**2 / self.least_worth).sum())
        return len(self) ** 2 / (together + (0.0 if self.ties is None else self.ties.n_couples))

    @property
    def rows(self) -> list[Codes]:
        """The pairs of each block."""
        return np.split(self.blocks.order, self.blocks.starts[1:])

    @property
    def n_clusters(self) -> int:
        return len(self.cells)

    @property
    def n_templates(self) -> tuple[int, ...]:
        """The number of premises and of hypotheses where both vary in all blocks; else the number of clusters.

        What several blocks share counts once.
        """
        groups = self.factors if self.is_crossed.all() else (self.cells,)
        repeated = (0, 0) if self.ties is None else self.ties.n_repeated
        return tuple(len(each) - again for each, again in zip(groups, repeated, strict=False))


@lru_cache(maxsize=64)
def _make_design(labels: tuple[Any, ...], subtopics: tuple[Any, ...] | None, suites: tuple[str, ...] | None) -> Design:
    names, codes = _encode(labels)
    blocks = np.zeros(len(labels), np.intp) if subtopics is None else _encode(subtopics)[1]
    cells = Grouping.of(blocks, codes)
    is_crossed = np.zeros(len(cells.firsts), np.bool_)
    factors = (cells, cells)
    if names and all(isinstance(name, str) for name in names):
        parts = [name.partition("/") for name in names]
        first, second = (_encode([part[place] for part in parts])[1][codes] for place in (0, 2))
        factors = Grouping.of(blocks, first), Grouping.of(blocks, second)
        is_crossed = np.minimum(*(factor.n_levels for factor in factors)) > 1
        is_crossed[blocks[np.array([not slash for _, slash, _ in parts])[codes]]] = False
        if not is_crossed.all():
            own = (np.where(is_crossed[blocks], side, codes) for side in (first, second))
            one, other = (Grouping.of(blocks, each) for each in own)
            factors = one, other
    of_suites = None if suites is None else _encode(suites)[1]
    design = Design(blocks, Grouping.of(blocks, blocks), cells, factors, is_crossed)
    if not any(isinstance(name, str) and _SHARED in name for name in names):
        return design
    return replace(design, ties=_find_ties(names, codes, design, of_suites))


def _find_ties(names: Sequence[Any], codes: Codes, design: Design, suites: Codes | None) -> Ties | None:
    """Find what blocks share, from the distinct names of clusters and the place of each pair's name among them."""
    parts = [str(name).partition("/") for name in names]
    found = []
    for place in (0, 2):
        of_names = _encode([part[place] for part in parts])[1]
        is_shared = np.array([part[place].endswith(_SHARED) for part in parts])
        # Another suite may use the same name for something else.
        templates = of_names[codes] if suites is None else of_names[codes] + len(names) * suites
        found.append(np.where(is_shared[codes], templates, -1))
    return Ties.of(design.block_of, found, design.too_small)


def _encode(labels: Sequence[Any]) -> tuple[list[Any], Codes]:
    """Return the distinct labels in order, and the place of each label among them."""
    known = sorted(set(labels))
    places = {name: place for place, name in enumerate(known)}
    return known, np.array([places[name] for name in labels], dtype=np.intp)


def hypotheses_of(labels: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the hypothesis of each pair of one subtopic; its cluster where there is one factor only."""
    parts = [str(label).partition("/") for label in labels]
    firsts, seconds = ({part[place] for part in parts} for place in (0, 2))
    is_crossed = all(slash for _, slash, _ in parts) and min(len(firsts), len(seconds)) > 1
    return np.array([part[2] for part in parts], dtype=np.object_) if is_crossed else labels
