"""Reading one of three answers out of free text: what models write, and what must never be taken for an answer."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bbnli_audit.models.language_model import three_way
from bbnli_audit.models.language_model.three_way import ThreeWay
from tests import three_way_shapes

READERS = {"labels": (three_way.LABELS, three_way_shapes.LABELS), "truth": (three_way.TRUTH, three_way_shapes.TRUTH)}
TABLE = [(name, text, label) for name in READERS for label, texts in READERS[name][1].items() for text in texts]


def reader(name: str) -> ThreeWay:
    return READERS[name][0]


@pytest.mark.parametrize(("name", "text", "label"), TABLE, ids=[f"{name}-{text[:50]!r}" for name, text, _ in TABLE])
def test_shapes_that_models_write(name: str, text: str, label: str | None) -> None:
    for cased in (text, text.upper(), text.lower()):
        assert reader(name).parse(cased) == label, cased
        assert reader(name).parse(f"\n {cased} \n") == label, cased


_words = st.sampled_from(
    [
        *("entailment", "neutral", "contradiction", "true", "false", "cannot", "tell", "not", "neither", "nor", "and"),
        *("or", "but", "if", "the", "answer", "is", "hypothesis", "entailed", "contradicts", "i", "would", "say"),
        *(",", ".", "?", "!", ":", "\n", '"', "'", "*", "-", "/", "{", "}", "<think>", "zorbs", "juggle", "wait"),
        *("sorry", "can't", "unknown", "it"),
    ]
)
_prose = st.lists(_words, max_size=20).map(" ".join)
_names = st.sampled_from(sorted(READERS))


@given(_names, st.text(max_size=200) | _prose)
def test_nothing_makes_it_raise_or_hang(name: str, text: str) -> None:
    assert reader(name).parse(text) in (None, "entailment", "neutral", "contradiction")


@given(_names, st.sampled_from([text for _, text, _ in TABLE]) | _prose, _prose | st.text(max_size=60))
@example("labels", "neutral, but", "contradiction.")
@example("truth", "true. i", "cannot tell.")
def test_a_settled_answer_stays_whatever_follows(name: str, text: str, more: str) -> None:
    if "</think" in text + more:
        return  # what looked like an answer was a thought
    parse, is_settled = reader(name).parse, reader(name).is_settled
    for end in range(len(text) + 1):
        if is_settled(text[:end]):
            assert parse(text[:end] + more) is parse(text[:end]) is parse(text)


def test_the_usual_answers_settle_within_a_few_words() -> None:
    for text in ("Neutral, because ", "**Entailment**. The ", "Answer: contradiction. Nothing "):
        assert three_way.LABELS.is_settled(text), text
    for text in ("Neutral", "Neutral,", "Neutral or ", "The paragraph says "):
        assert not three_way.LABELS.is_settled(text), text
    assert three_way.TRUTH.is_settled("Cannot tell from ")
