"""Reads lexicons: pairs of terms for the two groups, and terms that stay as they are."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import AugmentError, SuiteError, suggest
from bbnli_audit.suites.json_file import read_object
from bbnli_audit.workbench.augment.uses import Use
from bbnli_audit.workbench.augment.words import TERM, TERM_RULE, lower

OWN_LEXICON = Path(__file__).parent / "lexicon.json"
CAPITALS = ("start", "any", "never")  # where a capitalised word counts as the term; "start" is the start of a sentence
FORMAT = 1

_HOW = "docs/augment.md describes the format."
_KEYS = ("format", "version", "about", "extends", "sides", "pairs", "keep")
# The sets of uses that one form may have, because `find_use` can tell them apart.
_DECIDABLE = (frozenset({Use.DETERMINER, Use.OBJECT}), frozenset({Use.DETERMINER, Use.INDEPENDENT}))


@dataclass(frozen=True, slots=True)
class PairOfTerms:
    """Two terms that are exchanged, one for each side. With `only_from`, only the term of that side is replaced."""

    terms: Mapping[str, str]
    use: Use | None
    only_from: str | None
    capital: str
    place: str  # where the pair is in the file, such as pairs[3]


@dataclass(frozen=True, slots=True)
class Term:
    """A term, and its replacement for each use. If there is only one replacement, its key is None."""

    text: str
    side: str
    becomes: Mapping[Use | None, str]
    capital: str


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The terms to swap, and the kept terms with their reasons. Both are keyed by the lower-case form."""

    name: str
    version: str
    sides: tuple[str, str]
    terms: Mapping[str, Term]
    kept: Mapping[str, str]

    @property
    def sha256(self) -> str:
        """A hash of the sides, the terms and the kept terms, whatever the layout of the file."""
        terms = [
            [term.text, term.side, term.capital, sorted((str(use), word) for use, word in term.becomes.items())]
            for _, term in sorted(self.terms.items())
        ]
        return sha256(json.dumps([self.sides, terms, sorted(self.kept)]).encode()).hexdigest()


def read_lexicon(path: Path | None = None) -> Lexicon:
    """Read a lexicon, by default ours.

    If a lexicon extends ours, those of our entries that have a term of that lexicon are left out.
    """
    own = _read(OWN_LEXICON)
    if path is None:
        return _build("own", own, OWN_LEXICON)
    data = _read(path)
    if data.get("extends", False):
        data = _extend(own, data, path)
    return _build(path.name, data, path)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = read_object(path, f"one object. {_HOW}")
    except SuiteError as exc:
        raise AugmentError(str(exc)) from exc
    _check_keys(path, data, _KEYS)
    if data.get("format") != FORMAT:
        raise _wrong(path, "format", data.get("format"), str(FORMAT))
    for key, kind, expected in (("extends", bool, "true or false"), ("version", str, "a text")):
        if key in data and not isinstance(data[key], kind):
            raise _wrong(path, key, data[key], expected)
    sides: Any = data.get("sides")
    if not _is_texts(sides) or len(set(sides)) != 2 or len(sides) != 2:
        raise _wrong(path, "sides", sides, 'two different names, such as ["male", "female"]')
    for key in ("pairs", "keep"):
        if not isinstance(data.setdefault(key, []), list):
            raise _wrong(path, key, data[key], "a list")
    if not data["pairs"] and not data.get("extends", False):
        raise _wrong(path, "pairs", data["pairs"], "at least one pair")
    data["pairs"] = [_pair(path, f"pairs[{i}]", entry, sides) for i, entry in enumerate(data["pairs"])]
    data["keep"] = dict(_kept(path, data["keep"]))
    return data


def _check_keys(path: Path, data: Mapping[str, Any], known: Sequence[str], place: str = "") -> None:
    for key in data:
        if key not in known:
            raise AugmentError(f"{path}: key {place + key!r} is not known. {suggest(key, known)}")


def _extend(own: dict[str, Any], data: dict[str, Any], path: Path) -> dict[str, Any]:
    if sorted(data["sides"]) != sorted(own["sides"]):
        ours, theirs = (" and ".join(each["sides"]) for each in (own, data))
        fault = f"extends our lexicon, whose sides are {ours}, but its own sides are {theirs}"
        raise AugmentError(f"{path}: {fault}. Use the same names, or remove 'extends'.")
    given = {lower(text) for pair in data["pairs"] for text in pair.terms.values()} | set(data["keep"])
    pairs = [pair for pair in own["pairs"] if not given & {lower(text) for text in pair.terms.values()}]
    kept = {term: reason for term, reason in own["keep"].items() if term not in given}
    return {**data, "pairs": [*pairs, *data["pairs"]], "keep": {**kept, **data["keep"]}}


