"""Prompts as rows of a batch, padded on the left. What they begin with alike is computed once."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bbnli_audit.models.protocol import Tensor

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


class PaddedPrompts:
    """Prompts that a model has read, and goes on with token by token."""

    def __init__(self, model: Any, rows: Sequence[Row]) -> None:
        import torch

        self._torch = torch
        self._model = model
        self._kept = list(range(len(rows)))  # the prompt of each row in the cache
        self.logits, self._state = self._prefill(rows)  # logits: of the token after each prompt, (n_rows, n_tokens)

    def has_room(self, n_rows: int) -> bool:
        """Say whether `n_rows` more tokens can be read."""
        return n_rows > 0

    def drop(self, row: int, n_tokens: int) -> None:
        """Forget the last tokens of a prompt's answer. Rows take no guesses, so there are none."""
        assert n_tokens <= 0, f"{n_tokens} tokens of row {row}"

    def go_on(self, chains: Mapping[int, Sequence[int]]) -> Tensor:
        """Read the next token of these prompts, and return the scores of the one after it, in their order."""
        tokens = {row: token for row, [token] in chains.items()}
        if len(self._kept) - len(tokens) >= _LEAVE_AT * len(self._kept):
            self._state = self._select(self._state, [at for at, row in enumerate(self._kept) if row in tokens])
            self._kept = [row for row in self._kept if row in tokens]
        ids = self._tensor([[tokens.get(row, 0)] for row in self._kept])
        logits, self._state = self._forward(ids, None, self._state)
        return logits[[self._kept.index(row) for row in tokens]]

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


def _shared(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the start that all rows share. It leaves each row at least one token to continue with.

    Tokens are compared, not characters: a tokenizer may join the end of the shared text with the next characters.
    """
    first, last = min(rows), max(rows)
    longest = min(map(len, rows)) - 1
    return first[: next((at for at in range(longest) if first[at] != last[at]), longest)]
