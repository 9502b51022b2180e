"""Explains how a model reads one text, for `bbnli-audit inspect`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from bbnli_audit.core.values import TextPair


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a model reads one text, as titled lines, and the probabilities of the text, in the order of `labels`.

    `ours` has the probabilities as audited. `plain` has those that plain transformers computes.
    """

    lines: Sequence[tuple[str, str]]
    labels: Sequence[str]
    ours: Sequence[float]
    plain: Sequence[float]


@runtime_checkable
class Explaining(Protocol):
    """A model that can say how it reads a text."""

    def explain(self, text: TextPair) -> Explanation: ...


def show_tokens(tokenizer: Any, ids: Sequence[int]) -> str:
    return f"{' '.join(tokenizer.convert_ids_to_tokens([int(each) for each in ids]))}  ({len(ids)} tokens)"


def find_pooled(model: Any, inputs: dict[str, Any]) -> list[int] | None:
    """Find the tokens whose last hidden states decide the outputs.

    For these tokens, the gradient of the outputs is not zero. Return None if gradients cannot be computed.
    """
    import torch

    seen: list[torch.Tensor] = []

    def keep(_module: Any, _inputs: Any, output: Any) -> None:
        hidden = output[0]
        hidden.retain_grad()
        seen.append(hidden)

    handle = model.base_model.register_forward_hook(keep)
    try:
        with torch.enable_grad():
            model(**inputs).logits.abs().sum().backward()
    except (RuntimeError, TypeError, KeyError, AttributeError):
        return None
    finally:
        handle.remove()
        model.zero_grad(set_to_none=True)
    gradient = seen[0].grad if seen else None
    return None if gradient is None else gradient[0].abs().sum(dim=-1).nonzero()[:, 0].tolist()
