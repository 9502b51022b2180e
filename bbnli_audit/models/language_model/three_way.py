"""Reads one of three answers from a model's text: the three labels, or true, cannot tell and false.

As with yes and no (answers.py), an answer at the beginning decides, unless the next words take it back. If no answer
is left there, we look for statements. "Not entailed" may mean neutral or contradiction, so it cannot be read.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from bbnli_audit.core.values import Label
from bbnli_audit.models.language_model.patterns import cannot_undo, clauses, read_in_order, read_patterns, simplify

# Part of the fingerprint, like PARSER in answers.py.
PARSER = 2

_GROUPS = {"e": Label.ENTAILMENT, "n": Label.NEUTRAL, "c": Label.CONTRADICTION}
_SUBJECT = r"(?:(?:i|we|you|one|it) )?"
_CANNOT = r"(?:cannot|can't|can not|could not|couldn't)"
_KNOWN = r"(?:told|determined|known|inferred|concluded|decided)"
# "I cannot tell you" and "I cannot decide whether to answer" are not about the statement.
_ELSE = r" (?:you|anyone|(?:if|whether) (?:i|we|to|this (?:request|question|prompt))\b)"


class ThreeWay:
    """A reader for one set of three answers."""

    def __init__(self, entailment: str, neutral: str, contradiction: str) -> None:
        """Take a pattern for each answer."""
        words = {"E": entailment, "N": neutral, "C": contradiction}
        self._find = read_patterns(Path(__file__).with_suffix(".toml"), **words)
        self._declared = [self._find[f"DECLARED_{how}"] for how in ("BY_LABEL", "FIRST")]
        self._stated = [self._find[f"STATED_{how}"] for how in ("OF_IT", "BY_VERB")]

    def parse(self, text: str) -> Label | None:
        """Return a model's answer, or None if it cannot be read. Never raises, whatever the text."""
        return self._read(text)[0]

    def is_settled(self, text: str) -> bool:
        """Say whether the answer is final whatever the model writes next, so that the model can stop."""
        return self._read(text)[1]

    def _read(self, text: str) -> tuple[Label | None, bool]:
        return read_in_order(simplify(text), self._find, self._read_leading, self._read_statements)

    def _read_leading(self, plain: str) -> tuple[Label, bool] | None:
        """Read the answer at the beginning of a text, and whether it is settled. Return None if no answer is there."""
        found = self._find["LEADING"].match(plain)
        answer = None if found is None else self._unless_undone(found)
        if found is None or answer is None:
            return None
        return answer, cannot_undo(found["rest"], self._find["MAY_UNDO"])

    def _unless_undone(self, found: re.Match[str]) -> Label | None:
        """Read an answer. Return None if the next words undo it, as in "entailment or neutral" or "true if"."""
        name = next(name for name in _GROUPS if found[name])
        rest, answer, is_phrase = found["rest"], _GROUPS[name], " " in found[name]
        undoing = ["OTHER", "REFUSAL", *([] if is_phrase else ["MENTION"])]
        undoing += [] if answer is Label.NEUTRAL else ["CONDITION"]
        return None if any(self._find[name].match(rest) for name in undoing) else answer

    def _read_statements(self, plain: str) -> Label | None:
        """Read the last statement that declares the answer.

        If no statement does, read the statements about the hypothesis, provided that they agree.
        """
        plain = re.sub(r'"[^"\n]*"', lambda quoted: "" if len(quoted[0].split()) > 2 else quoted[0], plain)
        cut = clauses(self._find["OFFERED"].sub(" ", plain), self._find["CLAUSE_END"])
        said = [clause for clause, mark in cut if clause and mark != "?"]  # a question states nothing
        declared = [answer for clause in said for answer in self._search(self._declared, clause)]
        if declared:
            return declared[-1]
        stated = {answer for clause in said for answer in self._search(self._stated, clause)}
        return stated.pop() if len(stated) == 1 else None

    def _search(self, patterns: list[re.Pattern[str]], clause: str) -> Iterator[Label]:
        for pattern in patterns:
            found = pattern.search(clause)
            if found is None:
                continue
            start = min(at for name in _GROUPS if (at := found.start(name)) >= 0)
            answer = self._unless_undone(found)
            if answer is not None and self._find["UNSTATED"].search(clause[:start]) is None:
                yield answer


LABELS = ThreeWay(
    r"entailment|entailed|entails",
    r"neutral|neither (?:an? )?(?:entail\w*|contradict\w*) nor (?:an? )?(?:entail\w*|contradict\w*)",
    r"contradiction|contradictory|contradicted|contradicts",
)
TRUTH = ThreeWay(
    "true",
    rf"{_SUBJECT}{_CANNOT} (?:tell|know|determine|decide|be {_KNOWN})(?!{_ELSE})"
    r"|(?:unknown|undetermined|unclear|indeterminate)(?! (?:error|model|request|prompt|command|parameter)\b)"
    r"|neither true nor false|not enough information(?! to (?:comply|process|help|assist)\b)",
    "false",
)
