"""Templates that several subtopics have in common: pairs made from them are alike across subtopics too.

Without them the variances of subtopics add up. With them the covariances come on top.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)  # no slots: cached properties need a place
class Shared:
    """Templates of one factor that several blocks have.

    A group is the pairs of one block that were made from one template. Groups of a template stand beside each other.
    """

    rows: Codes  # the pairs, group by group
    starts: Codes  # of each group, its first pair
    blocks: Codes  # of each group
    firsts: Codes  # of each template, its first group
    factors: Floats  # of each group: by how much the residuals of few templates are too small

    @classmethod
    def of(cls, blocks: Codes, templates: Codes, too_small: Floats) -> "Shared | None":
        """Take the number of each pair's block and template; -1 for a template that no other block can have.

        Variances found in each block are too small by a factor, because it has few templates.
        """
        rows = np.flatnonzero(templates >= 0)
        rows = rows[np.lexsort((blocks[rows], templates[rows]))]
        starts = _changes(templates[rows], blocks[rows])
        # How many blocks have the template of each group? Templates of one block alone tie nothing.
        _, of_group, n_blocks = np.unique(templates[rows[starts]], return_inverse=True, return_counts=True)
        sizes = np.diff(starts, append=len(rows))
        rows = rows[np.repeat(n_blocks[of_group] > 1, sizes)]
        if not len(rows):
            return None
        starts = _changes(templates[rows], blocks[rows])
        of_groups = blocks[rows[starts]]
        return cls(rows, starts, of_groups, _changes(templates[rows[starts]]), np.sqrt(too_small)[of_groups])

    @cached_property
    def sizes(self) -> Floats:
        """The number of pairs in each group."""
        return np.diff(self.starts, append=len(self.rows)).astype(np.float64)

    @cached_property
    def n_others(self) -> Floats:
        """How many other blocks have the template of each group."""
        n_blocks = np.diff(self.firsts, append=len(self.blocks))
        return np.repeat(n_blocks - 1.0, n_blocks)

    @property
    def n_repeated(self) -> int:
        """How many groups have a template that an earlier group has."""
        return len(self.blocks) - len(self.firsts)

    def totals(self, columns: Floats) -> Floats:
        """Sum each column of residuals over each group."""
        sums = np.add.reduceat(columns[self.rows], self.starts, axis=0)
        return np.asarray(sums * self.factors[:, np.newaxis], dtype=np.float64)

    def between(self, one: Floats, other: Floats) -> Floats:
        """Sum the products of two figures over all ordered couples of groups of one template and different blocks."""
        first, second = (np.add.reduceat(each, self.firsts, axis=0) for each in (one, other))
        return np.asarray((first * second).sum(axis=0) - (one * other).sum(axis=0), dtype=np.float64)

    def alike(self, totals: Floats) -> Floats:
        """Say how alike the totals of a template are in different blocks: from 0, not at all, to 1, the same."""
        most = self.n_others @ totals**2
        found = np.divide(self.between(totals, totals), most, out=np.zeros_like(most), where=most > 0)
        return np.asarray(np.clip(found, 0.0, 1.0), dtype=np.float64)


@dataclass(frozen=True)
class Ties:
    """All that blocks share: templates of the first factor, of the second, and cells, which are templates of both."""

    factors: tuple[Shared, ...]
    cells: tuple[Shared, ...]  # one, or none
    n_repeated: tuple[int, ...]  # of the first factor and of the second: groups of a template that an earlier one has

    @classmethod
    def of(cls, blocks: Codes, templates: Sequence[Codes], too_small: Sequence[Floats]) -> "Ties | None":
        """Take both factors as `Shared` takes one."""
        first, second = templates
        both = np.where((first >= 0) & (second >= 0), first * (second.max(initial=0) + 1) + second, -1)
        cells = Shared.of(blocks, both, np.ones_like(too_small[0]))
        found = [Shared.of(blocks, *each) for each in zip(templates, too_small, strict=True)]
        factors = tuple(each for each in found if each is not None)
        n_repeated = tuple(0 if each is None else each.n_repeated for each in found)
        return cls(factors, () if cells is None else (cells,), n_repeated) if factors else None

    @property
    def kinds(self) -> tuple[Shared, ...]:
        return (*self.factors, *self.cells)

    def totals(self, columns: Floats) -> list[Floats]:
        """Sum each column of residuals over the groups of each kind."""
        return [kind.totals(columns) for kind in self.kinds]

    def scale(self, totals: Sequence[Floats], by_block: Floats) -> list[Floats]:
        """Multiply the totals of each kind by a figure of their block."""
        return [each * by_block[kind.blocks] for kind, each in zip(self.kinds, totals, strict=True)]

    def covariance(self, one: Sequence[Floats], other: Sequence[Floats]) -> Floats:
        """Sum products over couples of pairs of different blocks that share a template; those of a cell count once."""
        factors, cells = self._sums(one, other)
        return np.asarray(factors - cells, dtype=np.float64)

    def variance(self, totals: Sequence[Floats]) -> Floats:
        """Sum products as above, but never less than those of the cells alone, and never less than nothing."""
        factors, cells = self._sums(totals, totals)
        return np.asarray(np.maximum(np.maximum(factors - cells, cells), 0.0), dtype=np.float64)

    def alike(self, totals: Sequence[Floats], sizes: Floats) -> Floats:
        """Say in how many other blocks an imagined cell of each block would fail too, if it were like the real ones."""
        of_kinds = []
        for kind, each in zip(self.kinds, totals, strict=True):
            n_others = np.bincount(kind.blocks, kind.sizes * kind.n_others, len(sizes)) / sizes
            of_kinds.append(n_others[:, np.newaxis] * kind.alike(each))
        return np.asarray(np.max(of_kinds, axis=0), dtype=np.float64)

    @cached_property
    def n_couples(self) -> float:
        """How many ordered couples of pairs of different blocks share a template."""
        sizes = [kind.sizes for kind in self.kinds]
        return float(self.covariance(sizes, sizes))

    def _sums(self, one: Sequence[Floats], other: Sequence[Floats]) -> tuple[Floats, Floats]:
        found = [kind.between(*both) for kind, *both in zip(self.kinds, one, other, strict=True)]
        n, nothing = len(self.factors), np.zeros_like(found[0])
        return sum(found[:n], nothing), sum(found[n:], nothing)


def _changes(*codes: Codes) -> Codes:
    """Return where any of the codes differs from the one before; the first place too."""
    is_new = np.zeros(len(codes[0]), np.bool_)
    is_new[:1] = True
    for each in codes:
        is_new[1:] |= each[1:] != each[:-1]
    return np.flatnonzero(is_new)
