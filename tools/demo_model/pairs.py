"""The training and evaluation pairs, their split, and batches of similar length."""

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

LABELS = ("entailment", "neutral", "contradiction")
HALVES = ("snli_test_half", "mnli_matched_dev_half")
NEAR = ("snli_dev", "cad", "mnli_slice_train", "wanli")
"""Sources written like SNLI and MultiNLI; the others are mostly edited Wikipedia sentences."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise, a hypothesis and the place of the gold label in LABELS, -1 where there is none."""

    premise: str
    hypothesis: str
    label: int
    source: str


def data_folder() -> Path:
    """Find the folder with the pairs: `data/nli` below BBNLI_SHARED, by default ../shared."""
    return Path(os.environ.get("BBNLI_SHARED", "../shared")) / "data" / "nli"


def read_pairs(path: Path) -> list[Pair]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Pair(row["premise"], row["hypothesis"], LABELS.index(row["label"]), row["source"]) for row in rows]


def split(pairs: Sequence[Pair], share: float = 0.05) -> tuple[list[Pair], list[Pair]]:
    """Keep the pairs of a fixed share of premises out of training, to decide by.

    Only the SNLI and MultiNLI pairs of those premises are in the second list; their pairs from other sources are in
    neither.
    """

    def is_held(pair: Pair) -> bool:
        return zlib.crc32(" ".join(pair.premise.lower().split()).encode()) % 10_000 < share * 10_000

    held = [pair for pair in pairs if is_held(pair)]
    kept = [pair for pair in pairs if not is_held(pair)]
    return kept, [pair for pair in held if pair.source in ("snli_dev", "mnli_slice_train")]


def encode(tokenizer: Any, pairs: Sequence[Pair], max_length: int) -> list[tuple[list[int], list[int]]]:
    """Token ids and token types of every pair, without padding."""
    encoded = tokenizer(
        [p.premise for p in pairs], [p.hypothesis for p in pairs], truncation="longest_first", max_length=max_length
    )
    return list(zip(encoded["input_ids"], encoded["token_type_ids"], strict=True))


def batches_by_length(
    lengths: Sequence[int], batch_size: int, generator: np.random.Generator | None, pool: int = 50
) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """Batches of positions, similar in length; shuffled when a generator is given."""
    length = np.asarray(lengths)
    if generator is None:
        order = np.argsort(-length, kind="stable")
        yield from (order[i : i + batch_size] for i in range(0, len(order), batch_size))
        return
    order = generator.permutation(len(length))
    for start in range(0, len(order), batch_size * pool):
        part = order[start : start + batch_size * pool]
        part = part[np.argsort(length[part], kind="stable")]
        groups = [part[i : i + batch_size] for i in range(0, len(part), batch_size)]
        for at in generator.permutation(len(groups)):
            yield groups[at]


def pad(rows: Sequence[tuple[list[int], list[int]]], pad_id: int = 0) -> dict[str, "torch.Tensor"]:
    """One batch as the tensors a BERT model takes."""
    import torch

    longest = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), longest), pad_id, dtype=torch.long)
    types = torch.zeros((len(rows), longest), dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for at, (row_ids, row_types) in enumerate(rows):
        ids[at, : len(row_ids)] = torch.tensor(row_ids)
        types[at, : len(row_ids)] = torch.tensor(row_types)
        mask[at, : len(row_ids)] = 1
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
