"""Decodes greedily with torch. The shared start of prompts is computed once, and no answer depends on the batch.

Rounding differs a little with the rows of a batch, its padding and a shared start. This matters only if two tokens are
nearly tied. So a text with such a near tie is decoded again, alone and in the plain way.
"""

from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

from bbnli_audit.core.errors import ModelError
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.protocol import NOT_FINITE, Tensor

# In float32 the logits of this project's models differ by about 1e-5 between batches.
NEAR_TIE = 1e-3
# Finished rows are removed once they make up this share of a batch: removing rows copies the cache.
_LEAVE_AT = 0.25


class Row(NamedTuple):
    """A prompt as tokens. Rows of one group have the same beginning."""

    ids: tuple[int, ...]
    group: int


class _State(NamedTuple):
    """A model's state: its cache, and which places in it hold tokens rather than padding."""

    cache: Any
    mask: Tensor


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
        self.n_alone = 0  # texts decoded again because of a near tie, for tests and benchmarks

    def decode(self, rows: Sequence[Row]) -> list[list[int]]:
        """Return the tokens that follow each prompt."""
        found = self._go_on(rows, NEAR_TIE)
        for index in sorted(set(range(len(rows))) - found.keys()):
            self.n_alone += 1
            found[index] = self.decode_plain(rows[index].ids)
        return [found[index] for index in range(len(rows))]

    def decode_plain(self, ids: Sequence[int]) -> list[int]:
        """Decode one prompt by itself, from its first token to its last."""
        return self._go_on([Row(tuple(ids), 0)], 0.0)[0]

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
        if is_cached:
            return self._prefill(rows)[0]
        return self._torch.stack([self._uncached_logits(row.ids) for row in rows])

    def is_cacheable(self, rows: Sequence[Row]) -> bool:
        """Say whether a shared start, padding and a cache leave this architecture's results unchanged."""
        short, long = (choose(rows, key=lambda row: len(row.ids)) for choose in (min, max))
        self._copies.find_state(lambda model: [self.plain_logits(row.ids, model) for row in (short, long)])
        if self._copies.has_state:
            return False
        try:
            logits, state = self._prefill(rows)
            tokens = logits.argmax(dim=-1).tolist()
            after, _ = self._forward(self._tensor([[token] for token in tokens]), None, state)
        except (AttributeError, TypeError, ValueError, NotImplementedError):
            return False  # no such cache, or no position ids
        longer = [Row((*row.ids, token), row.group) for row, token in zip(rows, tokens, strict=True)]
        plain = self._torch.cat([self.next_logits(some, is_cached=False) for some in (rows, longer)])
        scale = max(1.0, float(plain.abs().max()))
        return bool((self._torch.cat([logits, after]) - plain).abs().max() < NEAR_TIE * scale)

    def plain_logits(self, ids: Sequence[int], model: Any | None = None) -> Tensor:
        """Return the scores of the token after a prompt, computed alone, with a model that has computed nothing yet."""
        model = self._copies.make() if model is None else model
        with self._torch.inference_mode():
            logits: Tensor = model(input_ids=self._tensor([ids]), use_cache=False).logits[0, -1]
            return logits

    def _uncached_logits(self, ids: Sequence[int]) -> Tensor:
        return self.plain_logits(ids, self._copies.for_use())

    def _prefill(self, rows: Sequence[Row]) -> tuple[Tensor, _State]:
        """Read the prompts: first the start that all rows share, then that of each group, then the rest of each row."""
        groups: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            groups.setdefault(row.group, []).append(index)
        common = _shared([row.ids for row in rows]) if len(rows) > 1 else ()
        state, starts = self._read([common], _State(None, self._tensor([[]]))), [common] * len(rows)
        read_by = [0] * len(rows)  # the row of the state from which each prompt continues
        if 1 < len(groups) < len(rows):
            found = [_shared([rows[index].ids for index in members]) for members in groups.values()]
            state = self._read([start[len(common) :] for start in found], self._select(state, [0] * len(found)))
            for at, members in enumerate(groups.values()):
                for index in members:
                    starts[index], read_by[index] = found[at], at
        rests = [row.ids[len(start) :] for row, start in zip(rows, starts, strict=True)]
        return self._forward(*self._left_padded(rests), self._select(state, read_by))

    def _read(self, rows: Sequence[Sequence[int]], state: _State) -> _State:
        return self._forward(*self._left_padded(rows), state)[1] if any(rows) else state

    def _go_on(self, rows: Sequence[Row], near_tie: float) -> dict[int, list[int]]:
        """Decode prompts, and return the new tokens by prompt index. Prompts with a near tie are left out."""
        logits, state = self._prefill(rows)
        open_rows = list(range(len(rows)))
        answers: dict[int, list[int]] = {index: [] for index in open_rows}
        found: dict[int, list[int]] = {}
        left: set[int] = set()
        while True:
            best = check_finite(logits).topk(2, dim=-1)
            tokens, gaps = best.indices[:, 0].tolist(), (best.values[:, 0] - best.values[:, 1]).tolist()
            for index, token, gap in zip(open_rows, tokens, gaps, strict=True):
                if index in left or index in found:
                    continue
                if gap < near_tie:
                    left.add(index)
                    continue
                if token not in self._end_ids:
                    answers[index].append(token)
                if token in self._end_ids or len(answers[index]) >= self._n_new or self._is_done(answers[index]):
                    found[index] = answers[index]
            staying = [at for at, index in enumerate(open_rows) if index not in left and index not in found]
            if not staying:
                return found
            if len(open_rows) - len(staying) >= _LEAVE_AT * len(open_rows):
                state = self._select(state, staying)
                open_rows, tokens = [open_rows[at] for at in staying], [tokens[at] for at in staying]
            logits, state = self._forward(self._tensor([[token] for token in tokens]), None, state)

    def _forward(self, ids: Tensor, own_mask: "Tensor | None", state: _State) -> tuple[Tensor, _State]:
        mask = self._torch.cat([state.mask, self._torch.ones_like(ids) if own_mask is None else own_mask], dim=1)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        how = {"past_key_values": state.cache, "use_cache": True, "logits_to_keep": 1}
        with self._torch.inference_mode():
            out = self._model(input_ids=ids, attention_mask=mask, position_ids=positions, **how)
        return out.logits[:, -1], _State(out.past_key_values, mask)

    def _select(self, state: _State, rows: Sequence[int]) -> _State:
        indices = self._tensor(rows)
        if state.cache is not None:
            with self._torch.inference_mode():
                state.cache.batch_select_indices(indices)
        return _State(state.cache, state.mask[indices])

    def _left_padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        width = max(map(len, rows))
        ids = self._tensor([[0] * (width - len(row)) + list(row) for row in rows])
        return ids, self._tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])

    def _tensor(self, values: Any) -> Tensor:
        return self._torch.tensor(values, dtype=self._torch.long, device=self._model.device)


def check_finite(logits: Tensor) -> Tensor:
    if bool(logits.isnan().any()):
        raise ModelError(f"The model gave scores that are not finite (NaN), so it has no next word.\n{NOT_FINITE}")
    return logits


def _shared(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the start that all rows share. It leaves each row at least one token to continue with.

    Tokens are compared, not characters: a tokenizer may join the end of the shared text with the next characters.
    """
    first, last = min(rows), max(rows)
    longest = min(map(len, rows)) - 1
    return first[: next((at for at in range(longest) if first[at] != last[at]), longest)]
