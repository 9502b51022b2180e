"""Reads yes or no out of what a generative model wrote. What cannot be read is an answer of its own, never a no.

The prompts ask for yes or no first and an explanation after it, so an answer at the beginning decides, whatever
follows. Only without one do we look for statements: "so the answer is no", "the hypothesis is not entailed".
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

# Part of every fingerprint: stores keep what was read, and answers read by other rules are not reused.
PARSER = 1

# The kind of all models that are asked, served or not, and what their columns mean.
GENERATIVE = "generative"
ANSWER_LABELS = ("entailment", "not_entailment")
# Yes and no together; a first token that is nearly always something else is not an answer.
LEAST_MASS = 0.05

_STRAIGHT = str.maketrans("’‘´“”„«»", "'''" + '"' * 5)


class Answer(StrEnum):
    YES = "yes"
    NO = "no"
    UNPARSED = "unparsed"


# Yes is entailed, no is not (read as neutral). A yes/no answer is never a contradiction, so that column is free.
ROW_OF = {Answer.YES: (1.0, 0.0, 0.0), Answer.NO: (0.0, 1.0, 0.0), Answer.UNPARSED: (0.0, 0.0, 1.0)}


def row_of_first_token(yes: float, no: float) -> tuple[float, float, float]:
    """Return the row for an answer that begins with yes and with no with these probabilities."""
    return ROW_OF[Answer.UNPARSED] if yes + no < LEAST_MASS else (yes / (yes + no), no / (yes + no), 0.0)


_N_LOOKED_AT = 8  # words after a leading answer; nothing further away undoes it
# Removed before the patterns of answers.toml are looked for.
_DROPPED = (
    (re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S), " "),  # a thought that was cut off holds no answer
    (re.compile(r"^.*</think(?:ing)?>", re.S), " "),  # the opening tag may stand in the prompt
    (re.compile(r"</?(?:b|i|u|em|strong|code)>"), ""),
    (re.compile(r"<\|[^|>]*\|>|</?[a-z]\w*>|\\[a-z]+\s*(?=\{)|\\[\[\]()]|```\w*"), " "),  # special tokens, HTML, LaTeX
    (re.compile(r"[*`~#>_$]"), ""),
    (re.compile(r"[^\S\n]+"), " "),
)


def _read_patterns() -> dict[str, re.Pattern[str]]:
    found: dict[str, str] = {}
    for name, parts in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items():
        found[name] = re.sub(r"\{([A-Z_]+)\}", lambda place: found[place[1]], "".join(parts))
    return {name: re.compile(pattern) for name, pattern in found.items()}


_FIND = _read_patterns()
_DECLARED = [_FIND[f"DECLARED_{how}"] for how in ("BY_LABEL", "FIRST", "BY_SAYING")]
_STATED = [_FIND[f"STATED_{what}"] for what in ("OF_IT", "NOT_TO_FOLLOW", "TO_FOLLOW")]


def parse_answer(text: str) -> Answer:
    """Return what a model answered. Never raises, whatever the text."""
    return _read(text)[0]


def is_settled(text: str) -> bool:
    """Say whether nothing that the model may still write can change its answer, so that it can stop."""
    return _read(text)[1]


def _read(text: str) -> tuple[Answer, bool]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = plain.translate(_STRAIGHT)
    for pattern, instead in _DROPPED:
        plain = pattern.sub(instead, plain)
    letter = plain.strip(" \n.,\"'()[]{}")
    if letter in ("y", "n"):
        return (Answer.YES if letter == "y" else Answer.NO), False
    found = _read_leading(plain)
    if found is not None:
        return found
    after_echo = _FIND["ECHO"].split(plain)[-1]
    found = _read_leading(after_echo)
    return (_read_statements(after_echo) if found is None else found[0]), False


def _read_leading(plain: str) -> tuple[Answer, bool] | None:
    """Read the answer at the beginning of a text, and whether it is settled; None when there is none."""
    while label := _FIND["LABEL"].match(plain):
        plain = plain[label.end() :]
    found = _FIND["LEADING"].match(plain)
    if found is None:
        return None
    words = re.findall(r"[\w']+(?=[^\w'])", found["rest"])  # complete ones only
    is_settled = len(words) >= _N_LOOKED_AT or (bool(words) and _FIND["MAY_UNDO"].match(words[0]) is None)
    if found["not"]:
        return Answer.NO, is_settled
    answer = _unless_undone(found)
    return None if answer is None or _FIND["REFUSAL"].match(found["rest"]) else (answer, is_settled)


def _unless_undone(found: re.Match[str]) -> Answer | None:
    """Read a yes or no together with what comes right after it: "yes and no", "no information"."""
    rest = found["rest"]
    word = "yes" if found["yes"] else "no"
    is_article = found["no"] == "no" and re.match(r" \w", rest) is not None and _FIND["AFTER_NO"].match(rest) is None
    if is_article or _FIND["MENTION"].match(rest) or _FIND[f"OPPOSITE_{word.upper()}"].match(rest):
        return None
    return Answer(word)


def _read_statements(plain: str) -> Answer:
    """Take the last statement that declares the answer, or else those about the hypothesis if they agree."""
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
    """Cut a text where a new thought begins. A question, or what hangs on a denial ("…, that …"), states nothing."""
    start, sentence, before = 0, "", ""
    ends = [(cut.start(), cut.end(), cut[0]) for cut in _FIND["CLAUSE_END"].finditer(plain)]
    for end, following, mark in [*ends, (len(plain), len(plain), "\n")]:
        clause = plain[start:end].strip()
        hangs = clause.startswith(("that ", "to ")) and _FIND["UNSTATED"].search(sentence) is not None
        if clause in ("yes", "no") and before in ("so", "therefore", "thus", "hence"):
            clause = f"the answer is {clause}"
        if clause and mark != "?" and not hangs:
            yield clause
        before = mark if clause or mark != "," else before  # "thus, no"
        start, sentence = following, "" if mark in ".!?;\n" else f"{sentence} {clause}"


def _polarity(found: re.Match[str]) -> Answer | None:
    groups = found.groupdict()
    is_negated = bool(groups.get("denied")) != bool(groups.get("not"))
    if groups["good"]:
        return Answer.NO if is_negated else Answer.YES
    return None if is_negated else Answer.NO
