"""Write a teacher's answers for training pairs and for pairs made from them, as JSON lines.

Labelled are the SNLI- and MultiNLI-like pairs, a sample of the others, some pairs with premise and hypothesis
exchanged, and hypotheses written for the same premise, paired with each other. The teacher is the tuned encoder, or
any checkpoint folder: an earlier student, for one.
"""

import argparse
import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tools.demo_model.pairs import (
    LABELS,
    NEAR,
    Pair,
    batches_by_length,
    data_folder,
    encode,
    pad,
    read_pairs,
    recombined,
    split,
    swapped,
)
from tools.demo_model.teacher import load_teacher


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("teacher", type=Path, help="a checkpoint folder, or with --weights the all-MiniLM-L6-v2 folder")
    parser.add_argument("--weights", type=Path, help="what train_teacher.py wrote")
    parser.add_argument("out", type=Path, help="file to write, .jsonl.gz")
    parser.add_argument("--near", nargs="+", default=NEAR, choices=NEAR, help="sources labelled whole")
    parser.add_argument("--swap", nargs="+", default=("snli_dev", "cad", "mnli_slice_train"), choices=NEAR)
    parser.add_argument("--far", type=int, default=15_000, help="pairs of the other sources")
    parser.add_argument("--swapped", type=int, default=22_000)
    parser.add_argument("--recombined", type=int, default=20_000)
    parser.add_argument("--max-length", type=int, default=80)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=21)
    return parser.parse_args()


def sample(pairs: list[Pair], count: int, generator: np.random.Generator) -> list[Pair]:
    return [pairs[at] for at in generator.permutation(len(pairs))[:count]]


def load(folder: Path, weights: Path | None) -> tuple[Callable[..., torch.Tensor], Any]:
    """Load the teacher, as a function from a batch to logits in the order of LABELS, and its tokenizer."""
    if weights:
        return load_teacher(folder, weights)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    column = [model.config.label2id[label] for label in LABELS]
    return lambda **batch: model(**batch).logits[:, column], AutoTokenizer.from_pretrained(folder)


@torch.inference_mode()
def answers(teacher: Callable[..., torch.Tensor], rows: list[tuple[list[int], list[int]]]) -> np.ndarray:
    """Logits, one row for every pair."""
    logits = np.zeros((len(rows), 3), dtype=np.float32)
    began, done = time.monotonic(), 0
    for number, at in enumerate(batches_by_length([len(ids) for ids, _ in rows], 32, None), start=1):
        logits[at] = teacher(**pad([rows[i] for i in at])).numpy()
        done += len(at)
        if number % 200 == 0:
            print(f"{done}/{len(rows)} {done / (time.monotonic() - began):.0f} pairs/s", flush=True)
    return logits


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    generator = np.random.default_rng(args.seed)
    kept, _ = split(read_pairs(data_folder() / "train.jsonl.gz"))
    pairs = [pair for pair in kept if pair.source in args.near]
    pairs += sample([pair for pair in kept if pair.source not in NEAR], args.far, generator)
    pairs += sample(swapped(kept, args.swap), args.swapped, generator)
    pairs += sample(recombined(kept, ("snli_dev", "cad")), args.recombined, generator)
    teacher, tokenizer = load(args.teacher, args.weights)
    logits = answers(teacher, encode(tokenizer, pairs, args.max_length))
    with gzip.open(args.out, "wt", encoding="utf-8") as out:
        for pair, row in zip(pairs, logits, strict=True):
            fields = {"source": pair.source, "premise": pair.premise, "hypothesis": pair.hypothesis}
            out.write(json.dumps({**fields, "label": pair.label, "logits": [round(float(x), 4) for x in row]}) + "\n")
    gold = np.array([pair.label for pair in pairs])
    right = logits.argmax(-1) == gold
    for source in sorted({pair.source for pair in pairs if pair.label >= 0}):
        at = np.array([pair.source == source for pair in pairs])
        print(f"{source:24} {at.sum():6} agree with gold {right[at].mean():.3f}")


if __name__ == "__main__":
    main()
