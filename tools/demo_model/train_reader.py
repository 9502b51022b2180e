"""Train the reader on reading items and NLI pairs, and write the checkpoint folder.

Beside the label of an item, three questions are asked at the words that name its groups, each of a deeper layer
(`mentions.py`). The heads for them are kept in `questions.pt`, to go on from; they are no part of the checkpoint.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tools.demo_model.checkpoint import accuracy, find_vocabulary, save, write_tokenizer
from tools.demo_model.mentions import IGNORED, QUESTIONS, Row, tag, untagged
from tools.demo_model.pairs import NEAR, Pair, data_folder, encode, pad, read_pairs, split
from tools.demo_model.parallel import Progress, average_gradients, run, set_rates
from tools.demo_model.predicates import Predicates
from tools.demo_model.reader import new_reader
from tools.demo_model.reading import CONTRADICTED, ENTAILED, FIRST, FRAMES, SCHEMAS, SETTINGS, Frame, Maker, frames_of

FILES = (FIRST, FRAMES, SCHEMAS, SETTINGS)
KEPT_EVERY = 1000  # steps
ROUND = 40  # batches that are drawn and sorted by length together
_NO_GROUP = torch.tensor([0.15, 1.0, 1.0])  # most words name no group


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=Path, help="folder with all-MiniLM-L6-v2, for its word embeddings")
    parser.add_argument("out", type=Path, help="folder for the checkpoint")
    parser.add_argument("--start", type=Path, help="a reader to go on from")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--vocabulary", type=int, default=10_500)
    parser.add_argument(
        "--asked", type=int, nargs=3, default=[2, 3, 4], help="after which layer each question is asked"
    )
    parser.add_argument("--question-weight", type=float, default=0.5)
    parser.add_argument("--twin-weight", type=float, default=0.5)
    parser.add_argument(
        "--mix",
        type=float,
        nargs=4,
        default=[0, 0.2, 0.4, 0.4],
        help="shares of first schemas, frames, schemas, settings",
    )
    parser.add_argument("--first-mix", type=float, nargs=4, help="the same at the start; the shares move to --mix")
    parser.add_argument("--first-length", type=int, help="--max-length at the start")
    parser.add_argument("--grown", type=float, default=0.6, help="share of the time after which both have moved")
    parser.add_argument("--strange", type=float, default=0.4, help="share of items in which shared words are replaced")
    parser.add_argument("--nli", type=float, default=0.15, help="share of NLI pairs")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=56, help="longer reading items are not read")
    parser.add_argument("--lr", type=float, default=8e-4)
    parser.add_argument("--word-lr", type=float, default=0.1, help="rate of the word embeddings, as a share of --lr")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--processes", type=int, default=1, help="one core each")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class Supply:
    """Draws batches of reading items and NLI pairs without end."""

    def __init__(self, args: argparse.Namespace, tokenizer: Any, near: list[Pair], seed: int) -> None:
        self._args, self._tokenizer, self._near = args, tokenizer, near
        self._maker, self._random = Maker(7919 * seed, Predicates(near)), np.random.default_rng(seed)
        self.is_first = seed == args.seed
        self.grow(0.0)
        self._sources = [
            frames_of(path, held=None if path == FIRST else False) for path in (FIRST, FRAMES, SCHEMAS, SETTINGS)
        ]

    def grow(self, done: float) -> None:
        """Move from short and plain items to all of them, as the training goes on."""
        args, share = self._args, min(done / self._args.grown, 1.0)
        first, length = args.first_mix or args.mix, args.first_length or args.max_length
        self._mix = [(1 - share) * one + share * other for one, other in zip(first, args.mix, strict=True)]
        self._longest = round((1 - share) * length + share * args.max_length)

    def make_strange(self, share: float) -> None:
        self._maker.strange = share

    def batches(self) -> Iterator[list[Row]]:
        """Draw batches; entailed and contradicted items of one fact stand side by side, in that order."""
        size = self._args.batch_size
        while True:
            n_nli = int(ROUND * size * self._args.nli)
            n_read = ROUND * size - n_nli
            units: list[list[Row]] = [[row] for row in self._pairs(n_nli)]
            for frames, share in zip(self._sources, self._mix, strict=True):
                units += self.reading(int(n_read * share), frames, self._longest)
            order = self._random.permutation(len(units))
            units = sorted((units[int(at)] for at in order), key=lambda unit: len(unit[0].ids) // 6)
            rows = [row for unit in units for row in unit]
            found = [rows[at : at + size] for at in range(0, len(rows), size)]
            yield from (found[int(at)] for at in self._random.permutation(len(found)))

    def reading(self, count: int, frames: list[Frame], longest: int = 90) -> list[list[Row]]:
        """Draw about `count` items: twins, and open ones."""
        units: list[list[Row]] = []
        n_rows = n_tried = 0
        while frames and n_rows < count:
            frame = frames[int(self._maker.generator.integers(len(frames)))]
            found = [tag(self._tokenizer, item, 256) for item in self._maker.items(frame)]
            rows = [row for row in found if row is not None and len(row.ids) <= longest]
            n_tried += 1
            if n_tried > 50 * count:
                break
            if len(rows) == len(found):
                units += [[rows[0], rows[2]], [rows[1]]]
                n_rows += 3
        return units

    def _pairs(self, count: int) -> list[Row]:
        chosen = [self._near[int(at)] for at in self._random.integers(len(self._near), size=count)]
        return untagged(encode(self._tokenizer, chosen, 72), [pair.label for pair in chosen]) if chosen else []


class Trained(torch.nn.Module):
    """The model with the heads that answer questions at words."""

    def __init__(self, model: Any, args: argparse.Namespace) -> None:
        super().__init__()
        self.model, self._asked, self._weight = model, args.asked, args.question_weight
        self._twins = args.twin_weight
        width = model.config.hidden_size
        self.heads = torch.nn.ModuleList(torch.nn.Linear(width, answers) for answers in QUESTIONS.values())

    def forward(self, rows: list[Row]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss of a batch, and the logits of its labels."""
        batch = pad([(row.ids, row.types) for row in rows])
        found = self.model(**batch, output_hidden_states=True)
        labels = torch.tensor([row.label for row in rows])
        loss = functional.cross_entropy(found.logits, labels)
        lean = found.logits[:, ENTAILED] - found.logits[:, CONTRADICTED]
        is_twin = torch.tensor([row.is_reading for row in rows])
        first = is_twin[:-1] & is_twin[1:] & (labels[:-1] == ENTAILED) & (labels[1:] == CONTRADICTED)
        if first.any():
            loss = loss + self._twins * functional.softplus(lean[1:][first] - lean[:-1][first]).mean()
        for number, (head, layer) in enumerate(zip(self.heads, self._asked, strict=True)):
            wanted = torch.full(batch["input_ids"].shape, IGNORED)
            for at, row in enumerate(rows):
                wanted[at, : len(row.ids)] = torch.tensor(row.answers[number])
            if (is_asked := wanted != IGNORED).any():
                answers = head(found.hidden_states[layer][is_asked])
                weight = _NO_GROUP if answers.shape[1] == len(_NO_GROUP) and number == 0 else None
                loss = loss + self._weight * functional.cross_entropy(answers, wanted[is_asked], weight)
        return loss, found.logits


