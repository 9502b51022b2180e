"""What a model is to the rest of the program."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Predictions:
    """Probabilities of texts: (n_texts, 3), columns in `Label` order, rows in the order of the texts."""

    probabilities: "NDArray[np.float64]"
    is_truncated: "NDArray[np.bool_]"


class Predictor(Protocol):
    """Labels texts. Never told the expected label, nor which side of a pair a text is."""

    @property
    def info(self) -> ModelInfo: ...

    def predict(self, texts: Sequence[TextPair]) -> Predictions: ...


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model that can be opened. `is_content`: its fingerprint covers everything that decides its answers."""

    info: ModelInfo
    open: Callable[[], Predictor]
    is_content: bool = False

    @classmethod
    def of(cls, predictor: Predictor) -> "ModelSource":
        return cls(predictor.info, lambda: predictor)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some of the texts of a pass, ready for the model: `rows` says which, `inputs` holds one entry for each."""

    rows: tuple[int, ...]
    inputs: tuple[Any, ...]
    cost: int  # in tokens, from which the time left is estimated

    def only(self, rows: Iterable[int]) -> "Batch":
        """Leave out what another process has predicted in the meantime."""
        kept = set(rows)
        if len(kept) == len(self.rows):
            return self
        inputs = tuple(entry for row, entry in zip(self.rows, self.inputs, strict=True) if row in kept)
        cost = round(self.cost * len(kept) / len(self.rows))
        return Batch(tuple(row for row in self.rows if row in kept), inputs, cost)


@runtime_checkable
class BatchPredictor(Protocol):
    """A model that cuts texts into batches itself, so that a pass can divide, store and resume them.

    `run` may finish batches in any order, and takes a batch from its argument only when it is about to start it.
    """

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]: ...

    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]: ...


def check_predictions(predictions: Predictions, n_texts: int, name: str) -> Predictions:
    """Refuse rows that are missing, not finite, or not a probability distribution."""
    import numpy as np

    probabilities = predictions.probabilities
    if probabilities.shape != (n_texts, 3):
        raise ModelError(
            f"{name} gave an array of shape {probabilities.shape} for {n_texts} texts; expected ({n_texts}, 3): "
            "one row for each text, columns entailment, neutral, contradiction."
        )
    is_finite = np.isfinite(probabilities).all(axis=1)
    if not is_finite.all():
        raise ModelError(
            f"{name} gave values that are not finite (NaN or infinity) for {n_texts - int(is_finite.sum())} of "
            f"{n_texts} texts, so they have no label.\n"
            "The weights may be damaged, or too large for the number type: load the checkpoint in float32 and look "
            "at its outputs."
        )
    if (probabilities < -1e-6).any() or (np.abs(probabilities.sum(axis=1) - 1) > 1e-3).any():
        raise ModelError(
            f"{name} gave rows that are not probabilities (negative, or not adding up to 1). Apply softmax first."
        )
    return predictions
