"""Which reading a kind of model has. This table is the only place that knows."""

from bbnli_audit.measures.readings.answers import ANSWERS
from bbnli_audit.measures.readings.labels import LABELS
from bbnli_audit.measures.readings.likelihood import LIKELIHOOD
from bbnli_audit.measures.readings.table import Reading

READINGS: tuple[Reading, ...] = (LABELS, LIKELIHOOD, ANSWERS)
_BY_KIND: dict[str, Reading] = {"masked-lm": LIKELIHOOD, "causal-lm": LIKELIHOOD, "generative": ANSWERS}


def reading_of(kind: str) -> Reading:
    """Return the reading of a kind of model (`ModelInfo.kind`): labels, unless the table says otherwise."""
    return _BY_KIND.get(kind, LABELS)
