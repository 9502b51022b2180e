"""Reads yes or no from a generative model's text. A text without either is unparsed, never a no.

The prompts ask for yes or no first and then an explanation. So an answer at the beginning decides, unless the next
words take it back. If no answer is left there, we look for statements such as "so the answer is no" or "the hypothesis
is not entailed".
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from bbnli_audit.models.language_model.patterns import cannot_undo, clauses, read_in_order, read_patterns, simplify

# The version of the rules. It is part of the fingerprint when answers are parsed. Stores keep the parsed answers and
# not the texts, so answers that were parsed by other rules must not be reused.
PARSER = 2


class Answer(StrEnum):
    YES = "yes"
    NO = "no"
    UNPARSED = "unparsed"


_FIND = read_patterns(Path(__file__).with_suffix(".toml"))
_DECLARED = [_FIND[f"DECLARED_{how}"] for how in ("BY_LABEL", "FIRST", "BY_SAYING")]
_STATED = [_FIND[f"STATED_{what}"] for what in ("OF_IT", "NOT_TO_FOLLOW", "TO_FOLLOW")]


def parse_answer(text: str) -> Answer:
    """Return a model's answer. Never raises, whatever the text."""
    return _read(text)[0]


def is_settled(text: str) -> bool:
    """Say whether the answer is final whatever the model writes next, so that the model can stop."""
    return _read(text)[1]


def _read(text: str) -> tuple[Answer, bool]:
    plain = simplify(text)
    letter = plain.strip(" \n.,\"'()[]{}")
    if letter in ("y", "n"):
        return (Answer.YES if letter == "y" else Answer.NO), False
    return read_in_order(plain, _FIND, _read_leading, _read_statements)


def _read_leading(plain: str) -> tuple[Answer, bool] | None:
    """Read the answer at the beginning of a text, and whether it is settled. Return None if no answer is there."""
    found = _FIND["LEADING"].match(plain)
    if found is None:
        return None
    is_settled = cannot_undo(found["rest"], _FIND["MAY_UNDO"])
    if found["not"]:
        return Answer.NO, is_settled
    answer = _unless_undone(found)
    return None if answer is None or _FIND["REFUSAL"].match(found["rest"]) else (answer, is_settled)


def _unless_undone(found: re.Match[str]) -> Answer | None:
    """Read a yes or no. Return None if the next words undo it, as in "yes and no", "no information", "false alarm"."""
    rest = found["rest"]
    word = "yes" if found["yes"] else "no"
    after = _FIND["AFTER_NO" if found["no"] == "no" else "AFTER_FALSE"]
    is_of_a_noun = bool(found["no"]) and re.match(r" \w", rest) is not None and after.match(rest) is None
    if is_of_a_noun or _FIND["MENTION"].match(rest) or _FIND[f"OPPOSITE_{word.upper()}"].match(rest):
        return None
    return Answer(word)


def _read_statements(plain: str) -> Answer:
    """Read the last statement that declares the answer.

    If no statement does, read the statements about the hypothesis, provided that they agree.
    """
    declared: list[Answer] = []
    stated: set[Answer] = set()
    # Quoted sentences are not the model's own words.
    plain = re.sub(r'"[^"\n]*"', lambda quoted: "" if len(quoted[0].strip('"').split()) > 1 else quoted[0], plain)
    for clause in _clauses(_FIND["OFFERED"].sub(" ", plain)):
        for pattern in _DECLARED:
            found = pattern.search(clause)
            if found is not None and not _FIND["UNSTATED"].search(clause[: found.start()]):
                declared.extend(filter(None, [_unless_undone(found)]))
        for pattern in _STATED:
            found = pattern.search(clause)
            if found is not None and not _FIND["UNSTATED"].search(clause[: found.start("verb")]):
                stated.update(filter(None, [_polarity(found)]))
    if declared:
        return declared[-1]
    return stated.pop() if len(stated) == 1 else Answer.UNPARSED


def _clauses(plain: str) -> Iterator[str]:
    """Cut a text where a new thought begins.

    Questions are left out, and so are clauses that begin with "that" or "to" after a denial.
    """
    sentence = before = ""
    for clause, mark in clauses(plain, _FIND["CLAUSE_END"]):
        hangs = clause.startswith(("that ", "to ")) and _FIND["UNSTATED"].search(sentence) is not None
        if clause in ("yes", "no") and before in ("so", "therefore", "thus", "hence"):
            clause = f"the answer is {clause}"
        if clause and mark != "?" and not hangs:
            yield clause
        before = mark if clause or mark != "," else before  # "thus, no": skip the comma
        sentence = "" if mark in ".!?;\n" else f"{sentence} {clause}"


def _polarity(found: re.Match[str]) -> Answer | None:
    groups = found.groupdict()
    is_negated = bool(groups.get("denied")) != bool(groups.get("not"))
    if groups["good"]:
        return Answer.NO if is_negated else Answer.YES
    return None if is_negated else Answer.NO
