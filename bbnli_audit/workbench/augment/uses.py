"""Which use a pronoun has where one form has several: *her* stands for *his* and *him*, *his* for *her* and *hers*.

A rule over the words that follow; no parser. How often it is wrong is measured by benchmarks/her_rule.py and told in
docs/augment.md. Lists were made on one half of the sentences there, and the figures come from the other half.
"""

import re
from enum import StrEnum
from typing import NamedTuple

from bbnli_audit.workbench.augment.words import any_of


class Use(StrEnum):
    """How a pronoun is used."""

    DETERMINER = "determiner"  # *her* book
    OBJECT = "object"  # he saw *her*
    INDEPENDENT = "independent"  # a book of *hers*


class Decision(NamedTuple):
    """A use, and the rule that found it."""

    use: Use
    rule: str


# Words that open no noun: prepositions, conjunctions, pronouns, articles, auxiliaries.
_CLOSED = """
to in with and as for from at on by into during of like through within against without under than via across toward
towards onto upon until till since among between despite regarding concerning outside inside beside besides near per
beneath throughout behind beyond about after before over around above below amid alongside unlike
that because when but if while who whom whose which what where how why or nor whether though although unless yet so
once whenever wherever
a an the this these those any some each every another several it its he she i you we they me him us them his her your
our my their himself herself itself themselves myself yourself someone something anyone anything everyone nobody
nothing somebody anybody
are is were was have has had do does did can could would should may might must shall
"""

# Words that mostly follow an object, but also open a noun phrase (*her now famous book*): no sign that *his* is alone.
_LOOSE = """
up down out off away again too there here now then together along alone ahead apart aside both all more less even just
enough well such instead anyway anyways anywhere somewhere everywhere today tomorrow yesterday tonight nowadays twice
sometimes sometime otherwise soon forever indoors outdoors upstairs downstairs sideways afterwards further longer
forward upright astray aboard abroad overseas please sir
go know think feel be get become find make take tell leave want understand realize keep forget learn perform wear eat
speak decide achieve solve develop join sit stand hear die lie come see say remember believe grow enjoy survive
succeed remain stay appear escape recover choose avoid describe accept acquire adapt admit admire agree allow announce
apologize apply argue arrive ask assume attend begin behave belong borrow bring build buy carry celebrate collect
compete confess consider continue convince create defend deliver deny destroy determine disappear discover discuss
earn enter explain explore fill fix follow forgive gain gather graduate handle happen hide hire identify ignore imagine
improve include inspire introduce invest kill listen maintain manage marry meet obtain operate overcome participate
prepare prevent produce protect prove provide publish pull push put raise reach receive recognize regain relax remove
repeat replace reveal save sell send serve settle spend steal teach wait
"""

# With no noun after them they are said of an object: *makes her happy.* but *her happy child*.
_COMPLEMENTS = """
happy happier sad angry mad sick guilty rich alive confused pleased delighted proud jealous ill safe free busy ready
drunk asleep awake afraid unhappy pregnant upset wrong innocent unable able different popular expensive open clear crazy
glad unwilling willing aware better worse stronger only dead warm cold calm quiet hungry thirsty tired bored scared
worried excited annoyed embarrassed exhausted frustrated surprised interested involved ashamed naked blind weak strong
healthy wealthy poor bankrupt hostage independent uneasy sober clean fit thin unique special attractive
"""

# Nouns in *-ing*; other words in *-ing* with no noun after them are said of an object: *saw her dancing with him*.
_NO_GERUNDS = """
thing king ring wing string spring offspring sibling darling clothing wedding understanding painting training writing
playing living schooling teaching meeting singing building drawing dwelling upbringing feeling beginning thinking
hearing setting recording reading acting swimming standing ending spending hiding blessing offering finding funding
housing lodging longing making meaning morning evening nursing opening passing planning ranking rating reasoning
saving shooting sewing speaking spelling suffering timing touring undoing upcoming warning winning working wrestling
parenting modeling coaching fishing hunting cooking dancing drinking driving earning farming fighting racing running
scoring shopping skating skiing surfing travelling traveling walking warming rapping marrying bowling batting
"""

# Verbs that are nouns as well: *saw her dance*, but *loved her dance*.
_VERBS = """
laugh cry smile dance sing sleep win lose vote drink ride fight read watch help talk look live try use hold jump fall
fly swim cook write drive travel respect view hit showcase fail shave finish suffer stop wonder hope shoot give ski
benefit climb kick catch pay
"""
_DEEDS = """
run walk play work return move start swing throw pass plan train sign change check close cut deal face focus open pick
share show end rest study paint use
"""
_GIFTS = """
access permission credit authority incentive advice damages power information time money points opportunity
opportunities hope strength courage shelter food water medicine flowers candy drugs protection asylum immunity control
freedom confidence experience insight reason pleasure trouble instructions directions
"""

