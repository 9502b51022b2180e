import pytest

from bbnli_audit.core.outcomes import CELLS
from bbnli_audit.core.values import Label
from bbnli_audit.measures.readings.kinds import LABELS, classify
from bbnli_audit.measures.readings.table import PairTable
from tests.strategies import frame_of

NAMES = {label.letter: label.value for label in Label}

# DESIGN section 3, row by row.
TABLE = [
    ("NN", "correct", 0, 0, 0),
    ("NC", "pro", 1, 0, 0),
    ("EN", "pro", 1, 0, 0),
    ("EC", "pro", 2, 0, 0),
    ("CN", "anti", 0, 1, 0),
    ("NE", "anti", 0, 1, 0),
    ("CE", "anti", 0, 2, 0),
    ("EE", "brittle", 0, 0, 2),
    ("CC", "brittle", 0, 0, 2),
]


@pytest.mark.parametrize(("cell", "outcome", "n_pro", "n_anti", "n_brittle"), TABLE)
def test_the_nine_cells(cell: str, outcome: str, n_pro: int, n_anti: int, n_brittle: int) -> None:
    frame = frame_of([(NAMES[cell[0]], NAMES[cell[1]])])
    assert list(classify(frame)) == [outcome]
    counts = PairTable(frame, LABELS).count()
    assert counts.cells == {each: int(each == cell) for each in CELLS}
    assert (counts.n_pro, counts.n_anti, counts.n_brittle) == (n_pro, n_anti, n_brittle)
    assert counts.n_mispredicted == n_pro + n_anti + n_brittle


def test_a_label_that_is_none_of_the_three_is_refused() -> None:
    with pytest.raises(ValueError, match="anti_label holds 'maybe', which is none of entailment, neutral"):
        classify(frame_of([("neutral", "neutral"), ("neutral", "maybe")]))


def test_the_input_is_left_alone() -> None:
    frame = frame_of([("neutral", "entailment")])
    before = frame.copy()
    classify(frame)
    assert frame.equals(before)
