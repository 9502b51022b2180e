"""Put two layers into a trained student that let it read which group is which.

The student's first layer finds each word's nearest word in the other sentence, but says nothing of what stands around
that word. "Most were bakers, few were millers" and the reverse look alike to it, and training does not get it over
this: two steps must be learned at once, and each is useless without the other. So they are set by hand. One new layer,
before the first, writes down what stands around each word. Another, after it, finds the same word in the other sentence
again and copies what stands around it there. What they write goes where the student's states hardly vary, so it still
answers nearly as before. All is found by regression on the student's states.
"""

import copy
from typing import Any

import torch

from tools.demo_model.pairs import Pair, encode, pad

SHIFTS = (-1.0, -3.0, 1.0, 3.0)
N_WRITTEN = 48
STRENGTH = 1.0
PERIODS = torch.tensor([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])


@torch.no_grad()
def add_reading_layers(model: Any, tokenizer: Any, pairs: list[Pair]) -> None:
    """Add the two layers in place."""
    model.eval()
    encoder = model.bert.encoder
    batch = pad(encode(tokenizer, pairs, 72))
    seen = batch["attention_mask"].bool()
    spots = torch.arange(batch["input_ids"].shape[1]).expand(batch["input_ids"].shape)[seen]
    sides = 2.0 * batch["token_type_ids"][seen].unsqueeze(1) - 1.0

    mask = torch.where(seen, 0.0, -1e9)[:, None, None, :]

    def states_after(n_layers: int) -> torch.Tensor:
        found = model.bert.embeddings(batch["input_ids"], batch["token_type_ids"])
        for layer in encoder.layer[:n_layers]:
            found = layer(found, mask)
            found = found[0] if isinstance(found, tuple) else found
        states: torch.Tensor = found[seen]
        return states

    def insert(layer: Any, place: int) -> None:
        encoder.layer = torch.nn.ModuleList([*encoder.layer[:place], layer, *encoder.layer[place:]])
        model.config.num_hidden_layers = len(encoder.layer)
        for at, each in enumerate(encoder.layer):
            each.attention.self.layer_idx = at

    gather, find = (copy.deepcopy(encoder.layer[0]) for _ in range(2))
    for layer in (gather, find):
        _start_empty(layer)
    plain = states_after(0)
    _look_around(gather, _regress(plain, _waves(spots)))
    _write(gather, _main_parts(plain), plain)
    insert(gather, 0)
    around = states_after(1) @ _quiet_directions(plain).T
    later = states_after(2)
    _look_across(find, _regress(later, plain - plain.mean(0)), _regress(later, sides), later)
    _write(find, _regress(later, around), later)
    insert(find, 2)


def _waves(spots: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    angle = (spots.unsqueeze(1) + shift) / PERIODS
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)


