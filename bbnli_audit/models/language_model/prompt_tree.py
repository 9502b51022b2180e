"""Reads many prompts in one row of tokens. The row has a shared beginning once; answers are added at its end.

Nothing is padded, and no cache is copied or cut when some answers are complete: a new token sees its own prompt and
answer, and no others.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from bbnli_audit.models.language_model.token_tree import Ids, as_mask, grow
from bbnli_audit.models.protocol import Tensor


class Start(NamedTuple):
    """Tokens that prompts begin with, read once. Each tree grows out of a copy of the cache."""

    ids: tuple[int, ...]
    cache: Any
    n_empty: int = 0  # empty places after these tokens in the row; no token sees them


class PromptTree:
    """Prompts that a causal model has read and continues token by token."""

    def __init__(self, model: Any, start: Start, prompts: Sequence[Ids]) -> None:
        """Read prompts. Each of them must begin with `start` and be longer."""
        import numpy as np
        import torch

        self._np, self._torch, self._model = np, torch, model
        self._cache = deepcopy(start.cache)
        n_known = len(start.ids)
        tree = grow([ids[n_known:] for ids in prompts])
        before = np.zeros((len(tree.ids), n_known + start.n_empty), dtype=np.bool_)
        before[:, :n_known] = True
        visible = np.hstack([before, tree.visible()])
        ends = [path[-1] for path in tree.paths]
        self._seen = visible[ends]  # for each prompt, what its next token sees besides itself: (n_prompts, n_tokens)
        self._depths = [len(ids) for ids in prompts]
        # The scores of the token after each prompt: (n_prompts, n_vocabulary)
        self.logits = self._read(tree.ids, [n_known + depth for depth in tree.depths], visible, ends)

    def go_on(self, tokens: Mapping[int, int]) -> Tensor:
        """Append a token to some prompts. Return the scores after each of these prompts, in the order of `tokens`.

        The keys of `tokens` are the places of the prompts.
        """
        np, rows = self._np, list(tokens)
        new = np.zeros((len(self._seen), len(rows)), dtype=np.bool_)
        new[rows, range(len(rows))] = True
        self._seen = np.hstack([self._seen, new])
        depths = [self._depths[row] for row in rows]
        for row in rows:
            self._depths[row] += 1
        return self._read(list(tokens.values()), depths, self._seen[rows], range(len(rows)))

    def _read(self, ids: Ids, depths: Sequence[int], visible: Any, wanted: Sequence[int]) -> Tensor:
        torch, device = self._torch, self._model.device
        with torch.inference_mode():
            logits: Tensor = self._model(
                input_ids=torch.tensor([list(ids)], device=device),
                attention_mask=as_mask(visible, device),
                position_ids=torch.tensor([list(depths)], device=device),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=torch.tensor(list(wanted), device=device),
            ).logits[0]
        return logits


def read_start(model: Any, ids: Ids) -> Start:
    """Read the beginning that prompts share. It may be empty."""
    import torch
    from transformers import DynamicCache

    # A cache made from the model's config may drop tokens that are far away in the row. Tokens that are far away in the
    # row may be near in a prompt, so this cache keeps all tokens.
    cache = DynamicCache()
    if ids:
        options = {"past_key_values": cache, "use_cache": True, "logits_to_keep": 1}
        with torch.inference_mode():
            model(input_ids=torch.tensor([list(ids)], device=model.device), **options)
    return Start(tuple(ids), cache)


def add_empty(cache: Any, like: Any, n_places: int) -> Any:
    """Add places that hold zeros to a cache, so that the tokens read next stand far along in the row. Return the cache.

    `like` is a cache of the same model that holds tokens.
    """
    for at, layer in enumerate(like.layers):
        keys, values = (
            each.new_zeros((*each.shape[:2], n_places, each.shape[3])) for each in (layer.keys, layer.values)
        )
        cache.update(keys, values, at)
    return cache
