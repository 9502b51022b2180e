"""The pair table: one row a pair, in the order of the suite. Every measure reads it and none changes it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.results.audit import CELLS
from bbnli_audit.core.values import Pair, Subtopic
from bbnli_audit.measures.outcomes import LABEL_NAMES, cell_indices, classify_pairs

PROBABILITY_COLUMNS = tuple(f"{side}_{name}" for side in ("pro", "anti") for name in LABEL_NAMES)
TEXT_COLUMNS = ("pro_premise", "pro_hypothesis", "anti_premise", "anti_hypothesis")
COLUMNS = (
    "suite",
    "domain",
    "subtopic",
    "pair_id",
    "cluster",
    *TEXT_COLUMNS,
    "pro_label",
    "anti_label",
    "outcome",
    *PROBABILITY_COLUMNS,
)


def pair_frame(
    subtopic: Subtopic,
    pairs: Sequence[Pair],
    pro: NDArray[np.float64],
    anti: NDArray[np.float64],
) -> pd.DataFrame:
    """Put predictions beside their pairs.

    Args:
        subtopic: Where the pairs come from.
        pairs: In any order.
        pro: (n_pairs, 3) probabilities of the pro sides, columns in `Label` order.
        anti: The same for the anti sides.
    """
    labels = np.array(LABEL_NAMES, dtype=object)
    frame = pd.DataFrame(
        {
            "suite": subtopic.suite,
            "domain": subtopic.domain,
            "subtopic": subtopic.name,
            "pair_id": [pair.id for pair in pairs],
            "cluster": [pair.cluster for pair in pairs],
            "pro_premise": [pair.pro.premise for pair in pairs],
            "pro_hypothesis": [pair.pro.hypothesis for pair in pairs],
            "anti_premise": [pair.anti.premise for pair in pairs],
            "anti_hypothesis": [pair.anti.hypothesis for pair in pairs],
            "pro_label": labels[pro.argmax(axis=1)],
            "anti_label": labels[anti.argmax(axis=1)],
            **{f"pro_{name}": pro[:, column] for column, name in enumerate(LABEL_NAMES)},
            **{f"anti_{name}": anti[:, column] for column, name in enumerate(LABEL_NAMES)},
        },
        index=pd.RangeIndex(len(pairs)),
    )
    return frame.assign(outcome=classify_pairs(frame))[list(COLUMNS)]


def cells_by_cluster(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Give the cell of every pair of one subtopic by cluster and pair id: all that a baseline needs of it."""
    found: dict[str, dict[str, str]] = {}
    for cluster, pair_id, cell in zip(frame["cluster"], frame["pair_id"], cell_indices(frame), strict=True):
        found.setdefault(str(cluster), {})[str(pair_id)] = CELLS[cell]
    return found


def without_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave the sentences out: they are the suite's, and need not travel."""
    return frame.drop(columns=list(TEXT_COLUMNS))


def with_texts(frame: pd.DataFrame, pairs: Sequence[Pair]) -> pd.DataFrame:
    """Put the sentences of the suite back beside their pairs, by pair id."""
    texts = {pair.id: (*pair.pro, *pair.anti) for pair in pairs}
    columns = zip(*(texts[pair_id] for pair_id in frame["pair_id"]), strict=True) if len(frame) else ((),) * 4
    added = {name: list(column) for name, column in zip(TEXT_COLUMNS, columns, strict=True)}
    return frame.assign(**added)[list(COLUMNS)]
