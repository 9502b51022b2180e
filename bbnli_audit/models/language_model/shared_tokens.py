"""Finds the tokens that two sentences share. Uses numpy and a tokenizer, but no model."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product
from typing import Any, NamedTuple

from bbnli_audit.models.batches import TEXTS_AT_ONCE, chunks
from bbnli_audit.models.language_model.token_tree import n_alike
from bbnli_audit.models.protocol import Floats


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sentence:
    """The tokens of a sentence as a model reads them, including special tokens.

    `log_probabilities` are NaN until they are computed. They are then kept, because suites compare one sentence with
    many others.
    """

    ids: tuple[int, ...]
    log_probabilities: Floats


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SentencePair:
    """Two sentences, and the places of their shared tokens. Which sentence is first does not depend on the query."""

    first: Sentence
    second: Sentence
    shared: tuple[tuple[int, ...], tuple[int, ...]]
    is_truncated: bool

    @property
    def sides(self) -> tuple[tuple[Sentence, tuple[int, ...]], ...]:
        return (self.first, self.shared[0]), (self.second, self.shared[1])

    def anew(self) -> "SentencePair":
        """Return the same pair without log-probabilities."""
        return SentencePair(_unknown(self.first.ids), _unknown(self.second.ids), self.shared, self.is_truncated)


def _unknown(ids: tuple[int, ...]) -> Sentence:
    import numpy as np

    return Sentence(ids, np.full(len(ids), np.nan))


class Tokens(NamedTuple):
    ids: tuple[int, ...]
    is_truncated: bool


def shared_tokens(
    first: Sequence[int], second: Sequence[int], special: Collection[int] = (), *, left_to_right: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the places of the tokens that two rows share in the same order: their places in `first` and in `second`.

    If the only difference is that two runs of tokens, with a middle between them, have changed places, all other tokens
    are shared. (A matcher would often match a group's name with the same name in its new place.) Otherwise tokens are
    matched as in CrowS-Pairs, by blocks, the longest first. Swapping the rows swaps the result, which difflib alone
    does not guarantee.

    `special` ids are never shared: tokens that a tokenizer adds, and the token for unknown words, because two unknown
    words may differ. With `left_to_right`, each token is predicted only from the tokens before it. So a beginning that
    both rows share is equally likely in both. It is left out, so that rounding does not decide. The first token of each
    row is left out because no token precedes it.
    """
    if tuple(second) < tuple(first):
        found_second, found_first = shared_tokens(second, first, special, left_to_right=left_to_right)
        return found_first, found_second
    blocks = _around_exchange(first, second)
    if blocks is None:
        blocks = list(SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks())
    places = [(a + step, b + step) for a, b, size in blocks for step in range(size) if first[a + step] not in special]
    if left_to_right:
        n_start = n_alike(first, second)
        places = [(a, b) for a, b in places if a > 0 and b > 0 and not (a == b and a < n_start)]
    return tuple(a for a, _ in places), tuple(b for _, b in places)


def _around_exchange(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Find the shortest x and y for which one row is `start x middle y end` and the other `start y middle x end`.

    Return start, middle and end as blocks (place in the first row, in the second, size). Return None if no such x and y
    leave a middle.
    """
    if sorted(first) != sorted(second):
        return None
    n_start = n_alike(first, second)
    n_end = n_alike(first[n_start:][::-1], second[n_start:][::-1])
    one, other = (list(row[n_start : len(row) - n_end]) for row in (first, second))
    n_core = len(one)
    x_sizes = [size for size in range(1, n_core) if one[:size] == other[n_core - size :]]
    y_sizes = [size for size in range(1, n_core) if one[n_core - size :] == other[:size]]
    for x, y in sorted(product(x_sizes, y_sizes), key=sum):
        middle = n_core - x - y
        if middle > 0 and one[x : x + middle] == other[y : y + middle]:
            end = n_start + n_core
            return [(0, 0, n_start), (n_start + x, n_start + y, middle), (end, end, n_end)]
    return None


def pair_up(
    texts: Iterable[tuple[str, str]],
    encode: Callable[[Sequence[str]], list[Tokens]],
    special: Collection[int],
    *,
    left_to_right: bool,
) -> dict[tuple[str, str], SentencePair]:
    """Make each unordered pair of sentences once, keyed by the two sentences in alphabetical order."""
    keys = list(dict.fromkeys(in_order(*pair) for pair in texts))
    sentences = list(dict.fromkeys(sentence for key in keys for sentence in key))
    tokens = dict(zip(sentences, encode(sentences), strict=True))
    # Compare tokens, not text: an uncased model reads "Zorbs" and "zorbs" alike, and cannot prefer either.
    by_ids = {found.ids: _unknown(found.ids) for found in tokens.values()}
    pairs = {}
    for key in keys:
        first, second = (tokens[sentence] for sentence in key)
        shared: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        if first.ids != second.ids:
            shared = shared_tokens(first.ids, second.ids, special, left_to_right=left_to_right)
        is_truncated = first.is_truncated or second.is_truncated
        pairs[key] = SentencePair(by_ids[first.ids], by_ids[second.ids], shared, is_truncated)
    return pairs


def in_order(sentence: str, other: str) -> tuple[str, str]:
    return (sentence, other) if sentence <= other else (other, sentence)


class SentenceEncoder:
    """A tokenizer with its model's maximum length. A sentence is always tokenized as a whole."""

    def __init__(self, tokenizer: Any, max_length: int, *, left_to_right: bool) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._left_to_right = left_to_right
        bos_id = tokenizer.bos_token_id
        self._start: tuple[int, ...] = () if bos_id is None else (bos_id,)
        self.special = frozenset(tokenizer.all_special_ids)

    def encode(self, sentences: Sequence[str]) -> list[Tokens]:
        found: list[Tokens] = []
        for some in chunks(sentences, TEXTS_AT_ONCE):
            # We add the first token ourselves, because only some causal models' tokenizers add it.
            encoded = self._tokenizer(list(some), verbose=False, add_special_tokens=not self._left_to_right)
            found.extend(self._cut(sentence, ids) for sentence, ids in zip(some, encoded["input_ids"], strict=True))
        return found

    def _cut(self, sentence: str, ids: Sequence[int]) -> Tokens:
        whole = (*self._start, *ids) if self._left_to_right else tuple(ids)
        if len(whole) <= self._max_length:
            return Tokens(whole, is_truncated=False)
        if self._left_to_right:
            return Tokens(whole[: self._max_length], is_truncated=True)
        # Unlike a slice, the tokenizer keeps the special token at the end.
        cut = self._tokenizer(sentence, truncation=True, max_length=self._max_length)["input_ids"]
        return Tokens(tuple(cut), is_truncated=True)
