"""Groups of pairs, and templates that several subtopics share.

Pairs made from one template tend to fail together even if they are in different subtopics. So the variance of a mean
over subtopics is the sum of the subtopics' variances plus the covariances that are computed here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)  # no slots: cached properties need a `__dict__`
class Grouping:
    """Pairs in groups, ready for sums over the groups. The groups of one block have consecutive numbers."""

    order: Codes  # the pairs, group after group
    starts: Codes  # for each group, where its pairs begin in `order`
    sizes: Floats  # for each group, its number of pairs
    firsts: Codes  # for each block, its first group

    @classmethod
    def of(cls, blocks: Codes, codes: Codes) -> "Grouping":
        """Group the pairs of each block that have the same code."""
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
        """For each block, how many ordered couples of its pairs are in the same group; a pair with itself counts."""
        return self.by_block(self.sizes**2)

    def totals(self, columns: Floats) -> Floats:
        """Sum each column over each group."""
        return np.asarray(np.add.reduceat(columns[self.order], self.starts, axis=0), dtype=np.float64)

    def by_block(self, of_groups: Floats) -> Floats:
        """Sum over the groups of each block."""
        return np.asarray(np.add.reduceat(of_groups, self.firsts, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Shared:
    """The templates of one factor that several blocks (subtopics) share.

    A group is the pairs of one block that were made from one template. In `groups`, the templates take the place of the
    blocks: the groups of one template have consecutive numbers.
    """

    rows: Codes  # the pairs made from shared templates
    groups: Grouping
    blocks: Codes  # for each group, its block
    factors: Floats  # for each group, what its residuals are multiplied by

    @classmethod
    def of(cls, blocks: Codes, templates: Codes, too_small: Floats) -> "Shared | None":
        """Find the shared templates from the block and the template of each pair; -1 is a template that is not shared.

        `too_small` is what the variance in each block must be multiplied by (`Design.too_small`).
        """
        rows = np.flatnonzero(templates >= 0)
        codes = np.unique(templates[rows], return_inverse=True)[1]
        rows = rows[(Grouping.of(codes, blocks[rows]).n_levels > 1)[codes]]  # templates of only one block are left out
        if not len(rows):
            return None
        groups = Grouping.of(np.unique(templates[rows], return_inverse=True)[1], blocks[rows])
        of_groups = blocks[rows][groups.order[groups.starts]]
        return cls(rows, groups, of_groups, np.sqrt(too_small)[of_groups])

    @property
    def n_others(self) -> Floats:
        """For each group, how many other blocks have its template."""
        return np.repeat(self.groups.n_levels - 1.0, self.groups.n_levels)

    @property
    def n_repeated(self) -> int:
        """How many groups have the template of an earlier group."""
        return len(self.groups) - len(self.groups.firsts)

    def totals(self, columns: Floats) -> Floats:
        """Sum each column of residuals over each group."""
        return self.groups.totals(columns[self.rows]) * self.factors[:, np.newaxis]

    def between(self, one: Floats, other: Floats) -> Floats:
        """Sum `one` times `other` over ordered couples of groups that have the same template but different blocks."""
        products = self.groups.by_block(one) * self.groups.by_block(other)
        return np.asarray(products.sum(axis=0) - (one * other).sum(axis=0), dtype=np.float64)

    def alike(self, totals: Floats) -> Floats:
        """Return how alike the totals of a template are in different blocks: 0 for not at all, 1 for equal."""
        most = self.n_others @ totals**2
        found = np.divide(self.between(totals, totals), most, out=np.zeros_like(most), where=most > 0)
        return np.asarray(np.clip(found, 0.0, 1.0), dtype=np.float64)


@dataclass(frozen=True)
class Ties:
    """All templates that blocks share, and the shared cells. A cell is a template of each of the two factors."""

    factors: tuple[Shared, ...]  # for each factor that has shared templates
    cells: tuple[Shared, ...]  # one entry, or none
    n_repeated: tuple[int, ...]  # `Shared.n_repeated` for the first and the second factor; 0 if none is shared

    @classmethod
    def of(cls, blocks: Codes, templates: Sequence[Codes], too_small: Sequence[Floats]) -> "Ties | None":
        """Find what blocks share, from the templates and `too_small` of both factors (see `Shared.of`)."""
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
        """Sum each column of residuals over the groups of each of `kinds`."""
        return [kind.totals(columns) for kind in self.kinds]

    def scale(self, totals: Sequence[Floats], by_block: Floats) -> list[Floats]:
        """Multiply the total of each group by the value of the group's block."""
        return [each * by_block[kind.blocks] for kind, each in zip(self.kinds, totals, strict=True)]

    def covariance(self, one: Sequence[Floats], other: Sequence[Floats]) -> Floats:
        """Sum the products over couples of pairs, in different blocks, that share templates.

        A couple that shares both templates counts once.
        """
        factors, cells = self._sums(one, other)
        return np.asarray(factors - cells, dtype=np.float64)

    def variance(self, totals: Sequence[Floats]) -> Floats:
        """Sum the products as `covariance` does. The result is never below 0, nor below the sum over cells alone."""
        factors, cells = self._sums(totals, totals)
        return np.asarray(np.maximum(np.maximum(factors - cells, cells), 0.0), dtype=np.float64)

    def alike(self, totals: Sequence[Floats], sizes: Floats) -> Floats:
        """Return, for each block, the number of other blocks that its imagined clusters are treated as shared with.

        This is the mean, over the block's pairs, of how many other blocks share the pair's template. It is multiplied
        by how alike the totals of one template are in different blocks. It is computed for each of `kinds`, and the
        largest value counts.
        """
        of_kinds = []
        for kind, each in zip(self.kinds, totals, strict=True):
            n_others = np.bincount(kind.blocks, kind.groups.sizes * kind.n_others, len(sizes)) / sizes
            of_kinds.append(n_others[:, np.newaxis] * kind.alike(each))
        return np.asarray(np.max(of_kinds, axis=0), dtype=np.float64)

    @cached_property
    def n_couples(self) -> float:
        """How many ordered couples of pairs, in different blocks, share a template."""
        sizes = [kind.groups.sizes for kind in self.kinds]
        return float(self.covariance(sizes, sizes))

    def _sums(self, one: Sequence[Floats], other: Sequence[Floats]) -> tuple[Floats, Floats]:
        found = [kind.between(*both) for kind, *both in zip(self.kinds, one, other, strict=True)]
        n, nothing = len(self.factors), np.zeros_like(found[0])
        return sum(found[:n], nothing), sum(found[n:], nothing)
