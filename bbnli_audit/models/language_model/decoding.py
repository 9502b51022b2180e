"""Decodes greedily with torch. A beginning that prompts share is computed once. No answer depends on the batch.

Rounding depends a little on the other prompts of the batch. This matters only if two tokens are nearly tied. So a
prompt with such a near tie is decoded again, alone and without a cache.
"""

from collections.abc import Callable, Sequence, Set
from copy import deepcopy
from typing import Any

from bbnli_audit.core.errors import ModelError
from bbnli_audit.models.batches import MIN_ROWS
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.language_model.prompt_tree import PromptTree, Start, add_empty, read_start
from bbnli_audit.models.language_model.token_tree import Ids, n_alike
from bbnli_audit.models.protocol import NOT_FINITE, Tensor

# How answers are computed: part of the fingerprint, so that answers computed differently are not reused.
SCHEME = 2
# Two tokens are nearly tied if their logits differ by less than this. Between batches, the float32 logits of this
# project's models differ by about 1e-5.
NEAR_TIE = 1e-3
_TRIED = 32  # trees are tried with this many tokens of a prompt
# A prompt is read in a tree if it is at most this many times as long as the longest prompt that `use_trees` is given.
_LONGER = 4
_EMPTY = 512  # trees are tried after this many empty places in the row: about as many as a tree has tokens


