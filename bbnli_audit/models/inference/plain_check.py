"""Checks a model before a pass: does it compute what plain transformers computes?

A pass has many ways to be fast: no padding, shared starts, threads. Each could give wrong figures without a sign of it.
So a few texts are also computed in the plainest way: each alone, with a copy of the model that is not used otherwise.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.store import text_key
from bbnli_audit.models.protocol import Floats

# Probabilities in float32 differ by some millionths. Graphics cards round convolutions more coarsely.
TOLERANCE, _GPU_TOLERANCE = 1e-4, 1e-3
_N_DRAWN = 3  # texts of the pass, besides its shortest and its longest


@runtime_checkable
class BesidePlain(Protocol):
    """A model that can also be computed in the plainest way."""

    info: ModelInfo
    is_on_cpu: bool

    def beside_plain(self, texts: Sequence[TextPair]) -> tuple[Floats, Floats]:
        """Return the probabilities of texts as in a pass, and as plain transformers gives them, row by row."""


def texts_to_check(texts: Sequence[TextPair]) -> list[TextPair]:
    """Choose texts of a pass: the shortest, the longest, and some drawn by their hash."""
    by_length = sorted(texts, key=lambda text: (len(text.premise) + len(text.hypothesis), text))
    drawn = sorted(texts, key=text_key)[:_N_DRAWN]
    return list(dict.fromkeys([by_length[0], by_length[-1], *drawn]))


def check_against_plain(model: BesidePlain, texts: Sequence[TextPair]) -> None:
    """Refuse a model if a pass gives other probabilities than plain transformers does.

    Other number types than float32 round more coarsely. They are checked against float32, by their labels.
    """
    import numpy as np

    if model.info.dtype != "float32":
        return
    ours, plain = model.beside_plain(texts)
    off = np.nan_to_num(np.abs(ours - plain))  # what is not finite is refused elsewhere, with its own message
    row, column = np.unravel_index(off.argmax(), off.shape)
    tolerance = TOLERANCE if model.is_on_cpu else _GPU_TOLERANCE
    if off[row, column] <= tolerance:
        return
    name, n_off = model.info.name, int((off.max(axis=1) > tolerance).sum())
    figures = f"{ours[row, column]:.6f} as audited and {plain[row, column]:.6f} with a fresh model and this text alone"
    raise ModelError(
        f"--model={name}: is not computed as plain transformers computes it. On {n_off} of {len(off)} texts a "
        f"probability differs; on one it is {figures}.\nIts figures would be wrong, so none is given. "
        f"`bbnli-audit inspect {name}` shows how it is read. You can audit its own probabilities with "
        "--model=predictions:FILE (docs/models.md)."
    )
