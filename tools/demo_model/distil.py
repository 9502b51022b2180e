"""Train the student on the teacher's answers and the gold labels, and write the checkpoint folder.

The loss of a labelled pair is a mix of cross-entropy and of the divergence from the teacher's softened answer; pairs
without a gold label have only the second, pairs the teacher has not answered only the first.
"""

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn import functional
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from tools.demo_model import parallel, reading
from tools.demo_model.pairs import NEAR, Pair, batches_by_length, data_folder, encode, pad, read_pairs, split
from tools.demo_model.student import find_vocabulary, new_student, write_tokenizer

Rows = list[tuple[list[int], list[int]]]
Logits = np.ndarray[Any, np.dtype[np.float32]]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=Path, help="folder with all-MiniLM-L6-v2, for its word embeddings")
    parser.add_argument("out", type=Path, help="folder for the checkpoint")
    parser.add_argument("--labelled", type=Path, help="the teacher's answers; without them, gold labels only")
    parser.add_argument("--reading", type=int, default=0, help="reading items to make and read once")
    parser.add_argument("--start", type=Path, help="a student to go on from, with as many layers")
    parser.add_argument("--vocabulary", type=int, default=10_500)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--near-passes", type=int, default=6, help="how often SNLI- and MultiNLI-like pairs are read")
    parser.add_argument("--made-passes", type=int, default=2, help="how often pairs without a gold label are read")
    parser.add_argument("--far-passes", type=int, default=2, help="how often all other pairs are read")
    parser.add_argument("--passes", nargs="*", default=[], metavar="SOURCE=N", help="how often one source is read")
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--lr", type=float, default=7e-4)
    parser.add_argument("--temperature", type=float, default=2.0)
    parser.add_argument("--soft", type=float, default=0.7, help="the teacher's weight in the loss of a labelled pair")
    parser.add_argument("--max-length", type=int, default=72)
    parser.add_argument("--max-steps", type=int, default=0, help="end the schedule here; 0 for all pairs")
    parser.add_argument("--minutes", type=float, default=0, help="end the schedule here at the latest; 0 for no limit")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=22)
    return parser.parse_args()


