"""The code that all classifiers share. It turns texts into tokens and batches, and logits into probabilities."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models import batches
from bbnli_audit.models.classifier.padding_free import PaddingFree
from bbnli_audit.models.explanation import show_tokens
from bbnli_audit.models.labels import columns_of
from bbnli_audit.models.protocol import Batch, Floats, Ids, Predictions, hash_remains
from bbnli_audit.suites.probe import probe_items

# Rounding changes a probability by a few millionths at most. If the probabilities of the two best labels differ by less
# than this, the text is predicted again in a batch of its own.
NEAR_TIE = 1e-4
# A faster path is checked on _N_PROBED texts, and on one long text that is made of _N_JOINED premises.
_N_PROBED, _N_JOINED = 6, 16


class EncodedText(NamedTuple):
    ids: Ids
    types: "Ids | None"
    is_truncated: bool
    remains: int = 0  # as in `Predictions`


class TextEncoder:
    """A tokenizer that knows how many tokens its model takes."""

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length

    def encode(self, texts: Sequence[TextPair]) -> list[EncodedText]:
        return [found for some in batches.chunks(texts, batches.TEXTS_AT_ONCE) for found in self._encode(some)]

    def _encode(self, texts: Sequence[TextPair]) -> Iterator[EncodedText]:
        import numpy as np

        premises, hypotheses = ([text[side] for text in texts] for side in (0, 1))
        together = self._tokenizer(premises, hypotheses, verbose=False, return_attention_mask=False)
        for row, ids in enumerate(together["input_ids"]):
            found = {key: values[row] for key, values in together.items()}
            is_truncated = len(ids) > self._max_length
            if is_truncated:
                # The longer sentence is cut first, usually the premise. So the group in the hypothesis is kept.
                found = self._tokenizer(*texts[row], truncation=True, max_length=self._max_length)
            types = found.get("token_type_ids")
            yield EncodedText(
                np.array(found["input_ids"], dtype=np.int32),
                None if types is None else np.array(types, dtype=np.int32),
                is_truncated,
                hash_remains(found["input_ids"]),
            )

    def plan(self, texts: Sequence[TextPair], n_tokens: int, *, is_padding_free: bool) -> list[Batch]:
        """Encode texts and cut them into batches.

        Batches for the padding-free pass may have texts of several lengths. All other batches have texts of one length.
        """
        encoded = self.encode(texts)
        lengths = [len(text.ids) for text in encoded]
        cut = batches.cut_by_tokens if is_padding_free else batches.cut_by_length
        return [
            Batch(tuple(rows), tuple(encoded[row] for row in rows), sum(lengths[row] for row in rows))
            for rows in cut(lengths, n_tokens)
        ]

    def show(self, text: EncodedText) -> list[tuple[str, str]]:
        """Show a text as the model reads it."""
        segments = "none" if text.types is None else " ".join(map(str, text.types))
        cut = f"the text is cut to the model's {self._max_length} tokens" if text.is_truncated else "no"
        return [("tokens", show_tokens(self._tokenizer, text.ids.tolist())), ("segments", segments), ("cut off", cut)]

    def name_tokens(self, text: EncodedText, places: Sequence[int]) -> str:
        """Name the tokens at these positions of a text."""
        if len(places) == len(text.ids):
            return "all tokens"
        names = self._tokenizer.convert_ids_to_tokens([int(text.ids[place]) for place in places])
        told = ", ".join(f"{name} (token {place + 1})" for name, place in zip(names, places, strict=True))
        return f"{told} of {len(text.ids)}"


def by_length(texts: Sequence[EncodedText]) -> Iterator[list[int]]:
    """Group rows by the length of their texts."""
    rows_of: dict[int, list[int]] = {}
    for row, text in enumerate(texts):
        rows_of.setdefault(len(text.ids), []).append(row)
    yield from rows_of.values()


def probe_texts() -> list[TextPair]:
    """Return texts of several lengths to check a pass on; the last text is long."""
    texts = [item.text for item in probe_items()]
    long = TextPair(" ".join(text.premise for text in texts[:_N_JOINED]), texts[0].hypothesis)
    return [*texts[:_N_PROBED], long]


def stack(texts: Sequence[EncodedText], min_rows: int = batches.MIN_ROWS) -> dict[str, Ids]:
    """Return a model's inputs, by argument name, for texts of one length. Repeat the last text to fill `min_rows`."""
    import numpy as np

    filled = batches.fill_up(texts, min_rows)
    arrays: dict[str, Ids] = {"input_ids": np.stack([text.ids for text in filled]).astype(np.int64)}
    arrays["attention_mask"] = np.ones_like(arrays["input_ids"])
    if filled[0].types is not None:
        arrays["token_type_ids"] = np.stack([text.types for text in filled if text.types is not None]).astype(np.int64)
    return arrays


class Classifier(batches.LocalPredictor):
    padding_free: PaddingFree | None = None  # a pass that takes texts of several lengths in one batch

    def __init__(self, info: ModelInfo, encoder: TextEncoder) -> None:
        self.info = info
        self._encoder = encoder
        self._columns = columns_of(info.labels)

    @property
    @abstractmethod
    def path(self) -> str:
        """Say in words how the logits are computed."""

    @abstractmethod
    def logits(self, texts: Sequence[EncodedText]) -> Floats:
        """Return the logits of texts: (n_texts, n_outputs), columns in the checkpoint's order."""

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        n_tokens = batches.tokens_at_once(self.is_on_cpu)
        return self._encoder.plan(texts, n_tokens, is_padding_free=self.padding_free is not None)

    def forward(self, batch: Batch) -> Predictions:
        """Predict texts together. Predict each near tie again, alone, so that no label depends on the batch."""
        import numpy as np

        texts = batch.inputs
        probabilities = to_probabilities(self.logits(texts), self._columns)
        if len(texts) > 1:
            two_best = np.sort(probabilities, axis=1)[:, -2:]
            for row in np.flatnonzero(two_best[:, 1] - two_best[:, 0] < NEAR_TIE).tolist():
                probabilities[row] = to_probabilities(self.logits([texts[row]]), self._columns)
        return Predictions.of(probabilities, [text.is_truncated for text in texts], [text.remains for text in texts])


def to_probabilities(logits: Floats, columns: Sequence[int | None]) -> Floats:
    """Return the softmax, in `Label` order. For each label, `columns` has the index of its output in the checkpoint."""
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):  # `check_predictions` refuses what is not finite
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax = exponentials / exponentials.sum(axis=1, keepdims=True)
    zeros = np.zeros(len(softmax))
    return np.column_stack([zeros if column is None else softmax[:, column] for column in columns])
