import pytest

from bbnli_audit.core.errors import AuditError
from bbnli_audit.models.labels import columns_of, label_order, parse_labels


def named(*labels: str) -> dict[int, str]:
    return dict(enumerate(labels))


@pytest.mark.parametrize(
    ("own", "order", "columns"),
    [
        (("entailment", "neutral", "contradiction"), ("entailment", "neutral", "contradiction"), [0, 1, 2]),
        (("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), ("contradiction", "neutral", "entailment"), [2, 1, 0]),
        (("contradiction", "entailment", "neutral"), ("contradiction", "entailment", "neutral"), [1, 2, 0]),
        (("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), ("entailment", "contradiction", "neutral"), [0, 2, 1]),
        (("entailment", "not_entailment"), ("entailment", "not_entailment"), [0, 1, None]),
        (("not-entailment", "Entailment"), ("not_entailment", "entailment"), [1, 0, None]),
    ],
)
def test_labels_go_by_name(own: tuple[str, ...], order: tuple[str, ...], columns: list[int | None]) -> None:
    assert label_order(named(*own), None, "model") == order
    assert columns_of(order) == columns


@pytest.mark.parametrize(
    ("own", "given", "message"),
    [
        (
            ("LABEL_0", "LABEL_1", "LABEL_2"),
            None,
            "model names its outputs LABEL_0, LABEL_1, LABEL_2, so we cannot tell which one is neutral.\n"
            "Give the order, e.g. --bbnli-labels=contradiction,neutral,entailment",
        ),
        (("LABEL_0", "LABEL_1"), None, "e.g. --bbnli-labels=entailment,not_entailment"),
        (("positive", "neutral", "negative"), None, "which are not the labels of an NLI model"),
        (("entailment", "entailment", "neutral"), None, "Give the order"),
        (("a", "b", "c", "d"), None, "this one has 4. Give another checkpoint."),
        (("LABEL_0",), None, "this one has 1. Give another checkpoint."),
        (("LABEL_0", "LABEL_1", "LABEL_2"), "entailment,not_entailment", "names 2 labels, but model has 3 outputs"),
        (
            ("LABEL_0", "LABEL_1", "LABEL_2"),
            "entailment,neutral,contradction",
            "'contradction' is not a label. Did",
        ),
        (("LABEL_0", "LABEL_1", "LABEL_2"), "neutral,neutral,entailment", "give each of entailment, neutral"),
    ],
)
def test_what_cannot_be_told_is_refused(own: tuple[str, ...], given: str | None, message: str) -> None:
    with pytest.raises(AuditError) as caught:
        label_order(named(*own), given, "model")
    assert message in str(caught.value)


def test_the_option_overrides_the_names() -> None:
    given = "contradiction, neutral, entailment"
    assert label_order(named("LABEL_0", "LABEL_1", "LABEL_2"), given, "model") == parse_labels(given)
