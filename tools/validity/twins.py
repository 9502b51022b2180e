"""Twins: the two sides of a planted pair, read side by side in one batch.

They differ in the group alone. A second loss asks which of the two is entailed. What else is in them cancels out, so
what is left to learn is the group. Without it a small model learns that such sentences are not neutral, and no more.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.nn import functional


def batches_with_twins(
    pairs: Sequence[int | None], size: int, generator: np.random.Generator
) -> Iterator[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Cut examples into batches by chance; those with the number of one pair stand side by side."""
    units: dict[int, list[int]] = {}
    for at, pair in enumerate(pairs):
        units.setdefault(-1 - at if pair is None else pair, []).append(at)
    members = list(units.values())
    batch: list[int] = []
    for unit in generator.permutation(len(members)):
        batch += members[unit]
        if len(batch) >= size:
            yield np.array(batch)
            batch = []
    if batch:
        yield np.array(batch)


def find_twins(pairs: Sequence[int | None], targets: Sequence[int], entailed: int) -> list[tuple[int, int]]:
    """Return the places of twins in a batch, the entailed one first. Pairs whose sides have one label are none."""
    return [
        (at, at + 1) if targets[at] == entailed else (at + 1, at)
        for at in range(len(pairs) - 1)
        if pairs[at] is not None and pairs[at] == pairs[at + 1] and targets[at] != targets[at + 1]
    ]


def twin_loss(logits: torch.Tensor, twins: Sequence[tuple[int, int]], entailed: int, other: int) -> torch.Tensor:
    """Return the mean over a batch of the loss of the question which of two twins is entailed."""
    lead = logits[:, entailed] - logits[:, other]
    if not twins:
        return lead.sum() * 0.0
    right, wrong = (torch.tensor(places) for places in zip(*twins, strict=True))
    return functional.softplus(lead[wrong] - lead[right]).sum() / len(logits)
