"""Print a checkpoint's size and its accuracy on the held-out halves of SNLI test and MultiNLI matched."""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tools.demo_model.pairs import HALVES, LABELS, batches_by_length, data_folder, encode, pad, read_pairs


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args()


@torch.inference_mode()
def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    model = AutoModelForSequenceClassification.from_pretrained(args.checkpoint).eval()
    tokenizer = AutoTokenizer.from_pretrained(args.checkpoint)
    column = [model.config.label2id[label] for label in LABELS]
    size = sum(path.stat().st_size for path in args.checkpoint.iterdir())
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {model.dtype}, folder {size:,} bytes")
    figures: dict[str, float] = {}
    for half in HALVES:
        pairs = read_pairs(data_folder() / f"{half}.jsonl.gz")
        rows = encode(tokenizer, pairs, model.config.max_position_embeddings)
        table = np.zeros((3, 3), dtype=int)
        for at in batches_by_length([len(ids) for ids, _ in rows], 32, None):
            answers = model(**pad([rows[i] for i in at])).logits[:, column].argmax(-1).tolist()
            for i, answer in zip(at, answers, strict=True):
                table[pairs[i].label, answer] += 1
        figures[half] = float(table.trace() / table.sum())
        print(f"{half}: {figures[half]:.4f} of {table.sum()}")
        for label, row in zip(LABELS, table, strict=True):
            print(f"  {label:14} answered " + ", ".join(f"{a} {n}" for a, n in zip(LABELS, row, strict=True)))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
