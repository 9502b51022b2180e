"""Checks, before a model's first pass, that the model computes the same as plain transformers.

A pass is fast because of padding-free batches, shared prefixes and threads. Each of these could silently give wrong
figures. So a few texts are also computed in the plainest way: each alone, with its own fresh copy of the model.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.store import text_key
from bbnli_audit.models.protocol import Floats

# Rounding in float32 changes probabilities by a few millionths. Graphics cards round convolutions more coarsely.
TOLERANCE, _GPU_TOLERANCE = 1e-4, 1e-3
_N_DRAWN = 3  # texts to check besides the shortest and the longest text of the pass


@runtime_checkable
class BesidePlain(Protocol):
    """A model that can also compute texts in the plainest way."""

    info: ModelInfo
    is_on_cpu: bool

    def beside_plain(self, texts: Sequence[TextPair]) -> tuple[Floats, Floats]:
        """Return probabilities as computed in a pass, and as plain transformers computes them.

        Both arrays have a row for each text. A model may add texts of its own to the given texts.
        """


def texts_to_check(texts: Sequence[TextPair]) -> list[TextPair]:
    """Choose texts to check: the shortest, the longest, and some drawn by their hash."""
    by_length = sorted(texts, key=lambda text: (len(text.premise) + len(text.hypothesis), text))
    drawn = sorted(texts, key=text_key)[:_N_DRAWN]
    return list(dict.fromkeys([by_length[0], by_length[-1], *drawn]))


def check_against_plain(model: BesidePlain, texts: Sequence[TextPair]) -> None:
    """Refuse a model if its probabilities in a pass differ from those of plain transformers by more than rounding.

    Only float32 is checked here. Other number types round more coarsely. For them, `check_fast_path` compares labels
    with the labels in float32.
    """
    import numpy as np

    if model.info.dtype != "float32":
        return
    ours, plain = model.beside_plain(texts)
    off = np.nan_to_num(np.abs(ours - plain))  # values that are not finite are refused elsewhere
    row, column = np.unravel_index(off.argmax(), off.shape)
    tolerance = TOLERANCE if model.is_on_cpu else _GPU_TOLERANCE
    if off[row, column] <= tolerance:
        return
    name, n_off = model.info.name, int((off.max(axis=1) > tolerance).sum())
    figures = f"{ours[row, column]:.6f} as audited and {plain[row, column]:.6f} with a fresh model and this text alone"
    raise ModelError(
        f"--model={name}: our probabilities differ from those of plain transformers on {n_off} of {len(off)} texts. "
        f"On one of them, a probability is {figures}.\nAll figures would be wrong, so none is given. "
        f"`bbnli-audit inspect {name}` shows how it reads a text. You can audit its own probabilities with "
        "--model=predictions:FILE (docs/models.md)."
    )
