"""A fast path is compared with the exact one, and refused when it answers otherwise."""

from collections.abc import Sequence

import numpy as np
import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.opening import check_fast_path, draw
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.models.protocol import Predictions

TEXTS = [TextPair("the red moon", f"zorbs juggle {n} times") for n in range(200)]


class Slip(PlantedPredictor):
    """Answers like the planted model, but calls the first few texts entailed."""

    def __init__(self, n_slips: int) -> None:
        super().__init__("ideal", [])
        self._slips = set(TEXTS[:n_slips])

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        found = super().predict(texts)
        for row, text in enumerate(texts):
            if text in self._slips:
                found.probabilities[row] = (0.9, 0.05, 0.05)
        return found


def test_what_differs_is_counted_and_the_limit_itself_is_allowed() -> None:
    exact = PlantedPredictor("ideal", [])
    assert check_fast_path(exact, exact, TEXTS, 0.0).n_different == 0
    at_limit = check_fast_path(Slip(2), exact, TEXTS, 0.01)
    assert (at_limit.n_checked, at_limit.n_different) == (200, 2)
    assert str(at_limit) == ("on 200 texts that were also run on the exact path, 2 labels differ (refused above 1.0%)")
    with pytest.raises(ModelError) as caught:
        check_fast_path(Slip(3), exact, TEXTS, 0.01)
    assert "planted with float64 changes the answers: on 200 texts" in str(caught.value)
    assert "3 labels differ (refused above 1.0%)" in str(caught.value)
    assert "Leave out --bbnli-dtype and --bbnli-backend" in str(caught.value)
    assert "zorbs" not in str(caught.value)


def test_a_sample_does_not_depend_on_the_order() -> None:
    shuffled = list(TEXTS)
    np.random.default_rng(0).shuffle(shuffled)
    drawn = draw(TEXTS, 20)
    assert drawn == draw(shuffled + TEXTS, 20)
    assert len(set(drawn)) == 20
    assert drawn != sorted(drawn)  # as good as by chance
    assert draw(TEXTS[:5], 20) == draw(TEXTS[:5], 5)
