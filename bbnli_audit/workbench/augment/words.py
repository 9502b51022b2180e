"""Regular expressions for many words at once, and the plural of a noun."""

import re
from collections.abc import Iterable
from typing import Any

TERM = re.compile(r"\w(?:[\w '’-]*\w)?")
TERM_RULE = "letters and digits; between them also spaces, hyphens and apostrophes"
_REGULAR_IN_MAN = ("brahman", "german", "human", "norman", "ottoman", "roman", "shaman", "talisman")
# A word after @ or # is not matched. A word before a combining accent is not matched: the accent changes the word's
# last letter.
_BEFORE = r"(?<![\w@#])"
_AFTER = r"(?![\w\u0300-\u036f])"


def compile_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern for whole words in lower-case texts. Ignoring case would make searches several times slower."""
    return re.compile(f"{_BEFORE}(?:{pattern}){_AFTER}")


def make_sieve(words: Iterable[str]) -> str:
    """Return a pattern for RE2 that matches every text with one of the words, and few other texts.

    RE2 finds word boundaries only beside ASCII letters. So a word that begins or ends with a letter outside ASCII also
    matches inside longer words.
    """
    found = [word.replace("'", "’") for word in words if "'" in word] + list(words)
    plain = [word for word in found if (word[0] + word[-1]).isascii()]
    others = [word for word in found if word not in plain]
    patterns = [rf"\b(?:{any_of(plain)})\b"] if plain else []
    return f"(?i){'|'.join([*patterns, *([any_of(others)] if others else [])])}"


def lower(text: str) -> str:
    """Return the text in lower case with plain apostrophes. Each character keeps its position.

    Python turns the capital İ into two characters, i and a combining dot. Here it becomes ı instead. No match is lost,
    because no term can contain a combining dot.
    """
    return text.replace("İ", "ı").replace("’", "'").lower()


def any_of(words: Iterable[str]) -> str:
    """Return a pattern that finds the longest matching word. For speed, words that begin alike share that beginning."""
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _pattern(tree)


def _pattern(node: dict[str, Any]) -> str:
    parts = [re.escape(letter) + _pattern(rest) for letter, rest in sorted(node.items()) if letter]
    if not parts:
        return ""
    if "" in node:
        return f"(?:{'|'.join(parts)})?"
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def plural(noun: str) -> str:
    """Return the plural of an English noun that is regular, or ends in *-man* or *-person*."""
    for end, ends in (("person", "people"), ("man", "men")):
        if noun.endswith(end) and not noun.endswith(_REGULAR_IN_MAN):
            return noun.removesuffix(end) + ends
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search(r"(?:s|x|z|ch|sh)$", noun) else f"{noun}s"
