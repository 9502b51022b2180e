"""How the pairs of a table hang together: subtopics, and within them the templates that pairs were made from.

The name of a cluster says it: "p03/h05" are the pairs made from premise p03 and hypothesis h05. Each side of the slash
is a factor. Pairs that share a premise tend to fail together, and so do pairs that share a hypothesis. A name without a
slash is one factor.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which pairs belong together, ready for sums over groups."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    sizes: Floats

    @classmethod
    def of(cls, labels: NDArray[Any]) -> "Grouping":
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return cls(np.argsort(codes, kind="stable"), starts.astype(np.intp), counts.astype(np.float64))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def n_together(self) -> float:
        """In how many ordered couples of pairs both are of one group; a pair is a couple with itself."""
        return float((self.sizes**2).sum())

    def totals(self, columns: Floats) -> Floats:
        """Sum each column over each group."""
        return np.asarray(np.add.reduceat(columns[self.order], self.starts, axis=0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Block:
    """The pairs of one subtopic: their rows in the table, their clusters, and two factors where these are crossed."""

    rows: NDArray[np.intp]
    cells: Grouping
    factors: tuple[Grouping, ...]

    @classmethod
    def of(cls, rows: NDArray[np.intp], labels: NDArray[Any]) -> "Block":
        return cls(rows, Grouping.of(labels), _crossed(labels))

    @property
    def fewest_levels(self) -> int:
        return min((len(factor) for factor in self.factors), default=len(self.cells))

    @property
    def least_worth(self) -> float:
        """What the pairs are worth at the least: when each factor alone decides whether a pair fails."""
        together = sum(factor.n_together for factor in self.factors) - self.cells.n_together
        return len(self.rows) ** 2 / max(together, self.cells.n_together)


@dataclass(frozen=True, slots=True)
class Design:
    """The structure of a table of pairs, one block per subtopic. Blocks share no template."""

    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, clusters: ArrayLike, subtopics: ArrayLike | None = None) -> "Design":
        """Take the name (or number) of each pair's cluster, and of its subtopic where there are several."""
        labels = np.asarray(clusters)
        groups = Grouping.of(np.zeros(len(labels)) if subtopics is None else np.asarray(subtopics))
        rows = np.split(groups.order, groups.starts[1:]) if len(labels) else []
        return cls(tuple(Block.of(each, labels[each]) for each in rows))

    @property
    def n_clusters(self) -> int:
        return sum(len(block.cells) for block in self.blocks)

    @property
    def n_templates(self) -> tuple[int, ...]:
        """The number of premises and of hypotheses where both vary in all blocks; else the number of clusters."""
        if not all(block.factors for block in self.blocks):
            return (self.n_clusters,)
        return tuple(sum(len(block.factors[place]) for block in self.blocks) for place in (0, 1))


def hypotheses_of(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the hypothesis of each pair of one subtopic; its cluster where there is one factor only."""
    crossed = _crossed_names(labels)
    return crossed[1] if crossed else labels


def _crossed(labels: NDArray[Any]) -> tuple[Grouping, ...]:
    return tuple(map(Grouping.of, _crossed_names(labels)))


def _crossed_names(labels: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the two factors of the labels; none if they have one factor only.

    A factor with a single level does not vary, and one with a level of its own for each cluster says nothing new.
    """
    if labels.dtype.kind not in "OUS":
        return ()
    names = [str(label).partition("/") for label in labels]
    if not all(slash for _, slash, _ in names):
        return ()
    factors = tuple(np.array([name[place] for name in names]) for place in (0, 2))
    return factors if min(len(np.unique(factor)) for factor in factors) > 1 else ()
