"""Computes the log-probabilities of a sentence's tokens with torch, by a masked or causal language model."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from itertools import islice, product
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from bbnli_audit.core.errors import ModelError
from bbnli_audit.models.batches import MIN_ROWS, cut_by_length, fill_up, tokens_at_once
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.language_model.shared_tokens import Sentence, SentenceEncoder
from bbnli_audit.models.language_model.token_tree import TokenTree, as_mask, cut_into_trees, grow
from bbnli_audit.models.loading import WHOLE_MACHINE, Share, load_pretrained, one_core_each, place, telling_breaks
from bbnli_audit.models.protocol import NOT_FINITE, Floats, Tensor

_LONG = 256  # tokens of the long sequence that `_find_state` tries
# The most tokens of a tree, that is, of sentences that are read as one row. Attention is computed for all pairs of
# tokens, so larger rows are slower. Measured at MiniLM's size, 256 and 512 are best.
_TREE = 512
# The most outputs of a batch (tokens times vocabulary, 4 bytes each) if the head computes them for all tokens.
_CPU_OUTPUTS, _GPU_OUTPUTS = 1 << 25, 1 << 28


class _Row(NamedTuple):
    """A sequence for the model, and the places whose tokens get a probability from it."""

    sentence: Sentence
    ids: tuple[int, ...]
    places: Sequence[int]


class LanguageModel:
    """A language model in float32. Threads may use it at the same time."""

    def __init__(
        self, name: str, folder: Path, *, is_causal: bool, device: str = "auto", share: Share = WHOLE_MACHINE
    ) -> None:
        self._name = name
        self._is_causal = is_causal
        self._model, tokenizer, max_length = load_pretrained(name, folder, "CausalLM" if is_causal else "MaskedLM")
        import torch

        self._torch = torch
        self.tokenizer = tokenizer
        self._mask_id = tokenizer.mask_token_id
        if not is_causal and self._mask_id is None:
            advice = "Set tokenizer.mask_token to the one that the model was trained with, and save it again."
            raise ModelError(f"--model={name}: its tokenizer has no mask token, so words cannot be masked.\n{advice}")
        self._device, self.n_threads = place(self._model, device, share)
        self.is_on_cpu = self._device.type == "cpu"
        self._copies = FreshCopies(self._model)
        self.encoder = SentenceEncoder(tokenizer, max_length, left_to_right=is_causal)
        self._wanted = threading.local()  # for this thread: the place in each row whose outputs are needed
        self.n_tokens = tokens_at_once(self.is_on_cpu)
        self._is_head_short = False
        self._keeps_some = "logits_to_keep" in signature(self._model.forward).parameters
        self.shares_beginnings, self._largest_tree = False, 0
        sample = self._sample(len(tokenizer))
        with one_core_each(self.is_on_cpu):
            self._find_state(sample[0], max_length)
            if is_causal:
                self._check_direction(sample)
                self.shares_beginnings = self._reads_trees(sample, max_length)
            elif not self._copies.has_state:
                self._is_head_short = self._shorten_head(sample)
            if not self._is_head_short:
                n_outputs = _CPU_OUTPUTS if self.is_on_cpu else _GPU_OUTPUTS
                self.n_tokens = min(self.n_tokens, n_outputs // len(tokenizer))

    def cost(self, sentence: Sentence, places: Sequence[int]) -> int:
        """Return how many tokens the model must read for the log-probabilities at these places."""
        if self._is_causal:
            return len(sentence.ids) if places else 0
        return len(sentence.ids) * len(places)

    def fill(self, wanted: Sequence[tuple[Sentence, Sequence[int]]]) -> None:
        """Compute the log-probabilities of sentences at these places, unless they are known already."""
        import numpy as np

        missing: dict[Sentence, set[int]] = {}
        for sentence, places in wanted:
            unknown = {place for place in places if np.isnan(sentence.log_probabilities[place])}
            missing.setdefault(sentence, set()).update(unknown)
        if self.shares_beginnings:
            short = {sentence: places for sentence, places in missing.items() if len(sentence.ids) <= self._tree_size}
            self._fill_trees({sentence: sorted(places) for sentence, places in short.items() if places})
            missing = {sentence: places for sentence, places in missing.items() if sentence not in short}
        rows = [row for sentence, places in missing.items() for row in self._rows(sentence, sorted(places))]
        # A causal batch computes outputs from its earliest place on, so rows with similar places go together.
        rows.sort(key=lambda row: row.places[0])
        for chosen in cut_by_length([len(row.ids) for row in rows], self.n_tokens):
            some = [rows[at] for at in chosen]
            for row, found in zip(some, self._log_probabilities(some), strict=True):
                row.sentence.log_probabilities[list(row.places)] = found

    def score_plainly(self, sentence: Sentence, places: Sequence[int]) -> float:
        """Return the sum of the log-probabilities at these places, computed one row at a time with a fresh model."""
        model, found = self._copies.make(), dict.fromkeys(places, 0.0)
        with one_core_each(self.is_on_cpu), self._torch.inference_mode():
            for row in self._rows(sentence, places):
                at = slice(-len(row.places), None) if self._is_causal else list(row.places)
                logits = model(input_ids=self._torch.tensor([row.ids], device=self._device)).logits[0][at]
                found.update(zip(row.places, self._gather(logits, row), strict=True))
        return sum(found[place] for place in places)

    def read_masks(self, rows: Sequence[Sequence[int]], tokens: Sequence[int]) -> Iterator[tuple[list[int], Floats]]:
        """Yield indices of some `rows`, and the probabilities of `tokens` at these rows' masks: (n_rows, n_tokens)."""
        import numpy as np

        chosen_tokens = self._torch.tensor(list(tokens), device=self._device)
        for chosen in cut_by_length([len(row) for row in rows], self.n_tokens):
            filled = [rows[at] for at in fill_up(chosen)]
            breaks = telling_breaks(self._name, "sentences", [len(rows[at]) for at in chosen])
            with breaks, one_core_each(self.is_on_cpu), self._torch.inference_mode():
                outputs = self._outputs(filled, [list(row).index(self._mask_id) for row in filled])
                found = outputs[: len(chosen), 0].double().softmax(dim=-1)[:, chosen_tokens].cpu().numpy()
            if not np.isfinite(found).all():
                raise ModelError(f"{self._name} gives tokens probabilities that are not finite.\n{NOT_FINITE}")
            yield chosen, found

    @property
    def _tree_size(self) -> int:
        return min(self._largest_tree, self.n_tokens)

    def _fill_trees(self, missing: Mapping[Sentence, Sequence[int]]) -> None:
        """Compute log-probabilities with a causal model. A beginning that sentences share is computed once."""
        ordered = sorted(missing, key=lambda sentence: sentence.ids)
        read = [sentence.ids[: missing[sentence][-1]] for sentence in ordered]
        for chosen in cut_into_trees(read, self._tree_size):
            tree = grow([read[at] for at in chosen], MIN_ROWS)
            rows = [_Row(ordered[at], read[at], missing[ordered[at]]) for at in chosen]
            with telling_breaks(self._name, "sentences", [len(row.ids) for row in rows]), self._torch.inference_mode():
                self._fill_tree(tree, rows)

    def _fill_tree(self, tree: TokenTree, rows: Sequence[_Row]) -> None:
        # A token is predicted from the place before it. Sentences that go on differently share that place's outputs.
        nodes = [[path[place - 1] for place in row.places] for path, row in zip(tree.paths, rows, strict=True)]
        wanted = fill_up(sorted({node for some in nodes for node in some}))
        logits = self._tree_outputs(tree, wanted)
        totals, at_of = logits.logsumexp(dim=-1).double(), {node: at for at, node in enumerate(wanted)}
        for row, some in zip(rows, nodes, strict=True):
            at = [at_of[node] for node in some]
            own = logits[at, [row.sentence.ids[place] for place in row.places]].double() - totals[at]
            row.sentence.log_probabilities[list(row.places)] = own.cpu().numpy()

    def _tree_outputs(self, tree: TokenTree, wanted: Sequence[int]) -> Tensor:
        """Return the outputs at the wanted places of a tree: (n_wanted, n_tokens)."""
        torch, device = self._torch, self._device
        logits: Tensor = self._model(
            input_ids=torch.tensor([tree.ids], device=device),
            attention_mask=as_mask(tree.visible(), device),
            position_ids=torch.tensor([tree.depths], device=device),
            use_cache=False,
            logits_to_keep=torch.tensor(wanted, device=device),
        ).logits[0]
        return logits

    def _reads_trees(self, sample: list[list[int]], max_length: int) -> bool:
        """Say whether this architecture gives sentences the same outputs in one row as alone.

        Try it with a row as long as any later one, because attention may be limited to tokens that are near in the row
        or in the sentence. Return False on a graphics card, where many rows at once are faster.
        """
        n_long = min(max_length, _TREE - 4 * MIN_ROWS)
        if not self.is_on_cpu or self._copies.has_state or not self._keeps_some or n_long < 2 * MIN_ROWS:
            return False
        sentences = list(_branching(sample, n_long))
        tree = grow(sentences)
        tried = [(path[-2 * MIN_ROWS :], ids) for path, ids in zip(tree.paths, sentences, strict=True)]
        tried = [tried[0], tried[1], tried[-1]]
        try:
            with self._torch.inference_mode():
                packed = self._tree_outputs(tree, [node for path, _ in tried for node in path])
                alone = (
                    self._model(input_ids=self._torch.tensor([ids])).logits[0, -len(path) :] for path, ids in tried
                )
                is_same = self._torch.allclose(packed, self._torch.cat(list(alone)), atol=1e-4, equal_nan=True)
        except (RuntimeError, IndexError, AttributeError, TypeError, ValueError, NotImplementedError):
            return False
        self._largest_tree = len(tree.ids)
        return is_same

    def _rows(self, sentence: Sentence, places: Sequence[int]) -> list[_Row]:
        """Return the sequences that the model must read for the tokens at these places.

        A masked model reads one copy of the sentence for each place, with the token there masked. A causal model reads
        one sequence. Its outputs are computed only from the first place on.
        """
        ids = sentence.ids
        if not places:
            return []
        if self._is_causal:
            return [_Row(sentence, ids[:-1], range(min(places), len(ids)))]
        return [_Row(sentence, (*ids[:place], self._mask_id, *ids[place + 1 :]), (place,)) for place in places]

    def _log_probabilities(self, rows: Sequence[_Row]) -> list[list[float]]:
        """Return the log-probabilities of rows of one length. No row depends on the others.

        So nothing is padded, and every matrix product has at least MIN_ROWS rows. The product in the head has the
        fewest rows: one for each place of each sequence.
        """
        n_kept, found = max(len(row.places) for row in rows), []
        filled = fill_up(rows, ceil(MIN_ROWS / n_kept))
        breaks = telling_breaks(self._name, "sentences", [len(row.ids) for row in rows])
        with breaks, self._torch.inference_mode():
            at = None if self._is_causal else [row.places[0] for row in filled]
            outputs = self._outputs([row.ids for row in filled], at, n_kept)
            for row, logits in zip(rows, outputs, strict=False):
                found.append(self._gather(logits[-len(row.places) :], row))
        return found

    def _gather(self, logits: Tensor, row: _Row) -> list[float]:
        """Return the log-probabilities of a row's tokens at its places, given the outputs at these places."""
        tokens = self._torch.tensor([row.sentence.ids[place] for place in row.places], device=self._device)
        # Only two numbers per token are converted to double precision. For a small model, a softmax in double precision
        # would take a fifth of the time.
        own = logits.gather(1, tokens[:, None])[:, 0].double() - logits.logsumexp(dim=-1).double()
        found: list[float] = own.tolist()
        return found

    def _outputs(self, ids: Sequence[Sequence[int]], at: Sequence[int] | None, n_kept: int = 0) -> Tensor:
        """Return the outputs of each row at its place in `at`, or at its last `n_kept` places (0 for all).

        Shape: (n_rows, n_places, n_tokens). A model that cannot leave out places returns all.
        """
        tokens, model = self._torch.tensor(ids, device=self._device), self._copies.for_use()
        options: dict[str, Any] = {"use_cache": False} if self._is_causal else {}
        if self._is_causal and self._keeps_some:
            options["logits_to_keep"] = n_kept
        self._wanted.at = at if self._is_head_short else None
        try:
            logits = model(input_ids=tokens, attention_mask=self._torch.ones_like(tokens), **options).logits
        finally:
            self._wanted.at = None
        found: Tensor = logits if at is None or self._is_head_short else logits[range(len(at)), at][:, None]
        return found

    def _find_state(self, short: Sequence[int], max_length: int) -> None:
        """Find out whether the model keeps state after a short or a long sequence."""
        long = [*short] * max(1, min(_LONG, max_length) // len(short))
        rows = [self._torch.tensor([ids], device=self._device) for ids in (short, long)]
        with self._torch.inference_mode():
            self._copies.find_state(lambda model: [model(input_ids=row) for row in rows])

    def _shorten_head(self, sample: list[list[int]]) -> bool:
        """Let the head compute outputs for the masked tokens only, if this gives the same outputs."""
        head = self._model.get_output_embeddings()
        if head is None:
            return False

        def select(_module: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            at = getattr(self._wanted, "at", None)
            return None if at is None else (inputs[0][range(len(at)), at][:, None], *inputs[1:])

        handle = head.register_forward_pre_hook(select)
        at = list(range(len(sample)))
        try:
            with self._torch.inference_mode():
                plain = self._outputs(sample, at)
                self._is_head_short = True
                short = self._outputs(sample, at)
            # Damaged weights give NaN in both outputs. Such a model is refused when sentences are scored.
            is_same = plain.shape == short.shape and self._torch.allclose(plain, short, atol=1e-4, equal_nan=True)
        except (RuntimeError, IndexError, AttributeError, TypeError):
            is_same = False
        if not is_same:
            handle.remove()
        return is_same

    def _check_direction(self, sample: list[list[int]]) -> None:
        """Refuse a causal model that sees later tokens: an encoder may be saved under a causal head's name."""
        other = [[*row[:-1], row[0]] for row in sample]
        with self._torch.inference_mode():
            before, after = (self._outputs(rows, None)[:, :-1] for rows in (sample, other))
        if not self._torch.allclose(before, after, atol=1e-3, equal_nan=True):
            raise ModelError(
                f"--model={self._name}: its outputs for a token depend on the tokens after it, so they are not "
                "probabilities of the next token.\nIf it is an encoder for masked words, its config.json should name "
                "…ForMaskedLM; a decoder may need is_decoder: true there."
            )

    def _sample(self, n_vocabulary: int) -> list[list[int]]:
        """Make MIN_ROWS sequences of MIN_ROWS tokens. In a sequence all tokens differ, if the vocabulary suffices."""
        ordinary = [token for token in range(n_vocabulary) if token not in self.encoder.special][: 2 * MIN_ROWS]
        return [[ordinary[(row + place) % len(ordinary)] for place in range(MIN_ROWS)] for row in range(MIN_ROWS)]


def _branching(sample: Sequence[Sequence[int]], n_long: int) -> Iterator[list[int]]:
    """Yield a long sentence, and others that begin with its first 8, 24, … tokens: a tree of about _TREE tokens."""
    long = [token for row in sample for token in row] * (n_long // len(sample) ** 2 + 1)
    yield long[:n_long]
    n_left = (_TREE - n_long) // MIN_ROWS
    starts = range(MIN_ROWS // 2, n_long - MIN_ROWS, MIN_ROWS)
    for row, start in islice(product(sample[1:], starts), n_left):
        # The row is reversed, so that this sentence goes on differently from the long one.
        yield [*long[:start], *reversed(row)]