@torch.inference_mode()
def told_apart(trained: Trained, rows: list[Row]) -> tuple[float, float]:
    """Return the share of right labels, and of items that are not open whose better one of two labels is right."""
    trained.eval()
    logits = torch.cat([trained(rows[at : at + 64])[1] for at in range(0, len(rows), 64)])
    trained.train()
    labels = torch.tensor([row.label for row in rows])
    decided = labels != 1
    better = (logits[:, 0] > logits[:, 2]) == (labels == 0)
    return float((logits.argmax(-1) == labels).float().mean()), float(better[decided].float().mean())


def main() -> None:
    args = parse()
    run(work, args.processes, args)


def work(rank: int, world: int, args: argparse.Namespace) -> None:
    """Train in one of `world` processes; the first one keeps the checkpoint and says how it does."""
    torch.manual_seed(args.seed)
    kept, held = split(read_pairs(data_folder() / "train.jsonl.gz"))
    vocabulary = find_vocabulary(args.encoder, args.start, kept, args.vocabulary)
    if rank == 0:
        args.out.mkdir(parents=True, exist_ok=True)
        write_tokenizer(args.encoder, vocabulary, args.out)
    distributed.barrier()
    tokenizer = AutoTokenizer.from_pretrained(args.out)
    model = open_model(args, vocabulary)
    trained = Trained(model, args)
    if args.start and (args.start / "questions.pt").exists():
        trained.heads.load_state_dict(torch.load(args.start / "questions.pt"))
    supply = Supply(args, tokenizer, [pair for pair in kept if pair.source in NEAR], args.seed + 1000 * rank)
    known = known_items(supply) if rank == 0 else {}
    supply.make_strange(args.strange)

    def keep() -> None:
        if rank == 0:
            save(model, args.out)
            torch.save(trained.heads.state_dict(), args.out / "questions.pt")
            for name, rows in known.items():
                print("{}: {:.3f} right, E or C {:.3f}".format(name, *told_apart(trained, rows)), flush=True)

    for step in descend(trained, supply, args, world):
        if step % KEPT_EVERY == 0:
            keep()
    keep()
    if rank == 0:
        print(f"held-out NLI pairs: {accuracy(model, encode(tokenizer, held, 72), [pair.label for pair in held]):.3f}")


