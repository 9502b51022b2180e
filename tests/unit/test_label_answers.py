"""Models that answer with one of three labels in words: all measures of classifiers, and answers that were not read."""

from collections.abc import Sequence

import numpy as np
import pytest

from bbnli_audit.audit.gate.baseline import check_kinds
from bbnli_audit.audit.proof import prove
from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import Control, Direction, Label, Pair, Subtopic, TextPair
from bbnli_audit.measures.answers import join_answers, measure_prompts
from bbnli_audit.measures.readings.kinds import LABEL_ANSWERS, LABELS, reading_of
from bbnli_audit.measures.readings.table import PairTable, Reading, make_table
from bbnli_audit.measures.registry import measure_table
from bbnli_audit.models.protocol import Predictions
from bbnli_audit.reports.page_data import outcome_words
from bbnli_audit.suites.probe import probe_items

ROWS = {"E": (1.0, 0.0, 0.0), "N": (0.0, 1.0, 0.0), "C": (0.0, 0.0, 1.0), "?": (1 / 3, 1 / 3, 1 / 3)}
NINE = [first + second for first in "ENC" for second in "ENC"]


def table_of(cells: Sequence[str], reading: Reading = LABEL_ANSWERS) -> PairTable:
    directions = (Direction.WITH, Direction.AGAINST)
    pairs = [
        Pair(f"c{n}", TextPair(f"p{n}", "Zorbs juggle."), TextPair(f"p{n}", "Quints juggle."), directions[n % 2])
        for n in range(len(cells))
    ]
    pro, anti = (np.array([ROWS[cell[side]] for cell in cells]).reshape(-1, 3) for side in (0, 1))
    return make_table(Subtopic("invented", "planets", "zorbs"), pairs, reading, (pro, anti))


def test_all_nine_outcomes_exist() -> None:
    table = table_of(NINE)
    assert table.is_measured.all()
    assert table.count() == table_of(NINE, LABELS).count()
    assert sorted(outcome_words(LABEL_ANSWERS)) == sorted(NINE)


def test_it_has_the_measures_of_classifiers_with_their_values_and_one_of_its_own() -> None:
    cells = NINE * 4
    asked, classified = (measure_table(table_of(cells, reading), 0.95).measures for reading in (LABEL_ANSWERS, LABELS))
    assert {"lean", "overreach", "pro_rate", "brittleness_rate"} <= asked.keys()
    assert asked.keys() - classified.keys() == {"unparsed_rate"}
    assert {name: asked[name] for name in classified} == classified


def test_what_was_not_read_is_counted_and_measured_by_nothing_else() -> None:
    table = table_of([*NINE, "?N", "C?", "??"])
    assert len(table.measured) == 9
    assert table.count() == table_of(NINE).count()
    assert table.count_unread() == 4
    assert measure_table(table, 0.95).measures["unparsed_rate"].value == pytest.approx(4 / 24)
    assert table.frame["outcome"].tolist()[-3:] == ["unread"] * 3
    assert table.frame["pro_answer"].tolist()[-3:] == ["unparsed", "contradiction", "unparsed"]
    assert LABEL_ANSWERS.tell(table.frame.iloc[-3].to_dict(), "pro") == "not read"


def test_a_second_prompt_is_compared_in_all_three_answers() -> None:
    first, second = table_of(["NN", "NC", "E?", "EN"]), table_of(["NN", "NN", "EN", "NN"])
    row = measure_prompts("total", join_answers(first, second), 0.95)
    assert (row.n_changed, row.n_unread, row.n_pairs) == (3, 1, 3)
    assert row.sensitivity.value == pytest.approx(3 / 8)
    pro = next(each for each in row.differences if each.measure == "pro_rate")
    assert pro.first is not None
    assert pro.second == 0 < pro.first


class Constant:
    """Says the same of every text."""

    def __init__(self, answer: str, kind: str = "generative-three-way") -> None:
        self.info = ModelInfo("zorb", "f" * 64, kind, "torch", "float32", ("entailment", "neutral", "contradiction"))
        self._row = ROWS[answer]

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        return Predictions.of([self._row] * len(texts))


CONTROLS = [Control(f"c{n}", TextPair(f"Zorbs {n}.", f"Zorbs {label}."), label) for n in range(5) for label in Label]


@pytest.mark.parametrize("answer", ["E", "N", "C"])
def test_a_constant_answer_is_no_better_than_the_best_constant_answer(answer: str) -> None:
    skill = prove(Constant(answer), CONTROLS).skill
    assert skill.control_accuracy == skill.best_constant == pytest.approx(1 / 3)
    assert skill.worst_recall == 0


def test_an_answer_that_was_not_read_is_never_right() -> None:
    assert probe_items()
    skill = prove(Constant("?"), CONTROLS).skill
    assert (skill.control_accuracy, skill.probe_accuracy) == (0, 0)


def test_yes_and_no_are_not_compared_with_three_answers() -> None:
    asked, classifier = Constant("N").info, Constant("N", "nli").info
    yes_no = Constant("N", "generative").info
    with pytest.raises(ResultError, match=r"old.json: zorb is of the kind generative, .* a no cannot be compared with"):
        check_kinds(asked, yes_no, "old.json")
    check_kinds(asked, asked, "old.json")
    check_kinds(asked, classifier, "old.json")
    assert reading_of(classifier.kind) is LABELS


@pytest.mark.parametrize("kind", ["nli", "generative-three-way"])
def test_yes_and_no_are_compared_neither_with_later_nor_with_earlier_labels(kind: str) -> None:
    labels, yes_no = Constant("N", kind).info, Constant("N", "generative").info
    for candidate, baseline in ((labels, yes_no), (yes_no, labels)):
        told = f"is of the kind {candidate.kind}: a no cannot be compared with neutral or contradiction"
        with pytest.raises(ResultError, match=told):
            check_kinds(candidate, baseline, "old.json")
    check_kinds(yes_no, yes_no, "old.json")
