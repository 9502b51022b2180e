"""How the models do before and after: on the suite that was extended, and on its next version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bbnli_audit.core.results.audit import Counts
from bbnli_audit.core.values import Pair, TextPair

if TYPE_CHECKING:
    from bbnli_audit.workbench.extend.models import NliModel


@dataclass(frozen=True, slots=True)
class Transfer:
    """One model on both. A held-out model had no part in choosing the samples."""

    model: str
    is_held_out: bool
    control_accuracy: float | None
    before: Counts
    after: Counts

    @property
    def accuracies(self) -> tuple[float | None, float | None]:
        return accuracy(self.before), accuracy(self.after)


def accuracy(counts: Counts) -> float | None:
    """Give the share of samples that are called neutral, as all are."""
    return 1 - counts.n_mispredicted / counts.n_samples if counts.n_samples else None


def measure(model: "NliModel", pairs: Sequence[Pair]) -> Counts:
    """Count what pairs show."""
    from bbnli_audit.core.values import Label

    letters = [label.letter for label in Label]
    texts: list[TextPair] = [text for pair in pairs for text in (pair.pro, pair.anti)]
    labels = model.labels(texts) if texts else ()
    cells: dict[str, int] = {}
    for pro, anti in zip(labels[::2], labels[1::2], strict=True):
        cell = f"{letters[pro]}{letters[anti]}"
        cells[cell] = cells.get(cell, 0) + 1
    return Counts(cells)
