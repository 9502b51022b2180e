"""Prompts as one row of tokens, a tree: what they begin with alike is in it once, and their answers grow out of it.

Nothing is padded, and no cache is copied: a new token sees its own prompt and answer, and no others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bbnli_audit.models.language_model.token_tree import grow
from bbnli_audit.models.protocol import Tensor


class PromptTree:
    """Prompts that a causal model has read, and goes on with token by token."""

    def __init__(self, model: Any, prompts: Sequence[Sequence[int]], n_most: int) -> None:
        """Read the prompts. The row has room for `n_most` tokens, with those of the answers."""
        import numpy as np
        import torch
        from transformers import DynamicCache

        self._np, self._torch = np, torch
        self._model = model
        self._n_most = n_most
        # Without the model's settings it keeps all tokens: those that are far away in the row may be near in a prompt.
        self._cache = DynamicCache()
        self._depths = [len(ids) for ids in prompts]
        tree = grow(prompts)
        ends, visible = [path[-1] for path in tree.paths], tree.visible()
        self._seen = visible[ends]  # for each prompt, what its next token sees: (n_prompts, n_tokens)
        self.logits = self._read(tree.ids, tree.depths, visible, ends)  # of the token after each prompt

    @property
    def n_tokens(self) -> int:
        return int(self._seen.shape[1])

    def has_room(self, n_rows: int) -> bool:
        """Say whether `n_rows` more tokens can be read."""
        return self.n_tokens + n_rows <= self._n_most

    def drop(self, row: int, n_tokens: int) -> None:
        """Forget the last tokens of a prompt's answer: they stay in the row, but nothing sees them."""
        if n_tokens > 0:
            self._seen[row, self._np.flatnonzero(self._seen[row])[-n_tokens:]] = False
            self._depths[row] -= n_tokens

    def go_on(self, chains: Mapping[int, Sequence[int]]) -> Tensor:
        """Read the next tokens of these prompts, and return the scores after each of them, in their order."""
        np, ids, depths = self._np, list[int](), list[int]()
        n_before, n_new = self.n_tokens, sum(map(len, chains.values()))
        self._seen = np.hstack([self._seen, np.zeros((len(self._seen), n_new), dtype=np.bool_)])
        visible = []
        for row, tokens in chains.items():
            for token in tokens:
                self._seen[row, n_before + len(ids)] = True
                visible.append(self._seen[row].copy())
                ids.append(token)
                depths.append(self._depths[row])
                self._depths[row] += 1
        return self._read(ids, depths, np.stack(visible), range(n_new))

    def _read(self, ids: Sequence[int], depths: Sequence[int], visible: Any, wanted: Sequence[int]) -> Tensor:
        torch, device = self._torch, self._model.device
        hidden = torch.from_numpy(~visible).to(device)
        mask = torch.zeros(hidden.shape, device=device).masked_fill_(hidden, torch.finfo(torch.float32).min)
        with torch.inference_mode():
            logits: Tensor = self._model(
                input_ids=torch.tensor([list(ids)], device=device),
                attention_mask=mask[None, None],
                position_ids=torch.tensor([list(depths)], device=device),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=torch.tensor(list(wanted), device=device),
            ).logits[0]
        return logits
