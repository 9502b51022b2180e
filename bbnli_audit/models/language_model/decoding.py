"""Decodes greedily with torch. What prompts begin with alike is computed once, and no answer depends on the batch.

Rounding differs a little with what else is read at once. This matters only if two tokens are nearly tied. So a text
with such a near tie is decoded again, alone and in the plain way.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice
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
_BRANCH = 16  # tokens of a short prompt with which trees are tried
_GUESSED = 8  # tokens of an answer that may be guessed from earlier answers


class Decoder:
    """A causal language model that continues prompts. Threads may use it at the same time."""

    def __init__(
        self, copies: FreshCopies, end_ids: Set[int], n_new: int, is_done: Callable[[Sequence[int]], bool]
    ) -> None:
        """Take a transformers model. An answer ends at one of the `end_ids`, or when `is_done` says so."""
        import torch

        self._torch = torch
        self._copies = copies
        self._model = copies.model
        self._end_ids = end_ids
        self._n_new = n_new
        self._is_done = is_done
        self._longest = self._n_most = 0  # tokens of a prompt, and of a tree with its answers; 0 without trees
        self._followed_by: dict[tuple[int, ...], int] = {}  # beginning of an answer -> its next token, the last time
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
        prompts = [*_tried(rows, longest), *(row.ids for row in rows)]
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
            after = reading.go_on({at: [token] for at, token in enumerate(tokens)})
            found = torch.stack([reading.logits, after], dim=1)
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
        """Return the new tokens by prompt, None at a near tie. Prompts that there is no room for are left out.

        A tree reads several tokens of an answer at once: the next one, and those that came after it in earlier answers.
        Scores after a guess are used only if the guess is the likeliest token, so no answer depends on earlier ones.
        """
        guesses = isinstance(reading, PromptTree)
        logits = reading.logits
        chains: dict[int, list[int]] = {index: [] for index in range(len(logits))}  # tokens read of each open prompt
        answers: dict[int, list[int]] = {index: [] for index in chains}
        found: dict[int, list[int] | None] = {}
        while True:
            best = check_finite(logits).topk(2, dim=-1)
            gaps = (best.values[:, 0] - best.values[:, 1]).tolist()
            scores = zip(best.indices[:, 0].tolist(), gaps, strict=True)
            staying: dict[int, list[int]] = {}
            for index, chain in chains.items():
                guessed, own = chain[1:], list(islice(scores, max(1, len(chain))))
                for at, (token, gap) in enumerate(own):
                    if gap < near_tie:
                        found[index] = None
                    elif self._ends(answers[index], token):
                        found[index] = answers[index]
                    elif at < len(guessed) and guessed[at] == token:
                        continue
                    else:
                        reading.drop(index, len(guessed) - at)
                        staying[index] = [token, *(self._guess(answers[index]) if guesses else ())]
                    break
            if not reading.has_room(sum(map(len, staying.values()))):
                staying = {index: chain[:1] for index, chain in staying.items()}
            if not staying or not reading.has_room(len(staying)):
                return found
            logits, chains = reading.go_on(staying), staying

    def _ends(self, answer: list[int], token: int) -> bool:
        """Add a token to an answer, and say whether it is complete."""
        if len(answer) < _GUESSED:
            self._followed_by[tuple(answer)] = token
        if token not in self._end_ids:
            answer.append(token)
        return token in self._end_ids or len(answer) >= self._n_new or self._is_done(answer)

    def _guess(self, answer: Sequence[int]) -> list[int]:
        """Return what came after these tokens when an answer last began so, without the token that ended it."""
        longer = list(answer)
        while (token := self._followed_by.get(tuple(longer))) is not None:
            if token in self._end_ids or len(longer) + 1 >= self._n_new or self._is_done([*longer, token]):
                break
            longer.append(token)
        return longer[len(answer) :]

    def _tensor(self, values: Any) -> Tensor:
        return self._torch.tensor(values, dtype=self._torch.long, device=self._model.device)


def check_finite(logits: Tensor) -> Tensor:
    if bool(logits.isnan().any()):
        raise ModelError(f"The model gave scores that are not finite (NaN), so it has no next word.\n{NOT_FINITE}")
    return logits


def _tried(rows: Sequence[Row], longest: int) -> Iterator[tuple[int, ...]]:
    """Yield a prompt as long as it may be, one that leaves it after few tokens, and more long ones.

    Together with the rows they make a tree of about the largest size. The second stands far away from its beginning.
    """
    tokens = [token for row in rows for token in row.ids]
    n_left = _TREE + _ANSWERS - len(grow([row.ids for row in rows]).ids) - 2 * len(rows) - _BRANCH
    start = 0
    while n_left > 0:
        long = tuple(tokens[(start + at) % len(tokens)] for at in range(min(longest - 1, n_left)))
        yield long
        if start == 0:
            yield (*long[: _BRANCH // 2], *long[::-1][: _BRANCH // 2])
        n_left, start = n_left - len(long) - 1, start + 1