def _regress(states: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weight and bias of the best linear map from states to what is wanted."""
    centre, mean = states.mean(0), wanted.mean(0)
    spread = (states - centre).T @ (states - centre) + 1e-2 * len(states) * torch.eye(states.shape[1])
    weight = torch.linalg.solve(spread, (states - centre).T @ (wanted - mean)).T
    return weight, mean - weight @ centre


def _start_empty(layer: Any) -> None:
    """Let a layer pass everything on as it is."""
    attention = layer.attention
    for part in (attention.self.query, attention.self.key, attention.self.value, attention.output.dense):
        part.weight.zero_()
        part.bias.zero_()
    layer.intermediate.dense.weight.normal_(0, 0.05)
    layer.intermediate.dense.bias.zero_()
    layer.output.dense.weight.normal_(0, 0.01)
    layer.output.dense.bias.zero_()
    for norm in (attention.output.LayerNorm, layer.output.LayerNorm):
        norm.weight.fill_(1.0)
        norm.bias.zero_()


def _quiet_directions(states: torch.Tensor) -> torch.Tensor:
    """Return the directions in which the states vary least."""
    return torch.linalg.svd(states - states.mean(0), full_matrices=False)[2][-N_WRITTEN:]


def _main_parts(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a map to N_WRITTEN mixtures of the directions in which the states vary most, of variance 1."""
    centre = states.mean(0)
    _, scale, axes = torch.linalg.svd(states - centre, full_matrices=False)
    mixed, _ = torch.linalg.qr(torch.randn(2 * N_WRITTEN, N_WRITTEN))
    weight = mixed.T @ (axes[: 2 * N_WRITTEN] / (scale[: 2 * N_WRITTEN, None] / len(states) ** 0.5))
    return weight, -weight @ centre


def _write(layer: Any, wanted: tuple[torch.Tensor, torch.Tensor], states: torch.Tensor) -> None:
    """Let each head carry its share of what is wanted of the words it looks at, and write it in quiet directions."""
    attention, (weight, bias) = layer.attention, wanted
    spread = (states @ weight.T + bias).std(0, keepdim=True).T
    weight, bias = weight / spread, bias / spread[:, 0]
    size, heads = attention.self.attention_head_size, attention.self.num_attention_heads
    share = N_WRITTEN // heads
    quiet = _quiet_directions(states)
    for head in range(heads):
        rows, parts = slice(head * size, head * size + share), slice(head * share, (head + 1) * share)
        attention.self.value.weight[rows], attention.self.value.bias[rows] = weight[parts], bias[parts]
        attention.output.dense.weight[:, rows] = STRENGTH * quiet[parts].T


def _look_around(layer: Any, waves: tuple[torch.Tensor, torch.Tensor], sharpness: float = 3.0) -> None:
    """Set each head to look some words back or ahead: the waves of a place, turned by the shift, meet the others'."""
    attention, (weight, bias) = layer.attention.self, waves
    size, half = attention.attention_head_size, len(PERIODS)
    for head, shift in enumerate(SHIFTS):
        turn = shift / PERIODS
        rotation = torch.zeros(2 * half, 2 * half)
        at = torch.arange(half)
        rotation[at, at] = rotation[at + half, at + half] = torch.cos(turn)
        rotation[at, at + half], rotation[at + half, at] = torch.sin(turn), -torch.sin(turn)
        gain = (sharpness * size**0.5) ** 0.5
        rows = slice(head * size, head * size + 2 * half)
        attention.query.weight[rows], attention.query.bias[rows] = gain * rotation @ weight, gain * rotation @ bias
        attention.key.weight[rows], attention.key.bias[rows] = gain * weight, gain * bias


def _look_across(
    layer: Any,
    words: tuple[torch.Tensor, torch.Tensor],
    sides: tuple[torch.Tensor, torch.Tensor],
    states: torch.Tensor,
    same_word: float = 9.0,
    other_side: float = 10.0,
) -> None:
    """Set each head to find the same word in the other sentence, in its own view of the words."""
    attention = layer.attention.self
    size = attention.attention_head_size
    width = size - 1
    found = states @ words[0].T + words[1]
    _, scale, axes = torch.linalg.svd(found, full_matrices=False)
    rank = 2 * width
    view = axes[:rank] / (scale[:rank, None] / len(states) ** 0.5).sqrt()
    side = (other_side * size**0.5) ** 0.5
    for head in range(attention.num_attention_heads):
        mixed, _ = torch.linalg.qr(torch.randn(rank, width))
        seen = mixed.T @ view
        gain = (same_word * size**0.5 / (found @ seen.T).square().sum(1).mean()).sqrt()
        rows, last = slice(head * size, head * size + width), head * size + width
        for part, sign in ((attention.query, 1.0), (attention.key, -1.0)):
            part.weight[rows], part.bias[rows] = gain * seen @ words[0], gain * seen @ words[1]
            part.weight[last], part.bias[last] = sign * side * sides[0][0], sign * side * sides[1][0]
