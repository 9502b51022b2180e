"""Can the answers be read, and do they change with the prompt? Only for a model that is asked (docs/generative.md)."""

from bbnli_audit import AnswersHandle


def test_answers(bbnli_answers: AnswersHandle) -> None:
    bbnli_answers.require()
