from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from bbnli_audit.audit.proof import prove
from bbnli_audit.core.errors import LabelOrderError, ModelError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import Control, Label, TextPair
from bbnli_audit.models.labels import columns_of
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.models.protocol import Predictions, check_predictions
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.probe import probe_items

THREE = tuple(label.value for label in Label)


class TablePredictor:
    """A checkpoint in small: outputs in its own order, read through the order it declares."""

    def __init__(self, true_order: tuple[str, ...], declared: tuple[str, ...], n_wrong: int = 0) -> None:
        self.info = ModelInfo("table", "0", "table", "table", "float64", declared)
        self._true_order = true_order
        self._n_wrong = n_wrong
        self._answers = {item.text: item.expected.value for item in probe_items()}

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        outputs = np.full((len(texts), len(self._true_order)), 0.1)
        for row, text in enumerate(texts):
            answer = self._answers[text] if row >= self._n_wrong else "neutral"
            if len(self._true_order) == 2 and answer != "entailment":
                answer = "not_entailment"
            outputs[row, self._true_order.index(answer)] = 0.8
        columns = columns_of(self.info.labels)
        zeros = np.zeros(len(texts))
        probabilities = np.column_stack([zeros if column is None else outputs[:, column] for column in columns])
        return Predictions(probabilities / probabilities.sum(axis=1, keepdims=True), np.zeros(len(texts), np.bool_))


def test_the_probe_is_balanced_and_distinct() -> None:
    items = probe_items()
    assert set(Counter(item.expected for item in items).values()) == {len(items) // 3}
    assert len({item.text for item in items}) == len(items) >= 30


@pytest.mark.parametrize("declared", list(permutations(THREE)))
@pytest.mark.parametrize("true_order", list(permutations(THREE)))
def test_only_the_true_order_is_accepted_and_the_message_gives_it(
    true_order: tuple[str, ...], declared: tuple[str, ...]
) -> None:
    predictor = TablePredictor(true_order, declared, n_wrong=6)
    if true_order == declared:
        assert (prove(predictor, []).skill.probe_accuracy or 0) > 0.85
        return
    with pytest.raises(LabelOrderError) as caught:
        prove(predictor, [])
    assert f"--bbnli-labels={','.join(true_order)}" in str(caught.value)


@pytest.mark.parametrize("declared", [("entailment", "not_entailment"), ("not_entailment", "entailment")])
def test_two_labels_in_the_wrong_order_are_refused_too(declared: tuple[str, ...]) -> None:
    predictor = TablePredictor(("entailment", "not_entailment"), declared)
    if declared[0] == "entailment":
        assert prove(predictor, []).skill.probe_accuracy == 1
        return
    with pytest.raises(LabelOrderError, match="--bbnli-labels=entailment,not_entailment"):
        prove(predictor, [])


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not_taken_for_another_order(seed: int) -> None:
    class Noise(TablePredictor):
        def predict(self, texts: Sequence[TextPair]) -> Predictions:
            drawn = np.random.default_rng(seed).integers(0, 3, len(texts))
            return Predictions(np.eye(3)[drawn], np.zeros(len(texts), np.bool_))

    skill = prove(Noise(THREE, THREE), all_controls(Bbnli())).skill
    assert skill.control_accuracy is not None
    assert abs(skill.control_accuracy - 1 / 3) < 0.12


@pytest.mark.parametrize("kind", ["always-neutral", "always-entail"])
def test_a_constant_answer_is_not_taken_for_another_order(kind: str) -> None:
    suite = Bbnli()
    skill = prove(PlantedPredictor(kind, [suite]), list(all_controls(suite))).skill
    assert skill.control_accuracy == pytest.approx(skill.best_constant, abs=0.01)


@pytest.mark.parametrize("answer", [0, 1])
def test_a_constant_answer_of_a_two_label_head_has_no_order(answer: int) -> None:
    class Constant(TablePredictor):
        def predict(self, texts: Sequence[TextPair]) -> Predictions:
            rows = np.tile([0.9, 0.1, 0.0] if answer == 0 else [0.1, 0.9, 0.0], (len(texts), 1))
            return Predictions(rows, np.zeros(len(texts), np.bool_))

    order = ("entailment", "not_entailment")
    assert prove(Constant(order, order), []).skill.probe_accuracy == pytest.approx(1 / 3 if answer == 0 else 2 / 3)


def test_accuracy_of_a_subtopic_is_counted_on_its_own_controls() -> None:
    right, wrong = probe_items()[0], probe_items()[1]
    other = next(label for label in Label if label is not wrong.expected)
    controls = [Control("c", right.text, right.expected), Control("c", wrong.text, other)]
    proof = prove(TablePredictor(THREE, THREE), controls)
    assert proof.rights(controls) == [True, False]
    assert proof.rights([]) == []
    assert proof.skill.n_controls == 2


def test_each_label_has_its_recall() -> None:
    answers = TablePredictor(THREE, THREE)
    distinct = [Control("c", TextPair(f"{n} {label}", "hypothesis"), label) for n in range(4) for label in Label]
    shy = {control.text: "neutral" for control in distinct[3:]}  # right once for each label, and then always neutral
    answers._answers.update({control.text: control.expected.value for control in distinct} | shy)
    assert prove(answers, distinct).skill.recalls == {"entailment": 0.25, "neutral": 1.0, "contradiction": 0.25}


def test_hard_controls_do_not_hide_an_exchanged_order() -> None:
    """Many controls that a model gets wrong must not outvote the probe, which shows that two labels are exchanged."""
    exchanged = ("contradiction", "neutral", "entailment")
    answers = TablePredictor(THREE, exchanged)
    hard = [Control("c", TextPair(f"premise {n}", "hypothesis"), Label.NEUTRAL) for n in range(400)]
    answers._answers.update({control.text: "entailment" for control in hard})
    with pytest.raises(LabelOrderError, match="--bbnli-labels=entailment,neutral,contradiction"):
        prove(answers, hard)


def test_no_hypothesis_of_the_probe_tells_its_label() -> None:
    labels: dict[str, Counter[Label]] = {}
    for item in probe_items():
        labels.setdefault(item.text.hypothesis, Counter())[item.expected] += 1
    assert all(counts == dict.fromkeys(Label, 1) for counts in labels.values())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.2, 0.3, 0.5]], "gave an array of shape (1, 3) for 2 texts"),
        ([[0.2, 0.3], [0.5, 0.5]], "gave an array of shape (2, 2) for 2 texts"),
        ([[0.2, 0.3, 0.5], [np.nan, 0.5, 0.5]], "not finite (NaN or infinity) for 1 of 2 texts"),
        ([[2.0, 0.3, -1.3], [0.2, 0.3, 0.5]], "not probabilities"),
        ([[2.0, 3.0, 1.3], [0.2, 0.3, 0.5]], "Apply softmax first"),
    ],
)
def test_what_no_measure_can_be_made_from_is_refused(rows: list[list[float]], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_predictions(Predictions(np.array(rows), np.zeros(len(rows), np.bool_)), 2, "model")
    assert message in str(caught.value)


def all_controls(suite: Bbnli) -> list[Control]:
    return [control for subtopic in suite.subtopics() for control in suite.items(subtopic).controls]


def test_the_probe_lies_in_the_package() -> None:
    import bbnli_audit

    assert (Path(bbnli_audit.__file__).parent / "suites" / "data" / "probe.json").is_file()
