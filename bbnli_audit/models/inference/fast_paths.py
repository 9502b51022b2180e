"""Checks a fast path (another number type, another runtime) against the exact path on a sample of the texts."""

from collections.abc import Iterable, Sequence

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.results.rows import FastPathCheck
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.store import text_key
from bbnli_audit.models.protocol import Predictor

# The run is refused if more than this share of the labels changes (--bbnli-max-disagreement).
MAX_DISAGREEMENT = 0.01
# From each subtopic, so that every one of them is checked.
N_PAIRS_TEXTS, N_CONTROLS = 16, 8


def draw(texts: Iterable[TextPair], n_texts: int) -> list[TextPair]:
    """Draw texts by their hash: the same ones whatever their order, and as good as by chance."""
    return sorted(set(texts), key=text_key)[:n_texts]


def check_fast_path(fast: Predictor, exact: Predictor, sample: Sequence[TextPair], limit: float) -> FastPathCheck:
    """Run both paths on the sample, and refuse a fast path on which too many labels differ."""
    labels = [predictor.predict(sample).probabilities.argmax(axis=1) for predictor in (fast, exact)]
    found = FastPathCheck(len(sample), int((labels[0] != labels[1]).sum()), limit)
    if found.n_different > limit * found.n_checked:
        raise ModelError(
            f"{fast.info.name}: {fast.info.backend} with {fast.info.dtype} changes the answers: {found}.\n"
            "The scores would be those of another model, so there are none. Leave out --bbnli-dtype and "
            "--bbnli-backend, or audit the model as it is released."
        )
    return found
