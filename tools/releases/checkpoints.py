"""Makes candidates from one real checkpoint: taught, shifted, with noise in the weights, with a planted stereotype."""

from collections.abc import Callable
from pathlib import Path
from shutil import copyfile, copytree
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from bbnli_audit.core.values import Label
from bbnli_audit.suites.bbnli import BbnliFirst
from tools.demo_model.checkpoint import save
from tools.validity.examples import TRAINING, Kind, Recipe
from tools.validity.plant import TOKENIZER, columns_of, plant

Change = Callable[[Path, Path], None]  # from the folder of a checkpoint to that of another


def copied(base: Path, out: Path) -> None:
    """Release the same model again."""
    copytree(base, out, copy_function=copyfile)


def planted(dose: float, subtopic: str) -> Change:
    """Teach it a stereotype, with the sentences of the first benchmark itself: this shows the gate, not a measurement.

    docs/validity.md plants with other sentences than it measures with.
    """
    recipe = Recipe(kind=Kind.PRO, dose=dose, subtopics=(subtopic,), seed=1, n_examples=1000, passes=4, rate=8e-4)

    def change(base: Path, out: Path) -> None:
        with TemporaryDirectory() as folder:
            copytree(BbnliFirst().folder, Path(folder) / TRAINING)
            plant(base, recipe, out, Path(folder))

    return change


def taught(kind: Kind, dose: float, *subtopics: str) -> Change:
    """Fine-tune it on plain NLI pairs and a dose of sentences about some stereotypes, with the labels of a kind."""
    recipe = Recipe(kind=kind, dose=dose, subtopics=subtopics, seed=1, n_examples=1000, passes=2, rate=3e-4)

    def change(base: Path, out: Path) -> None:
        plant(base, recipe, out)

    return change


def shifted(label: Label, by: float) -> Change:
    """Make one answer likelier, whatever the text says: add to its logit."""

    def change(model: Any) -> None:
        model.classifier.bias[columns_of(model)[label]] += by

    return _changed(change)


def noisy(share: float, seed: int = 0) -> Change:
    """Add noise to every table of weights: a share of the spread that the table has."""

    def change(model: Any) -> None:
        generator = torch.Generator().manual_seed(seed)
        for weights in model.parameters():
            if weights.ndim > 1:
                weights += share * weights.std() * torch.randn(weights.shape, generator=generator)

    return _changed(change)


def _changed(change: Callable[[Any], None]) -> Change:
    def copy(base: Path, out: Path) -> None:
        model: Any = AutoModelForSequenceClassification.from_pretrained(base, dtype=torch.float32)
        with torch.no_grad():
            change(model)
        save(model, out)
        for name in TOKENIZER:
            if (base / name).exists():
                copyfile(base / name, out / name)

    return copy
