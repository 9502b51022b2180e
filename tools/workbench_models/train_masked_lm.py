"""Tune all-MiniLM-L6-v2 as a masked language model on the distinct sentences of the training pairs.

The output layer is tied to the word embeddings; its bias starts as the log of each token's frequency. Whole words are
masked, `--share` of each sentence's. The learning rate falls linearly and reaches zero at the last step.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModelForMaskedLM, AutoTokenizer

from tools.demo_model import parallel
from tools.demo_model.checkpoint import write_tokenizer
from tools.demo_model.pairs import batches_by_length, pad
from tools.workbench_models.masked_words import (
    Ids,
    MaskedWord,
    encode_sentences,
    log_frequencies,
    mask_one_word_each,
    measure,
    measure_frequencies,
    read_sentences,
    told,
    words_of,
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=Path, help="folder with all-MiniLM-L6-v2")
    parser.add_argument("out", type=Path, help="folder for the checkpoint")
    parser.add_argument("--start", type=Path, help="continue from this checkpoint of ours, with a new schedule")
    parser.add_argument("--share", type=float, default=0.25, help="how many of a sentence's words are masked")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--head-lr", type=float, default=1e-3)
    parser.add_argument("--max-length", type=int, default=32, help="tokens of a sentence that are read")
    parser.add_argument("--passes", type=int, default=1, help="how often every sentence is read")
    parser.add_argument("--max-steps", type=int, default=0, help="end the schedule here; 0 for all sentences")
    parser.add_argument("--minutes", type=float, default=0, help="end the schedule here at the latest; 0 for no limit")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=31)
    return parser.parse_args()


def load_model(folder: Path) -> Any:
    """Load an encoder, with its head if it has one; without dropout, since few sentences are read twice."""
    return AutoModelForMaskedLM.from_pretrained(
        folder, dtype=torch.float32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )


def new_model(encoder_folder: Path, frequencies: torch.Tensor) -> Any:
    """Put a fresh head on the published encoder."""
    model = load_model(encoder_folder)
    with torch.no_grad():
        model.cls.predictions.bias.copy_(frequencies)
    return model


def masked_places(words: list[list[int]], share: float, generator: np.random.Generator) -> list[int]:
    """Places of all pieces of some words: `share` of them, at least one."""
    count = max(1, round(share * len(words)))
    return [place for at in generator.permutation(len(words))[:count] for place in words[at]]


def save(model: Any, out: Path) -> None:
    model.config.architectures = ["BertForMaskedLM"]
    model.save_pretrained(out)


def optimizer_of(model: Any, lr: float, head_lr: float) -> torch.optim.Optimizer:
    encoder = list(model.bert.parameters())
    in_encoder = {id(weight) for weight in encoder}
    head = [weight for weight in model.parameters() if id(weight) not in in_encoder]
    groups = [{"params": encoder, "peak": lr}, {"params": head, "peak": head_lr}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01, foreach=True)


def train(
    rank: int,
    world: int,
    args: argparse.Namespace,
    model: Any,
    run: tuple[list[Ids], list[list[list[int]]], int],
    held: list[MaskedWord],
    batches: list[Any],
) -> None:
    """Train this process's share of every batch; the first process reports and saves."""
    rows, words, mask = run
    generator = np.random.default_rng((args.seed, rank))
    optimizer = optimizer_of(model, args.lr, args.head_lr)
    model.train()

    def loss_of_batch(at: Sequence[int]) -> torch.Tensor:
        batch = pad([(rows[i], [0] * len(rows[i])) for i in at])
        hidden = torch.zeros_like(batch["input_ids"], dtype=torch.bool)
        for row, i in enumerate(at):
            hidden[row, masked_places(words[i], args.share, generator)] = True
        tokens = batch["input_ids"][hidden]
        batch["input_ids"] = batch["input_ids"].masked_fill(hidden, mask)
        states = model.bert(**batch).last_hidden_state
        return functional.cross_entropy(model.cls(states[hidden]), tokens)

    def checkpoint() -> None:
        save(model, args.out)
        print(told("held-out words", measure(model, held)), flush=True)

    parallel.descend(rank, world, batches, loss_of_batch, optimizer, args.minutes, checkpoint)


def plan(lengths: list[int], args: argparse.Namespace) -> list[Any]:
    """Full batches of positions, every sentence once in each pass."""
    generator = np.random.default_rng(args.seed)
    batches = [at for _ in range(args.passes) for at in batches_by_length(lengths, args.batch_size, generator)]
    return [at for at in batches if len(at) == args.batch_size][: args.max_steps or None]


def main() -> None:
    args = parse()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    vocabulary = AutoTokenizer.from_pretrained(args.encoder).get_vocab()
    pieces = sorted(vocabulary, key=lambda piece: int(vocabulary[piece]))
    write_tokenizer(args.encoder, {piece: at for at, piece in enumerate(pieces)}, args.out)
    tokenizer = AutoTokenizer.from_pretrained(args.out)
    training, held_texts = read_sentences()
    encoded = encode_sentences(tokenizer, training, args.max_length)
    divided = [(ids, words_of(ids, pieces)) for ids in encoded]
    rows = [ids for ids, words in divided if words]
    words = [words for _, words in divided if words]
    mask = int(tokenizer.mask_token_id)
    held = mask_one_word_each(encode_sentences(tokenizer, held_texts, args.max_length), pieces, mask)
    frequencies = log_frequencies(rows, len(pieces))
    model = load_model(args.start) if args.start else new_model(args.encoder, frequencies)
    batches = plan([len(ids) for ids in rows], args)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters, {len(rows)} sentences, {len(batches)} steps, {len(held)} held-out words", flush=True)
    print(told("most frequent words", measure_frequencies(frequencies, pieces, held)), flush=True)
    print(told("before", measure(model, held)), flush=True)
    parallel.run(train, args.processes, args, model, (rows, words, mask), held, batches)


if __name__ == "__main__":
    main()
