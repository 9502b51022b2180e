"""Code for all readers of answers: patterns from a file, text without markup, and when an answer is final."""

import re
import tomllib
import unicodedata
from pathlib import Path

_STRAIGHT = str.maketrans("’‘´“”„«»", "'''" + '"' * 5)
_N_LOOKED_AT = 8  # words after a leading answer; later words cannot undo the answer
# Removed or replaced before patterns are searched.
_DROPPED = (
    (re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S), " "),  # a thought that was cut off holds no answer
    (re.compile(r"^.*</think(?:ing)?>", re.S), " "),  # the opening tag may stand in the prompt
    (re.compile(r"</?(?:b|i|u|em|strong|code)>"), ""),
    (re.compile(r"<\|[^|>]*\|>|</?[a-z]\w*>|\\[a-z]+\s*(?=\{)|\\[\[\]()]|```\w*"), " "),  # special tokens, HTML, LaTeX
    (re.compile(r"[*`~#>_$]"), ""),
    (re.compile(r"[^\S\n]+"), " "),
)


def read_patterns(path: Path, **given: str) -> dict[str, re.Pattern[str]]:
    """Read a TOML file of patterns. {NAME} stands for a given pattern, or for an earlier entry of the file."""
    found = dict(given)
    for name, parts in tomllib.loads(path.read_text(encoding="utf-8")).items():
        found[name] = re.sub(r"\{([A-Z_]+)\}", lambda place: found[place[1]], "".join(parts))
    return {name: re.compile(pattern) for name, pattern in found.items()}


def simplify(text: str) -> str:
    """Return a text in lower case, with straight quotes, without a model's thinking and without markup."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_STRAIGHT)
    for pattern, instead in _DROPPED:
        plain = pattern.sub(instead, plain)
    return plain


def cannot_undo(rest: str, may_undo: re.Pattern[str]) -> bool:
    """Say whether no further word can undo an answer that is followed by `rest`."""
    words = re.findall(r"[\w']+(?=[^\w'])", rest)  # complete ones only
    return len(words) >= _N_LOOKED_AT or (bool(words) and may_undo.match(words[0]) is None)
