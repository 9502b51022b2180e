"""Checks a fast path (another number type, another runtime) against the exact path on a sample of the items."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.store import text_key
from bbnli_audit.models.protocol import Predictor

# More labels than this share changed, and the run is refused (--bbnli-max-disagreement).
MAX_DISAGREEMENT = 0.01
# Of each subtopic, so that every one of them is looked at.
N_PAIRS_TEXTS, N_CONTROLS = 16, 8


@dataclass(frozen=True, slots=True)
class Agreement:
    """On how many texts both paths were run, and on how many of them the label differs."""

    n_checked: int
    n_different: int
    limit: float

    def __str__(self) -> str:
        return (
            f"on {self.n_checked} texts that were also run on the exact path, {self.n_different} labels differ "
            f"(refused above {self.limit:.1%})"
        )


def draw(texts: Iterable[TextPair], n_texts: int) -> list[TextPair]:
    """Draw texts by their hash: the same ones whatever their order, and as good as by chance."""
    return sorted(set(texts), key=text_key)[:n_texts]


def compare(fast: Predictor, exact: Predictor, sample: Sequence[TextPair], limit: float) -> Agreement:
    """Run both paths on the sample.

    Raises:
        ModelError: when more labels differ than the limit allows.
    """
    labels = [predictor.predict(sample).probabilities.argmax(axis=1) for predictor in (fast, exact)]
    agreement = Agreement(len(sample), int((labels[0] != labels[1]).sum()), limit)
    if agreement.n_different > limit * agreement.n_checked:
        raise ModelError(
            f"{fast.info.name}: {fast.info.backend} with {fast.info.dtype} changes the answers: {agreement}.\n"
            "Scores would be those of another model, so none is given. Leave out --bbnli-dtype and --bbnli-backend, or "
            "audit the model as it is released."
        )
    return agreement
