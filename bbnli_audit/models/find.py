"""Finds the model that --model names.

To add a kind of model, write a file with a `ModelKind`, and add a line to `KINDS`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from bbnli_audit.core.errors import OptionError
from bbnli_audit.models import on_disk, planted, python_callable, recorded
from bbnli_audit.models.options import ModelKind, ModelSettings
from bbnli_audit.models.protocol import ModelSource
from bbnli_audit.models.served import server

# The first kind that claims a name gets it. Checkpoints come last: a folder may have almost any name.
KINDS = (server.KIND, planted.KIND, recorded.KIND, python_callable.KIND, on_disk.KIND)

_foreign: ContextVar[tuple[ModelKind, ...]] = ContextVar("kinds of other projects", default=())


@contextmanager
def add_kinds(kinds: Sequence[ModelKind]) -> Iterator[None]:
    """Put other projects' kinds of models before ours, inside the `with` block."""
    token = _foreign.set((*kinds, *_foreign.get()))
    try:
        yield
    finally:
        _foreign.reset(token)


def find_kind(name: str) -> ModelKind:
    kinds = (*_foreign.get(), *KINDS)
    for kind in kinds:
        if kind.claims(name):
            return kind
    *forms, last = (kind.form for kind in kinds)
    problem = f"this version knows no models of the kind {name.partition(':')[0]!r}"
    raise OptionError(f"--model={name}: {problem}.\nGive {', '.join(forms)} or {last}.")


def find_model(name: str, settings: ModelSettings | None = None) -> ModelSource:
    return find_kind(name).find(name, settings or ModelSettings())
