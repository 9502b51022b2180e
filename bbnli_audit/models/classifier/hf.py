"""Checkpoints with a sequence-classification head, computed by torch.

The exact path: float32, inference mode, no padding, and near ties decided by a batch of one, so that the label of a
text never depends on what else is predicted.
"""

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.files import hash_file
from bbnli_audit.core.results.audit import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import CPU_TOKENS, GPU_TOKENS, predict_all, run_in_threads
from bbnli_audit.models.checkpoint import Checkpoint
from bbnli_audit.models.classifier.encoding import EncodedText, by_length, classify, stack
from bbnli_audit.models.classifier.labels import columns_of
from bbnli_audit.models.classifier.padding_free import PaddingFree, find_padding_free
from bbnli_audit.models.loading import WHOLE_MACHINE, Share, first_line, load_model, one_core_each, pick_device
from bbnli_audit.models.protocol import Batch, Predictions
from bbnli_audit.suites.probe import probe_items

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

_N_CHECKED = 6  # texts on which the padding-free pass is compared with the model's own


class HFPredictor:
    """A sequence classifier, loaded once."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        device: str = "auto",
        share: Share = WHOLE_MACHINE,
        info: ModelInfo | None = None,
    ) -> None:
        """Load a checkpoint.

        Args:
            checkpoint: What to load; its precision says in which number type.
            device: The value of --bbnli-device.
            share: Which part of the machine this process has.
            info: What the checkpoint is, if its files have been hashed already.
        """
        self._model, self._encoder = load_model(checkpoint.name, checkpoint.folder)
        import torch

        self._torch = torch
        self._device = pick_device(device, share)
        self._model.to(self._device, getattr(torch, checkpoint.precision.dtype)).eval()
        self._columns = columns_of(checkpoint.labels)
        self.info = info or checkpoint.info(hash_file)
        self._is_on_cpu = self._device.type == "cpu"
        self._n_threads = max(1, torch.get_num_threads() // share.count) if self._is_on_cpu else 1
        self._padding_free = self._find_padding_free() if self._is_on_cpu else None

    def _find_padding_free(self) -> PaddingFree | None:
        texts = self._encoder.encode([item.text for item in probe_items()[:_N_CHECKED]])
        types = [text.types for text in texts if text.types is not None]
        with one_core_each(self._is_on_cpu):
            return find_padding_free(self._model, [text.ids for text in texts], types or None)

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        return predict_all(self, texts)

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        n_tokens = CPU_TOKENS if self._is_on_cpu else GPU_TOKENS
        return self._encoder.plan(texts, n_tokens, is_padding_free=self._padding_free is not None)

    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]:
        """Run batches, on a CPU as many at once as there are cores: one core a batch loses nothing to waiting."""
        with one_core_each(self._is_on_cpu):
            yield from run_in_threads(self.forward, batches, self._n_threads)

    def forward(self, batch: Batch) -> Predictions:
        """Predict one batch. Threads may call it at the same time."""
        return classify(self._logits, batch.inputs, self._columns)

    def _logits(self, texts: Sequence[EncodedText]) -> "NDArray[np.float64]":
        try:
            with self._torch.inference_mode():
                logits = self._forward_padding_free(texts) if self._is_fit(texts) else self._forward_own(texts)
                found: NDArray[np.float64] = logits.double().cpu().numpy()
                return found
        except (RuntimeError, IndexError) as exc:  # out of memory, ids the embeddings do not have
            shape = f"{len(texts)} texts of up to {max(len(text.ids) for text in texts)} tokens"
            raise ModelError(f"{self.info.name} broke on a batch of {shape}: {first_line(exc)}.") from exc

    def _is_fit(self, texts: Sequence[EncodedText]) -> bool:
        """Say whether the padding-free pass computes the same as the model's own forward."""
        if self._padding_free is None:
            return False
        # A text that spells out RoBERTa's padding token gets other positions in the model's own forward.
        padding_id = self._padding_free.padding_id
        return padding_id is None or not any((text.ids == padding_id).any() for text in texts)

    def _forward_padding_free(self, texts: Sequence[EncodedText]) -> "torch.Tensor":
        assert self._padding_free is not None
        types = [text.types for text in texts if text.types is not None]
        return self._padding_free([text.ids for text in texts], types or None)

    def _forward_own(self, texts: Sequence[EncodedText]) -> "torch.Tensor":
        logits = self._torch.empty(len(texts), len(self.info.labels), dtype=self._torch.float64)
        for rows in by_length(texts):
            stacked = stack([texts[row] for row in rows])
            inputs = {key: self._torch.from_numpy(array).to(self._device) for key, array in stacked.items()}
            logits[rows] = self._model(**inputs).logits[: len(rows)].double().cpu()
        return logits
