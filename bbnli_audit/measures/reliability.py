"""Estimates whether other wordings would give the same result: split-half reliability over templates, by suite.

The hypotheses of each subtopic are split into two halves, each measure is computed on both, and the halves are
correlated over the subtopics. The names of the templates decide the splits, so there are no random numbers. The
definition is in docs/metrics.md.
"""

from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.core.results.rows import Reliability
from bbnli_audit.measures.readings.table import Floats, PairTable
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.measures.statistics.design import hypotheses_of

N_SPLITS = 20
FEWEST_SUBTOPICS = 4  # a correlation over three points means nothing
_SAME = 1e-12  # smaller differences between rates come from rounding


def measure_reliability(suite: str, table: PairTable) -> tuple[Reliability, ...]:
    """Measure how alike two halves of a suite's hypotheses are, from the pairs of all its subtopics.

    The result is empty if fewer than four subtopics have two or more hypotheses. A measure that is the same in all
    subtopics is left out.
    """
    table, reading = table.measured, table.reading
    # A model that is read by its likelihoods has no lean and no causes of error, only `token_preference`.
    names = ["lean", *CAUSES] if reading.has_task else [reading.preference]
    functions = [find_measure(name).pair_values for name in names]
    values = np.column_stack([function(table) for function in functions if function is not None])
    clusters = table.frame["cluster"].to_numpy(dtype=object)
    found = [split_means(values[rows], clusters[rows]) for rows in table.design.rows]
    halves = np.array([each for each in found if each is not None])
    if len(halves) < FEWEST_SUBTOPICS:
        return ()
    correlations = correlate_halves(halves[:, 0], halves[:, 1])  # (n_splits, n_measures)
    varies = np.ptp(halves, axis=(0, 1, 2)) > _SAME
    return tuple(
        Reliability(suite, name, len(halves), float(correlation), float(step_up(correlation)))
        for name, correlation, is_told in zip(names, correlations.mean(axis=0), varies, strict=True)
        if is_told
    )


def split_templates(names: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Split templates into halves in N_SPLITS ways: (n_templates, N_SPLITS), True for the second half.

    For each split the templates are ordered by a hash of their names; every second template goes into the second half.
    """
    order = np.argsort(names)  # sorted first, so that the order is fixed even for equal hashes
    digests = [shake_256(str(name).encode()).digest(8 * N_SPLITS) for name in names[order]]
    keys = np.frombuffer(b"".join(digests), dtype=">u8").reshape(len(names), N_SPLITS)
    places = np.empty(keys.shape, dtype=np.intp)
    places[order] = keys.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return np.asarray(places % 2 == 1, dtype=np.bool_)


def split_means(values: Floats, clusters: NDArray[np.object_]) -> Floats | None:
    """Return the mean of each measure in each half of a subtopic: (2, N_SPLITS, n_measures).

    `values` are (n_pairs, n_measures). A premise can be in both halves. Return None if there is only one hypothesis.
    """
    names, codes = np.unique(hypotheses_of(clusters), return_inverse=True)
    if len(names) < 2:
        return None
    is_second = split_templates(names)[codes].astype(np.float64)
    return np.stack([half.T @ values / half.sum(axis=0)[:, np.newaxis] for half in (1.0 - is_second, is_second)])


def correlate_halves(first: Floats, second: Floats) -> Floats:
    """Return Pearson's correlation over the first axis. It is 0 where a half never varies."""
    one, other = first - first.mean(axis=0), second - second.mean(axis=0)
    size = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    found = np.divide((one * other).sum(axis=0), size, out=np.zeros_like(size), where=size > _SAME)
    return np.asarray(np.clip(found, -1.0, 1.0), dtype=np.float64)


def step_up(correlation: float) -> float:
    """Return the reliability of the whole from the correlation of its halves (Spearman 1910; Brown 1910).

    The sign is kept and the formula applied to the size of the correlation, so the result lies within -1 and 1.
    """
    return 2.0 * correlation / (1.0 + abs(correlation))
