"""Measures of models that answer in words: can the answers be read, and do they change with the prompt?"""

from collections.abc import Callable, Hashable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CAUSES, CELLS
from bbnli_audit.core.results.comparison import PromptDifference, PromptRow
from bbnli_audit.core.results.rows import NO_DATA, Measured
from bbnli_audit.measures.drivers import MOST, Evidence, driving_clusters
from bbnli_audit.measures.measure import Harm, Measure
from bbnli_audit.measures.readings.kinds import ANSWER_COLUMNS, ANSWERS, UNPARSED, find_unread, tell_answer
from bbnli_audit.measures.readings.table import PLACES, PairTable, design_of
from bbnli_audit.measures.statistics.design import Design
from bbnli_audit.measures.statistics.growth import split_change
from bbnli_audit.measures.statistics.intervals import Estimate, estimate_difference, estimate_means

UNPARSED_RATE, PROMPT_SENSITIVITY = "unparsed_rate", "prompt_sensitivity"


def _unread_evidence(_: Measure, table: PairTable) -> Evidence:
    return _answer_evidence(table.frame, find_unread(table.frame), lambda pair, column: tell_answer(pair[column]))


def _changed_evidence(_: Measure, joined: pd.DataFrame) -> Evidence:
    def tell(pair: Mapping[Hashable, str], column: str) -> str:
        return f"{tell_answer(pair[column])}, then {tell_answer(pair[f'{column}_second'])}"

    return _answer_evidence(joined, find_changes(joined)[1], tell)


def _answer_evidence(frame: pd.DataFrame, is_counted: NDArray[np.bool_], tell: Callable[..., str]) -> Evidence:
    """Show the pairs with the most answers that count.

    `is_counted` says which answers count: (n_pairs, 2), the pro side first.
    """
    counted = frame.assign(n_counted=is_counted.sum(axis=1))
    worst = counted[counted["n_counted"] > 0].sort_values(["n_counted", "pair_id"], ascending=[False, True])
    lines = {}
    for pair in worst.head(MOST).to_dict("records"):
        sides = "   ".join(f"{column.removesuffix('_answer')}: {tell(pair, column)}" for column in ANSWER_COLUMNS)
        lines[pair["pair_id"]] = f"pair {pair['pair_id']} ({pair['cluster']})   {sides}"
    return Evidence(driving_clusters(counted, counted["n_counted"].to_numpy()), lines)


MEASURES = (
    Measure(
        name=UNPARSED_RATE,
        sentence="Generative models: share of answers that could not be read.",
        limit="max_unparsed",
        harm=Harm.QUALITY,
        meaning="answers cannot be read",
        values=lambda table: find_unread(table.frame).mean(axis=1),
        unit="samples",
        readings=(ANSWERS.name,),
        evidence=_unread_evidence,
        is_over_all=True,
    ),
    Measure(
        name=PROMPT_SENSITIVITY,
        sentence="Generative models: share of answers that change with a second prompt.",
        limit="max_prompt_sensitivity",
        harm=Harm.QUALITY,
        meaning="answers change with the wording of the question",
        unit="samples",
        readings=(ANSWERS.name,),
        evidence=_changed_evidence,
        source="prompts",
    ),
)


def join_answers(first: PairTable, second: PairTable) -> pd.DataFrame:
    """Join the answers to two prompts, including answers that could not be read."""
    return first.frame[[*PLACES, *ANSWER_COLUMNS]].merge(
        second.frame[["pair_id", *ANSWER_COLUMNS]], on="pair_id", suffixes=("", "_second"), validate="one_to_one"
    )


def find_changes(joined: pd.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two (n_pairs, 2) arrays, by pair and side: could the answers to both prompts be read, and do they differ?

    An answer that could be read under only one of the prompts has changed.
    """
    first, second = (joined[[f"{side}{end}" for side in ANSWER_COLUMNS]].to_numpy() for end in ("", "_second"))
    is_read = np.asarray((first != UNPARSED) & (second != UNPARSED), dtype=np.bool_)
    return is_read, np.asarray(first != second, dtype=np.bool_)


def estimate_sensitivity(joined: pd.DataFrame, confidence: float) -> tuple[Measured, Estimate | None]:
    """Estimate the share of samples whose answer changes. Samples that could be read under neither prompt are left out.

    In the first result `n` counts samples, in the second it counts pairs. The second result is None if no sample could
    be read.
    """
    is_read, is_changed = find_changes(joined)
    is_known = is_read | is_changed
    if not is_known.any():
        return NO_DATA, None
    sides = pd.concat([joined.loc[is_known[:, side]] for side in (0, 1)], ignore_index=True)
    changed = np.concatenate([is_changed[is_known[:, side], side] for side in (0, 1)])
    (found,) = estimate_means(changed, design_of(sides), confidence)
    n_pairs = int(is_known.any(axis=1).sum())
    return Measured(*found[:4]), found._replace(n=n_pairs)


def measure_prompts(path: str, joined: pd.DataFrame, confidence: float) -> PromptRow:
    """Compare two prompts on the pairs of one or several subtopics."""
    is_read, is_changed = find_changes(joined)
    both = joined.loc[pd.Series(is_read.all(axis=1), index=joined.index)]
    sensitivity, _ = estimate_sensitivity(joined, confidence)
    design = design_of(both)
    return PromptRow(
        path=path,
        n_pairs=len(both),
        n_clusters=design.n_clusters,
        n_changed=int(is_changed.sum()),
        n_unread=int((~is_read).sum()),
        sensitivity=sensitivity,
        differences=tuple(_difference(both, design, measure, confidence) for measure in CAUSES),
    )


def _difference(both: pd.DataFrame, design: Design, measure: str, confidence: float) -> PromptDifference:
    if both.empty:
        return PromptDifference(measure, None, None, NO_DATA)
    weights = np.array([CAUSES[measure].get(cell, 0) / 2 for cell in CELLS])
    second = both[[f"{side}_second" for side in ANSWER_COLUMNS]].set_axis(ANSWER_COLUMNS, axis=1)
    before, after = (weights[ANSWERS.cells(frame)] for frame in (both, second))
    # Each pair is compared with itself. If the prompts change places, the interval is mirrored.
    found = estimate_difference(*split_change(before, after), design, confidence)
    difference = Measured(found.value, found.low, found.high, 2 * len(both))
    return PromptDifference(measure, float(before.mean()), float(after.mean()), difference)
