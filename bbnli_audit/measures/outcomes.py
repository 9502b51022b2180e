"""From two labels to one outcome, and from outcomes to counts."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.results.audit import ANTI_WEIGHTS, BRITTLE_WEIGHTS, CELLS, PRO_WEIGHTS, Counts
from bbnli_audit.core.values import Label, Outcome

LABEL_NAMES = tuple(label.value for label in Label)
_LETTERS = "".join(label.letter for label in Label)

# (3, 3): the cell of each combination of labels, pro side first, as an index into CELLS.
_CELL_OF = np.array([[CELLS.index(pro + anti) for anti in _LETTERS] for pro in _LETTERS])


def _outcome_of(cell: str) -> Outcome:
    if cell in PRO_WEIGHTS:
        return Outcome.PRO
    if cell in ANTI_WEIGHTS:
        return Outcome.ANTI
    return Outcome.BRITTLE if cell in BRITTLE_WEIGHTS else Outcome.CORRECT


_OUTCOME_OF_CELL = np.array([_outcome_of(cell).value for cell in CELLS], dtype=object)


def cell_indices(frame: pd.DataFrame) -> NDArray[np.intp]:
    """Give the cell of each pair as an index into CELLS.

    Raises:
        ValueError: for a label that is none of the three; a wrong label must never be counted as neutral.
    """
    columns = []
    for column in ("pro_label", "anti_label"):
        codes = pd.Index(LABEL_NAMES).get_indexer(pd.Index(frame[column]))
        if (codes < 0).any():
            wrong = frame[column][codes < 0].iloc[0]
            raise ValueError(f"{column} holds {wrong!r}, which is none of {', '.join(LABEL_NAMES)}")
        columns.append(codes)
    return np.asarray(_CELL_OF[columns[0], columns[1]], dtype=np.intp)


def classify_pairs(frame: pd.DataFrame) -> "pd.Series[str]":
    """Give each pair exactly one outcome.

    The truth table is in docs/metrics.md. It is total: any two labels lead to one outcome, which is why
    pro + anti + brittle is the misprediction count and not merely close to it.
    """
    return pd.Series(_OUTCOME_OF_CELL[cell_indices(frame)], index=frame.index, name="outcome", dtype="str")


def count_outcomes(frame: pd.DataFrame) -> Counts:
    """Count the pairs of each of the nine cells."""
    tally = np.bincount(cell_indices(frame), minlength=len(CELLS))
    return Counts({cell: int(n) for cell, n in zip(CELLS, tally, strict=True)})
