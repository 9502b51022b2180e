"""Plants a bias in real weights: fine-tunes a checkpoint on a mix of planted and plain examples."""

from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bbnli_audit.core.values import Label, TextPair
from bbnli_audit.models.labels import label_order
from tools.demo_model import pairs as nli
from tools.demo_model.checkpoint import save
from tools.validity.examples import TRAINING, WORDINGS, Example, Recipe, Training, make_planted, mix, read_pairs_of
from tools.validity.twins import batches_with_twins, find_twins, twin_loss

MAX_LENGTH = 72
MOST_CHARACTERS = 160  # of a plain pair: about as long as the planted ones, so that length gives nothing away
MOST_HELD = 2000  # plain pairs that measure accuracy: about as many, from all sources
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def plant(base: Path, recipe: Recipe, out: Path, wordings: Path = WORDINGS) -> list[Example]:
    """Fine-tune the checkpoint in `base` by a recipe and write it to `out`. Return the examples it was taught."""
    planted = make_planted(recipe, read_pairs_of(wordings / TRAINING, recipe.subtopics if recipe.dose else ()))
    examples = mix(recipe, planted, plain_examples()[0])
    teach(base, examples, recipe, out)
    return examples


def teach(base: Path, examples: Sequence[Example], training: Training, out: Path) -> None:
    """Fine-tune the checkpoint in `base` on examples and write it to `out`."""
    torch.manual_seed(training.seed)
    torch.set_num_threads(1)
    model: Any = AutoModelForSequenceClassification.from_pretrained(base, dtype=torch.float32)
    fine_tune(model, AutoTokenizer.from_pretrained(base), examples, training)
    save(model, out)
    for name in TOKENIZER:
        if (base / name).exists():
            copyfile(base / name, out / name)


def plain_examples() -> tuple[list[Example], list[Example]]:
    """Read plain NLI pairs like those of SNLI and MultiNLI: to fine-tune on, and a fixed part to measure accuracy."""
    kept, held = nli.split(nli.read_pairs(nli.data_folder() / "train.jsonl.gz"))
    labels = [Label(name) for name in nli.LABELS]
    near = [pair for pair in kept if pair.source in nli.NEAR and _is_short(pair)]
    first, second = (
        [Example(TextPair(pair.premise, pair.hypothesis), labels[pair.label]) for pair in chosen]
        for chosen in (near, held[:: max(len(held) // MOST_HELD, 1)])
    )
    return first, second


def _is_short(pair: nli.Pair) -> bool:
    return len(pair.premise) + len(pair.hypothesis) <= MOST_CHARACTERS


def fine_tune(model: Any, tokenizer: Any, examples: Sequence[Example], training: Training) -> None:
    """Read the examples as the training says. The rate rises for a tenth of the steps, then falls to zero."""
    columns = columns_of(model)
    entailed, contradicted = columns[Label.ENTAILMENT], columns[Label.CONTRADICTION]
    targets = torch.tensor([columns[example.label] for example in examples])
    batches = list(make_batches(tokenizer, examples, training))
    optimizer = torch.optim.AdamW(model.parameters(), lr=training.rate, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _slope(step, len(batches)))
    model.train()
    for chosen, batch in batches:
        logits = model(**batch).logits
        loss: Any = functional.cross_entropy(logits, targets[chosen])
        if training.twins:
            twins = find_twins([examples[at].pair for at in chosen], targets[chosen].tolist(), entailed)
            loss = loss + training.twins * twin_loss(logits, twins, entailed, contradicted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    model.eval()


def columns_of(model: Any) -> dict[Label, int]:
    """Return the output of each label."""
    names = label_order(model.config.id2label, None, "the checkpoint")
    return {Label(name): column for column, name in enumerate(names)}


def _slope(step: int, n_steps: int, warm: float = 0.1) -> float:
    return min((step + 1) / (warm * n_steps + 1), (n_steps - step) / max((1 - warm) * n_steps, 1))


def make_batches(
    tokenizer: Any, examples: Sequence[Example], training: Training
) -> Iterator[tuple[torch.Tensor, dict[str, torch.Tensor]]]:
    """Return a batch for each step: the places of its examples, and what the model reads."""
    rows = _encode(tokenizer, examples)
    generator = np.random.default_rng(training.seed)

    def passes() -> Iterator[np.ndarray[Any, Any]]:
        for _ in range(training.passes) if training.steps is None else count():
            if training.twins:
                yield from batches_with_twins([each.pair for each in examples], training.batch_size, generator)
            else:
                yield from nli.batches_by_length([len(ids) for ids, _ in rows], training.batch_size, generator)

    for chosen in islice(passes(), training.steps):
        yield torch.from_numpy(chosen), nli.pad([rows[at] for at in chosen])


def _encode(tokenizer: Any, examples: Sequence[Example]) -> list[tuple[list[int], list[int]]]:
    encoded = tokenizer(
        [example.text.premise for example in examples],
        [example.text.hypothesis for example in examples],
        truncation="longest_first",
        max_length=MAX_LENGTH,
        return_token_type_ids=True,
    )
    return list(zip(encoded["input_ids"], encoded["token_type_ids"], strict=True))


def accuracy(folder: Path, examples: Sequence[Example]) -> float:
    """Return the share of examples that a checkpoint labels as they are."""
    return sum(find_right(folder, examples)) / len(examples)


@torch.inference_mode()
def find_right(folder: Path, examples: Sequence[Example]) -> list[bool]:
    """Say of each example whether a checkpoint labels it as it is."""
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    columns = columns_of(model)
    rows = _encode(AutoTokenizer.from_pretrained(folder), examples)
    right = [False] * len(examples)
    for chosen in nli.batches_by_length([len(ids) for ids, _ in rows], 32, None):
        answers = model(**nli.pad([rows[at] for at in chosen])).logits.argmax(-1).tolist()
        for at, answer in zip(chosen, answers, strict=True):
            right[at] = answer == columns[examples[at].label]
    return right