def gather(kept: list[Pair], labelled: Path | None) -> tuple[list[Pair], Logits]:
    """Every training pair and every pair made from them; logits are NaN where the teacher has not answered."""
    if labelled is None:
        return kept, np.full((len(kept), 3), np.nan, dtype=np.float32)
    with gzip.open(labelled, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    pairs = [Pair(row["premise"], row["hypothesis"], row["label"], row["source"]) for row in rows]
    answered = set(pairs)
    others = [pair for pair in kept if pair not in answered]
    logits = np.full((len(pairs) + len(others), 3), np.nan, dtype=np.float32)
    logits[: len(pairs)] = [row["logits"] for row in rows]
    return pairs + others, logits


def passes_of(pair: Pair, args: argparse.Namespace) -> int:
    """How often a pair is read."""
    chosen = dict(text.split("=") for text in args.passes)
    if pair.source == "reading":
        return 1
    passes = args.near_passes if pair.source in NEAR else args.made_passes if pair.label < 0 else args.far_passes
    return int(chosen.get(pair.source, passes))


def plan(passes: list[int], lengths: list[int], args: argparse.Namespace) -> list[Any]:
    """Batches of positions, in as many rounds as the most read pairs have passes; others are spread over the rounds."""
    generator = np.random.default_rng(args.seed)
    rounds: list[list[int]] = [[] for _ in range(max(passes))]
    for at, count in enumerate(passes):
        for number in generator.permutation(len(rounds))[:count]:
            rounds[number].append(at)
    batches: list[Any] = []
    for positions in rounds:
        here = np.array(positions)
        found = batches_by_length([lengths[at] for at in here], args.batch_size, generator)
        batches += [here[at] for at in found if len(at) == args.batch_size]
    return batches[: args.max_steps or None]


def loss_of(
    logits: torch.Tensor, labels: torch.Tensor, teacher: torch.Tensor, soft: float, temperature: float
) -> torch.Tensor:
    known = labels >= 0
    answered = ~teacher[:, 0].isnan()
    hard = functional.cross_entropy(logits, labels.clamp(min=0), reduction="none")
    target = functional.log_softmax(teacher.nan_to_num() / temperature, dim=-1)
    guess = functional.log_softmax(logits / temperature, dim=-1)
    divergence = functional.kl_div(guess, target, reduction="none", log_target=True).sum(-1) * temperature**2
    weight = torch.where(answered & known, soft, answered.float())
    return ((1 - weight) * hard * known + weight * divergence).mean()


@torch.inference_mode()
def accuracy(model: Any, rows: Rows, labels: list[int]) -> float:
    """Share of right answers."""
    model.eval()
    right = 0
    for at in batches_by_length([len(ids) for ids, _ in rows], 64, None):
        answers = model(**pad([rows[i] for i in at])).logits.argmax(-1).tolist()
        right += sum(answer == labels[i] for answer, i in zip(answers, at, strict=True))
    model.train()
    return right / len(rows)


def save(model: Any, out: Path) -> None:
    """Write weights in half precision beside a config that loads them in single precision."""
    out.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().half().contiguous() for name, value in model.state_dict().items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    model.config.architectures = ["BertForSequenceClassification"]
    model.config.dtype = torch.float32
    model.config.save_pretrained(out)


def train(
    rank: int,
    world: int,
    args: argparse.Namespace,
    model: Any,
    run: tuple[Rows, list[int], Logits],
    held: dict[str, tuple[Rows, list[int]]],
    batches: list[Any],
) -> None:
    """Train this process's share of every batch; the first process reports and saves."""
    rows, labels, answers = run
    torch.manual_seed(args.seed + rank)
    parameters = list(model.parameters())
    flat = [p for p in parameters if p.ndim < 2]
    tables = [p for p in parameters if p.ndim >= 2]
    groups = [{"params": tables, "peak": args.lr, "weight_decay": 0.01}, {"params": flat, "peak": args.lr}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.0, foreach=True)
    model.train()

    def loss_of_batch(at: Sequence[int]) -> torch.Tensor:
        logits = model(**pad([rows[i] for i in at])).logits
        gold = torch.tensor([labels[i] for i in at])
        return loss_of(logits, gold, torch.from_numpy(answers[list(at)]), args.soft, args.temperature)

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
    full = AutoTokenizer.from_pretrained(args.encoder).get_vocab()
    table = AutoModel.from_pretrained(args.encoder).get_input_embeddings().weight.detach().numpy()
    model = new_student(table[[full[token] for token in vocabulary]], vocabulary, args.layers, args.dropout)
    if args.start:
        model = AutoModelForSequenceClassification.from_pretrained(args.start)
    tokenizer = AutoTokenizer.from_pretrained(args.out)
    save(model, args.out)
    pairs, logits = gather([*kept, *reading.make(args.reading, args.seed)], args.labelled)
    logits = logits[[passes_of(pair, args) > 0 for pair in pairs]]
    pairs = [pair for pair in pairs if passes_of(pair, args) > 0]
    rows = encode(tokenizer, pairs, args.max_length)
    batches = plan([passes_of(pair, args) for pair in pairs], [len(ids) for ids, _ in rows], args)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters, {len(pairs)} pairs, {len(batches)} steps", flush=True)
    sets = {"NLI": held, "reading": reading.make(1500, seed=7, held=True)}
    held_out = {k: (encode(tokenizer, v, args.max_length), [pair.label for pair in v]) for k, v in sets.items()}
    parallel.run(train, args.processes, args, model, (rows, [pair.label for pair in pairs], logits), held_out, batches)


if __name__ == "__main__":
    main()
