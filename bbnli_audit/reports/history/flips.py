"""Finds the pairs that changed between releases, by their ids and without their sentences."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bbnli_audit.core.outcomes import Cell, outcome_of
from bbnli_audit.core.values import Outcome
from bbnli_audit.reports.history.releases import Entry, Series

MOST_PAIRS = 200  # pairs that the page lists for one subtopic; flips.csv has all pairs
KINDS = ("more", "less", "other")  # the kinds of changes: see `Flip.kind`


@dataclass(frozen=True, slots=True)
class Flip:
    """One change of one pair. `place` is the position, in its series, of the release that first showed the change."""

    place: int
    before: Cell
    after: Cell

    @property
    def kind(self) -> str:
        """`more` if the pair newly counts towards a cause of error, `less` if it no longer does, else `other`."""
        was_right, is_right = (outcome_of(cell) is Outcome.CORRECT for cell in (self.before, self.after))
        return "other" if was_right == is_right else "more" if was_right else "less"


@dataclass(frozen=True, slots=True)
class FlippedPair:
    """A pair that changed at least once."""

    pair_id: str
    cluster: str
    flips: tuple[Flip, ...]

    @property
    def order(self) -> tuple[bool, int, str, str]:
        """The sort key: pairs that now count towards a cause of error come before all others.

        Within these two groups, pairs with more changes come first.
        """
        is_right = outcome_of(self.flips[-1].after) is Outcome.CORRECT
        return is_right, -len(self.flips), self.cluster, self.pair_id


@dataclass(frozen=True, slots=True)
class FlippedPairs:
    """The pairs of a subtopic that changed, in the order of the page."""

    path: str
    pairs: tuple[FlippedPair, ...]

    @property
    def listed(self) -> tuple[FlippedPair, ...]:
        return self.pairs[:MOST_PAIRS]

    def count(self, place: int) -> dict[str, int]:
        """Count the changes in the release at this place, by kind."""
        kinds = [flip.kind for pair in self.pairs for flip in pair.flips if flip.place == place]
        return {kind: kinds.count(kind) for kind in KINDS}


def find_flips(series: Series) -> list[FlippedPairs]:
    """Compare each pair with itself in the latest earlier release that has it. Leave out subtopics without a change."""
    paths = sorted({path for entry in series.entries for path in entry.result.pairs})
    found = {path: sorted(_flipped(series.entries, path), key=lambda pair: pair.order) for path in paths}
    return [FlippedPairs(path, tuple(pairs)) for path, pairs in found.items() if pairs]


def _flipped(entries: Sequence[Entry], path: str) -> Iterator[FlippedPair]:
    cells = [_cells(entry, path) for entry in entries]
    clusters = {pair_id: cluster for each in cells for pair_id, (cluster, _) in each.items()}
    for pair_id, cluster in clusters.items():
        seen = [(place, each[pair_id][1]) for place, each in enumerate(cells) if pair_id in each]
        flips = tuple(Flip(place, before, after) for (_, before), (place, after) in pairwise(seen) if before != after)
        if flips:
            yield FlippedPair(pair_id, cluster, flips)


def _cells(entry: Entry, path: str) -> dict[str, tuple[str, Cell]]:
    found = entry.result.pairs.get(path, {})
    return {pair_id: (cluster, cell) for cluster, ids in found.items() for pair_id, cell in ids.items()}


def flips_csv(series: Sequence[Series]) -> str:
    """Return all changes as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("model", "release", "subtopic", "cluster", "pair_id", "before", "after", "outcome"))
    for one in series:
        for found in find_flips(one):
            for pair in found.pairs:
                for flip in pair.flips:
                    place = (one.name, one.entries[flip.place].label, found.path, pair.cluster, pair.pair_id)
                    writer.writerow((*place, flip.before, flip.after, outcome_of(flip.after).value))
    return out.getvalue()
