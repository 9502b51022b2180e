"""Decodes greedily with torch. What prompts begin with alike is computed once, and no answer depends on the batch.

Rounding differs a little with what else is read at once. This matters only if two tokens are nearly tied. So a text
with such a near tie is decoded again, alone and in the plain way.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

from bbnli_audit.core.errors import ModelError
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.language_model.padded_prompts import PaddedPrompts, Row
from bbnli_audit.models.language_model.prompt_tree import PromptTree
from bbnli_audit.models.language_model.token_tree import cut_into_trees, grow
from bbnli_audit.models.protocol import NOT_FINITE, Tensor

# How answers are computed: part of the fingerprint, so that answers computed differently are not reused.
SCHEME = 2
# In float32 the logits of this project's models differ by about 1e-5 between batches.
NEAR_TIE = 1e-3
# The most tokens of prompts that are read as one row, and how many tokens of their answers it takes besides.
_TREE, _ANSWERS = 768, 128


class Decoder:
    """A causal language model that continues prompts. Threads may use it at the same time."""

    def __init__(
        self, copies: FreshCopies, end_ids: Set[int], n_new: int, is_done: Callable[[Sequence[int]], bool]
    ) -> None:
        """Take a transformers model. An answer ends at one of the `stops` tokens, or when `is_done` says so."""
        import torch

        self._torch = torch
        self._copies = copies
        self._model = copies.model
        self._end_ids = end_ids
        self._n_new = n_new
        self._is_done = is_done
        self._longest = self._n_most = 0  # tokens of a prompt, and of a tree with its answers; 0 without trees
        self.n_alone = 0  # texts decoded again because of a near tie, for tests and benchmarks

    def decode(self, rows: Sequence[Row]) -> list[list[int]]:
        """Return the tokens that follow each prompt."""
        found: dict[int, list[int] | None] = {}
        for chosen in self._trees(rows):
            some = self._go_on(self._tree([rows[at].ids for at in chosen]), NEAR_TIE)
            found.update((chosen[at], answer) for at, answer in some.items())
        left = [index for index in range(len(rows)) if index not in found]
        if left:
            some = self._go_on(PaddedPrompts(self._model, [rows[index] for index in left]), NEAR_TIE)
            found.update((left[at], answer) for at, answer in some.items())
        return [self._unless_tied(found[index], row) for index, row in enumerate(rows)]

    def _unless_tied(self, answer: list[int] | None, row: Row) -> list[int]:
        if answer is not None:
            return answer
        self.n_alone += 1
        return self.decode_plain(row.ids)

    def decode_plain(self, ids: Sequence[int]) -> list[int]:
        """Decode one prompt by itself, from its first token to its last."""
        answer = self._go_on(PaddedPrompts(self._model, [Row(tuple(ids), 0)]), 0.0)[0]
        assert answer is not None, "no two tokens are nearer than 0"
        return answer

    def decode_uncached(self, ids: Sequence[int]) -> list[int]:
        """Decode one prompt without a cache. This is right for every architecture, but slow."""
        answer: list[int] = []
        while len(answer) < self._n_new and not self._is_done(answer):
            token = int(check_finite(self._uncached_logits([*ids, *answer])).argmax())
            if token in self._end_ids:
                break
            answer.append(token)
        return answer

    def next_logits(self, rows: Sequence[Row], *, is_cached: bool = True) -> Tensor:
        """Return the scores of the token after each prompt: (n_rows, n_tokens)."""
        if not is_cached:
            return self._torch.stack([self._uncached_logits(row.ids) for row in rows])
        found: dict[int, Tensor] = {}
        for chosen in self._trees(rows):
            found.update(zip(chosen, self._tree([rows[at].ids for at in chosen]).logits, strict=True))
        left = [index for index in range(len(rows)) if index not in found]
        if left:
            found.update(zip(left, PaddedPrompts(self._model, [rows[at] for at in left]).logits, strict=True))
        return self._torch.stack([found[index] for index in range(len(rows))])

    def is_cacheable(self, rows: Sequence[Row]) -> bool:
        """Say whether a shared start, padding and a cache leave this architecture's results unchanged."""
        short, long = (choose(rows, key=lambda row: len(row.ids)) for choose in (min, max))
        self._copies.find_state(lambda model: [self.plain_logits(row.ids, model) for row in (short, long)])
        if self._copies.has_state:
            return False
        return self._is_as_plain(lambda: PaddedPrompts(self._model, rows), [row.ids for row in rows], NEAR_TIE)

    def use_trees(self, rows: Sequence[Row], longest: int) -> None:
        """Read prompts as trees if that leaves this architecture's results unchanged.

        Tried with a row as large as any later one: attention may be limited to tokens that are near in the row or in
        the prompt. `longest` is how many tokens a prompt with its answer may have.
        """
        prompts = [*_long(rows, longest), *(row.ids for row in rows)]
        trees: list[PromptTree] = []

        def read() -> PromptTree:
            trees.append(PromptTree(self._model, prompts, _TREE + _ANSWERS))
            return trees[-1]

        # As strict as for likelihoods: an error of the size of a near tie would be taken for rounding.
        if self._is_as_plain(read, prompts, NEAR_TIE / 10):
            self._longest, self._n_most = len(prompts[0]) - _ANSWERS, trees[-1].n_tokens

    def _is_as_plain(
        self, read: Callable[[], PaddedPrompts | PromptTree], prompts: Sequence[Sequence[int]], tolerance: float
    ) -> bool:
        """Compare scores after prompts, and after one more token, with those of each prompt alone without a cache."""
        torch = self._torch
        try:
            reading = read()
            tokens = reading.logits.argmax(dim=-1).tolist()
            found = torch.stack([reading.logits, reading.go_on(dict(enumerate(tokens)))], dim=1)
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError, NotImplementedError):
            return False  # no such cache, no position ids, or no such mask
        longer = [self._tensor([[*ids, token]]) for ids, token in zip(prompts, tokens, strict=True)]
        with torch.inference_mode():
            plain = torch.stack([self._model(input_ids=ids, use_cache=False).logits[0, -2:] for ids in longer])
        scale = max(1.0, float(plain.abs().max()))
        return bool((found - plain).abs().max() < tolerance * scale)

    def _trees(self, rows: Sequence[Row]) -> Iterator[list[int]]:
        """Cut prompts into trees. Those that are too long, or alone, are left out."""
        fitting = [at for at, row in enumerate(rows) if len(row.ids) <= self._longest]
        ordered = sorted(fitting, key=lambda at: rows[at].ids)
        for chosen in cut_into_trees([rows[at].ids for at in ordered], self._n_most - _ANSWERS):
            if len(chosen) > 1:
                yield [ordered[at] for at in chosen]

    def _tree(self, prompts: Sequence[Sequence[int]]) -> PromptTree:
        return PromptTree(self._model, prompts, self._n_most)

    def plain_logits(self, ids: Sequence[int], model: Any | None = None) -> Tensor:
        """Return the scores of the token after a prompt, computed alone, with a model that has computed nothing yet."""
        model = self._copies.make() if model is None else model
        with self._torch.inference_mode():
            logits: Tensor = model(input_ids=self._tensor([ids]), use_cache=False).logits[0, -1]
            return logits

    def _uncached_logits(self, ids: Sequence[int]) -> Tensor:
        return self.plain_logits(ids, self._copies.for_use())

    def _go_on(self, reading: PaddedPrompts | PromptTree, near_tie: float) -> dict[int, list[int] | None]:
        """Return the new tokens by prompt, None at a near tie. Prompts that there is no room for are left out."""
        logits, open_rows = reading.logits, list(range(len(reading.logits)))
        answers: dict[int, list[int]] = {index: [] for index in open_rows}
        found: dict[int, list[int] | None] = {}
        while True:
            best = check_finite(logits).topk(2, dim=-1)
            tokens, gaps = best.indices[:, 0].tolist(), (best.values[:, 0] - best.values[:, 1]).tolist()
            staying: dict[int, int] = {}
            for index, token, gap in zip(open_rows, tokens, gaps, strict=True):
                if gap < near_tie:
                    found[index] = None
                    continue
                if token not in self._end_ids:
                    answers[index].append(token)
                if token in self._end_ids or len(answers[index]) >= self._n_new or self._is_done(answers[index]):
                    found[index] = answers[index]
                else:
                    staying[index] = token
            if not staying or not reading.has_room(len(staying)):
                return found
            logits, open_rows = reading.go_on(staying), list(staying)

    def _tensor(self, values: Any) -> Tensor:
        return self._torch.tensor(values, dtype=self._torch.long, device=self._model.device)


def check_finite(logits: Tensor) -> Tensor:
    if bool(logits.isnan().any()):
        raise ModelError(f"The model gave scores that are not finite (NaN), so it has no next word.\n{NOT_FINITE}")
    return logits


def _long(rows: Sequence[Row], longest: int) -> Iterator[tuple[int, ...]]:
    """Yield prompts as long as they may be, which make a tree of the largest size together with the others."""
    tokens = [token for row in rows for token in row.ids]
    n_left = _TREE + _ANSWERS - len(grow([row.ids for row in rows]).ids) - 2 * len(rows)
    start = 1
    while n_left > 0:
        n_tokens = min(longest - 1, n_left)
        yield tuple(tokens[(start + at) % len(tokens)] for at in range(n_tokens))
        n_left, start = n_left - n_tokens - 1, start + 1
