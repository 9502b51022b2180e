"""Fine-tune the demo model on a corpus of make_next.py, and write what changed as a plain LoRA adapter.

A row with a label is taught that label. For a row without one the model's own answer stays. The two sides of a pair are
read side by side, and a second loss asks which of them is entailed (tools/validity/twins.py).
"""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import save_file
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bbnli_audit.core.values import Label
from bbnli_audit.models.on_disk import DEMO_FOLDER
from tools.demo_model.pairs import pad
from tools.validity.plant import columns_of
from tools.validity.twins import find_twins, twin_loss

PREFIX = "base_model.model."
MAX_LENGTH = 72
Row = dict[str, Any]


class Thin(torch.nn.Module):
    """A linear layer with a difference of low rank beside it."""

    def __init__(self, linear: torch.nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.linear, self.scale = linear, alpha / rank
        self.down = torch.nn.Parameter(torch.randn(rank, linear.in_features) * linear.in_features**-0.5)
        self.up = torch.nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(states) + self.scale * (states @ self.down.T @ self.up.T)
        return found


def add_thin(model: Any, rank: int, alpha: float) -> dict[str, Thin]:
    """Put a thin difference beside every linear layer of the encoder; nothing else is trained."""
    model.requires_grad_(False)
    found = {}
    linears = [(name, part) for name, part in model.named_modules() if isinstance(part, torch.nn.Linear)]
    for name, linear in linears:
        if ".encoder." in name:
            parent, _, own = name.rpartition(".")
            found[name] = Thin(linear, rank, alpha)
            setattr(model.get_submodule(parent), own, found[name])
    return found


def read_rows(corpus: Path) -> list[Row]:
    """Read a corpus. What `bbnli-audit augment` copied is a pair of its own."""
    rows: list[Row] = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if row["pair"] is not None:
            row["pair"] = (row["pair"], bool(row.get("augmented")))
    return rows


def teach(model: Any, tokenizer: Any, rows: list[Row], args: argparse.Namespace) -> None:
    texts = [tokenizer(row["premise"], row["hypothesis"], truncation=True, max_length=MAX_LENGTH) for row in rows]
    encoded = [(text["input_ids"], text["token_type_ids"]) for text in texts]
    columns = columns_of(model)
    entailed, contradicted = columns[Label.ENTAILMENT], columns[Label.CONTRADICTION]
    targets = _targets(model, encoded, [columns[Label(row["label"])] if row["label"] else None for row in rows])
    thin = add_thin(model, args.rank, args.alpha)
    parameters = [parameter for part in thin.values() for parameter in (part.down, part.up)]
    optimizer = torch.optim.AdamW(parameters, lr=args.lr, weight_decay=0.0)
    random, pairs = Random(args.seed), [row["pair"] for row in rows]
    batches = [batch for _ in range(args.passes) for batch in _batches(pairs, args.batch_size, random)]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(1 - step / len(batches), 0.0))
    for step, batch in enumerate(batches, start=1):
        logits = model(**pad([encoded[at] for at in batch])).logits
        loss: Any = functional.cross_entropy(logits, targets[batch])
        twins = find_twins([pairs[at] for at in batch], targets[batch].argmax(-1).tolist(), entailed)
        loss = loss + args.twins * twin_loss(logits, twins, entailed, contradicted)
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(f"step {step} of {len(batches)}, loss {float(loss.detach()):.3f}", flush=True)
    write(thin, args)


def _batches(pairs: Sequence[Any], size: int, random: Random) -> Iterator[list[int]]:
    """Cut all rows into batches by chance. The two sides of a pair stand together."""
    units: dict[Any, list[int]] = {}
    for at, pair in enumerate(pairs):
        units.setdefault(at if pair is None else pair, []).append(at)
    batch: list[int] = []
    for unit in random.sample(list(units.values()), len(units)):
        batch += unit
        if len(batch) >= size:
            yield batch
            batch = []


@torch.no_grad()
def _targets(model: Any, rows: list[Any], labels: Sequence[int | None]) -> torch.Tensor:
    """Return what is to be answered: the label of a row, or the probabilities of the model as it is."""
    own = torch.cat([model(**pad(rows[at : at + 64])).logits.softmax(-1) for at in range(0, len(rows), 64)])
    for at, label in enumerate(labels):
        if label is not None:
            own[at] = functional.one_hot(torch.tensor(label), own.shape[1]).float()
    return own


def write(thin: dict[str, Thin], args: argparse.Namespace) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, part in thin.items():
        tensors[f"{PREFIX}{name}.lora_A.weight"] = part.down.detach().half().contiguous()
        tensors[f"{PREFIX}{name}.lora_B.weight"] = part.up.detach().half().contiguous()
    save_file(tensors, args.out / "adapter_model.safetensors", metadata={"format": "pt"})
    settings = {
        "base_model_name_or_path": os.path.relpath(args.base, args.out),
        "peft_type": "LORA",
        "task_type": "SEQ_CLS",
        "r": args.rank,
        "lora_alpha": args.alpha,
        "target_modules": sorted({name.rpartition(".")[2] for name in thin}),
    }
    (args.out / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--base", type=Path, default=DEMO_FOLDER)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--alpha", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--twins", type=float, default=1.0, help="weight of the question which side is entailed")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    model: Any = AutoModelForSequenceClassification.from_pretrained(args.base, dtype=torch.float32).eval()
    teach(model, AutoTokenizer.from_pretrained(args.base), read_rows(args.corpus), args)


if __name__ == "__main__":
    main()
