"""The sentences of the training pairs, which words of them are masked, and how well a model finds those again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tools.demo_model.pairs import Pair, batches_by_length, data_folder, pad, read_pairs, split

SEED = 7
"""Draws the held-out words, for every run the same ones."""

Ids = list[int]


@dataclass(frozen=True, slots=True)
class MaskedWord:
    """Token ids of a sentence with one word masked, the place of the mask, and the token that was there."""

    ids: Ids
    place: int
    token: int


def sentences(pairs: Sequence[Pair]) -> list[str]:
    return sorted({text for pair in pairs for text in (pair.premise, pair.hypothesis)})


def gaps(text: str) -> set[int]:
    """Hashes of a sentence's words and of them with any one left open; shared if at most one word differs."""
    words = tuple(re.findall(r"\w+", text.lower()))
    return {hash(words)} | {hash((*words[:at], None, *words[at + 1 :])) for at in range(len(words))}


def read_sentences() -> tuple[list[str], list[str]]:
    """Distinct sentences to train on, and those of the held-out pairs that are not nearly among them.

    Some sources edit one word of a sentence of another source; a held-out sentence that differs from a training one in
    a single word is left out of both lists.
    """
    kept, held = split(read_pairs(data_folder() / "train.jsonl.gz"))
    training = sentences(kept)
    known = set().union(*map(gaps, training))
    return training, [text for text in sentences(held) if known.isdisjoint(gaps(text))]


def encode_sentences(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[Ids]:
    rows: list[Ids] = tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]
    return rows


def words_of(ids: Ids, pieces: Sequence[str]) -> list[list[int]]:
    """Places of each word's pieces, without special tokens and punctuation; `pieces` names every id."""
    words: list[list[int]] = []
    is_open = False
    for place, token in enumerate(ids):
        piece = pieces[token]
        if piece.startswith("##"):
            if is_open:
                words[-1].append(place)
        else:
            is_open = piece.isalnum()
            if is_open:
                words.append([place])
    return words


def mask_one_word_each(
    rows: Sequence[Ids], pieces: Sequence[str], mask: int, per_sentence: int = 2
) -> list[MaskedWord]:
    """Mask up to `per_sentence` words of each sentence, one at a time; only words of one piece."""
    generator = np.random.default_rng(SEED)
    found: list[MaskedWord] = []
    for ids in rows:
        whole = [word[0] for word in words_of(ids, pieces) if len(word) == 1]
        for place in generator.permutation(whole)[:per_sentence]:
            at = int(place)
            found.append(MaskedWord([*ids[:at], mask, *ids[at + 1 :]], at, ids[at]))
    return found


def log_frequencies(rows: Sequence[Ids], n_tokens: int) -> torch.Tensor:
    """Log of each token's share of the training sentences, with one added to every count."""
    counts = np.bincount(np.concatenate([np.asarray(ids[1:-1]) for ids in rows]), minlength=n_tokens) + 1
    return torch.from_numpy(np.log(counts / counts.sum())).float()


def score(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Sums over the rows of: right at first, right among twenty, negative log-likelihood."""
    best = logits.topk(20, dim=-1).indices == tokens.unsqueeze(1)
    loss = functional.cross_entropy(logits, tokens, reduction="sum")
    return torch.stack([best[:, 0].sum().float(), best.sum().float(), loss])


def figures(sums: torch.Tensor, n_words: int) -> dict[str, float]:
    values = (sums / n_words).tolist()
    return dict(zip(("top_1", "top_20", "loss"), values, strict=True))


@torch.inference_mode()
def measure(model: Any, words: Sequence[MaskedWord]) -> dict[str, float]:
    """Accuracy and mean loss of a masked language model over masked words."""
    was_training = model.training
    model.eval()
    sums = torch.zeros(3)
    for at in batches_by_length([len(word.ids) for word in words], 64, None):
        part = [words[i] for i in at]
        states = model.bert(**pad([(word.ids, [0] * len(word.ids)) for word in part])).last_hidden_state
        masked = states[torch.arange(len(part)), torch.tensor([word.place for word in part])]
        sums += score(model.cls(masked), torch.tensor([word.token for word in part]))
    model.train(was_training)
    return figures(sums, len(words))


def measure_frequencies(
    frequencies: torch.Tensor, pieces: Sequence[str], words: Sequence[MaskedWord]
) -> dict[str, float]:
    """The same figures for answering every mask with the most frequent words; punctuation and pieces do not count."""
    is_other = torch.tensor([not piece.isalnum() for piece in pieces])
    frequencies = functional.log_softmax(frequencies.masked_fill(is_other, float("-inf")), dim=0)
    tokens = torch.tensor([word.token for word in words])
    sums = torch.zeros(3)
    for start in range(0, len(tokens), 256):
        part = tokens[start : start + 256]
        sums += score(frequencies.expand(len(part), -1), part)
    return figures(sums, len(words))


def told(name: str, values: dict[str, float]) -> str:
    return f"{name}: top-1 {values['top_1']:.3f} top-20 {values['top_20']:.3f} loss {values['loss']:.3f}"
