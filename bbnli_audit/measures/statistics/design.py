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

from bbnli_audit.measures.statistics.shared import Codes, Floats, Grouping, Ties

_SHARED = "*"


@dataclass(frozen=True)
class Design:
    """The structure of a table of pairs. A block is a subtopic."""

    block_of: Codes  # the block of each pair
    blocks: Grouping
    cells: Grouping  # the clusters
    factors: tuple[Grouping, Grouping]  # in a block with only one factor, both are its clusters
    is_crossed: NDArray[np.bool_]  # for each block, whether it has two factors
    ties: Ties | None = None  # templates that blocks share

    @classmethod
    def of(
        cls, clusters: ArrayLike, subtopics: ArrayLike | None = None, suites: Sequence[str] | None = None
    ) -> "Design":
        """Make a design from the cluster of each pair (a name or a number), and its subtopic and suite if they vary."""
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
        """In each block, the expected size of the cluster of a randomly chosen pair."""
        return self.cells.n_together / self.sizes

    @cached_property
    def fewest_levels(self) -> Codes:
        """In each block, the number of templates of the factor that has fewer of them."""
        return np.minimum(*(factor.n_levels for factor in self.factors))

    @cached_property
    def too_small(self) -> tuple[Floats, ...]:
        """For each factor, what its variance in each block is multiplied by.

        Without this correction, a variance from few templates would be too small.
        """
        return tuple(
            np.where(self.is_crossed, factor.n_levels / np.maximum(factor.n_levels - 1, 1), 1.0)
            for factor in self.factors
        )

    @cached_property
    def least_worth(self) -> Floats:
        """The fewest independent pairs that each block can be worth.

        A block is worth so few if pairs with a common template always fail together.
        """
        together = sum(factor.n_together for factor in self.factors) - self.cells.n_together
        return self.sizes**2 / np.maximum(together, self.cells.n_together)

    @cached_property
    def least_worth_together(self) -> float:
        """The fewest independent pairs that the pairs of all blocks together can be worth."""
        together = float((self.sizes**2 / self.least_worth).sum())
        return len(self) ** 2 / (together + (0.0 if self.ties is None else self.ties.n_couples))

    def totals(self, columns: Floats) -> list[Floats]:
        """Sum each column over the clusters, and over the templates of each factor."""
        return [groups.totals(columns) for groups in (self.cells, *self.factors)]

    def sum_products(self, one: Sequence[Floats], other: Sequence[Floats], added: Floats) -> tuple[Floats, Floats]:
        """Multiply two results of `totals`, and sum the products in each block: over templates, and over clusters.

        In a crossed block, the sum over templates is the sum over both factors (each times `too_small`) minus the sum
        over clusters. In any other block, it is the sum over clusters. Before that, `added` is added to the sum of each
        factor and to the sum over clusters.
        """
        grouped = zip((self.cells, *self.factors), one, other, strict=True)
        cells, first, second = (groups.by_block(each * its) + added for groups, each, its in grouped)
        few = [each[:, np.newaxis] for each in self.too_small]
        crossed = few[0] * first + few[1] * second - cells
        return np.where(self.is_crossed[:, np.newaxis], crossed, cells), cells

    @property
    def rows(self) -> list[Codes]:
        """The pairs of each block."""
        return np.split(self.blocks.order, self.blocks.starts[1:])

    @property
    def n_clusters(self) -> int:
        return len(self.cells)

    @property
    def n_templates(self) -> tuple[int, ...]:
        """The numbers of premises and of hypotheses, if both vary in every block. Otherwise the number of clusters.

        A template that several blocks share counts once.
        """
        groups = self.factors if self.is_crossed.all() else (self.cells,)
        repeated = (0, 0) if self.ties is None else self.ties.n_repeated
        return tuple(len(each) - again for each, again in zip(groups, repeated, strict=False))


@lru_cache(maxsize=64)
def _make_design(labels: tuple[Any, ...], subtopics: tuple[Any, ...] | None, suites: tuple[str, ...] | None) -> Design:
    names, codes = _encode(labels)
    blocks = np.zeros(len(labels), np.intp) if subtopics is None else _encode(subtopics)[1]
    parts = [str(name).partition("/") for name in names]
    sides = [[part[place] for part in parts] for place in (0, 2)]
    templates = [_encode(side)[1][codes] for side in sides]
    factors = [Grouping.of(blocks, each) for each in templates]
    is_crossed = np.minimum(*(factor.n_levels for factor in factors)) > 1
    has_slash = np.array([bool(slash) for _, slash, _ in parts], dtype=np.bool_)
    is_crossed[blocks[~has_slash[codes]]] = False
    if not is_crossed.all():
        factors = [Grouping.of(blocks, np.where(is_crossed[blocks], each, codes)) for each in templates]
    first, second = factors
    design = Design(blocks, Grouping.of(blocks, blocks), Grouping.of(blocks, codes), (first, second), is_crossed)
    is_shared = [np.array([name.endswith(_SHARED) for name in side], dtype=np.bool_)[codes] for side in sides]
    if not np.any(is_shared):
        return design
    # Another suite may use the same name for another template.
    of_suites = 0 if suites is None else len(names) * _encode(suites)[1]
    shared = [np.where(each, found + of_suites, -1) for each, found in zip(is_shared, templates, strict=True)]
    return replace(design, ties=Ties.of(blocks, shared, design.too_small))


def _encode(labels: Sequence[Any]) -> tuple[list[Any], Codes]:
    """Return the distinct labels in order, and the index of each label among them."""
    known = sorted(set(labels))
    places = {name: place for place, name in enumerate(known)}
    return known, np.array([places[name] for name in labels], dtype=np.intp)


def hypotheses_of(labels: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the hypothesis of each pair of one subtopic, or its cluster if the subtopic has only one factor."""
    parts = [str(label).partition("/") for label in labels]
    firsts, seconds = ({part[place] for part in parts} for place in (0, 2))
    is_crossed = all(slash for _, slash, _ in parts) and min(len(firsts), len(seconds)) > 1
    return np.array([part[2] for part in parts], dtype=np.object_) if is_crossed else labels
