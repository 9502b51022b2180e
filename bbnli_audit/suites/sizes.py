"""Smaller sizes of a suite for quick runs. Each size contains the smaller ones, so their predictions are reused."""

import math
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.values import Pair, SubtopicItems

SIZES = {"small": 0.2, "medium": 0.5, "full": 1.0}
FULL = "full"


def read_size(given: str | None) -> str:
    """Read --bbnli-size."""
    if given is not None and given not in SIZES:
        raise OptionError(f"--bbnli-size={given}: there is no such size. {suggest(given, SIZES)}")
    return given or FULL


def take_size(items: SubtopicItems, size: str) -> SubtopicItems:
    """Keep clusters, in a fixed order, until they have the size's share of the usable pairs. Keep all controls.

    The clusters keep their identical and repeated pairs, which are counted but not measured.
    """
    if size == FULL:
        return items
    wanted, kept = math.ceil(SIZES[size] * len(items.usable)), set[str]()
    n_pairs = 0
    for cell, pairs in _rank(items.usable):
        if n_pairs >= wanted:
            break
        kept.add(cell)
        n_pairs += len(pairs)
    usable = {pair.id for pair in items.usable if pair.cluster in kept}
    of_kept = (pair for pair in items.pairs if pair.cluster in kept)
    return replace(items, pairs=tuple(pair for pair in of_kept if pair.is_identical or pair.id in usable))


def _rank(pairs: tuple[Pair, ...]) -> Iterator[tuple[str, list[Pair]]]:
    """Order clusters so that the first n, for any n, use all premises and hypotheses about equally often."""
    cells: dict[str, list[Pair]] = {}
    for pair in pairs:
        cells.setdefault(pair.cluster, []).append(pair)
    left = sorted(cells, key=lambda cell: sha256("\n".join(sorted(pair.id for pair in cells[cell])).encode()).digest())
    used: dict[str, int] = {}
    while left:
        chosen = min(left, key=lambda cell: sum(used.get(part, 0) for part in cell.split("/")))
        left.remove(chosen)
        for part in chosen.split("/"):
            used[part] = used.get(part, 0) + 1
        yield chosen, cells[chosen]
