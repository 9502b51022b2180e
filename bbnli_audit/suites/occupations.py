"""The `occupations` suite: gender-neutral premises about an occupation, hypotheses that give it a gender.

After Sharma, Dey and Sinha, Evaluating Gender Bias in Natural Language Inference (2021); docs/occupations.md.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Pair, Pairing, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.json_file import read_object
from bbnli_audit.suites.template_file import PLACEHOLDER, subtopic_name

OWN_DATA = Path(__file__).parent / "data" / "occupations"
FILES = ("occupations.json", "templates.json")
GENDERS = ("female", "male")

_HOW = "The format is in docs/occupations.md."
_OBJECT = f"one object. {_HOW}"
_INDEFINITE = re.compile(r"\ban?\s+\{\{\s*OCCUPATION\s*\}\}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Occupation:
    """An occupation with the gender of most who work in it, as the source of the list has it."""

    name: str
    majority: str
    women_percent: float | None = None
    annotations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Templates:
    """Premises by their ids, hypotheses, and the word for each gender."""

    premises: dict[str, str]
    hypotheses: tuple[str, ...]
    words: dict[str, str]


class Occupations:
    """Every occupation meets every premise, and every premise every hypothesis."""

    name = "occupations"
    pairing = Pairing.HYPOTHESIS
    families = ("occupations",)

    def __init__(self, data: Path | None = None) -> None:
        self.folder = OWN_DATA if data is None else data

    @cached_property
    def version(self) -> str:
        path = self.folder / "suite.json"
        return _text(path, read_object(path, _OBJECT), "version") if path.is_file() else "unversioned"

    @cached_property
    def sha256(self) -> str:
        digest = sha256()
        for name in FILES:
            digest.update(f"{name}\n".encode())
            digest.update(sha256(self._path(name).read_bytes()).digest())
        return digest.hexdigest()

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._occupations)

    def documented(self) -> Sequence[Subtopic]:
        return Occupations().subtopics()

    def occupations(self) -> Sequence[Occupation]:
        """Give the occupations as the data has them, in the order of the subtopics."""
        return tuple(self._occupations.values())

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        occupation = self._occupations[subtopic]
        (other,) = set(GENDERS) - {occupation.majority}
        words = self._templates.words
        pairs = []
        for cluster, template in self._templates.premises.items():
            premise = _fill(template, "OCCUPATION", occupation.name)
            for hypothesis in self._templates.hypotheses:
                pro, anti = (_fill(hypothesis, "GENDER", words[gender]) for gender in (occupation.majority, other))
                pairs.append(Pair(cluster, TextPair(premise, pro), TextPair(premise, anti)))
        return SubtopicItems(tuple(pairs))

    def _path(self, name: str) -> Path:
        if not self.folder.is_dir():
            raise OptionError(f"--bbnli-data={self.folder}: there is no such folder.")
        path = self.folder / name
        if not path.is_file():
            raise OptionError(
                f"--bbnli-data={self.folder}: the folder holds no {name}, which the suite 'occupations' needs. {_HOW}"
            )
        return path

    @cached_property
    def _templates(self) -> Templates:
        return _read_templates(self._path("templates.json"))

    @cached_property
    def _occupations(self) -> dict[Subtopic, Occupation]:
        path = self._path("occupations.json")
        found: dict[Subtopic, Occupation] = {}
        names: dict[str, str] = {}
        for index, occupation in enumerate(_read_occupations(path)):
            name = subtopic_name(occupation.name)
            if name in names:
                raise SuiteError(
                    f"{path}: occupations[{index}] is named {occupation.name!r}, and so is {names[name]}. "
                    "Remove one: results and limits are kept by name."
                )
            names[name] = f"occupations[{index}]"
            subtopic = Subtopic(self.name, f"{occupation.majority}_majority", name, (), occupation.annotations)
            found[subtopic] = occupation
        return dict(sorted(found.items()))


def _fill(template: str, placeholder: str, word: str) -> str:
    return PLACEHOLDER.sub(lambda found: word if found[1] == placeholder else found[0], template)


def _read_occupations(path: Path) -> list[Occupation]:
    entries = _get(path, read_object(path, _OBJECT), "occupations", list, "a list of occupations, at least one")
    occupations = []
    for index, entry in enumerate(entries):
        place = f"occupations[{index}]"
        if not isinstance(entry, dict):
            raise _wrong(path, place, entry, 'an object such as {"name": "baker", "majority": "male"}')
        name = _text(path, entry, "name", place)
        if not subtopic_name(name):
            raise _wrong(path, f"{place}.name", name, "a name with letters or digits")
        majority = _text(path, entry, "majority", place)
        if majority not in GENDERS:
            raise _wrong(path, f"{place}.majority", majority, "'female' or 'male'")
        percent = entry.get("women_percent")
        if percent is not None and (type(percent) not in (int, float) or not 0 <= percent <= 100):
            raise _wrong(path, f"{place}.women_percent", percent, "a number from 0 to 100, or null if not known")
        notes = entry.get("annotations", [])
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            raise _wrong(path, f"{place}.annotations", notes, "a list of texts")
        occupations.append(Occupation(name, majority, percent, tuple(notes)))
    return occupations


def _read_templates(path: Path) -> Templates:
    data = read_object(path, _OBJECT)
    premises = _get(path, data, "premises", dict, "an object of id -> premise, at least one")
    for key in premises:
        template = _text(path, premises, key, "premises")
        _check(path, f"premises.{key}", template, "OCCUPATION")
        if _INDEFINITE.search(template):
            raise SuiteError(
                f"{path}: key 'premises.{key}' puts 'a' or 'an' before {{{{OCCUPATION}}}}, which is wrong for some "
                "occupations. Write 'the {{OCCUPATION}}'."
            )
    hypotheses = _get(path, data, "hypotheses", list, "a list of hypotheses, at least one")
    for index, hypothesis in enumerate(hypotheses):
        if not isinstance(hypothesis, str):
            raise _wrong(path, f"hypotheses[{index}]", hypothesis, "a text")
        _check(path, f"hypotheses[{index}]", hypothesis, "GENDER")
    words = _get(path, data, "genders", dict, "an object with the words for 'female' and 'male'")
    chosen = {gender: _text(path, words, gender, "genders") for gender in GENDERS}
    return Templates(dict(premises), tuple(hypotheses), chosen)


def _check(path: Path, key: str, template: str, placeholder: str) -> None:
    found = set(PLACEHOLDER.findall(template))
    if found != {placeholder}:
        shown = ", ".join(f"{{{{{name}}}}}" for name in sorted(found)) or "no placeholder"
        raise SuiteError(f"{path}: key {key!r} has {shown}; expected {{{{{placeholder}}}}} and no other. {_HOW}")


def _get(path: Path, data: dict[str, Any], key: str, kind: type, expected: str) -> Any:
    value = data.get(key)
    if not isinstance(value, kind) or not value:
        raise _wrong(path, key, value, expected)
    return value


def _text(path: Path, data: dict[str, Any], key: str, place: str = "") -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(path, f"{place}.{key}" if place else key, value, "a text that is not empty")
    return value


def _wrong(path: Path, key: str, value: object, expected: str) -> SuiteError:
    """Show what is wrong but no long text: a file may hold sentences."""
    shown = "missing or null" if value is None else json.dumps(value, ensure_ascii=False)
    if len(shown) > 40:
        shown = f"a {type(value).__name__} of {len(shown)} characters"
    return SuiteError(f"{path}: key {key!r} is {shown}; expected {expected}. {_HOW}")
