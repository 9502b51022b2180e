"""The interface of a model to the rest of the program."""

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

# Names for annotations only, so that the modules that use them need not import numpy or torch.
Floats: TypeAlias = "NDArray[np.float64]"
Ids: TypeAlias = "NDArray[np.integer]"
Tensor: TypeAlias = "torch.Tensor"
Device: TypeAlias = "torch.device"


# What messages advise when outputs are not finite.
NOT_FINITE = "The weights may be damaged, or too large for the number type: look at the outputs in float32."


@dataclass(frozen=True, slots=True)
class Predictions:
    """Probabilities of texts: (n_texts, 3), with a row for each text and the columns in `Label` order.

    A model that does not give the three labels uses the columns in its own way. `measures/readings/` has a reading for
    each kind of model, which says how.
    """

    probabilities: Floats
    is_truncated: "NDArray[np.bool_]"
    # For each text, a hash of the tokens that remain after cutting. 0 means unknown; None means unknown for all texts.
    remains: "NDArray[np.uint64] | None" = None

    @classmethod
    def of(
        cls,
        rows: "Sequence[Sequence[float]] | Floats",
        is_truncated: Sequence[bool] | None = None,
        remains: Sequence[int] | None = None,
    ) -> "Predictions":
        """Make the arrays. By default, no text counts as truncated."""
        import numpy as np

        truncated = [False] * len(rows) if is_truncated is None else is_truncated
        left = None if remains is None else np.array(remains, dtype=np.uint64)
        return cls(np.array(rows, dtype=np.float64).reshape(-1, 3), np.array(truncated, dtype=np.bool_), left)


def hash_remains(ids: "Sequence[int] | Ids") -> int:
    """Hash the tokens that a model reads of a text. Texts that are the same to the model have equal hashes."""
    written = " ".join(map(str, ids)).encode()
    return int.from_bytes(blake2b(written, digest_size=8).digest(), "big") or 1


class Predictor(Protocol):
    """Predicts texts. It is not told the expected label, nor which side of its pair a text comes from."""

    @property
    def info(self) -> ModelInfo: ...

    def predict(self, texts: Sequence[TextPair]) -> Predictions: ...


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model that can be opened. If `is_content`, its fingerprint covers everything that decides its answers."""

    info: ModelInfo
    open: Callable[[], Predictor]
    is_content: bool = False
    check: Callable[[], None] = lambda: None  # raises if the model's files changed after they were hashed

    @classmethod
    def of(cls, predictor: Predictor) -> "ModelSource":
        return cls(predictor.info, lambda: predictor)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some of the texts that `plan` got.

    `rows` has the indices of these texts among all texts. `inputs` has what the model reads of each of these texts.
    """

    rows: tuple[int, ...]
    inputs: tuple[Any, ...]
    cost: int  # how much there is to compute, such as a number of tokens; used to estimate the time left

    def only(self, rows: Iterable[int]) -> "Batch":
        """Return a batch of these rows only. Another process predicts the batch's other rows, or has done so."""
        kept = set(rows)
        if len(kept) == len(self.rows):
            return self
        inputs = tuple(entry for row, entry in zip(self.rows, self.inputs, strict=True) if row in kept)
        cost = round(self.cost * len(kept) / len(self.rows))
        return Batch(tuple(row for row in self.rows if row in kept), inputs, cost)


@runtime_checkable
class BatchPredictor(Protocol):
    """A model that cuts texts into batches itself. Processes share, store and resume a pass batch by batch.

    `run` may yield batches in any order. It takes a batch from its argument only when that batch is about to start.
    """

    @abstractmethod
    def plan(self, texts: Sequence[TextPair]) -> list[Batch]: ...

    @abstractmethod
    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]: ...


def check_predictions(predictions: Predictions, n_texts: int, name: str) -> Predictions:
    """Refuse rows that are missing, not finite, or not a probability distribution."""
    import numpy as np

    probabilities = predictions.probabilities
    if probabilities.shape != (n_texts, 3):
        expected = f"expected ({n_texts}, 3), with columns entailment, neutral, contradiction"
        raise ModelError(f"{name} gave an array of shape {probabilities.shape} for {n_texts} texts; {expected}.")
    n_bad = n_texts - int(np.isfinite(probabilities).all(axis=1).sum())
    if n_bad:
        which = f"for {n_bad} of {n_texts} texts, so they have no label"
        raise ModelError(f"{name} gave values that are not finite (NaN or infinity) {which}.\n{NOT_FINITE}")
    if (probabilities < -1e-6).any() or (np.abs(probabilities.sum(axis=1) - 1) > 1e-3).any():
        raise ModelError(f"{name} gave rows that are not probabilities (negative, or sum not 1). Apply softmax first.")
    return predictions
