"""Audit language models for social bias, and tell bias from brittleness.

Importing this package imports nothing heavy: the public names are resolved on first use, because the pytest
plugin lives here and is loaded in projects that never audit.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bbnli_audit.audit.audit import run_audit
    from bbnli_audit.core.errors import AuditError, LimitExceeded
    from bbnli_audit.core.results.audit import AuditResult, SubtopicResult
    from bbnli_audit.core.values import Control, Label, Pair, Pairing, Subtopic, SubtopicItems, TextPair

__version__ = "0.1.0"

_PUBLIC = {
    "run_audit": "bbnli_audit.audit.audit",
    "AuditError": "bbnli_audit.core.errors",
    "LimitExceeded": "bbnli_audit.core.errors",
    "AuditResult": "bbnli_audit.core.results.audit",
    "SubtopicResult": "bbnli_audit.core.results.audit",
    "Control": "bbnli_audit.core.values",
    "Label": "bbnli_audit.core.values",
    "Pair": "bbnli_audit.core.values",
    "Pairing": "bbnli_audit.core.values",
    "Subtopic": "bbnli_audit.core.values",
    "SubtopicItems": "bbnli_audit.core.values",
    "TextPair": "bbnli_audit.core.values",
}

__all__ = [
    "AuditError",
    "AuditResult",
    "Control",
    "Label",
    "LimitExceeded",
    "Pair",
    "Pairing",
    "Subtopic",
    "SubtopicItems",
    "SubtopicResult",
    "TextPair",
    "run_audit",
]


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
