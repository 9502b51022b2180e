"""How far a model's answers depend on how it is asked: the same texts under two prompts."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.results.audit import CELLS, WEIGHTS, Measure
from bbnli_audit.core.results.second import PromptDifference, PromptRow
from bbnli_audit.core.values import Label
from bbnli_audit.measures.agreement import PLACES
from bbnli_audit.measures.outcomes import cell_indices
from bbnli_audit.measures.rates import cluster_codes
from bbnli_audit.measures.statistics.intervals import Estimate, estimate_difference, estimate_means

CAUSES = ("pro_rate", "anti_rate", "brittleness_rate")
_SIDES = ("pro_label", "anti_label")
_UNREAD = Label.CONTRADICTION.value  # `results.UNPARSED`


def join_answers(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Put the answers to two prompts beside each other, read or not.

    Args:
        first: The pair table of one prompt for one subtopic, with the pairs whose answers could not be read.
        second: That of the other prompt, on the same pairs.
    """
    return first[[*PLACES, *_SIDES]].merge(
        second[["pair_id", *_SIDES]], on="pair_id", suffixes=("", "_second"), validate="one_to_one"
    )


class Changes(NamedTuple):
    """Of each pair and side, (n_pairs, 2): whether both answers could be read, and whether they differ."""

    is_read: NDArray[np.bool_]
    is_changed: NDArray[np.bool_]


def find_changes(joined: pd.DataFrame) -> Changes:
    """Look where the answer changes with the prompt. What could not be read under both has not changed."""
    first, second = (joined[[f"{side}{end}" for side in _SIDES]].to_numpy() for end in ("", "_second"))
    is_read = np.asarray((first != _UNREAD) & (second != _UNREAD), dtype=np.bool_)
    return Changes(is_read, is_read & np.asarray(first != second, dtype=np.bool_))


def estimate_sensitivity(joined: pd.DataFrame, confidence: float) -> tuple[Measure, Estimate | None]:
    """Estimate the share of samples whose answer changes, of those that could be read under both prompts.

    The estimate, for the number of pairs that would decide, counts pairs; without a sample there is none.
    """
    changes = find_changes(joined)
    if not changes.is_read.any():
        return Measure(None, None, None, 0), None
    clusters = np.column_stack([cluster_codes(joined)] * 2)
    (found,) = estimate_means(
        changes.is_changed[changes.is_read].astype(np.float64), clusters[changes.is_read], confidence
    )
    n_pairs = int(changes.is_read.any(axis=1).sum())
    return Measure(found.value, found.low, found.high, found.n), found._replace(n=n_pairs)


def measure_prompts(path: str, joined: pd.DataFrame, confidence: float) -> PromptRow:
    """Compare two prompts on some pairs.

    Args:
        path: The subtopic, or what the pairs are called together.
        joined: What `join_answers` gave, of one subtopic or of several.
        confidence: Of the intervals.
    """
    changes = find_changes(joined)
    both = joined.loc[pd.Series(changes.is_read.all(axis=1), index=joined.index)]
    sensitivity, _ = estimate_sensitivity(joined, confidence)
    clusters = cluster_codes(both)
    return PromptRow(
        path=path,
        n_pairs=len(both),
        n_clusters=len(np.unique(clusters)),
        n_changed=int(changes.is_changed.sum()),
        n_unread=int((~changes.is_read).sum()),
        sensitivity=sensitivity,
        differences=tuple(_difference(both, clusters, measure, confidence) for measure in CAUSES),
    )


def _difference(both: pd.DataFrame, clusters: NDArray[np.intp], measure: str, confidence: float) -> PromptDifference:
    if both.empty:
        return PromptDifference(measure, None, None, Measure(None, None, None, 0))
    weights = np.array([WEIGHTS[measure].get(cell, 0) / 2 for cell in CELLS])
    second = both[[f"{side}_second" for side in _SIDES]].set_axis(_SIDES, axis=1)
    before, after = (weights[cell_indices(frame)] for frame in (both, second))
    # Each pair against itself, as in `increases`: what counts more and what counts less are two rates of the same
    # pairs, and what stayed as it was is in neither. Exchanging the prompts mirrors the interval.
    change = after - before
    found = estimate_difference(np.maximum(change, 0.0), np.maximum(-change, 0.0), clusters, confidence)
    difference = Measure(found.value, found.low, found.high, 2 * len(both))
    return PromptDifference(measure, float(before.mean()), float(after.mean()), difference)
