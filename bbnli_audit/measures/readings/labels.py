"""NLI classifiers: each side of a pair gets one of three labels, with its probability."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CELLS, outcome_of
from bbnli_audit.core.values import Label, Pair, TextPair
from bbnli_audit.measures.readings.table import SIDES, Floats

NAMES = tuple(label.value for label in Label)
_LETTERS = "".join(label.letter for label in Label)
# (3, 3): the cell of each combination of labels, pro side first, as an index into CELLS.
_CELL_OF = np.array([[CELLS.index(pro + anti) for anti in _LETTERS] for pro in _LETTERS])
OUTCOMES = np.array([outcome_of(cell).value for cell in CELLS], dtype=object)


class Labels:
    name: ClassVar[str] = "labels"
    numbers: ClassVar[tuple[str, ...]] = tuple(f"{side}_{label}" for side in SIDES for label in NAMES)
    columns: ClassVar[tuple[str, ...]] = ("pro_label", "anti_label", "outcome", *numbers)
    answers: ClassVar[tuple[str, str, str]] = NAMES  # type: ignore[assignment]  # three labels
    preference: ClassVar[str] = "entailment_preference"
    has_task: ClassVar[bool] = True
    unread_column: ClassVar[int | None] = None
    instead: ClassVar[Mapping[str, str]] = {}

    def ask(self, pair: Pair) -> tuple[TextPair, TextPair]:
        return pair.pro, pair.anti

    def read(self, pro: Floats, anti: Floats) -> Mapping[str, Any]:
        names = np.array(NAMES, dtype=object)
        labels = {f"{side}_label": names[found.argmax(axis=1)] for side, found in zip(SIDES, (pro, anti), strict=True)}
        return {
            **labels,
            "outcome": classify(pd.DataFrame(labels)),
            **dict(zip(self.numbers, [*pro.T, *anti.T], strict=True)),
        }

    def cells(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        return label_cells(frame, ("pro_label", "anti_label"))

    def probabilities(self, frame: pd.DataFrame, side: str) -> Floats:
        return frame[[f"{side}_{name}" for name in NAMES]].to_numpy(dtype=np.float64)

    def strengths(self, frame: pd.DataFrame) -> Floats:
        """Return how much more entailed each pro side is."""
        return np.asarray(frame["pro_entailment"] - frame["anti_entailment"], dtype=np.float64)

    def tell(self, pair: Mapping[Any, Any], side: str) -> str:
        label = pair[f"{side}_label"]
        return f"{label} {pair[f'{side}_{label}']:.2f}"


LABELS = Labels()


def label_cells(frame: pd.DataFrame, columns: tuple[str, str]) -> NDArray[np.intp]:
    """Return the cells of two columns of labels.

    Raises:
        ValueError: for a label that is none of the three; a wrong label must never be counted as neutral.
    """
    found = []
    for column in columns:
        codes = pd.Index(NAMES).get_indexer(pd.Index(frame[column]))
        if (codes < 0).any():
            wrong = frame[column][codes < 0].iloc[0]
            raise ValueError(f"{column} holds {wrong!r}, which is none of {', '.join(NAMES)}")
        found.append(codes)
    return np.asarray(_CELL_OF[found[0], found[1]], dtype=np.intp)


def classify(frame: pd.DataFrame) -> "pd.Series[str]":
    """Give each pair exactly one outcome.

    The truth table is in docs/metrics.md. It is total: any two labels lead to one outcome, which is why
    pro + anti + brittle is the misprediction count and not merely close to it.
    """
    return pd.Series(OUTCOMES[LABELS.cells(frame)], index=frame.index, name="outcome", dtype="str")
