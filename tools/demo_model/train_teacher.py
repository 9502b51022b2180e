"""Tune all-MiniLM-L6-v2 as a three-way cross-encoder on the training pairs.

One pass: every SNLI- and MultiNLI-like pair `--near-passes` times, every other pair with the chance `--far-share`.
The learning rate falls linearly and reaches zero at the last step.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tools.demo_model import parallel
from tools.demo_model.pairs import NEAR, Pair, batches_by_length, data_folder, encode, pad, read_pairs, split
from tools.demo_model.teacher import Teacher, new_teacher

Encoded = tuple[list[tuple[list[int], list[int]]], list[int]]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=Path, help="folder with all-MiniLM-L6-v2")
    parser.add_argument("out", type=Path, help="file for the tuned weights")
    parser.add_argument("--near-passes", type=float, default=1.7)
    parser.add_argument("--far-share", type=float, default=0.2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--head-lr", type=float, default=5e-4)
    parser.add_argument("--max-length", type=int, default=80)
    parser.add_argument("--frozen-layers", type=int, default=2, help="lowest layers to leave as they are")
    parser.add_argument("--max-steps", type=int, default=0, help="end the schedule here; 0 for all pairs")
    parser.add_argument("--minutes", type=float, default=0, help="end the schedule here at the latest; 0 for no limit")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=20)
    return parser.parse_args()


def choose(pairs: list[Pair], near_passes: float, far_share: float, generator: np.random.Generator) -> list[int]:
    """Positions of the pairs of the run; a pair that is read twice is there twice, in two different parts."""
    near = np.array([at for at, pair in enumerate(pairs) if pair.source in NEAR])
    far = np.array([at for at, pair in enumerate(pairs) if pair.source not in NEAR])
    far = generator.permutation(far)[: int(len(far) * far_share)]
    whole, rest = int(near_passes), near_passes - int(near_passes)
    parts = [near] * whole + [generator.permutation(near)[: int(len(near) * rest)]]
    slices = np.array_split(far, len(parts))
    order = [generator.permutation(np.concatenate([a, b])) for a, b in zip(parts, slices, strict=True)]
    return [int(at) for at in np.concatenate(order)]


@torch.inference_mode()
def accuracy(teacher: Teacher, rows: list[tuple[list[int], list[int]]], labels: list[int]) -> float:
    """Share of right answers."""
    teacher.eval()
    right = 0
    for at in batches_by_length([len(ids) for ids, _ in rows], 64, None):
        answers = teacher(**pad([rows[i] for i in at])).argmax(-1).tolist()
        right += sum(answer == labels[i] for answer, i in zip(answers, at, strict=True))
    return right / len(rows)


def train(rank: int, world: int, args: argparse.Namespace, teacher: Teacher, run: Encoded, held: Encoded) -> None:
    """Train this process's share of every batch; the first process reports and saves."""
    rows, labels = run
    generator = np.random.default_rng(args.seed)
    batches: list[Any] = []
    pool = args.batch_size * 50
    for start in range(0, len(rows), pool):
        lengths = [len(ids) for ids, _ in rows[start : start + pool]]
        batches += [start + at for at in batches_by_length(lengths, args.batch_size, generator)]
    batches = [at for at in batches if len(at) == args.batch_size][: args.max_steps or None]
    torch.manual_seed(args.seed + rank)
    encoder = [p for p in teacher.encoder.parameters() if p.requires_grad]
    head = list(teacher.head.parameters())
    groups = [{"params": encoder, "peak": args.lr}, {"params": head, "peak": args.head_lr}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, foreach=True)
    teacher.train()

    def loss_of_batch(at: Sequence[int]) -> torch.Tensor:
        gold = torch.tensor([labels[i] for i in at])
        return functional.cross_entropy(teacher(**pad([rows[i] for i in at])), gold)

    def checkpoint() -> None:
        torch.save(teacher.state_dict(), args.out)
        print(f"held-out accuracy {accuracy(teacher, *held):.3f}", flush=True)

    parallel.descend(rank, world, batches, loss_of_batch, optimizer, args.minutes, checkpoint)


def main() -> None:
    args = parse()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    kept, held = split(read_pairs(data_folder() / "train.jsonl.gz"))
    teacher, tokenizer = new_teacher(args.encoder)
    for layer in teacher.encoder.encoder.layer[: args.frozen_layers]:
        layer.requires_grad_(False)
    run = [kept[at] for at in choose(kept, args.near_passes, args.far_share, np.random.default_rng(args.seed))]
    print(f"{len(run)} pairs, {len(held)} held out", flush=True)
    encoded = [(encode(tokenizer, pairs, args.max_length), [pair.label for pair in pairs]) for pairs in (run, held)]
    parallel.run(train, args.processes, args, teacher, *encoded)


if __name__ == "__main__":
    main()
