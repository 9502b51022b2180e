"""Reports tagged pairs separately: measures a row without them (docs/metrics.md).

A hypothesis tagged `aggregate` is roughly true on average: a model that leans that way may have learned a statistic.
"""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bbnli_audit.core.results.rows import Apart
from bbnli_audit.measures.readings.table import TAGS, PairTable
from bbnli_audit.measures.registry import measure_some

SHOWN = ("lean", "pro_rate", "anti_rate", "brittleness_rate")


def measure_apart(table: PairTable, confidence: float) -> dict[str, Apart]:
    """For each tag, measure the pairs that lack it. The row itself has the values of all pairs."""
    return dict(_find(table, confidence)) if TAGS in table.frame else {}


def _find(table: PairTable, confidence: float) -> Iterator[tuple[str, Apart]]:
    measured = table.measured
    for tag in sorted({tag for tags in measured.frame[TAGS] for tag in _split(tags)}):
        without = measured.where(_lacks(tag))
        yield tag, Apart(len(measured) - len(without), measure_some(without, SHOWN, confidence))


@cache  # the pair table caches its selections by condition, so equal tags must give the same condition
def _lacks(tag: str) -> Callable[[PairTable], NDArray[np.bool_]]:
    def condition(table: PairTable) -> NDArray[np.bool_]:
        column = table.frame[TAGS] if TAGS in table.frame else [""] * len(table)
        return np.array([tag not in _split(tags) for tags in column], dtype=np.bool_)

    return condition


def _split(tags: object) -> list[str]:
    """Read a cell of the column of tags. It may be empty if only some of the joined subtopics have tags."""
    return tags.split(";") if isinstance(tags, str) and tags else []
