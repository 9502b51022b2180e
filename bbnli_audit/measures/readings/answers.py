"""Language models that answer yes or no in words. An answer that could not be read is its own answer, never a no."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.values import Pair, TextPair
from bbnli_audit.measures.readings.labels import LABELS, NAMES, OUTCOMES, label_cells
from bbnli_audit.measures.readings.table import NOT_MEASURED, Floats

UNPARSED = "unparsed"
_ANSWERS = np.array(["yes", "no", UNPARSED], dtype=object)
_LABEL_OF = dict(zip(_ANSWERS, NAMES, strict=True))
ANSWER_COLUMNS = ("pro_answer", "anti_answer")


class Answers:
    """A yes counts as entailed, a no as neutral. A pair with an unread answer has no outcome and is not measured."""

    name: ClassVar[str] = "answers"
    numbers: ClassVar[tuple[str, ...]] = ("pro_yes", "pro_no", "anti_yes", "anti_no")
    columns: ClassVar[tuple[str, ...]] = (*ANSWER_COLUMNS, "outcome", *numbers)
    answers: ClassVar[tuple[str, str, str]] = ("yes", "no", "not read")
    preference: ClassVar[str] = LABELS.preference
    has_task: ClassVar[bool] = True
    unread_column: ClassVar[int | None] = 2  # a yes/no answer is never a contradiction, so that column is free
    instead: ClassVar[Mapping[str, str]] = {}

    def ask(self, pair: Pair) -> tuple[TextPair, TextPair]:
        return pair.pro, pair.anti

    def read(self, pro: Floats, anti: Floats) -> Mapping[str, Any]:
        answers = {
            column: _ANSWERS[found.argmax(axis=1)] for column, found in zip(ANSWER_COLUMNS, (pro, anti), strict=True)
        }
        frame = pd.DataFrame(answers, dtype=object)
        cells = self.cells(frame)
        outcomes = np.where(cells == NOT_MEASURED, "unread", OUTCOMES[cells])
        shares = zip(self.numbers, (pro[:, 0], pro[:, 1], anti[:, 0], anti[:, 1]), strict=True)
        return {**answers, "outcome": pd.Series(outcomes, dtype="str"), **dict(shares)}

    def cells(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        is_read = ~find_unread(frame).any(axis=1)
        labels = pd.DataFrame({column: frame[column].map(_LABEL_OF) for column in ANSWER_COLUMNS})
        return np.where(is_read, label_cells(labels, ANSWER_COLUMNS), NOT_MEASURED)

    def probabilities(self, frame: pd.DataFrame, side: str) -> Floats:
        yes_no = frame[[f"{side}_yes", f"{side}_no"]].to_numpy(dtype=np.float64)
        is_unread = (frame[f"{side}_answer"] == UNPARSED).to_numpy(dtype=np.float64)
        return np.column_stack([yes_no, is_unread])

    def strengths(self, frame: pd.DataFrame) -> Floats:
        return np.asarray(frame["pro_yes"] - frame["anti_yes"], dtype=np.float64)

    def tell(self, pair: Mapping[Any, Any], side: str) -> str:
        return tell_answer(pair[f"{side}_answer"])


ANSWERS = Answers()


def find_unread(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Tell for both sides of each pair, (n_pairs, 2), whether the answer could not be read."""
    return np.asarray(frame[list(ANSWER_COLUMNS)] == UNPARSED, dtype=np.bool_)


def tell_answer(answer: str) -> str:
    return "not read" if answer == UNPARSED else answer
