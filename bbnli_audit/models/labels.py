"""Translates a checkpoint's label names into ours, and finds which output stands for which label."""

import re
from collections.abc import Mapping, Sequence

from bbnli_audit.core.errors import ModelError, OptionError, suggest
from bbnli_audit.core.values import Label

NOT_ENTAILMENT = "not_entailment"

# Other spellings, and the label names of fact-checking models (FEVER).
_SPELLINGS = {
    Label.ENTAILMENT.value: ("entail", "entails", "supports", "supported"),
    Label.NEUTRAL.value: ("not_enough_info",),
    Label.CONTRADICTION.value: ("contradicts", "refutes", "refuted"),
    NOT_ENTAILMENT: ("non_entailment", "not_entailed"),
}
_NAMES = {spelling: label for label, others in _SPELLINGS.items() for spelling in (label, *others)}
THREE_LABELS, TWO_LABELS = tuple(label.value for label in Label), (Label.ENTAILMENT.value, NOT_ENTAILMENT)
_THREE, _TWO = set(THREE_LABELS), set(TWO_LABELS)


def label_order(id2label: Mapping[int, str], given: str | None, name: str) -> tuple[str, ...]:
    """Return what each output of a checkpoint means: three label names, or `entailment` and `not_entailment`.

    `given` is the value of --bbnli-labels, and overrides the config's `id2label`.
    """
    own = [id2label[index] for index in sorted(id2label)]
    if given is not None:
        order = parse_labels(given)
        if len(order) != len(own):
            outputs = f"{len(own)} outputs ({', '.join(own)})"
            raise OptionError(f"--bbnli-labels={given} names {len(order)} labels, but {name} has {outputs}.")
        return order
    order = tuple(_NAMES.get(_normal(label), "") for label in own)
    if set(order) in (_THREE, _TWO) and len(order) == len(set(order)):
        return order
    is_unnamed = all(re.fullmatch(r"LABEL_\d+", label) for label in own)
    fault = "so we cannot tell which one is neutral" if is_unnamed else "which are not the labels of an NLI model"
    problem = f"{name} names its outputs {', '.join(own)}, {fault}."
    example = "entailment,not_entailment" if len(own) == 2 else "contradiction,neutral,entailment"
    if len(own) not in (2, 3):
        raise ModelError(f"{problem}\nNLI heads have 2 or 3 outputs; this one has {len(own)}. Give another checkpoint.")
    raise ModelError(f"{problem}\nGive the order, e.g. --bbnli-labels={example}, or set id2label in its config.json.")


def parse_labels(given: str) -> tuple[str, ...]:
    """Read --bbnli-labels."""
    order = []
    for word in given.split(","):
        word = word.strip()
        label = _NAMES.get(_normal(word))
        if label is None:
            raise OptionError(f"--bbnli-labels={given}: {word!r} is not a label. {suggest(word, _THREE | _TWO)}")
        order.append(label)
    if set(order) not in (_THREE, _TWO) or len(order) != len(set(order)):
        names = "each of entailment, neutral, contradiction once (or entailment and not_entailment)"
        raise OptionError(f"--bbnli-labels={given}: give {names}, in the order of the model's outputs.")
    return tuple(order)


def columns_of(order: Sequence[str]) -> list[int | None]:
    """Return the index of each `Label`'s output.

    With two labels, neutral gets the output of not_entailment, and contradiction gets None.
    """
    if is_two_label(order):
        return [order.index(Label.ENTAILMENT.value), order.index(NOT_ENTAILMENT), None]
    return [order.index(label.value) for label in Label]


def is_two_label(order: Sequence[str]) -> bool:
    return NOT_ENTAILMENT in order


def _normal(label: str) -> str:
    return re.sub(r"[\s\-]+", "_", label.strip().lower())
