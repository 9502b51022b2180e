"""From the value of --model to a predictor."""

from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from inspect import getsource
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.errors import ModelError, OptionError, suggest
from bbnli_audit.predictors.hf import HFPredictor, check_folder
from bbnli_audit.predictors.labels import parse_labels
from bbnli_audit.predictors.planted import KINDS, PlantedPredictor
from bbnli_audit.predictors.protocol import Predictions, Predictor
from bbnli_audit.results import ModelInfo
from bbnli_audit.suites.protocol import Suite
from bbnli_audit.values import Label, TextPair

if TYPE_CHECKING:
    from collections.abc import Callable

PLANTED = "planted:"
# The small checkpoint inside the package. A folder of that name is reached as ./demo.
DEMO = "demo"
DEMO_FOLDER = Path(__file__).parent.parent / "models" / "demo"


def check_model(name: str, labels: str | None) -> None:
    """Refuse at start-up what needs no model to be seen: a missing folder, another head, unreadable labels."""
    if labels is not None:
        parse_labels(labels)
    if name.startswith(PLANTED):
        kind = name.removeprefix(PLANTED)
        if kind not in KINDS:
            raise OptionError(f"--model={name}: there is no such planted model. {suggest(kind, KINDS)}")
    elif not _is_callable(name):
        scheme, colon, _ = name.partition(":")
        if colon and len(scheme) > 1 and not Path(name).exists():
            raise OptionError(
                f"--model={name}: this version knows no models of the kind {scheme!r}.\n"
                "Give a checkpoint's folder, a name on the hub, planted:KIND or module:callable."
            )
        check_folder(str(DEMO_FOLDER) if name == DEMO else name, labels)


def open_predictor(name: str, *, suites: Sequence[Suite], labels: str | None = None, device: str = "auto") -> Predictor:
    """Make the predictor that --model names."""
    if name.startswith(PLANTED):
        return PlantedPredictor(name.removeprefix(PLANTED), suites)
    if _is_callable(name):
        return CallablePredictor(name)
    return HFPredictor(name, labels, device, folder=DEMO_FOLDER if name == DEMO else None)


def _is_callable(name: str) -> bool:
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


class CallablePredictor:
    """`module:callable`: a function from a list of (premise, hypothesis) to probabilities of E, N and C."""

    def __init__(self, name: str) -> None:
        module_name, _, attribute = name.partition(":")
        try:
            module = import_module(module_name)
        except Exception as exc:  # whatever the module does when it is imported
            raise ModelError(
                f"--model={name}: the module {module_name!r} cannot be imported: {type(exc).__name__}: {exc}.\n"
                "Install it, or name its folder under 'pythonpath' in pytest's settings."
            ) from exc
        function = getattr(module, attribute, None)
        if not callable(function):
            what = "is not callable" if function is not None else "does not exist"
            raise ModelError(f"--model={name}: {attribute!r} {what} in {module_name!r}. {_public(module, attribute)}")
        self._function: Callable[[list[TextPair]], Any] = function
        self.info = ModelInfo(
            name=name,
            fingerprint=sha256(_source(function).encode()).hexdigest(),
            kind="callable",
            backend="python",
            dtype="float64",
            labels=tuple(label.value for label in Label),
        )

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        import numpy as np

        answer = self._function(list(texts))
        try:
            probabilities = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError, RuntimeError) as exc:
            raise ModelError(
                f"{self.info.name} returned a {type(answer).__name__} that is no array of numbers. "
                "Return one row a text with the probabilities of entailment, neutral and contradiction."
            ) from exc
        return Predictions(probabilities, np.zeros(len(texts), dtype=np.bool_))


def _source(function: object) -> str:
    """A callable has no weights to hash; its source is the nearest thing to its content."""
    try:
        return getsource(function)  # type: ignore[arg-type]  # any callable may have source; TypeError says it has none
    except (OSError, TypeError):
        return repr(type(function))


def _public(module: object, wrong: str) -> str:
    return suggest(wrong, [name for name in vars(module) if not name.startswith("_")])
