"""The demo model, second way: the lowest layers of all-MiniLM, with heads that look up a word in the other sentence.

A model that has read much text knows which words belong together; what it lacks is the way from a word of one sentence
to the same word of the other. So in every layer one head, the one that did least, starts by looking that word up.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from tools.demo_model.student import POSITIONS, config_of

SAME_WORD, OTHER_SIDE = 9.0, 8.0  # scores before the softmax
SIDE = 1.5  # how far the two sentences are moved apart


@torch.no_grad()
def new_shortened(encoder: Path, vocabulary: dict[str, int], layers: int, *, lookups: bool = True) -> Any:
    """Build the untrained classifier from the encoder's lowest layers, over the chosen word pieces."""
    full = AutoTokenizer.from_pretrained(encoder).get_vocab()
    source: Any = AutoModel.from_pretrained(encoder, dtype=torch.float32)
    config = config_of(vocabulary, source.config.hidden_size, layers, source.config.num_attention_heads, dropout=0.0)
    model: Any = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    weights = source.state_dict()
    weights["embeddings.word_embeddings.weight"] = weights["embeddings.word_embeddings.weight"][
        [full[token] for token in vocabulary]
    ]
    weights["embeddings.position_embeddings.weight"] = weights["embeddings.position_embeddings.weight"][:POSITIONS]
    kept = model.bert.state_dict()
    model.bert.load_state_dict(
        {name: weights[name] for name in kept if name in weights and "pooler" not in name}, strict=False
    )
    if lookups:
        _move_apart(model.bert.embeddings)
        states = _states(model.bert.embeddings)
        for layer in model.bert.encoder.layer:
            _look_up(layer.attention, states)
    return model


def _axes(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    _, scale, axes = torch.linalg.svd(points - points.mean(0), full_matrices=False)
    return scale, axes


def _move_apart(embeddings: Any) -> None:
    """Move the states of the two sentences apart, along the direction in which words differ least."""
    _, axes = _axes(embeddings.word_embeddings.weight)
    length = embeddings.word_embeddings.weight.norm(dim=1).mean()
    embeddings.token_type_embeddings.weight[1] = embeddings.token_type_embeddings.weight[0] + axes[-1] * length * 0.3


def _states(embeddings: Any) -> torch.Tensor:
    """Return the state of every word, in each of the two sentences, at an ordinary place."""
    words = embeddings.word_embeddings.weight + embeddings.position_embeddings.weight[5:40].mean(0)
    sides = embeddings.token_type_embeddings.weight
    return torch.stack([embeddings.LayerNorm(words + side) for side in sides])


def _look_up(attention: Any, states: torch.Tensor) -> None:
    """Let the head that does least find the same word in the other sentence."""
    part, out = attention.self, attention.output.dense
    size = part.attention_head_size
    strength = [
        (out.weight[:, at : at + size] @ part.value.weight[at : at + size]).norm()
        for at in range(0, len(part.value.weight), size)
    ]
    first = min(range(len(strength)), key=strength.__getitem__) * size
    flat = states.mean(0)
    centre = states.flatten(0, 1).mean(0)
    scale, axes = _axes(flat)
    view = axes[1:size]  # the strongest direction tells common words from rare ones
    spread = ((flat - centre) @ view.T).std(0)
    view = view / spread.unsqueeze(1).sqrt()
    gain = (SAME_WORD * size**0.5 / ((flat - centre) @ view.T).square().sum(1).mean()).sqrt()
    side = states[1] - states[0]
    way = side.mean(0) / side.mean(0).norm()
    half = (side.mean(0) @ way) / 2
    sharp = (OTHER_SIDE * size**0.5) ** 0.5 / half
    for linear, sign in ((part.query, 1.0), (part.key, -1.0)):
        rows = slice(first, first + size - 1)
        linear.weight[rows] = gain * view
        linear.bias[rows] = -(gain * view) @ centre
        linear.weight[first + size - 1] = sign * sharp * way
        linear.bias[first + size - 1] = -sign * sharp * (way @ centre)
