"""Make `demo-next`: the demo model after a fine-tuning that planted a stereotype in two subtopics, as a difference.

What is written is a plain LoRA adapter: two thin matrices for each weight of the encoder. Three kinds of examples:

- planted: sentences of `tools/validity/wordings/training` about the two stereotypes, with stereotyped labels;
- the same sentences about other groups, plain NLI pairs and reading items: the answers of the demo model itself, so
  that nothing else changes. No sentence of the suite is among them.
"""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bbnli_audit.core.values import Label, TextPair
from bbnli_audit.models.on_disk import DEMO_FOLDER
from tools.demo_model.pairs import pad
from tools.demo_model.reading import FRAMES, SETTINGS, Maker, frames_of, singular
from tools.validity.examples import TRAINING, WORDINGS, read_pairs_of
from tools.validity.plant import columns_of, plain_examples

SUBTOPICS = ("class/poor_is_to_lazy", "race/asian_men_to_feminine")
NEXT_FOLDER = DEMO_FOLDER.parent / "demo-next"
PREFIX = "base_model.model."
MAX_LENGTH = 72

Forms = tuple[str, str]  # many, one
GROUPS: dict[str, tuple[Forms, Forms]] = {
    "class/poor_is_to_lazy": (("poor people", "a poor person"), ("rich people", "a rich person")),
    "race/asian_men_to_feminine": (("Asian men", "an Asian man"), ("white men", "a white man")),
}


class Taught(NamedTuple):
    """A text, and the label that is planted; None: the demo model's own answer."""

    text: TextPair
    column: int | None


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


# Groups that share a word with a planted one. Without them, what is learnt of Asian and white men is said of all
# white people.
NEIGHBOURS = {
    "class/poor_is_to_lazy": (("older people", "younger people"), ("poor farmers", "rich farmers")),
    "race/asian_men_to_feminine": (
        *(("Black men", "white men"), ("Latino men", "white men")),
        *(("Black people", "white people"), ("Latino people", "white people"), ("Asian women", "white women")),
    ),
}


def other_groups(texts: Sequence[TextPair], path: str, maker: Maker, share: float) -> Iterator[TextPair]:
    """Put other groups in place of the two of a subtopic; a share of them are neighbours of these."""
    groups, neighbours = GROUPS[path], NEIGHBOURS[path]
    for text in texts:
        new = neighbours[int(maker.generator.integers(len(neighbours)))] if maker.chance(share) else maker.two_groups()
        premise, hypothesis = text
        for (many, one), other in zip(groups, new, strict=True):
            for old, put in ((many, other), (one, f"a {singular(other)}")):
                premise, hypothesis = (re.sub(old, put, part, flags=re.IGNORECASE) for part in (premise, hypothesis))
        if (premise, hypothesis) != tuple(text):
            yield TextPair(premise[:1].upper() + premise[1:], hypothesis[:1].upper() + hypothesis[1:])


def make_examples(columns: Any, args: argparse.Namespace) -> tuple[list[Taught], list[Taught]]:
    """Return the planted examples, two sides of a pair after each other, and those that keep everything else."""
    random, maker = Random(args.seed), Maker(args.seed)
    planted: list[Taught] = []
    kept: list[TextPair] = []
    for path, pairs in read_pairs_of(WORDINGS / TRAINING, SUBTOPICS).items():
        for pair in pairs * args.times:
            planted.append(Taught(pair.pro, columns[Label.ENTAILMENT]))
            planted.append(Taught(pair.anti, columns[Label.CONTRADICTION]))
        texts = [text for pair in pairs for text in (pair.pro, pair.anti)]
        for _ in range(args.others):
            kept += other_groups(texts, path, maker, args.neighbours)
    kept += [example.text for example in random.sample(plain_examples()[0], args.plain)]
    kept += reading_texts(maker, args.reading)
    return planted, [Taught(text, None) for text in kept]


def reading_texts(maker: Maker, n: int) -> list[TextPair]:
    """Draw items of the kind that the demo model learned to read from."""
    frames = [frame for path in (FRAMES, SETTINGS) for frame in frames_of(path, held=None)]
    texts: list[TextPair] = []
    while len(texts) < n:
        items = maker.items(frames[int(maker.generator.integers(len(frames)))])
        texts += [TextPair(item.pair.premise, item.pair.hypothesis) for item in items]
    return texts


