"""Copies a model that has computed nothing yet. All copies share the model's weights, so they cost little.

Some models carry state from one text to the next. BigBird keeps full attention after a short text. Funnel stores the
length of the text that it reads, so two threads would overwrite each other's length. Each batch of such a model is
computed with a fresh copy.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

# PyTorch's modules keep their parts in these attributes. `_look` records the parts separately.
_PARTS = ("_parameters", "_buffers", "_modules")
_PLAIN = (bool, int, float, str, type(None))


class FreshCopies:
    """Makes fresh copies of a model. The given model must not have computed anything yet."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._untouched = _copy(model)
        self.has_state = False

    def find_state(self, use: Callable[[Any], object]) -> None:
        """Find whether `use` leaves any change in a model, and set `has_state`."""
        tried = _copy(self._untouched)
        before = _look(tried)
        use(tried)
        self.has_state = _look(tried) != before

    def make(self) -> Any:
        return _copy(self._untouched)

    def for_use(self) -> Any:
        """Return the model itself, or a fresh copy if the model carries state from one text to the next."""
        return self.make() if self.has_state else self.model


def _copy(model: Any) -> Any:
    return deepcopy(model, {id(weight): weight for weight in model.parameters()})


def _look(model: Any) -> dict[str, object]:
    """Record the state of a model and its modules: plain values, identities of objects, write counts of buffers.

    Writes to weights are not recorded: copies share the weights, so a fresh copy would not undo a write.
    """
    seen: dict[str, object] = {"its config": _held(vars(model.config))}
    for name, module in model.named_modules():
        weights, buffers = dict(module.named_parameters(recurse=False)), dict(module.named_buffers(recurse=False))
        written = {key: None if value.is_inference() else value._version for key, value in buffers.items()}
        own = {key: value for key, value in vars(module).items() if key not in _PARTS}
        parts = (weights, buffers, dict(module.named_children()))
        seen[name] = _held(own), *map(_held, parts), written
    return seen


def _held(values: Mapping[str, Any]) -> dict[str, object]:
    return {key: value if isinstance(value, _PLAIN) else _Held(value) for key, value in values.items()}


class _Held:
    """Compares an object by identity. Holding the object keeps its id from being reused."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other._value is self._value

    __hash__ = None  # type: ignore[assignment]  # compared, never looked up
