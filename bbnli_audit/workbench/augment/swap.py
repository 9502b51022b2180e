"""Swaps the terms of one group for the terms of the other. All other parts of a text stay as they are."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from bbnli_audit.workbench.augment.lexicon import Lexicon, Term
from bbnli_audit.workbench.augment.uses import find_use
from bbnli_audit.workbench.augment.words import any_of, compile_words, lower, make_sieve

# Matches the text before a word if the word starts a sentence, or follows a quote, a bracket or a dash.
_START = re.compile(r"(?:^|[.!?:;…]['\"”’)\]]*\s+|[\n\"“‘(\[]\s*|\s['-]\s?|['`])$")
_LONGEST_BEFORE = 6
# Matches if another capitalised word follows: *Mother Teresa*, *Women's World Cup*.
_NAME_GOES_ON = re.compile(r"(?:['’]s?)?[ -][A-Z][a-z]")


class Found(NamedTuple):
    """A swapped term in a text, and what it became. For a term with several uses, `rule` is the rule that decided."""

    term: str
    side: str
    became: str
    rule: str | None = None


class Left(NamedTuple):
    """A term that stays. The lexicon keeps it, or its capitals show that it is a name or a different word."""

    term: str
    is_kept: bool  # whether the lexicon keeps the term


class Swapper:
    """Swaps the terms of a lexicon. Names and kept terms stay."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self._find = compile_words(any_of((*lexicon.terms, *lexicon.kept))).finditer
        self._sieve = make_sieve([*lexicon.terms])
        # Most terms have only one replacement. For each of these terms, this is what `swap` adds to `found`.
        self._plain = {
            key: Found(term.text, term.side, *term.becomes.values())
            for key, term in lexicon.terms.items()
            if len(term.becomes) == 1
        }

    def sift(self, pairs: Sequence[tuple[str | None, str | None]]) -> list[bool]:
        """Say which pairs of texts may contain a term. This is faster than searching each text, and misses no term."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            texts = pa.array([f"{premise}\n{hypothesis}" for premise, hypothesis in pairs], pa.large_string())
            sifted: list[bool] = pc.match_substring_regex(texts, self._sieve).to_pylist()
        except (UnicodeEncodeError, pa.ArrowInvalid):  # half of a surrogate pair, or too many terms for RE2
            return [True] * len(pairs)
        return sifted

    def swap(self, text: str, found: list[Found], left: list[Left]) -> str:
        """Return the text with its terms swapped. Add swapped terms to `found`, and terms that stay to `left`."""
        parts: list[str] = []
        done = 0
        for match in self._find(lower(text)):
            word = match[0]
            term = self.lexicon.terms.get(word)
            if term is None:
                left.append(Left(word, is_kept=True))
                continue
            start, end = match.span()
            one = self._plain.get(word)
            if one is None:  # the term has several uses
                use, rule = find_use(text, start, end, term.becomes.keys())
                one = Found(term.text, term.side, term.becomes[use], rule)
            became = one.became if text[start:end] == term.text else _write(one.became, text, start, end, term)
            if became is None:
                left.append(Left(word, is_kept=False))
                continue
            found.append(one)
            parts += text[done:start], became
            done = end
        return "".join((*parts, text[done:])) if parts else text


def _write(became: str, text: str, start: int, end: int, term: Term) -> str | None:
    """Return the replacement with the capitals of the word in the text.

    Return None if the capitals show that the word is a name or a different word.
    """
    word = text[start:end].replace("’", "'")
    if word == term.text:
        return became
    # A term with a capital in the lexicon is matched as written: *Ms* is a title, *ms* and *MS* are not.
    if not term.text.islower() or term.capital == "never":
        return None
    if word == _capitalise(term.text):
        return _capitalise(became) if term.capital == "any" or not _is_in_name(text, start, end) else None
    return became.upper() if word.isupper() else None


def _capitalise(word: str) -> str:
    return word[:1].upper() + word[1:]


def _is_in_name(text: str, start: int, end: int) -> bool:
    """Whether a capitalised word seems to be part of a name.

    It does if it starts no sentence, or if another capitalised word follows.
    """
    is_start = start == 0 or _START.search(text[max(0, start - _LONGEST_BEFORE) : start])
    return not is_start or _NAME_GOES_ON.match(text, end) is not None
