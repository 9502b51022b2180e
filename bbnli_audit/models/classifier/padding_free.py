"""Runs the forward pass of BERT, RoBERTa and their relatives without padding, on a CPU.

The texts of a batch are joined end to end. Linear layers run over all tokens at once. Attention runs over texts of one
length at a time. The last layer computes only the first token of each text, because the head reads no other token. All
modules are the model's own. The logits of a text are the same to the last bit whatever else is in its batch, because
matrix products of more than a few rows treat all rows alike (docs/decisions/0007-inference.md). The pass is checked
against the model's own forward when the model is loaded. We do not use transformers' packed inputs: on a CPU they build
one square mask over the whole batch.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from bbnli_audit.models.batches import fill_up
from bbnli_audit.models.protocol import Ids, Tensor

# Logits may differ from those of the model's own forward by rounding only.
_TOLERANCE = 1e-4


class PaddingFree:
    """Runs an encoder whose modules are laid out like BERT's."""

    def __init__(self, model: Any) -> None:
        base = model.base_model
        self._embeddings = base.embeddings
        self._layers = list(base.encoder.layer)
        self._pooler = getattr(base, "pooler", None)
        self._classifier = model.classifier
        self._n_heads = self._layers[0].attention.self.num_attention_heads
        # RoBERTa's positions start after its padding index.
        self.padding_id = getattr(self._embeddings, "padding_idx", None)
        self._first_position = 0 if self.padding_id is None else self.padding_id + 1

    def __call__(self, ids: Sequence[Ids], types: Sequence[Ids] | None) -> Tensor:
        """Return the logits of texts. Attention handles neighbouring texts of one length together."""
        import numpy as np
        import torch

        lengths = [len(text) for text in ids]
        positions = np.concatenate([np.arange(length) for length in lengths]) + self._first_position
        hidden = self._embeddings(
            input_ids=_row(ids),
            position_ids=torch.from_numpy(positions)[None],
            token_type_ids=_row(types) if types else None,
        )[0]
        first_tokens = torch.tensor(fill_up(np.cumsum([0, *lengths[:-1]]).tolist()))
        groups = [(length, len(list(same))) for length, same in groupby(lengths)]
        for layer in self._layers[:-1]:
            hidden = _finish(layer, self._attend(*_project(layer, hidden, hidden), groups), hidden)
        layer = self._layers[-1]
        first = hidden[first_tokens]
        query, key, value = _project(layer, first, hidden)
        context = torch.zeros_like(query)
        context[: len(lengths)] = self._attend(query[: len(lengths)], key, value, groups, n_queries=1)
        first = _finish(layer, context, first)[:, None]
        if self._pooler is not None:
            first = self._pooler(first)
        logits: torch.Tensor = self._classifier(first)
        return logits[: len(lengths)]

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, groups: Sequence[tuple[int, int]], n_queries: int | None = None
    ) -> Tensor:
        """Attend within each text. A text has `n_queries` queries, or by default one for each of its tokens."""
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        context = torch.empty_like(query)
        q_start = k_start = 0
        for length, n_texts in groups:
            n_each = n_queries or length
            q_end, k_end = q_start + n_texts * n_each, k_start + n_texts * length
            queries, contexts = (x[q_start:q_end].view(n_texts, n_each, self._n_heads, -1) for x in (query, context))
            keys, values = (x[k_start:k_end].view(n_texts, length, self._n_heads, -1) for x in (key, value))
            queries, keys, values = (x.transpose(1, 2) for x in (queries, keys, values))
            contexts.copy_(scaled_dot_product_attention(queries, keys, values).transpose(1, 2))
            q_start, k_start = q_end, k_end
        return context


def _row(parts: Sequence[Ids]) -> Tensor:
    import numpy as np
    import torch

    return torch.from_numpy(np.concatenate(parts).astype(np.int64))[None]


def _project(layer: Any, asking: Tensor, asked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    attention = layer.attention.self
    return attention.query(asking), attention.key(asked), attention.value(asked)


def _finish(layer: Any, context: Tensor, hidden: Tensor) -> Tensor:
    hidden = layer.attention.output(context, hidden)
    finished: Tensor = layer.output(layer.intermediate(hidden), hidden)
    return finished


def find_padding_free(model: Any, ids: Sequence[Ids], types: Sequence[Ids] | None) -> PaddingFree | None:
    """Return a model's padding-free pass.

    Return None if the model's modules are unlike BERT's, or if the pass and the model differ on these texts.
    """
    import torch

    if getattr(model.config, "is_decoder", False) or hasattr(model.base_model, "embeddings_project"):
        return None
    with torch.inference_mode():
        try:
            found = PaddingFree(model)
            logits = found(ids, types)
        except (AttributeError, TypeError, RuntimeError, IndexError):  # the modules differ from BERT's
            return None
        for row, text in enumerate(ids):
            inputs = {"input_ids": _row([text]), "attention_mask": torch.ones(1, len(text), dtype=torch.long)}
            if types is not None:
                inputs["token_type_ids"] = _row([types[row]])
            own = model(**inputs).logits[0]
            if own.shape != logits[row].shape or not torch.allclose(own, logits[row], rtol=_TOLERANCE, atol=_TOLERANCE):
                return None
    return found
