"""Train a larger demo model on NLI pairs and made reading items, and write the checkpoint folder."""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoTokenizer

from tools.demo_model import parallel, reading
from tools.demo_model.distil import accuracy, save
from tools.demo_model.model import new_model
from tools.demo_model.pairs import NEAR, Pair, batches_by_length, data_folder, encode, pad, read_pairs, split
from tools.demo_model.student import find_vocabulary, write_tokenizer

Encoded = tuple[list[tuple[list[int], list[int]]], list[int]]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", type=Path, help="folder with all-MiniLM-L6-v2")
    parser.add_argument("out", type=Path, help="folder for the checkpoint")
    parser.add_argument("--start", type=Path, help="a checkpoint to go on from, with as many layers")
    parser.add_argument("--reading", type=int, default=0, help="reading items of each pass over them")
    parser.add_argument("--reading-passes", type=int, default=1, help="how often they are read, each time made anew")
    parser.add_argument("--all-frames", action="store_true", help="make them from the held-out frames too")
    parser.add_argument("--vocabulary", type=int, default=12_000)
    parser.add_argument("--layers", type=int, nargs="+", default=[0, 3, 5], help="which of the encoder's")
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--near-passes", type=float, default=2, help="how often SNLI- and MultiNLI-like pairs are read")
    parser.add_argument("--far-passes", type=float, default=0.5, help="how often all other pairs are read")
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--head-lr", type=float, default=5e-4)
    parser.add_argument("--max-length", type=int, default=72)
    parser.add_argument("--max-steps", type=int, default=0, help="end the schedule here; 0 for all pairs")
    parser.add_argument("--minutes", type=float, default=0, help="end the schedule here at the latest; 0 for no limit")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=31)
    return parser.parse_args()


def choose(pairs: list[Pair], near: float, far: float, generator: np.random.Generator) -> list[Pair]:
    """Every pair as often as its source is read; of a broken number, the rest is the chance of one more time."""
    passes = np.array([near if pair.source in NEAR else far for pair in pairs])
    times = np.floor(passes + generator.random(len(pairs))).astype(int)
    return [pair for pair, count in zip(pairs, times, strict=True) for _ in range(count)]


def train(rank: int, world: int, args: argparse.Namespace, model: Any, run: Encoded, held: dict[str, Encoded]) -> None:
    """Train this process's share of every batch; the first process reports and saves."""
    rows, labels = run
    generator = np.random.default_rng(args.seed)
    found = batches_by_length([len(ids) for ids, _ in rows], args.batch_size, generator)
    batches: list[Any] = [at for at in found if len(at) == args.batch_size][: args.max_steps or None]
    torch.manual_seed(args.seed + rank)
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)  # words it never read keep their neighbours
    head = [*model.bert.pooler.parameters(), *model.classifier.parameters()]
    known = {id(p) for p in head}
    body = [p for p in model.parameters() if p.requires_grad and id(p) not in known]
    groups = [{"params": body, "peak": args.lr}, {"params": head, "peak": args.head_lr}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01, foreach=True)
    model.train()

    def loss_of_batch(at: Sequence[int]) -> torch.Tensor:
        gold = torch.tensor([labels[i] for i in at])
        return functional.cross_entropy(model(**pad([rows[i] for i in at])).logits, gold)

    def checkpoint() -> None:
        save(model, args.out)
        figures = ", ".join(f"{name} {accuracy(model, *pairs):.3f}" for name, pairs in held.items())
        print(f"held-out accuracy: {figures}", flush=True)

    parallel.descend(rank, world, batches, loss_of_batch, optimizer, args.minutes, checkpoint)


def main() -> None:
    args = parse()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    kept, held = split(read_pairs(data_folder() / "train.jsonl.gz"))
    vocabulary = find_vocabulary(args.encoder, args.start, kept, args.vocabulary)
    args.out.mkdir(parents=True, exist_ok=True)
    write_tokenizer(args.encoder, vocabulary, args.out)
    model = new_model(args.encoder, vocabulary, args.layers, args.dropout)
    if args.start:
        model.load_state_dict(load_file(args.start / "model.safetensors"))
    tokenizer = AutoTokenizer.from_pretrained(args.out)
    pairs = choose(kept, args.near_passes, args.far_passes, np.random.default_rng(args.seed))
    sets = {"NLI": held}
    if args.reading:
        for number in range(args.reading_passes):
            pairs += reading.make(args.reading, seed=1000 * args.seed + number, held=None if args.all_frames else False)
        sets["reading"] = reading.make(1500, seed=7, held=True)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count:,} parameters, {len(pairs)} pairs {dict(Counter(p.source for p in pairs))}", flush=True)

    def encoded(chosen: list[Pair]) -> Encoded:
        return encode(tokenizer, chosen, args.max_length), [pair.label for pair in chosen]

    parallel.run(train, args.processes, args, model, encoded(pairs), {k: encoded(v) for k, v in sets.items()})


if __name__ == "__main__":
    main()