# The word before the pronoun that these need.
_BEFORE = {
    "verb": r"let|lets|letting|helps?|helped|helping|sees?|saw|seen|seeing|watch|watches|watched|watching|hears?|heard"
    r"|makes?|making|made|having",
    "deed": r"let|lets|letting|helps?|helped|helping|watch|watches|watched|watching",
    "name": r"calls?|called|calling|names?|named|naming|dubbed|nicknamed|elected|appointed|crowned|declared",
    "gift": r"gives?|gave|given|giving|grant\w*|allow\w*|deny|denie[sd]|denying|award\w*|offer\w*|paid|pays?|cost",
    "back": r"takes?|took|taking|brings?|brought|bringing|gets?|got|getting|sends?|sent|calls?|called|wants?|wanted"
    r"|win|won|welcom\w+|escort\w*|invit\w+|pulls?|pulled|puts?|lets?|gives?|gave|leads?|led|drives?|drove|holds?|held",
}

_NO_ADVERBS = "early|family|daily|weekly|monthly|yearly|elderly|friendly|lovely|lonely|ugly|belly|reply|ally|supply"
_NO_ADJECTIVES = "table|cable|stable|bible|handful"
_CONTRACTION = r"(?:n['’]t|['’](?:s|re|ve|d|ll|m))?"


def _one_of(words: str) -> str:
    return any_of(words.split())


# A hyphen makes a compound of a word: *her in-laws*, *her on - stage life*.
_WORD_END = r"(?![\w'’]|\s?[-‐‑]\s?\w)"
_STOP = r"""(?:\s*$|\s*[.,;:!?)\]…](?!\w)|\s*(?:--|[–—])|\s+-\s|["”’'](?!\w)|\s*\()"""
_FUNCTION = rf"\s+(?:{_one_of(_CLOSED)}|I(?!\.)){_CONTRACTION}{_WORD_END}"
_RULES = re.compile(
    rf"""
  (?P<other_possessive> \s*(?:/|(?:and/)?\b(?i:or))\s*(?i:his|hers?|their|its|my|your|our)\b(?!{_STOP}) )
| (?P<end_of_clause> {_STOP} )
| (?P<noun_phrase> \s+(?:over\s+\d|(?:not|ever|never)\s+\w+ing\b) )
| (?P<function_word> {_FUNCTION}|\s+(?:not|ever|never)\b )
| (?P<loose_word> \s+{_one_of(_LOOSE)}{_WORD_END} )
| (?P<complement> \s+(?:{_one_of(_COMPLEMENTS)}|(?!(?:{_NO_ADVERBS}|{_NO_ADJECTIVES})\b)\w+(?:ly|[ai]ble|less|ous))
    {_WORD_END}(?:{_STOP}|(?!\s+(?:and|or)\b){_FUNCTION}) )
| (?P<gerund> \s+being\b|\s+(?!{_one_of(_NO_GERUNDS)}\b)\w+ing{_WORD_END}(?:{_STOP}|{_FUNCTION}) )
| (?P<verb> \s+{_one_of(_VERBS)}{_WORD_END} )
| (?P<deed> \s+{_one_of(_DEEDS)}{_WORD_END} )
| (?P<gift> \s+{_one_of(_GIFTS)}{_WORD_END} )
| (?P<back> \s+back{_WORD_END} )
| (?P<name> \s+[A-Z] )
""",
    re.VERBOSE,
)
_RULES_UPPER = re.compile(_RULES.pattern, re.VERBOSE | re.IGNORECASE)
_PRECEDED = {rule: re.compile(rf"\b(?:{words})\s+$", re.IGNORECASE) for rule, words in _BEFORE.items()}
# After a preposition a word in *-ing* has an owner: *because of her leaving*.
_OWNED = re.compile(
    r"\b(?:of|(?<!next )to|in|by|for|about|from|on|at|after|before|despite|without|since|than)\s+$", re.IGNORECASE
)
_LONGEST_BEFORE = 16


def find_use(text: str, start: int, end: int, uses: frozenset[Use]) -> Decision:
    """Decide how the pronoun text[start:end] is used, among the uses that its form has.

    Words that follow are looked for in lower case, since a name may be any word (*her In Utero tour*).
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
