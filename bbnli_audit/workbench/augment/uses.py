"""Decides how a pronoun with several uses is used: *her* may become *his* or *him*, *his* may become *her* or *hers*.

There is no parser: rules look at the words around the pronoun. benchmarks/her_rule.py measures how often the rules are
wrong, and docs/augment.md has the figures. The word lists (pronoun_words.json) were made on one half of the sentences
in our NLI training data. The figures come from the other half and from two evaluation files.
"""

import json
import re
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from bbnli_audit.workbench.augment.words import any_of


class Use(StrEnum):
    DETERMINER = "determiner"  # *her* book
    OBJECT = "object"  # he saw *her*
    INDEPENDENT = "independent"  # a book of *hers*


class Decision(NamedTuple):
    use: Use
    rule: str  # the rule that decided


_LISTS = json.loads((Path(__file__).parent / "pronoun_words.json").read_text(encoding="utf-8"))
# For some rules, a pattern of the words that must come before the pronoun.
_BEFORE = _LISTS.pop("before")["patterns"]
_ONE_OF = {name: any_of(" ".join(found["words"]).split()) for name, found in _LISTS.items()}
_NO_ADVERBS = "early|family|daily|weekly|monthly|yearly|elderly|friendly|lovely|lonely|ugly|belly|reply|ally|supply"
_NO_ADJECTIVES = "table|cable|stable|bible|handful"
_CONTRACTION = r"(?:n['’]t|['’](?:s|re|ve|d|ll|m))?"
# Matches the end of a word. A hyphen does not end a word, but makes a compound: *her in-laws*, *her on - stage life*.
_WORD_END = r"(?![\w'’]|\s?[-‐‑]\s?\w)"
_STOP = r"""(?:\s*$|\s*[.,;:!?)\]…](?!\w)|\s*(?:--|[–—])|\s+-\s|["”’'](?!\w)|\s*\()"""
_FUNCTION = rf"\s+(?:{_ONE_OF['closed']}|I(?!\.)){_CONTRACTION}{_WORD_END}"
_RULES = re.compile(
    rf"""
  (?P<other_possessive> \s*(?:/|(?:and/)?\b(?i:or))\s*(?i:his|hers?|their|its|my|your|our)\b(?!{_STOP}) )
| (?P<end_of_clause> {_STOP} )
| (?P<noun_phrase> \s+(?:over\s+\d|(?:not|ever|never)\s+\w+ing\b) )
| (?P<function_word> {_FUNCTION}|\s+(?:not|ever|never)\b )
| (?P<loose_word> \s+{_ONE_OF["loose"]}{_WORD_END} )
| (?P<complement> \s+(?:{_ONE_OF["complements"]}|(?!(?:{_NO_ADVERBS}|{_NO_ADJECTIVES})\b)\w+(?:ly|[ai]ble|less|ous))
    {_WORD_END}(?:{_STOP}|(?!\s+(?:and|or)\b){_FUNCTION}) )
| (?P<gerund> \s+being\b|\s+(?!{_ONE_OF["no_gerunds"]}\b)\w+ing{_WORD_END}(?:{_STOP}|{_FUNCTION}) )
| (?P<verb> \s+{_ONE_OF["verbs"]}{_WORD_END} )
| (?P<deed> \s+{_ONE_OF["deeds"]}{_WORD_END} )
| (?P<gift> \s+{_ONE_OF["gifts"]}{_WORD_END} )
| (?P<back> \s+back{_WORD_END} )
| (?P<name> \s+[A-Z] )
""",
    re.VERBOSE,
)
_RULES_UPPER = re.compile(_RULES.pattern, re.VERBOSE | re.IGNORECASE)
_PRECEDED = {rule: re.compile(rf"\b(?:{words})\s+$", re.IGNORECASE) for rule, words in _BEFORE.items()}
# Between a preposition and a word in *-ing*, the pronoun is a determiner: *because of her leaving*.
_OWNED = re.compile(r"(?i)\b(?:of|(?<!next )to|in|by|for|about|from|on|at|after|before|despite|without|since|than)\s+$")
_LONGEST_BEFORE = 16


def find_use(text: str, start: int, end: int, uses: Collection[Use | None]) -> Decision:
    """Decide how the pronoun text[start:end] is used. `uses` has the uses that the pronoun can have: two for *her*.

    The word lists match only lower case, because a name can contain any word (*her In Utero tour*). If the pronoun is
    in upper case, the whole text may be in upper case. In this case the lists match upper case, too.
    """
    found = (_RULES_UPPER if text[start:end].isupper() else _RULES).match(text, end)
    rule = (found.lastgroup if found else None) or "noun_phrase"
    if rule in ("noun_phrase", "other_possessive"):
        return Decision(Use.DETERMINER, rule)
    before = text[max(0, start - _LONGEST_BEFORE) : start]
    if (rule in _PRECEDED and not _PRECEDED[rule].search(before)) or (rule == "gerund" and _OWNED.search(before)):
        return Decision(Use.DETERMINER, "noun_phrase")
    if Use.OBJECT in uses:
        return Decision(Use.OBJECT, rule)
    if rule in ("end_of_clause", "function_word"):
        return Decision(Use.INDEPENDENT, rule)
    return Decision(Use.DETERMINER, "noun_phrase")
