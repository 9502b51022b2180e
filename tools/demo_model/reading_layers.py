"""Put two layers into a trained student that help it to read which group is which.

The student's first layer finds each word's nearest word in the other sentence, but says nothing of what stands around
that word. "Most were bakers, few were millers" and the reverse look alike to it. So one new layer, before the first,
gathers each word's neighbours; another, after it, finds the same word in the other sentence again, now with its
neighbours. The new heads start with these patterns of attention, found by regression on the states that the student has
at that place; what they write starts small, so the student still answers nearly as before.
"""

import copy
from typing import Any

import torch

from tools.demo_model.pairs import Pair, encode, pad

SHIFTS = (-1.5, -4.0, 1.5, 4.0)
PERIODS = torch.tensor([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])


@torch.no_grad()
def add_reading_layers(model: Any, tokenizer: Any, pairs: list[Pair]) -> None:
    """Add the two layers in place."""
    model.eval()
    encoder = model.bert.encoder
    batch = pad(encode(tokenizer, pairs, 72))
    states = model.bert(**batch, output_hidden_states=True).hidden_states
    seen = batch["attention_mask"].bool()
    gather, find = (copy.deepcopy(encoder.layer[0]) for _ in range(2))
    for layer in (gather, find):
        _start_small(layer)
    spots = torch.arange(batch["input_ids"].shape[1]).expand(batch["input_ids"].shape)[seen]
    _look_around(gather, _regress(states[0][seen], _waves(spots)))
    words = states[0][seen]
    sides = 2.0 * batch["token_type_ids"][seen].unsqueeze(1) - 1.0
    _look_across(find, _regress(states[1][seen], words - words.mean(0)), _regress(states[1][seen], sides), states[1][seen])
    encoder.layer = torch.nn.ModuleList([gather, encoder.layer[0], find, *encoder.layer[1:]])
    for at, layer in enumerate(encoder.layer):
        layer.attention.self.layer_idx = at
    model.config.num_hidden_layers = len(encoder.layer)


def _waves(spots: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    angle = (spots.unsqueeze(1) + shift) / PERIODS
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)


def _regress(states: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weight and bias of the best linear map from states to what is wanted."""
    centre, mean = states.mean(0), wanted.mean(0)
    spread = (states - centre).T @ (states - centre) + 1e-2 * len(states) * torch.eye(states.shape[1])
    weight = torch.linalg.solve(spread, (states - centre).T @ (wanted - mean)).T
    return weight, mean - weight @ centre


def _start_small(layer: Any) -> None:
    attention = layer.attention
    for part in (attention.self.query, attention.self.key):
        part.weight.zero_()
        part.bias.zero_()
    torch.nn.init.orthogonal_(attention.self.value.weight)
    attention.self.value.bias.zero_()
    for part in (attention.output.dense, layer.output.dense):
        part.weight.normal_(0, 0.01)
        part.bias.zero_()
    layer.intermediate.dense.weight.normal_(0, 0.05)
    layer.intermediate.dense.bias.zero_()
    for norm in (attention.output.LayerNorm, layer.output.LayerNorm):
        norm.weight.fill_(1.0)
        norm.bias.zero_()


def _look_around(layer: Any, waves: tuple[torch.Tensor, torch.Tensor], sharpness: float = 3.0) -> None:
    """Set each head to look some words back or ahead: the waves of a place, turned by the shift, meet those of another."""
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
