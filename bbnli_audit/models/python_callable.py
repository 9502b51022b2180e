"""`module:callable`: any model, through a Python function that returns its probabilities."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib import import_module
from inspect import getsource
from typing import Any

from bbnli_audit.core.errors import ModelError, suggest
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.labels import THREE_LABELS
from bbnli_audit.models.options import ModelKind
from bbnli_audit.models.protocol import ModelSource, Predictions


def _claims(name: str) -> bool:
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


class CallablePredictor:
    """Calls a function that takes a list of (premise, hypothesis) and returns probabilities of E, N and C."""

    def __init__(self, name: str) -> None:
        module_name, _, attribute = name.partition(":")
        try:
            module = import_module(module_name)
        except (Exception, SystemExit) as exc:  # the module may raise anything when it is imported
            problem = f"the module {module_name!r} cannot be imported: {type(exc).__name__}: {exc}"
            advice = "Install it, or name its folder under 'pythonpath' in pytest's settings."
            raise ModelError(f"--model={name}: {problem}.\n{advice}") from exc
        function = getattr(module, attribute, None)
        if not callable(function):
            what = "is not callable" if function is not None else "does not exist"
            public = [name for name in vars(module) if not name.startswith("_")]
            raise ModelError(f"--model={name}: {attribute!r} {what} in {module_name!r}. {suggest(attribute, public)}")
        self._function: Callable[[list[TextPair]], Any] = function
        fingerprint = sha256(_source(function).encode()).hexdigest()
        self.info = ModelInfo(name, fingerprint, "callable", "python", "float64", THREE_LABELS)

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        import numpy as np

        answer = self._function(list(texts))
        try:
            probabilities = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError, RuntimeError) as exc:
            fault = f"returned a {type(answer).__name__} that is not an array of numbers"
            advice = "Return one row for each text, with the probabilities of entailment, neutral and contradiction."
            raise ModelError(f"{self.info.name} {fault}. {advice}") from exc
        return Predictions(probabilities, np.zeros(len(texts), dtype=np.bool_))


def _source(function: object) -> str:
    """Return what to hash for a callable's fingerprint: its source code, or its type if there is no source."""
    try:
        return getsource(function)  # type: ignore[arg-type]  # any callable may have source; TypeError says it has none
    except (OSError, TypeError):
        return repr(type(function))


KIND = ModelKind(
    "callable",
    "module:callable",
    _claims,
    lambda name, settings: settings.refuse_all(name),
    lambda name, _: ModelSource.of(CallablePredictor(name)),
)
