"""Checkpoints with a sequence-classification head, computed by torch.

With float32 (the default), this is the reference for faster paths. Nothing is padded. A text whose two best labels are
nearly tied is predicted again, alone. So the label of a text never depends on the other texts of its batch.
"""

from collections.abc import Sequence
from typing import Any

from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import MIN_ROWS
from bbnli_audit.models.checkpoint import Checkpoint
from bbnli_audit.models.classifier.classify import (
    Classifier,
    EncodedText,
    TextEncoder,
    by_length,
    probe_texts,
    stack,
    to_probabilities,
)
from bbnli_audit.models.classifier.onnx import OnnxPredictor
from bbnli_audit.models.classifier.padding_free import PaddingFree, find_padding_free
from bbnli_audit.models.explanation import Explanation, find_pooled
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.labels import THREE_LABELS
from bbnli_audit.models.loading import WHOLE_MACHINE, Share, load_classifier, one_core_each, place, telling_breaks
from bbnli_audit.models.protocol import Floats, Ids, Tensor


class HFPredictor(Classifier):
    def __init__(self, checkpoint: Checkpoint, device: str = "auto", share: Share = WHOLE_MACHINE) -> None:
        self._model, tokenizer, max_length = load_classifier(checkpoint.info.name, checkpoint.folder)
        import torch

        self._torch = torch
        self._device, self.n_threads = place(self._model, device, share, checkpoint.info.dtype)
        self.is_on_cpu = self._device.type == "cpu"
        super().__init__(checkpoint.info, TextEncoder(tokenizer, max_length))
        self._copies = FreshCopies(self._model)
        self._find_state()
        self.padding_free = self.find_padding_free() if self.is_on_cpu and not self.has_state else None

    @property
    def has_state(self) -> bool:
        """Whether the model carries state from one text to the next. If so, each batch gets a fresh copy."""
        return self._copies.has_state

    @property
    def path(self) -> str:
        if self.has_state:
            return "torch, a fresh copy of the model for each batch of one length: it keeps something from texts"
        how = "generic: batches of one length" if self.padding_free is None else "padding-free: texts side by side"
        return f"torch, {how}"

    def explain(self, text: TextPair) -> Explanation:
        """Show how a text is read, and its probabilities: as in a pass, and computed alone with a fresh model."""
        [encoded] = self._encoder.encode([text])
        model = self._copies.make()
        inputs = {key: self._torch.from_numpy(array).to(self._device) for key, array in stack([encoded], 1).items()}
        pooled = find_pooled(model, inputs)
        read = "not found" if pooled is None else self._encoder.name_tokens(encoded, pooled)
        lines = [*self._encoder.show(encoded), ("the head reads", read), ("path", self.path)]
        ours, plain = self.predict([text]).probabilities[0].tolist(), self.plain([text])[0].tolist()
        return Explanation(lines, THREE_LABELS, ours, plain)

    def _find_state(self) -> None:
        short, *_, long = self._encoder.encode(probe_texts())
        with one_core_each(self.is_on_cpu), self._torch.inference_mode():
            self._copies.find_state(lambda model: [self._forward(model, [text], 1) for text in (short, long)])

    def find_padding_free(self) -> PaddingFree | None:
        with one_core_each(self.is_on_cpu):
            return find_padding_free(self._model, *_columns(self._encoder.encode(probe_texts())))

    def beside_plain(self, texts: Sequence[TextPair]) -> tuple[Floats, Floats]:
        """Compute a short text, a long text and the given ones: in a pass, and each alone with a fresh model.

        Before the pass, predict the short text by itself. If the model carries state from this text into the pass, the
        two results differ.
        """
        short, *_, long = probe_texts()
        checked = [short, long, *texts]
        self.predict([short])
        return self.predict(checked).probabilities, self.plain(checked)

    def plain(self, texts: Sequence[TextPair]) -> Floats:
        """Compute each text alone, with a fresh model: (n_texts, 3)."""
        import numpy as np

        with one_core_each(self.is_on_cpu), self._torch.inference_mode():
            rows = [self._forward(self._copies.make(), [text], 1)[0] for text in self._encoder.encode(texts)]
        return to_probabilities(np.stack([row.cpu().numpy() for row in rows]), self._columns)

    def logits(self, texts: Sequence[EncodedText]) -> Floats:
        lengths = [len(text.ids) for text in texts]
        with telling_breaks(self.info.name, "texts", lengths), self._torch.inference_mode():
            fast = self._padding_free_for(texts)
            logits = self._forward_own(texts) if fast is None else fast(*_columns(texts))
            found: Floats = logits.double().cpu().numpy()
            return found

    def _padding_free_for(self, texts: Sequence[EncodedText]) -> PaddingFree | None:
        """Return the padding-free pass, or None if it cannot be used for these texts."""
        if self.padding_free is None:
            return None
        # RoBERTa's forward skips padding tokens when it numbers positions, and the padding-free pass does not. So a
        # batch goes through the model's own forward if one of its texts contains the padding token.
        padding_id = self.padding_free.padding_id
        is_unlike = padding_id is not None and any((text.ids == padding_id).any() for text in texts)
        return None if is_unlike else self.padding_free

    def _forward_own(self, texts: Sequence[EncodedText]) -> Tensor:
        logits = self._torch.empty(len(texts), len(self.info.labels), dtype=self._torch.float64)
        for rows in by_length(texts):
            found = self._forward(self._copies.for_use(), [texts[row] for row in rows])
            logits[rows] = found[: len(rows)].cpu()
        return logits

    def _forward(self, model: Any, texts: Sequence[EncodedText], min_rows: int = MIN_ROWS) -> Tensor:
        stacked = stack(texts, min_rows)
        inputs = {key: self._torch.from_numpy(array).to(self._device) for key, array in stacked.items()}
        found: Tensor = model(**inputs).logits.double()
        return found


def _columns(texts: Sequence[EncodedText]) -> tuple[list[Ids], list[Ids] | None]:
    return [text.ids for text in texts], [text.types for text in texts if text.types is not None] or None


def open_classifier(checkpoint: Checkpoint, device: str, share: Share) -> Classifier:
    """Load a checkpoint in this process, with torch or with ONNX Runtime."""
    if checkpoint.info.backend == "onnx":
        return OnnxPredictor(checkpoint, share)
    return HFPredictor(checkpoint, device, share)
