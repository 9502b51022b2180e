"""Puts sentences into one row of tokens, for a causal model. A beginning that sentences share is in the row once.

The row is a tree. A token sees the tokens before it in its own sentences and no others. Its position is its place in
these sentences, not in the row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bbnli_audit.models.protocol import Device, Tensor

Ids = Sequence[int]


@dataclass(frozen=True, slots=True)
class TokenTree:
    ids: tuple[int, ...]
    depths: tuple[int, ...]  # the place of each token in its sentences
    parents: tuple[int, ...]  # for each token, the place of its predecessor in the row; -1 for a sentence's first token
    paths: tuple[tuple[int, ...], ...]  # for each sentence, where its tokens are in the row

    def visible(self) -> Any:
        """Say which tokens (columns) each token (rows) may see: itself, and those before it in its sentences."""
        import numpy as np

        seen = np.eye(len(self.ids), dtype=np.bool_)
        for at, parent in enumerate(self.parents):
            if parent >= 0:
                seen[at] |= seen[parent]
        return seen


def grow(sentences: Sequence[Ids], least: int = 1) -> TokenTree:
    """Join sentences into one row of at least `least` tokens.

    A shorter row is filled up with copies of the first token. No other token sees them.
    """
    ids: list[int] = []
    depths: list[int] = []
    parents: list[int] = []
    paths: list[tuple[int, ...]] = []
    known: dict[tuple[int, int], int] = {}  # (parent, id) -> place in the row
    for sentence in sentences:
        path: list[int] = []
        for depth, token in enumerate(sentence):
            parent = path[-1] if path else -1
            at = known.setdefault((parent, token), len(ids))
            if at == len(ids):
                ids.append(token)
                depths.append(depth)
                parents.append(parent)
            path.append(at)
        paths.append(tuple(path))
    n_more = max(0, least - len(ids))
    return TokenTree((*ids, *[ids[0]] * n_more), (*depths, *[0] * n_more), (*parents, *[-1] * n_more), tuple(paths))


def as_mask(visible: Any, device: Device) -> Tensor:
    """Return the additive attention mask, given which tokens (columns) each token (rows) may see."""
    import torch

    hidden = torch.from_numpy(~visible).to(device)
    return torch.zeros(hidden.shape, device=device).masked_fill_(hidden, torch.finfo(torch.float32).min)[None, None]


def cut_into_trees(sentences: Sequence[Ids], n_tokens: int) -> Iterator[list[int]]:
    """Cut sentences, sorted by tokens, into trees of at most `n_tokens` tokens. Yield the indices of each tree."""
    tree: list[int] = []
    n_in_tree = 0
    for at, sentence in enumerate(sentences):
        n_new = len(sentence) - (n_alike(sentences[tree[-1]], sentence) if tree else 0)
        if tree and n_in_tree + n_new > n_tokens:
            yield tree
            tree, n_in_tree, n_new = [], 0, len(sentence)
        tree.append(at)
        n_in_tree += n_new
    if tree:
        yield tree


def n_alike(first: Ids, second: Ids) -> int:
    """Return the number of tokens in the beginning that two sentences share."""
    shorter = min(len(first), len(second))
    return next((at for at in range(shorter) if first[at] != second[at]), shorter)
