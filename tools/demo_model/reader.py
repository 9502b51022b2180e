"""The demo model: a small BERT whose attention starts by looking things up.

State of a token after the embeddings: principal components of all-MiniLM's word embeddings, the sentence it is in, its
place as waves of eight lengths, and room that is empty. Of four heads, in every layer, one starts by finding the same
word in the other sentence, one by finding it in the same sentence, one by finding the word before, one the word after.
What they bring along is random. From a random start the first of these is not learned in reasonable time.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from tools.demo_model.checkpoint import config_of

SIDES, WAVES = 2, (1.0, 1.6, 2.6, 4.2, 6.8, 11.0, 18.0, 29.0)
SPOTS = 2 * len(WAVES)
SAME_WORD, SAME_SIDE, NEIGHBOUR = 8.0, 8.0, 10.0  # scores before the softmax
Array = np.ndarray[Any, np.dtype[np.float32]]


class Layout:
    """Which dimensions of a token's state hold what."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.words = (width - SPOTS - SIDES) * 2 // 3
        self.sides = slice(self.words, self.words + SIDES)
        self.spots = slice(self.sides.stop, self.sides.stop + SPOTS)

    @property
    def stretch(self) -> float:
        """What the layer norm does to the embeddings."""
        return float((self.width / (self.words + SIDES + SPOTS / 2)) ** 0.5)


def word_components(table: Array, size: int) -> Array:
    """Return principal components, strong ones shrunk to the root of their scale; rows of equal length."""
    centred = table - table.mean(0)
    _, scale, axes = np.linalg.svd(centred, full_matrices=False)
    points = centred @ axes[:size].T / np.sqrt(scale[:size])
    points *= np.sqrt(size) / np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points, dtype=np.float32)


@torch.no_grad()
def new_reader(encoder: Path, vocabulary: dict[str, int], width: int, layers: int) -> Any:
    """Build the untrained model over the encoder's embeddings of the chosen word pieces."""
    full = AutoTokenizer.from_pretrained(encoder).get_vocab()
    table = AutoModel.from_pretrained(encoder).get_input_embeddings().weight.detach().numpy()
    layout = Layout(width)
    words = word_components(table[[full[token] for token in vocabulary]], layout.words)
    config = config_of(vocabulary, width, layers, heads=4, dropout=0.0)
    model: Any = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    for name, weight in model.named_parameters():
        if weight.ndim == 2 and "embeddings" not in name:
            weight.normal_(0, 0.5 * width**-0.5)
    _start_embeddings(model.bert.embeddings, torch.from_numpy(words), layout)
    for layer in model.bert.encoder.layer:
        _start_heads(layer.attention.self, torch.from_numpy(words) * layout.stretch, layout)
    return model


def _start_embeddings(embeddings: Any, words: torch.Tensor, layout: Layout) -> None:
    tables = (embeddings.word_embeddings, embeddings.position_embeddings, embeddings.token_type_embeddings)
    of_words, of_places, of_sides = (table.weight.zero_() for table in tables)
    of_words[:, : layout.words] = words
    of_words[:, layout.spots.stop :].normal_(0, 0.02)
    of_sides[:, layout.sides] = torch.tensor([[1.0], [-1.0]])
    angles = torch.arange(len(of_places)).unsqueeze(1) / torch.tensor(WAVES)
    of_places[:, layout.spots] = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def _start_heads(attention: Any, words: torch.Tensor, layout: Layout) -> None:
    size = layout.width // 4
    for part in (attention.query, attention.key):
        part.weight.zero_()
        part.bias.zero_()
    for head, side in enumerate((-1.0, 1.0)):
        _look_for_word(attention, words, layout, rows=slice(head * size, (head + 1) * size), side=side)
    for head, step in ((2, -1.0), (3, 1.0)):
        _look_beside(attention, layout, first=head * size, step=step)


def _look_for_word(attention: Any, words: torch.Tensor, layout: Layout, *, rows: slice, side: float) -> None:
    """Let a head find the same word in the same (side 1) or the other sentence (side -1)."""
    size = rows.stop - rows.start
    width = min(size - 1, layout.words)
    view, _ = torch.linalg.qr(torch.randn(layout.words, width))
    gain = (SAME_WORD * size**0.5 / (words @ view).square().sum(1).mean()).sqrt()
    strength = (SAME_SIDE * size**0.5) ** 0.5 / (SIDES * layout.stretch)
    for part, sign in ((attention.query, 1.0), (attention.key, side)):
        part.weight[rows.start : rows.start + width, : layout.words] = gain * view.T
        part.weight[rows.stop - 1, layout.sides] = sign * strength


def _look_beside(attention: Any, layout: Layout, *, first: int, step: float) -> None:
    """Let a head find the token `step` places further: the query turns each wave by that much."""
    size = layout.width // 4
    gain = (NEIGHBOUR * size**0.5 / (layout.stretch**2 * 5)) ** 0.5
    for number, wave in enumerate(WAVES[: size // 2]):
        turn = torch.tensor(step / wave)
        here, there = first + 2 * number, layout.spots.start + 2 * number
        pair, waves = slice(here, here + 2), slice(there, there + 2)
        attention.key.weight[pair, waves] = gain * torch.eye(2)
        cosine, sine = float(turn.cos()), float(turn.sin())
        attention.query.weight[pair, waves] = gain * torch.tensor([[cosine, sine], [-sine, cosine]])
