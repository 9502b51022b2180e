"""Measures a row again without its tagged pairs (docs/metrics.md).

A hypothesis tagged `aggregate` is roughly true on average. A model that leans towards it may have learned a statistic.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bbnli_audit.core.results.rows import Apart
from bbnli_audit.measures.readings.table import TAGS, PairTable
from bbnli_audit.measures.registry import measure_some

SHOWN = ("lean", "pro_rate", "anti_rate", "brittleness_rate", "token_preference")


def measure_apart(table: PairTable, confidence: float) -> dict[str, Apart]:
    """For each tag, measure the pairs that lack it. The measures of the row itself cover all pairs."""
    if TAGS not in table.frame:
        return {}
    measured, found = table.measured, {}
    for tag in sorted({tag for tags in measured.frame[TAGS] for tag in _split(tags)}):
        without = measured.where(_lacks(tag))
        found[tag] = Apart(len(measured) - len(without), measure_some(without, SHOWN, confidence))
    return found


@cache  # a pair table remembers its selections by condition, so the same tag must give the same condition
def _lacks(tag: str) -> Callable[[PairTable], NDArray[np.bool_]]:
    def condition(table: PairTable) -> NDArray[np.bool_]:
        column = table.frame[TAGS] if TAGS in table.frame else [""] * len(table)
        return np.array([tag not in _split(tags) for tags in column], dtype=np.bool_)

    return condition


def _split(tags: object) -> list[str]:
    """Read a cell of the column of tags. It is empty for pairs of subtopics without tags."""
    return tags.split(";") if isinstance(tags, str) and tags else []