def _pair(path: Path, place: str, entry: object, sides: list[str]) -> PairOfTerms:
    example = json.dumps(dict(zip(sides, ("...", "..."), strict=True)))
    if not isinstance(entry, dict):
        raise _wrong(path, place, entry, f"an object such as {example}")
    _check_keys(path, entry, (*sides, "use", "from", "capital", "note"), f"{place}.")
    terms = {side: _term(path, f"{place}.{side}", entry.get(side)) for side in sides}
    if len({lower(term) for term in terms.values()}) == 1:
        raise AugmentError(f"{path}: {place} has {terms[sides[0]]!r} on both sides. Remove it.")
    for key, allowed in (("use", [*Use]), ("from", sides), ("capital", CAPITALS)):
        if entry.get(key) is not None and entry[key] not in allowed:
            raise _wrong(path, f"{place}.{key}", entry[key], " or ".join(map(repr, map(str, allowed))))
    use = Use(entry["use"]) if entry.get("use") else None
    return PairOfTerms(terms, use, entry.get("from"), entry.get("capital") or CAPITALS[0], place)


def _kept(path: Path, entries: list[Any]) -> Iterable[tuple[str, str]]:
    for index, entry in enumerate(entries):
        place = f"keep[{index}]"
        if not isinstance(entry, dict) or set(entry) != {"terms", "reason"}:
            raise _wrong(path, place, entry, 'an object {"terms": [...], "reason": "..."}')
        if not isinstance(entry["reason"], str) or not entry["reason"].strip():
            raise _wrong(path, f"{place}.reason", entry["reason"], "a text that gives the reason")
        if not _is_texts(entry["terms"]):
            raise _wrong(path, f"{place}.terms", entry["terms"], "a list of texts")
        for term in entry["terms"]:
            yield lower(_term(path, f"{place}.terms", term)), entry["reason"]


def _term(path: Path, place: str, value: object) -> str:
    if not isinstance(value, str) or not TERM.fullmatch(value):
        raise _wrong(path, place, value, TERM_RULE)
    return value.replace("’", "'")


def _build(name: str, data: dict[str, Any], path: Path) -> Lexicon:
    first, second = data["sides"]
    pairs: list[PairOfTerms] = data["pairs"]
    sides: dict[str, tuple[str, str]] = {}
    for pair in pairs:
        for side, text in pair.terms.items():
            other, where = sides.setdefault(lower(text), (side, pair.place))
            if other != side:
                places = f"{where} as {other}, {pair.place} as {side}"
                raise AugmentError(f"{path}: {text!r} is on both sides ({places}). Remove one of the pairs.")
    terms = {}
    for text, (side, _) in sides.items():
        found = [pair for pair in pairs if lower(pair.terms[side]) == text]
        terms[text] = _make_term(path, side, found)
        if text in data["keep"]:
            raise AugmentError(f"{path}: {text!r} is in {found[0].place} and in 'keep'. Remove it from one of them.")
    return Lexicon(name, str(data.get("version", "unversioned")), (first, second), terms, data["keep"])


def _make_term(path: Path, side: str, pairs: list[PairOfTerms]) -> Term:
    text = pairs[0].terms[side]
    leaving = [pair for pair in pairs if pair.only_from in (None, side)]
    if not leaving:
        fault = f"{pairs[0].place} turns another term into {text!r}, but no pair says what {text!r} becomes"
        raise AugmentError(f"{path}: is not symmetric: {fault}. Remove 'from' there, or add a pair.")
    places = " and ".join(pair.place for pair in leaving)
    uses = [pair.use for pair in leaving]
    if len(leaving) > 1 and (None in uses or len(set(uses)) < len(uses)):
        advice = "Remove one, give each its own 'use', or set 'from' where the swap goes only one way."
        raise AugmentError(f"{path}: {text!r} appears twice, in {places}, so it may become either. {advice}")
    if len(leaving) > 1 and frozenset(uses) not in _DECIDABLE:
        fault = f"{text!r} in {places} has the uses {', '.join(map(str, uses))}, which no rule tells apart"
        raise AugmentError(f"{path}: {fault}. Only determiner can share a form, with object or with independent.")
    if len({(pair.capital, pair.terms[side]) for pair in leaving}) > 1:
        raise AugmentError(f"{path}: {text!r} is written or capitalised in two ways, in {places}. Use one.")
    others = [next(word for name, word in pair.terms.items() if name != side) for pair in leaving]
    becomes = dict(zip([None] if len(leaving) == 1 else uses, others, strict=True))
    return Term(leaving[0].terms[side], side, becomes, leaving[0].capital)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value) and bool(value)


def _wrong(path: Path, key: str, value: object, expected: str) -> AugmentError:
    shown = "missing or null" if value is None else json.dumps(value, ensure_ascii=False)
    if len(shown) > 60:
        shown = f"a {type(value).__name__} of {len(shown)} characters"
    return AugmentError(f"{path}: key {key!r} is {shown}; expected {expected}. {_HOW}")
