"""Reading yes or no out of free text: shapes that models really write, and what must never be taken for a yes."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bbnli_audit.models.language_model.answers import Answer, is_settled, parse_answer
from tests.answer_shapes import NO, UNPARSED, YES

TABLE = [*((text, Answer.YES) for text in YES), *((text, Answer.NO) for text in NO)]
TABLE += [(text, Answer.UNPARSED) for text in UNPARSED]


@pytest.mark.parametrize(("text", "expected"), TABLE, ids=[repr(text[:60]) for text, _ in TABLE])
def test_shapes_that_models_write(text: str, expected: Answer) -> None:
    assert parse_answer(text) is expected


@given(st.text(max_size=300))
def test_nothing_makes_it_raise(text: str) -> None:
    assert parse_answer(text) in Answer
    assert is_settled(text) in (True, False)


_words = st.sampled_from(
    [
        *(
            "yes",
            "no",
            "not",
            "true",
            "false",
            "and",
            "or",
            "but",
            "if",
            "the",
            "answer",
            "is",
            "hypothesis",
            "entailed",
        ),
        *("i", "would", "say", "never", ",", ".", "?", "!", ":", "\n", '"', "'", "*", "-", "/", "{", "}", "<think>"),
        *("</think>", "\\boxed{", "zorbs", "juggle", "wait", "actually", "sorry", "one", "doubt", "can't", "doesn't"),
        *("entail", "it", "2.", "b)", "i'm"),
    ]
)
_prose = st.lists(_words, max_size=25).map(" ".join)


@given(_prose)
def test_prose_of_dangerous_words_makes_it_neither_raise_nor_hang(text: str) -> None:
    assert parse_answer(text) in Answer


@given(
    st.sampled_from(
        [
            *("not {}", "it's not a {}", "it is not a {}", "i would not say {}", "i wouldn't say {}", "i can't say {}"),
            *("i cannot say {}", "i would never say {}", "the answer is not {}", "the answer isn't {}", "never {}"),
            *("the answer cannot be {}", "i don't think the answer is {}", "i do not believe the answer is {}"),
            *(
                "definitely not a {}",
                "this is not a {}",
                "hardly a {}",
                "far from a {}",
                "by no means {}",
                "not quite {}",
            ),
            *(
                "it would be wrong to answer {}",
                "the answer is anything but {}",
                "{} is not the answer",
                "{} isn't right",
            ),
            *(
                "{} would be wrong",
                "i am not saying {}",
                "without saying {}",
                "rather than {}",
                "no, not {}",
                "not a {}",
            ),
            *("i refuse to say {}", "nobody would answer {}", "neither {} nor no", "i cannot answer {} or no"),
        ]
    ),
    st.sampled_from(["yes", "Yes", "YES", '"yes"', "**yes**", "'Yes'", "`yes`", "“yes”"]),
    st.sampled_from(["", ".", "!", ", because nothing is said.", "\n\nExplanation: zorbs juggle.", " here."]),
    st.booleans(),
)
def test_a_denied_yes_is_never_a_yes(pattern: str, word: str, end: str, is_capital: bool) -> None:
    text = pattern.format(word) + end
    assert parse_answer(text[0].upper() + text[1:] if is_capital else text) is not Answer.YES


@pytest.mark.parametrize("space", ["", " ", "\n", "\t \n"], ids=repr)
def test_case_and_surrounding_space_change_nothing(space: str) -> None:
    for text, expected in TABLE:
        for cased in (text.upper(), text.lower(), text.title()):
            assert parse_answer(f"{space}{cased}{space}") is expected, cased


@pytest.mark.parametrize("mark", ["**{}**", "__{}__", "*{}*", "`{}`", "<b>{}</b>", "<strong>{}</strong>"])
def test_bold_changes_nothing(mark: str) -> None:
    for text, expected in TABLE:
        bold = re.sub(r"\b(yes|no)\b(?!-)", lambda found: mark.format(found[0]), text, flags=re.I)
        assert parse_answer(bold) is expected, bold


@given(st.sampled_from([*YES, *NO]) | _prose, _prose | st.text(max_size=60))
@example("yes, but", "no.")
def test_a_settled_answer_stays_whatever_follows(text: str, more: str) -> None:
    if "</think" in text + more:
        return  # what looked like an answer was a thought: its opening tag stood in the prompt
    for end in range(len(text) + 1):
        if is_settled(text[:end]):
            assert parse_answer(text[:end] + more) is parse_answer(text[:end]) is parse_answer(text)


def test_the_usual_answers_settle_within_a_few_words() -> None:
    for text in ("Yes, the ", "No, the paragraph ", "**Yes**. The ", "Answer: no. Nothing ", "No\n\nExplanation: "):
        assert is_settled(text), text
    for text in ("Yes", "Yes,", "Yes and ", "No, I ", "The paragraph says "):
        assert not is_settled(text), text