def open_model(args: argparse.Namespace, vocabulary: dict[str, int]) -> Any:
    if args.start:
        model: Any = AutoModelForSequenceClassification.from_pretrained(args.start, dtype=torch.float32)
    else:
        model = new_reader(args.encoder, vocabulary, args.width, args.layers)
    for part in model.bert.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = args.dropout
    return model


def known_items(supply: Supply) -> dict[str, list[Row]]:
    """Draw items to measure on, of files that were read and of parts that are held out."""
    return {
        name: [row for unit in supply.reading(count, frames_of(path, held=held)) for row in unit]
        for name, path, held, count in (
            ("first schemas", FIRST, None, 600),
            ("schemas it was trained on", SCHEMAS, False, 600),
            ("held-out schemas", SCHEMAS, True, 900),
            ("settings it was trained on", SETTINGS, False, 600),
            ("held-out settings", SETTINGS, True, 1200),
            ("held-out frames", FRAMES, True, 900),
        )
    }


def descend(
    trained: Trained, supply: Supply, args: argparse.Namespace, world: int, warm: float = 0.04
) -> Iterator[int]:
    """Train for the given time, step by step; the rate rises linearly, then falls linearly to zero."""
    words = trained.model.get_input_embeddings().weight
    rest = [parameter for parameter in trained.parameters() if parameter is not words]
    groups = [{"params": rest, "peak": args.lr}, {"params": [words], "peak": args.lr * args.word_lr}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01, foreach=True)
    for parameter in trained.parameters():
        parameter.grad = torch.zeros_like(parameter)
    progress = Progress(steps=10**9, minutes=args.minutes)
    total, seen = 0.0, 0
    trained.train()
    for step, rows in enumerate(supply.batches(), 1):
        done = progress.after(0)
        if done >= 1:
            return
        supply.grow(done)
        set_rates(optimizer, done, warm)
        loss, _ = trained(rows)
        loss.backward()
        average_gradients(list(trained.parameters()), world)
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        total, seen = total + float(loss.detach()), seen + world * len(rows)
        if step % 100 == 0 and supply.is_first:
            pace = seen / progress.elapsed()
            print(f"step {step} done {done:.3f} loss {total / 100:.3f} {pace:.0f} items/s", flush=True)
            total = 0.0
        yield step


if __name__ == "__main__":
    main()
