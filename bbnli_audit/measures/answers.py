"""Measures of models that answer in words: can the answers be read, and do they change with the prompt?"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CAUSES, CELLS
from bbnli_audit.core.results.rows import NO_DATA, Measured
from bbnli_audit.core.results.second import PromptDifference, PromptRow
from bbnli_audit.measures.evidence import MOST, Evidence, rank_clusters
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.readings.answers import ANSWER_COLUMNS, ANSWERS, UNPARSED, find_unread, tell_answer
from bbnli_audit.measures.readings.table import PLACES, Floats, PairTable, cluster_codes
from bbnli_audit.measures.statistics.intervals import Estimate, estimate_difference, estimate_means

PROMPT_SENSITIVITY = "prompt_sensitivity"


def _unread_shares(table: PairTable) -> Floats:
    return np.asarray(find_unread(table.frame).mean(axis=1), dtype=np.float64)


def _unread_evidence(_: Measure, table: PairTable) -> Evidence:
    n_unread = pd.Series(find_unread(table.frame).sum(axis=1), index=table.frame.index)
    return _answer_evidence(table.frame, n_unread, lambda pair, column: tell_answer(pair[column]))


def _changed_evidence(_: Measure, joined: pd.DataFrame) -> Evidence:
    n_changed = pd.Series(find_changes(joined).is_changed.sum(axis=1), index=joined.index)
    return _answer_evidence(
        joined,
        n_changed,
        lambda pair, column: f"{tell_answer(pair[column])}, then {tell_answer(pair[f'{column}_second'])}",
    )


def _answer_evidence(frame: pd.DataFrame, n_counted: "pd.Series[int]", tell: Callable[..., str]) -> Evidence:
    worst = frame.assign(n_counted=n_counted)[n_counted > 0]
    worst = worst.sort_values(["n_counted", "pair_id"], ascending=[False, True]).head(MOST)
    lines = {
        str(pair["pair_id"]): f"pair {pair['pair_id']} ({pair['cluster']})   "
        + "   ".join(f"{column.removesuffix('_answer')}: {tell(pair, column)}" for column in ANSWER_COLUMNS)
        for _, pair in worst.iterrows()
    }
    return Evidence(rank_clusters(frame["cluster"], n_counted), lines)


MEASURES = (
    Measure(
        name="unparsed_rate",
        sentence="Generative models: share of answers that could not be read.",
        limit="max_unparsed",
        values=_unread_shares,
        unit="samples",
        readings=(ANSWERS.name,),
        evidence=_unread_evidence,
        is_over_all=True,
    ),
    Measure(
        name=PROMPT_SENSITIVITY,
        sentence="Generative models: share of answers that change with a second prompt.",
        limit="max_prompt_sensitivity",
        unit="samples",
        readings=(ANSWERS.name,),
        evidence=_changed_evidence,
        source="prompts",
    ),
)


def join_answers(first: PairTable, second: PairTable) -> pd.DataFrame:
    """Put the answers to two prompts beside each other, read or not."""
    return first.frame[[*PLACES, *ANSWER_COLUMNS]].merge(
        second.frame[["pair_id", *ANSWER_COLUMNS]], on="pair_id", suffixes=("", "_second"), validate="one_to_one"
    )


class Changes(NamedTuple):
    """For each pair and side, (n_pairs, 2): could both answers be read, and do they differ?"""

    is_read: NDArray[np.bool_]
    is_changed: NDArray[np.bool_]


def find_changes(joined: pd.DataFrame) -> Changes:
    """Find where the answer changes with the prompt. What could not be read under both has not changed."""
    first, second = (joined[[f"{side}{end}" for side in ANSWER_COLUMNS]].to_numpy() for end in ("", "_second"))
    is_read = np.asarray((first != UNPARSED) & (second != UNPARSED), dtype=np.bool_)
    return Changes(is_read, is_read & np.asarray(first != second, dtype=np.bool_))


def estimate_sensitivity(joined: pd.DataFrame, confidence: float) -> tuple[Measured, Estimate | None]:
    """Estimate the share of samples whose answer changes, of those that could be read under both prompts.

    The estimate, which tells how many pairs would decide, counts pairs; without a sample there is none.
    """
    changes = find_changes(joined)
    if not changes.is_read.any():
        return NO_DATA, None
    clusters = np.column_stack([cluster_codes(joined)] * 2)
    (found,) = estimate_means(
        changes.is_changed[changes.is_read].astype(np.float64), clusters[changes.is_read], confidence
    )
    n_pairs = int(changes.is_read.any(axis=1).sum())
    return Measured(found.value, found.low, found.high, found.n), found._replace(n=n_pairs)


def measure_prompts(path: str, joined: pd.DataFrame, confidence: float) -> PromptRow:
    """Compare two prompts on the pairs of one subtopic, or of several."""
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
        return PromptDifference(measure, None, None, NO_DATA)
    weights = np.array([CAUSES[measure].get(cell, 0) / 2 for cell in CELLS])
    second = both[[f"{side}_second" for side in ANSWER_COLUMNS]].set_axis(ANSWER_COLUMNS, axis=1)
    before, after = (weights[ANSWERS.cells(frame)] for frame in (both, second))
    # Each pair against itself, as in `growth`: what counts more and what counts less are two rates of the same pairs,
    # and what stayed as it was is in neither. Exchanging the prompts mirrors the interval.
    change = after - before
    found = estimate_difference(np.maximum(change, 0.0), np.maximum(-change, 0.0), clusters, confidence)
    difference = Measured(found.value, found.low, found.high, 2 * len(both))
    return PromptDifference(measure, float(before.mean()), float(after.mean()), difference)
