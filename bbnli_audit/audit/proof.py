"""Checks a model before it is scored: whether its label order is as declared, and whether it can do the task.

The label order is checked on the probe, a set of plain NLI items in this package. A model is refused if another order
fits these items far better. Competence is judged on the suites' controls. The controls may be too hard for a model, so
its label order is not checked on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from bbnli_audit.core.errors import LabelOrderError
from bbnli_audit.core.results.rows import Skill
from bbnli_audit.core.values import Control, Label, TextPair
from bbnli_audit.models.labels import is_two_label
from bbnli_audit.models.protocol import Predictor, check_predictions
from bbnli_audit.suites.probe import probe_items

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Another order is "far better" if its accuracy exceeds two other accuracies by this much: the accuracy of the declared
# order, and the accuracy of the best constant answer. If the constant answer were not compared, a model that cannot do
# the task could be refused for its order.
REFUSAL_MARGIN = 0.30


@dataclass(frozen=True, slots=True)
class Proof:
    """The outcome of the check of a model."""

    skill: Skill
    # For each control: whether the model answers it correctly. Subtopics compute their own control accuracy from this.
    is_right: Mapping[tuple[TextPair, Label], bool]

    def rights(self, controls: Sequence[Control]) -> list[bool]:
        """Return, for each control, whether the model answers it correctly. Empty if no controls were predicted."""
        return [self.is_right[control.text, control.expected] for control in controls] if self.is_right else []


def prove(predictor: Predictor, controls: Sequence[Control]) -> Proof:
    """Predict the probe and the controls, and refuse a model whose outputs fit far better in another label order.

    A model that answers in words is not refused for its label order: a word always means the same label.
    """
    import numpy as np

    from bbnli_audit.measures.readings.kinds import ANSWERS, reading_of

    probe = probe_items()
    distinct = list({(control.text, control.expected): control for control in controls}.values())
    items = [*probe, *distinct]
    order = predictor.info.labels
    predictions = predictor.predict([item.text for item in items])
    check_predictions(predictions, len(items), predictor.info.name)
    predicted = predictions.probabilities.argmax(axis=1)
    expected = np.array([list(Label).index(item.expected) for item in items])
    reading = reading_of(predictor.info.kind)
    has_answered = ~reading.is_unread(predictions.probabilities)
    if is_two_label(order):
        # A model with two labels cannot tell neutral from contradiction: both count as "not entailed".
        predicted, expected = (np.minimum(labels, 1) for labels in (predicted, expected))
    plain = np.arange(len(items)) < len(probe)
    if not reading.has_measures_of([ANSWERS.name]):
        _refuse_other_order(predictor, predicted[plain], expected[plain])
    is_right = (predicted == expected) & has_answered
    on_controls, labels = is_right[~plain], expected[~plain]
    shares = np.bincount(labels, minlength=3) / max(len(distinct), 1)
    names = ("entailment", "not_entailment") if is_two_label(order) else tuple(label.value for label in Label)
    return Proof(
        Skill(
            probe_accuracy=float(is_right[: len(probe)].mean()),
            control_accuracy=float(on_controls.mean()) if distinct else None,
            n_controls=len(distinct),
            best_constant=float(shares.max()),
            recalls={
                name: float(on_controls[labels == code].mean())
                for code, name in enumerate(names)
                if (labels == code).any()
            },
        ),
        is_right={
            (control.text, control.expected): bool(right) for control, right in zip(distinct, on_controls, strict=True)
        },
    )


def _refuse_other_order(predictor: Predictor, predicted: "NDArray[np.intp]", expected: "NDArray[np.intp]") -> None:
    import numpy as np

    order = predictor.info.labels
    # Under the order `seen`, the output that is declared as label i means label `seen[i]`.
    accuracies = {
        seen: float((np.array(seen)[predicted] == expected).mean()) for seen in permutations(range(len(order)))
    }
    declared = accuracies[tuple(range(len(order)))]
    best = max(accuracies, key=lambda seen: accuracies[seen])
    best_constant = float(np.bincount(expected).max()) / len(expected)
    if accuracies[best] < max(declared, best_constant) + REFUSAL_MARGIN:
        return
    canonical = ("entailment", "not_entailment") if is_two_label(order) else tuple(label.value for label in Label)
    meaning = {canonical[index]: canonical[seen] for index, seen in enumerate(best)}
    fitting = ",".join(meaning[label] for label in order)
    raise LabelOrderError(
        f"{predictor.info.name} says its outputs are {','.join(order)}, but read as {fitting} they are right on "
        f"{accuracies[best]:.0%} of the {len(predicted)} plain NLI items, against {declared:.0%} as "
        f"declared.\nScores would have the labels exchanged, so none is given. If {fitting} is the true order, write "
        f"--bbnli-labels={fitting} or correct id2label in its config.json."
    )