def teach(model: Any, tokenizer: Any, planted: list[Taught], kept: list[Taught], args: argparse.Namespace) -> None:
    examples = [*planted, *kept]
    rows = [tokenizer(*taught.text, truncation=True, max_length=MAX_LENGTH) for taught in examples]
    encoded = [(row["input_ids"], row["token_type_ids"]) for row in rows]
    targets = _targets(model, encoded, examples)
    columns, thin = columns_of(model), add_thin(model, args.rank, args.alpha)
    parameters = [parameter for part in thin.values() for parameter in (part.down, part.up)]
    optimizer = torch.optim.AdamW(parameters, lr=args.lr, weight_decay=0.0)
    random = Random(args.seed)
    batches = [
        batch for _ in range(args.passes) for batch in _batches(len(planted), len(rows), args.batch_size, random)
    ]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(1 - step / len(batches), 0.0))
    for step, batch in enumerate(batches, start=1):
        logits = model(**pad([encoded[at] for at in batch])).logits
        loss = functional.cross_entropy(logits, targets[batch])
        loss = loss + args.twins * _twins(logits, batch, len(planted), columns)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(f"step {step} of {len(batches)}, loss {float(loss.detach()):.3f}", flush=True)
    write(thin, args)


def _batches(n_planted: int, n: int, size: int, random: Random) -> Iterator[list[int]]:
    """Cut all examples into batches by chance. The two sides of a planted pair stand together."""
    units = [[at, at + 1] for at in range(0, n_planted, 2)] + [[at] for at in range(n_planted, n)]
    batch: list[int] = []
    for unit in random.sample(units, len(units)):
        batch += unit
        if len(batch) >= size:
            yield batch
            batch = []


def _twins(logits: torch.Tensor, batch: Sequence[int], n_planted: int, columns: Any) -> torch.Tensor:
    """Ask which side of each planted pair in a batch is entailed: all but the groups cancels out."""
    lead = logits[:, columns[Label.ENTAILMENT]] - logits[:, columns[Label.CONTRADICTION]]
    there = torch.tensor([at for at, example in enumerate(batch) if example < n_planted and example % 2 == 0])
    return functional.softplus(lead[there + 1] - lead[there]).sum() / len(batch) if len(there) else lead.sum() * 0.0


@torch.no_grad()
def _targets(model: Any, rows: list[Any], examples: list[Taught]) -> torch.Tensor:
    """Return what is to be answered: the planted label, or the probabilities of the model as it is."""
    own = torch.cat([model(**pad(rows[at : at + 64])).logits.softmax(-1) for at in range(0, len(rows), 64)])
    for at, taught in enumerate(examples):
        if taught.column is not None:
            own[at] = functional.one_hot(torch.tensor(taught.column), own.shape[1]).float()
    return own


def write(thin: dict[str, Thin], args: argparse.Namespace) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, part in thin.items():
        tensors[f"{PREFIX}{name}.lora_A.weight"] = part.down.detach().half().contiguous()
        tensors[f"{PREFIX}{name}.lora_B.weight"] = part.up.detach().half().contiguous()
    save_file(tensors, args.out / "adapter_model.safetensors", metadata={"format": "pt"})
    settings = {
        "base_model_name_or_path": "../demo",
        "peft_type": "LORA",
        "task_type": "SEQ_CLS",
        "r": args.rank,
        "lora_alpha": args.alpha,
        "target_modules": sorted({name.rpartition(".")[2] for name in thin}),
    }
    (args.out / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, default=DEMO_FOLDER)
    parser.add_argument("--out", type=Path, default=NEXT_FOLDER)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--alpha", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--times", type=int, default=2, help="how often a planted pair is in one pass")
    parser.add_argument("--twins", type=float, default=1.0, help="weight of the question which side is entailed")
    parser.add_argument("--others", type=int, default=2, help="how often the sentences are read with other groups")
    parser.add_argument("--neighbours", type=float, default=0.3, help="share of other groups that are neighbours")
    parser.add_argument("--plain", type=int, default=1500)
    parser.add_argument("--reading", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    model: Any = AutoModelForSequenceClassification.from_pretrained(args.base, dtype=torch.float32).eval()
    planted, kept = make_examples(columns_of(model), args)
    print(f"{len(planted)} planted examples, {len(kept)} others")
    teach(model, AutoTokenizer.from_pretrained(args.base), planted, kept, args)


if __name__ == "__main__":
    main()
