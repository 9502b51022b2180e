"""Answers that could not be read: a rate of their own, never folded into an answer."""

from dataclasses import replace

import pandas as pd

from bbnli_audit.core.results.audit import Measure
from bbnli_audit.core.values import Label
from bbnli_audit.measures.rates import Measured, cluster_codes, measure_pairs
from bbnli_audit.measures.statistics.intervals import estimate_means

UNPARSED_RATE = "unparsed_rate"


def find_unparsed(frame: pd.DataFrame) -> pd.DataFrame:
    """Tell of both sides of each pair whether the answer could not be read."""
    return frame[["pro_label", "anti_label"]] == Label.CONTRADICTION.value


def measure_parsed(
    frame: pd.DataFrame, confidence: float, families: tuple[str, ...] = ()
) -> tuple[pd.DataFrame, Measured, int]:
    """Measure the pairs of a model that answers yes or no in words, both of whose answers could be read.

    In its pair table, contradiction stands for an answer that could not be read (`results.UNPARSED`).

    Returns:
        The pairs that were measured, their measures with the rate of unreadable answers over all samples, and the
        number of those.
    """
    is_unparsed = find_unparsed(frame)
    parsed = frame[~is_unparsed.any(axis=1)].reset_index(drop=True)
    measured = measure_pairs(parsed, confidence, families)
    if frame.empty:
        return parsed, measured, 0
    (estimate,) = estimate_means(is_unparsed.mean(axis=1), cluster_codes(frame), confidence)
    measure = Measure(estimate.value, estimate.low, estimate.high, 2 * len(frame))
    with_rate = replace(
        measured,
        measures={**measured.measures, UNPARSED_RATE: measure},
        estimates={**measured.estimates, UNPARSED_RATE: estimate},
    )
    return parsed, with_rate, int(is_unparsed.to_numpy().sum())
