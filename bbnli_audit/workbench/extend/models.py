"""The NLI models of the workbench: opened with the workspace's store, proved, and told apart by short names."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bbnli_audit.audit.proof import prove
from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.results.audit import GENERATIVE, LIKELIHOOD
from bbnli_audit.core.values import Control, Label, TextPair
from bbnli_audit.models.classifier.labels import is_two_label
from bbnli_audit.models.find import PLANTED, check_model
from bbnli_audit.models.inference.opening import Inference, OpenedModel
from bbnli_audit.models.inference.progress import Progress
from bbnli_audit.models.language_model.asking import SERVED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_N_TIMED = 128


@dataclass(frozen=True, slots=True)
class NliModel:
    """A model that labels samples. `given` is how the user named it."""

    given: str
    name: str
    opened: OpenedModel
    is_held_out: bool = False

    @property
    def fingerprint(self) -> str:
        return self.opened.predictor.info.fingerprint

    def labels(self, texts: Sequence[TextPair]) -> "NDArray[np.intp]":
        """Give the label of each text as a column of `Label`'s order."""
        labels: NDArray[np.intp] = self.opened.predictor.predict(texts).probabilities.argmax(axis=1)
        return labels

    def check_skill(self, controls: Sequence[Control]) -> float | None:
        """Prove the model, and give its share of right controls.

        Raises:
            ModelError: when it answers no better than the best answer that never looks at the text.
        """
        skill = prove(self.opened.predictor, controls).skill
        if skill.control_accuracy is not None and skill.control_accuracy <= skill.best_constant:
            raise ModelError(
                f"{self.given} gets {skill.control_accuracy:.3f} of {skill.n_controls} controls right; always the same "
                f"answer would get {skill.best_constant:.3f}. What it mispredicts says nothing. Give another model."
            )
        return skill.control_accuracy


def open_models(
    deciding: Sequence[str], held_out: Sequence[str], inference: Inference, progress: Progress | None = None
) -> list[NliModel]:
    """Find the models; they are loaded when a prediction is missing.

    Raises:
        OptionError: when two have the same name or the same content.
        ModelError: when one cannot be used.
    """
    models: list[NliModel] = []
    for given in (*deciding, *held_out):
        if given.startswith((PLANTED, SERVED)):
            raise OptionError(f"{given}: only NLI models that can label any text take part here. Give a checkpoint.")
        check_model(given, inference.labels, inference.computing, inference.asking)
        opened = inference.open(given, [], progress)
        kind = opened.predictor.info.kind
        if is_two_label(opened.predictor.info.labels):
            raise ModelError(f"{given}: cannot tell neutral from contradiction (two labels). Give a model with three.")
        if kind in LIKELIHOOD or kind == GENERATIVE:
            raise ModelError(
                f"{given}: is a language model ({kind}), and samples are labelled by NLI models. Give one."
            )
        model = NliModel(given, short_name(given), opened, is_held_out=given in held_out)
        for other in models:
            if other.fingerprint == model.fingerprint:
                raise OptionError(f"{given} and {other.given} are the same model (equal content). Give it once.")
            if other.name == model.name:
                raise OptionError(
                    f"{given} and {other.given} would both be called {model.name}, and tables name models so. Rename a "
                    "folder."
                )
        models.append(model)
    return models


@contextmanager
def opened(
    deciding: Sequence[str], held_out: Sequence[str], inference: Inference, progress: Progress | None = None
) -> Iterator[list[NliModel]]:
    """Open models, and close their stores whatever happens."""
    models = open_models(deciding, held_out, inference, progress)
    try:
        yield models
    finally:
        for model in models:
            model.opened.close()


def full_name(given: str) -> str:
    """Name a model so that it is found from any folder."""
    return str(Path(given).resolve()) if Path(given).is_dir() else given


def short_name(given: str) -> str:
    """Name a model in tables that others will read: the last part of its folder, never a path."""
    return Path(given).resolve().name if Path(given).is_dir() else given


def estimate_seconds(model: NliModel, texts: Sequence[TextPair], clock: Callable[[], float] = time.monotonic) -> float:
    """Time some texts spread over all (they are kept, not lost), and say how long all would take at most."""
    if not texts:
        return 0.0
    step = max(1, len(texts) // _N_TIMED)
    some = list(texts[::step][:_N_TIMED])
    model.labels(some[:4])  # loads the model
    tally = model.opened.tally
    before = tally.n_predicted if tally is not None else 0
    started = clock()
    model.labels(some)
    n_new = len(some) if tally is None else tally.n_predicted - before
    return (clock() - started) / n_new * len(texts) if n_new else 0.0


LABEL_NAMES = tuple(label.value for label in Label)
NEUTRAL = LABEL_NAMES.index(Label.NEUTRAL.value)
