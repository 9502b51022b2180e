"""What all readers of answers share: patterns from a file, text without markup, and when an answer is settled."""

import re
import tomllib
import unicodedata
from pathlib import Path

_STRAIGHT = str.maketrans("’‘´“”„«»", "'''" + '"' * 5)
_N_LOOKED_AT = 8  # words after a leading answer; nothing further away undoes it
# Removed before the patterns of a file are looked for.
_DROPPED = (
    (re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S), " "),  # a thought that was cut off holds no answer
    (re.compile(r"^.*</think(?:ing)?>", re.S), " "),  # the opening tag may stand in the prompt
    (re.compile(r"</?(?:b|i|u|em|strong|code)>"), ""),
    (re.compile(r"<\|[^|>]*\|>|</?[a-z]\w*>|\\[a-z]+\s*(?=\{)|\\[\[\]()]|```\w*"), " "),  # special tokens, HTML, LaTeX
    (re.compile(r"[*`~#>_$]"), ""),
    (re.compile(r"[^\S\n]+"), " "),
)


def read_patterns(path: Path, **given: str) -> dict[str, re.Pattern[str]]:
    """Read a TOML file of patterns. {NAME} stands for a given pattern, or for an entry further up."""
    found = dict(given)
    for name, parts in tomllib.loads(path.read_text(encoding="utf-8")).items():
        found[name] = re.sub(r"\{([A-Z_]+)\}", lambda place: found[place[1]], "".join(parts))
    return {name: re.compile(pattern) for name, pattern in found.items()}


def simplify(text: str) -> str:
    """Return a text in small letters, with straight quotes, and without thoughts and markup."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_STRAIGHT)
    for pattern, instead in _DROPPED:
        plain = pattern.sub(instead, plain)
    return plain


def cannot_undo(rest: str, may_undo: re.Pattern[str]) -> bool:
    """Say whether no further word can undo an answer that is followed by `rest`."""
    words = re.findall(r"[\w']+(?=[^\w'])", rest)  # complete ones only
    return len(words) >= _N_LOOKED_AT or (bool(words) and may_undo.match(words[0]) is None)
