"""Opens the NLI models of the workbench, checks them, and gives them short names."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bbnli_audit.audit.proof import prove
from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.values import Control, Label, Pair, TextPair
from bbnli_audit.core.words import figure
from bbnli_audit.models.inference.progress import Progress
from bbnli_audit.models.labels import is_two_label
from bbnli_audit.models.opening import OpenedModel, plan_model
from bbnli_audit.models.planted import PLANTED
from bbnli_audit.models.served.server_client import SERVED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_N_TIMED = 128


@dataclass(frozen=True, slots=True)
class NliModel:
    """A model that labels samples. `given` is the name that the user gave. `name` is a short name for tables."""

    given: str
    name: str
    opened: OpenedModel
    is_held_out: bool = False

    @property
    def fingerprint(self) -> str:
        return self.opened.predictor.info.fingerprint

    def labels(self, texts: Sequence[TextPair]) -> "NDArray[np.intp]":
        """Return the label of each text as its index in `Label`."""
        labels: NDArray[np.intp] = self.opened.predictor.predict(texts).probabilities.argmax(axis=1)
        return labels

    def count_cells(self, pairs: Sequence[Pair]) -> CellCounts:
        """Count how the model labels the two sides of the pairs."""
        letters = [label.letter for label in Label]
        texts = [text for pair in pairs for text in (pair.pro, pair.anti)]
        labels = self.labels(texts) if texts else ()
        sides = zip(labels[::2], labels[1::2], strict=True)
        return CellCounts(Counter(letters[pro] + letters[anti] for pro, anti in sides))

    def check_skill(self, controls: Sequence[Control]) -> float | None:
        """Return the model's accuracy on the controls. Refuse a model that is no better than a constant answer."""
        skill = prove(self.opened.predictor, controls).skill
        if skill.control_accuracy is not None and skill.control_accuracy <= skill.best_constant:
            got = f"gets {figure(skill.control_accuracy)} of {skill.n_controls} controls right"
            constant = f"a model that always gives the same answer gets {figure(skill.best_constant)}"
            raise ModelError(f"{self.given} {got}; {constant}. Its errors mean nothing. Use another model.")
        return skill.control_accuracy


@contextmanager
def open_models(
    deciding: Sequence[str], held_out: Sequence[str], options: ModelOptions, progress: Progress | None = None
) -> Iterator[list[NliModel]]:
    """Find the models, and close their stores at the end. A model is loaded only if its store lacks a prediction."""
    models: list[NliModel] = []
    with ExitStack() as stores:
        for given in (*deciding, *held_out):
            model = _open_model(given, given in held_out, options, progress)
            stores.callback(model.opened.close)
            for other in models:
                if other.fingerprint == model.fingerprint:
                    raise OptionError(f"{given} and {other.given} are the same model (equal content). Name it once.")
                if other.name == model.name:
                    raise OptionError(
                        f"{given} and {other.given} would both be called {model.name}. Rename one folder."
                    )
            models.append(model)
        yield models


def _open_model(given: str, is_held_out: bool, options: ModelOptions, progress: Progress | None) -> NliModel:
    from bbnli_audit.measures.readings.kinds import LABELS, reading_of

    if given.startswith((PLANTED, SERVED)):
        raise OptionError(f"{given}: only NLI models that can label any text can be used here. Name a checkpoint.")
    opened = plan_model(given, options).open([], progress)
    info = opened.predictor.info
    if is_two_label(info.labels):
        raise ModelError(f"{given}: has two labels and cannot tell neutral from contradiction. Use one with three.")
    if reading_of(info.kind) is not LABELS:
        raise ModelError(f"{given}: is a language model ({info.kind}), but an NLI model must label the samples.")
    # Tables are published, so they name a folder by its last part, never by its path.
    name = Path(given).resolve().name if Path(given).is_dir() else given
    return NliModel(given, name, opened, is_held_out)


def full_name(given: str) -> str:
    """Return a name by which the model is found from any working folder."""
    return str(Path(given).resolve()) if Path(given).is_dir() else given


def estimate_seconds(model: NliModel, texts: Sequence[TextPair], clock: Callable[[], float] = time.monotonic) -> float:
    """Label some of the texts, and estimate the time for all. Return 0 if all these labels were stored already."""
    if not texts:
        return 0.0
    some = list(texts[:: max(1, len(texts) // _N_TIMED)][:_N_TIMED])
    model.labels(some[:4])  # loads the model
    tally = model.opened.tally
    before = tally.n_predicted if tally is not None else 0
    started = clock()
    model.labels(some)
    n_new = len(some) if tally is None else tally.n_predicted - before
    return (clock() - started) / n_new * len(texts) if n_new else 0.0
