"""The readings of a model's output: labels, likelihoods, answers. `reading_of` finds the reading of a model."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CELLS, outcome_of
from bbnli_audit.core.values import Label, Pair, TextPair
from bbnli_audit.measures.readings.table import LETTERS, NOT_MEASURED, SIDES, Floats, Reading

NAMES = tuple(label.value for label in Label)
# (3, 3): the cell, as an index into CELLS, by the label of the pro side (rows) and of the anti side (columns).
_CELL_OF_LABELS = np.array([[CELLS.index(pro + anti) for anti in LETTERS] for pro in LETTERS])
OUTCOMES = np.array([outcome_of(cell).value for cell in CELLS], dtype=object)


class Labels(Reading):
    """NLI classifiers: each side of a pair gets one of three labels, with its probability."""

    name: ClassVar[str] = "labels"
    numbers: ClassVar[tuple[str, ...]] = tuple(f"{side}_{label}" for side in SIDES for label in NAMES)
    columns: ClassVar[tuple[str, ...]] = ("pro_label", "anti_label", "outcome", *numbers)
    answers: ClassVar[tuple[str, str, str]] = NAMES  # type: ignore[assignment]  # three labels
    preference: ClassVar[str] = "entailment_preference"

    def read(self, pro: Floats, anti: Floats) -> Mapping[str, Any]:
        names = np.array(NAMES, dtype=object)
        labels = {f"{side}_label": names[found.argmax(axis=1)] for side, found in zip(SIDES, (pro, anti), strict=True)}
        numbers = dict(zip(self.numbers, [*pro.T, *anti.T], strict=True))
        return {**labels, "outcome": classify(pd.DataFrame(labels)), **numbers}

    def cells(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        return label_cells(frame, ("pro_label", "anti_label"))

    def probabilities(self, frame: pd.DataFrame, side: str) -> Floats:
        return frame[[f"{side}_{name}" for name in NAMES]].to_numpy(dtype=np.float64)

    def strengths(self, frame: pd.DataFrame) -> Floats:
        """Return, for each pair, the probability of entailment on the pro side minus that on the anti side."""
        return np.asarray(frame["pro_entailment"] - frame["anti_entailment"], dtype=np.float64)

    def tell(self, pair: Mapping[Any, Any], side: str) -> str:
        label = pair[f"{side}_label"]
        return f"{label} {pair[f'{side}_{label}']:.2f}"


LABELS = Labels()
_PLACES = {name: place for place, name in enumerate(NAMES)}


def label_cells(frame: pd.DataFrame, columns: tuple[str, str]) -> NDArray[np.intp]:
    """Return the cells of two columns of labels. Refuse an unknown label: it must never be counted as neutral."""
    found = []
    for column in columns:
        labels = frame[column].tolist()
        codes = np.array([_PLACES.get(label, -1) for label in labels], dtype=np.intp)
        if (codes < 0).any():
            raise ValueError(f"{column} holds {labels[int(codes.argmin())]!r}, which is none of {', '.join(NAMES)}")
        found.append(codes)
    return np.asarray(_CELL_OF_LABELS[found[0], found[1]], dtype=np.intp)


def classify(frame: pd.DataFrame) -> "pd.Series[str]":
    """Give each pair exactly one outcome.

    The truth table in docs/metrics.md covers any two labels, so pro + anti + brittle is exactly the number of
    mispredictions.
    """
    return pd.Series(OUTCOMES[LABELS.cells(frame)], index=frame.index, name="outcome", dtype="str")


_SMALLEST = np.nextafter(0.0, 1.0)
_WORDS = np.array(["anti", "neither", "pro"], dtype=object)  # the likelier side: pro minus anti below 0, 0, above 0
# The likelier side counts as entailed, the other side as neutral. If both are equally likely, both count as neutral.
_CELL_OF_LIKELIER = {"pro": CELLS.index("EN"), "anti": CELLS.index("NE"), "neither": CELLS.index("NN")}


class Likelihood(Reading):
    """Language models without a prompt. Each side is read as its share of the sum of the pair's two likelihoods."""

    name: ClassVar[str] = "likelihood"
    numbers: ClassVar[tuple[str, ...]] = tuple(f"{side}_likelihood_share" for side in SIDES)
    columns: ClassVar[tuple[str, ...]] = ("likelier", *numbers)
    answers: ClassVar[tuple[str, str, str]] = ("likelier", "not likelier", "–")
    preference: ClassVar[str] = "token_preference"
    has_task: ClassVar[bool] = False
    instead: ClassVar[Mapping[str, str]] = {"pro_rate": preference}

    def ask(self, pair: Pair) -> tuple[TextPair, TextPair]:
        """Return each side of the pair together with the other side: the model compares the two."""
        pro, anti = " ".join(pair.pro), " ".join(pair.anti)
        return TextPair(pro, anti), TextPair(anti, pro)

    def read(self, pro: Floats, anti: Floats) -> Mapping[str, Any]:
        shares = {f"{side}_likelihood_share": found[:, 0] for side, found in zip(SIDES, (pro, anti), strict=True)}
        signs = np.sign(pro[:, 0] - anti[:, 0]).astype(np.intp)
        return {"likelier": _WORDS[signs + 1], **shares}

    def cells(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        return np.array([_CELL_OF_LIKELIER[word] for word in frame["likelier"]], dtype=np.intp)

    def probabilities(self, frame: pd.DataFrame, side: str) -> Floats:
        (other,) = set(SIDES) - {side}
        shares = [frame[f"{each}_likelihood_share"].to_numpy(dtype=np.float64) for each in (side, other)]
        return np.column_stack([*shares, np.zeros(len(frame))])

    def strengths(self, frame: pd.DataFrame) -> Floats:
        """Return differences of logarithms; near 0 and 1, plain differences would be lost in rounding."""
        pro, anti = (np.log(np.maximum(frame[name].to_numpy(dtype=np.float64), _SMALLEST)) for name in self.numbers)
        return np.asarray(pro - anti, dtype=np.float64)

    def tell(self, pair: Mapping[Any, Any], side: str) -> str:
        return f"{pair[f'{side}_likelihood_share']:.2f} of the two likelihoods"


LIKELIHOOD = Likelihood()

UNPARSED = "unparsed"
_YES_NO = ("yes", "no", UNPARSED)
_LABEL_OF = {name: name for name in NAMES} | dict(zip(_YES_NO, NAMES, strict=True))
ANSWER_COLUMNS = ("pro_answer", "anti_answer")


class Answers(Reading):
    """Language models that answer yes or no in words. A yes counts as entailed, a no as neutral.

    An answer that could not be read is never counted as a no. Its pair has no outcome and is not measured.
    """

    name: ClassVar[str] = "answers"
    numbers: ClassVar[tuple[str, ...]] = ("pro_yes", "pro_no", "anti_yes", "anti_no")
    columns: ClassVar[tuple[str, ...]] = (*ANSWER_COLUMNS, "outcome", *numbers)
    answers: ClassVar[tuple[str, str, str]] = ("yes", "no", "not read")
    preference: ClassVar[str] = LABELS.preference
    words: ClassVar[tuple[str, str, str]] = _YES_NO  # the pair table's word for each column of a prediction

    def is_unread(self, predictions: Floats) -> NDArray[np.bool_]:
        """Return which answers could not be read: for these, the third column is the largest."""
        return np.asarray(predictions.argmax(axis=1) == _YES_NO.index(UNPARSED), dtype=np.bool_)

    def read(self, pro: Floats, anti: Floats) -> Mapping[str, Any]:
        sides = dict(zip(ANSWER_COLUMNS, (pro, anti), strict=True))
        answers = {column: self._words_of(predictions) for column, predictions in sides.items()}
        cells = self.cells(pd.DataFrame(answers, dtype=object))
        outcomes = np.where(cells == NOT_MEASURED, "unread", OUTCOMES[cells])
        shares = [share for predictions in (pro, anti) for share in predictions.T[: len(self.numbers) // 2]]
        numbers = dict(zip(self.numbers, shares, strict=True))
        return {**answers, "outcome": pd.Series(outcomes, dtype="str"), **numbers}

    def _words_of(self, predictions: Floats) -> NDArray[np.object_]:
        words = np.array(self.words, dtype=object)[predictions.argmax(axis=1)]
        return np.where(self.is_unread(predictions), UNPARSED, words)

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


class LabelAnswers(Answers):
    """Language models that answer with one of the three labels, in words. They have all measures of classifiers.

    All three columns stand for labels, so an answer that could not be read is a row of three equal values.
    """

    name: ClassVar[str] = "label-answers"
    also: ClassVar[tuple[str, ...]] = (LABELS.name, ANSWERS.name)
    numbers: ClassVar[tuple[str, ...]] = LABELS.numbers
    columns: ClassVar[tuple[str, ...]] = (*ANSWER_COLUMNS, "outcome", *numbers)
    answers: ClassVar[tuple[str, str, str]] = LABELS.answers
    words: ClassVar[tuple[str, str, str]] = LABELS.answers

    def is_unread(self, predictions: Floats) -> NDArray[np.bool_]:
        return np.asarray((predictions == predictions[:, :1]).all(axis=1), dtype=np.bool_)

    def probabilities(self, frame: pd.DataFrame, side: str) -> Floats:
        return LABELS.probabilities(frame, side)

    def strengths(self, frame: pd.DataFrame) -> Floats:
        return LABELS.strengths(frame)


LABEL_ANSWERS = LabelAnswers()
READINGS: tuple[Reading, ...] = (LABELS, LIKELIHOOD, ANSWERS, LABEL_ANSWERS)


def find_unread(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which answers could not be read: (n_pairs, 2), the pro side first."""
    return np.asarray(frame[list(ANSWER_COLUMNS)] == UNPARSED, dtype=np.bool_)


def tell_answer(answer: str) -> str:
    return "not read" if answer == UNPARSED else answer


_BY_KIND: dict[str, Reading] = {
    "masked-lm": LIKELIHOOD,
    "causal-lm": LIKELIHOOD,
    "generative": ANSWERS,
    "generative-three-way": LABEL_ANSWERS,
}


def reading_of(kind: str) -> Reading:
    """Return the reading of a kind of model (`ModelInfo.kind`): labels for every kind that is not in the table."""
    return _BY_KIND.get(kind, LABELS)
