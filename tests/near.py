"""Finds templates that say nearly the same, or share their wording."""

import re
from collections.abc import Iterator, Mapping

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

NEAR = 0.75  # share of content words that two templates have in common
SHARED = 0.5  # share of a template's word 5-grams that the other has too


def find_near(templates: Mapping[str, str], others: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Find templates with nearly the same content words as one of the others, or that share half of their 5-grams."""
    known = [(name, _content(text), _grams(text)) for name, text in others.items()]
    for one, text in templates.items():
        words, grams = _content(text), _grams(text)
        for other, theirs, their_grams in known:
            is_alike = len(words | theirs) > 2 and len(words & theirs) >= NEAR * len(words | theirs)
            if is_alike or len(grams & their_grams) > SHARED * len(grams):
                yield one, other


def _words(template: str, group: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", re.sub(r"\{\{[^}]*\}\}", group, template).lower())


def _content(template: str) -> set[str]:
    return {word for word in _words(template, " ") if word not in ENGLISH_STOP_WORDS}


def _grams(template: str) -> set[tuple[str, ...]]:
    words = _words(template, "group")
    return {tuple(words[start : start + 5]) for start in range(len(words) - 4)}
