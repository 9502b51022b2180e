"""Code for all readers of answers: patterns from a file, markup, where an answer may stand, and whether it is final."""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

A = TypeVar("A")  # an answer

_STRAIGHT = str.maketrans("’‘´“”„«»", "'''" + '"' * 5)
_N_LOOKED_AT = 8  # only this many words after a leading answer can undo the answer
# What `simplify` removes or replaces, before patterns are searched.
_DROPPED = (
    (re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S), " "),  # a thought that was cut off holds no answer
    (re.compile(r"^.*</think(?:ing)?>", re.S), " "),  # the opening tag may stand in the prompt
    (re.compile(r"</?(?:b|i|u|em|strong|code)>"), ""),
    (re.compile(r"<\|[^|>]*\|>|</?[a-z]\w*>|\\[a-z]+\s*(?=\{)|\\[\[\]()]|```\w*"), " "),  # special tokens, HTML, LaTeX
    (re.compile(r"[*`~#>_$]"), ""),
    (re.compile(r"[^\S\n]+"), " "),
)
# Words that take a leading answer back, because the model or its server declines: "No, I can't help with that".
_I_DECLINE = (
    r"i(?:'m| am|'d| would|'ll| will)?\W+(?:(?:have to|must|really|simply|just) )?(?:"
    r"(?:can't|cannot|can not|won't|will not|not able to|unable to|not going to|do not|don't)\W+(?:answer|help|assist"
    r"|respond|comply|engage|provide|do that|discuss|comment|judge|make (?:such )?(?:judge?ments|generali[sz]ations))"
    r"|decline|refuse|rather not|prefer not|not comfortable|uncomfortable|(?:don't|do not) feel comfortable)"
)
_IT_IS_DECLINED = (
    r"(?:this|that|the|your) (?:request|question|prompt|content|topic|query|message)"
    r"(?: violates|(?:'s| is| was| has been) ?(?:\w+ ){0,2}?(?:violat|block|filter|flag|refus|reject|deni|inappropriate"
    r"|not allowed|prohibited|harmful|against))"
    r"|(?:this|that)(?:'s| is) not something i|content (?:filter|policy)|moderation"
)
_BY_AN_AI = r"as an? (?:[a-z]+ ){0,3}(?:ai|assistant|language model)\b"
REFUSAL = (
    rf"\W*(?:(?:(?:i'm |i am )?sorry|apologies|unfortunately|but)\W+)*(?:{_I_DECLINE}|{_IT_IS_DECLINED}|{_BY_AN_AI})"
    r"|\W*(?:sorry|thank you|thanks)\W*$"
)
_REFUSES = "sorry|apologies|unfortunately|as|this|that|your|content|moderation|thank|thanks"  # how a refusal may begin


def read_patterns(path: Path, **given: str) -> dict[str, re.Pattern[str]]:
    """Read a TOML file of patterns. {NAME} stands for a given pattern, or for an earlier entry of the file."""
    found = {"REFUSAL": REFUSAL, "REFUSES": _REFUSES, **given}
    for name, parts in tomllib.loads(path.read_text(encoding="utf-8")).items():
        found[name] = re.sub(r"\{([A-Z_]+)\}", lambda place: found[place[1]], "".join(parts))
    return {name: re.compile(pattern) for name, pattern in found.items()}


def simplify(text: str) -> str:
    """Return a text in lower case, with straight quotes, without a model's thinking and without markup."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_STRAIGHT)
    for pattern, instead in _DROPPED:
        plain = pattern.sub(instead, plain)
    return plain


def read_in_order(
    text: str,
    find: Mapping[str, re.Pattern[str]],
    read_leading: Callable[[str], tuple[A, bool] | None],
    read_statements: Callable[[str], A],
) -> tuple[A, bool]:
    """Read an answer, and whether it is settled.

    The answer is looked for at the beginning of the text, then after an echo of the question, then in statements. Only
    an answer at the beginning of the whole text can be settled.
    """
    found = read_leading(_without_labels(text, find["LABEL"]))
    if found is not None:
        return found
    after_echo = find["ECHO"].split(text)[-1]
    found = read_leading(_without_labels(after_echo, find["LABEL"]))
    return (read_statements(after_echo) if found is None else found[0]), False


def _without_labels(text: str, label: re.Pattern[str]) -> str:
    """Remove labels such as "answer:" from the beginning of a text."""
    while found := label.match(text):
        text = text[found.end() :]
    return text


def clauses(text: str, end: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Cut a text where a new thought begins. Yield each clause, which may be empty, with the mark that ends it."""
    start = 0
    for cut in end.finditer(text):
        yield text[start : cut.start()].strip(), cut[0]
        start = cut.end()
    yield text[start:].strip(), "\n"


def cannot_undo(rest: str, may_undo: re.Pattern[str]) -> bool:
    """Say whether no further word can undo an answer that is followed by `rest`."""
    words = re.findall(r"[\w']+(?=[^\w'])", rest)  # complete words only: the model may still be writing the last one
    return len(words) >= _N_LOOKED_AT or (bool(words) and may_undo.match(words[0]) is None)