class Decoder:
    """A causal language model that continues prompts. Threads may use it at the same time."""

    def __init__(
        self, copies: FreshCopies, end_ids: Set[int], n_new: int, is_done: Callable[[Sequence[int]], bool]
    ) -> None:
        """Take a model. An answer ends at one of the `end_ids`, after `n_new` tokens, or when `is_done` says so."""
        import torch

        self._torch = torch
        self._copies = copies
        self._model = copies.model
        self._end_ids = end_ids
        self._n_new = n_new
        self._is_done = is_done
        self._start = Start((), None)
        self.longest = 0  # the most tokens of a prompt that is read in a tree
        self.n_alone = 0  # texts decoded again because of a near tie, for tests and benchmarks

    def decode(self, prompts: Sequence[Ids]) -> list[list[int]]:
        """Return the tokens that follow each prompt."""
        fitting, answers = self._fitting(prompts), dict[int, list[int]]()
        if fitting:
            found = self._go_on(self._tree([prompts[at] for at in fitting]))
            answers.update((fitting[row], answer) for row, answer in found.items())
            self.n_alone += len(fitting) - len(found)
        for at in set(range(len(prompts))).difference(answers):
            answers[at] = self.decode_alone(prompts[at])
        return [answers[at] for at in range(len(prompts))]

    def decode_alone(self, ids: Ids) -> list[int]:
        """Decode one prompt by itself, without a cache. This is right for every architecture, but slow."""
        answer: list[int] = []
        while len(answer) < self._n_new and not self._is_done(answer):
            token = int(check_finite(self.plain_logits([*ids, *answer], self._copies.for_use())).argmax())
            if token in self._end_ids:
                break
            answer.append(token)
        return answer

    def next_logits(self, prompts: Sequence[Ids]) -> Tensor:
        """Return the scores of the token after each prompt: (n_prompts, n_tokens)."""
        fitting, scores = self._fitting(prompts), dict[int, Tensor]()
        if fitting:
            scores.update(zip(fitting, self._tree([prompts[at] for at in fitting]).logits, strict=True))
        for at in set(range(len(prompts))).difference(fitting):
            scores[at] = self.plain_logits(prompts[at], self._copies.for_use())
        return self._torch.stack([scores[at] for at in range(len(prompts))])

    def plain_logits(self, ids: Ids, model: Any | None = None) -> Tensor:
        """Return the scores of the token after one prompt, read alone by `model`. The default is a fresh copy."""
        return self._plain_logits(ids, self._copies.make() if model is None else model, 1)[0]

    def _plain_logits(self, ids: Ids, model: Any, n_last: int) -> Tensor:
        with self._torch.inference_mode():
            logits: Tensor = model(input_ids=self._tensor([list(ids)]), use_cache=False).logits[0, -n_last:]
            return logits

    def use_trees(self, prompts: Sequence[Ids], longest: int) -> None:
        """Read prompts as trees from now on, if that leaves this architecture's scores unchanged.

        Later prompts are expected to begin as `prompts` do. The model takes at most `longest` tokens.
        """
        long = tuple(prompts[0][:_TRIED])
        tried = [long, (*long[: _TRIED // 4], *reversed(long[-_TRIED // 4 :]))]
        plain: list[Tensor] = []
        self._copies.find_state(lambda model: plain.extend(self._plain_logits(ids, model, 2) for ids in tried))
        n_far = min(longest, _LONGER * max(map(len, prompts)) + self._n_new) - MIN_ROWS
        if self._copies.has_state or n_far < MIN_ROWS:
            return
        n_common = min(n_alike(prompts[0], ids) for ids in prompts)
        try:
            start = read_start(self._model, long[:2])
            found = self._far_from_start(start, tried)
            if _is_close(found, self._torch.stack(plain)) and self._sees_far(start, long[-MIN_ROWS:], n_far):
                self._start = read_start(self._model, prompts[0][:n_common])
                self.longest = n_far + MIN_ROWS - self._n_new
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError, NotImplementedError):
            return  # the model takes no such cache, position ids or mask

    def _far_from_start(self, start: Start, prompts: Sequence[Ids]) -> Tensor:
        """Return the scores after the last two tokens of each prompt. Empty places divide the tree from its start."""
        far = Start(start.ids, add_empty(deepcopy(start.cache), start.cache, _EMPTY), _EMPTY)
        tree = PromptTree(self._model, far, [ids[:-1] for ids in prompts])
        last = tree.go_on({at: ids[-1] for at, ids in enumerate(prompts)})
        return self._torch.stack([tree.logits, last], dim=1)

    def _sees_far(self, like: Start, ids: Ids, n_far: int) -> bool:
        """Say whether a tree gives the model's own scores after `n_far` tokens.

        Zeros in the cache stand for these tokens. The scores differ if the model's attention does not reach so far
        back.
        """
        from transformers import DynamicCache

        far = Start((0,) * n_far, add_empty(DynamicCache(), like.cache, n_far))
        found = PromptTree(self._model, far, [(*far.ids, *ids)]).logits
        own = add_empty(DynamicCache(config=self._model.config), like.cache, n_far)
        with self._torch.inference_mode():
            plain = self._model(input_ids=self._tensor([list(ids)]), past_key_values=own, use_cache=True).logits[:, -1]
        return _is_close(found, plain)

    def _fitting(self, prompts: Sequence[Ids]) -> list[int]:
        """Return which prompts are short enough for a tree."""
        return [at for at, ids in enumerate(prompts) if len(ids) <= self.longest]

    def _tree(self, prompts: Sequence[Ids]) -> PromptTree:
        start = self._start
        n_known = min(min(n_alike(start.ids, ids), len(ids) - 1) for ids in prompts)
        if n_known < len(start.ids):  # these prompts share less of the start than all earlier ones
            self._start = start = read_start(self._model, start.ids[:n_known])
        return PromptTree(self._model, start, prompts)

    def _go_on(self, tree: PromptTree) -> dict[int, list[int]]:
        """Return the answers to the prompts of a tree, except where two tokens are nearly tied."""
        logits, rows = tree.logits, list(range(len(tree.logits)))
        answers: dict[int, list[int]] = {row: [] for row in rows}
        while True:
            best = check_finite(logits).topk(2, dim=-1)
            tokens, gaps = best.indices[:, 0].tolist(), (best.values[:, 0] - best.values[:, 1]).tolist()
            staying: dict[int, int] = {}
            for row, token, gap in zip(rows, tokens, gaps, strict=True):
                if gap < NEAR_TIE:
                    del answers[row]
                elif token not in self._end_ids:
                    answers[row].append(token)
                    if len(answers[row]) < self._n_new and not self._is_done(answers[row]):
                        staying[row] = token
            if not staying:
                return answers
            logits, rows = tree.go_on(staying), list(staying)

    def _tensor(self, values: Any) -> Tensor:
        return self._torch.tensor(values, dtype=self._torch.long, device=self._model.device)


def check_finite(logits: Tensor) -> Tensor:
    if bool(logits.isnan().any()):
        raise ModelError(f"The model gave scores that are not finite (NaN), so it has no next word.\n{NOT_FINITE}")
    return logits


def _is_close(found: Tensor, plain: Tensor) -> bool:
    # Allow a tenth of a near tie, relative to the largest score: larger errors could change answers without a near tie.
    return bool((found - plain).abs().max() < NEAR_TIE / 10 * max(1.0, float(plain.abs().max())))
