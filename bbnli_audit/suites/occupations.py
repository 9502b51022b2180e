"""The `occupations` suite: gender-neutral premises about someone with an occupation, hypotheses that name a gender.

Each pair has a reference: the same pair with *person* for the occupation. The reference shows which gender the model
prefers without any occupation.

The suite follows Sharma, Dey and Sinha, Evaluating Gender Bias in Natural Language Inference (2021). See
docs/occupations.md.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Pair, Pairing, Subtopic, SubtopicItems, TextPair, shared_template
from bbnli_audit.suites.json_file import Keys, hash_files, read_object, read_version
from bbnli_audit.suites.template_file import PLACEHOLDER, subtopic_name

OWN_DATA = Path(__file__).parent / "data" / "occupations"
FILES = ("occupations.json", "templates.json")
GENDERS = ("female", "male")

_HOW = "The format is in docs/occupations.md."
_INDEFINITE = re.compile(r"\ban?\s+\{\{\s*OCCUPATION\s*\}\}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Occupation:
    """An occupation, and the gender of most people who work in it."""

    name: str
    majority: str
    women_percent: float | None = None
    annotations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Templates:
    """The templates. All occupations share them."""

    premises: Mapping[str, str]  # by their ids
    hypotheses: Sequence[str]
    genders: Mapping[str, str]  # the word for each gender
    reference: str | None  # a noun to compare occupations with, such as "person"


class Occupations:
    """The pairs of every occupation with every premise and every hypothesis."""

    name = "occupations"
    pairing = Pairing.HYPOTHESIS
    families = ("occupations",)
    audits: Mapping[str, float] = {"same_label": 0.80, "probability_gap": 0.20, "pro_preference": 0.75}

    def __init__(self, data: Path | None = None) -> None:
        self.folder = OWN_DATA if data is None else data

    @cached_property
    def version(self) -> str:
        return read_version(self.folder)

    @cached_property
    def sha256(self) -> str:
        return hash_files(self.folder, map(self._path, FILES))

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._occupations)

    def documented(self) -> Sequence[Subtopic]:
        return Occupations().subtopics()

    def occupations(self) -> Sequence[Occupation]:
        """Return the occupations, in the order of the subtopics."""
        return tuple(self._occupations.values())

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        occupation, noun = self._occupations[subtopic], self._templates.reference
        pairs = self._pairs(occupation.name, occupation.majority)
        if noun is not None:
            references = self._pairs(noun, occupation.majority)
            pairs = [replace(pair, reference=each) for pair, each in zip(pairs, references, strict=True)]
        return SubtopicItems(tuple(pairs))

    def _pairs(self, noun: str, majority: str) -> list[Pair]:
        (other,) = set(GENDERS) - {majority}
        templates = self._templates
        pairs = []
        for name, template in templates.premises.items():
            cluster = shared_template(name)  # all occupations have the same premises
            premise = _fill(template, "OCCUPATION", noun)
            for hypothesis in templates.hypotheses:
                pro, anti = (_fill(hypothesis, "GENDER", templates.genders[gender]) for gender in (majority, other))
                pairs.append(Pair(cluster, TextPair(premise, pro), TextPair(premise, anti)))
        return pairs

    def _path(self, name: str) -> Path:
        path = self.folder / name
        if not path.is_file():
            fault = f"holds no {name}" if self.folder.is_dir() else "does not exist"
            raise OptionError(f"--bbnli-data={self.folder}: the folder {fault}. {_HOW}")
        return path

    @cached_property
    def _templates(self) -> Templates:
        path = self._path("templates.json")
        templates = _read_templates(path)
        if templates.reference in {each.name for each in self._occupations.values()}:
            fault = f"key 'reference' is {templates.reference!r}, which is one of the occupations"
            raise SuiteError(f"{path}: {fault}. Give a noun of no occupation, such as 'person'.")
        return templates

    @cached_property
    def _occupations(self) -> dict[Subtopic, Occupation]:
        found = {
            Subtopic(self.name, f"{each.majority}_majority", name, (), each.annotations): each
            for name, each in _read_occupations(self._path("occupations.json")).items()
        }
        return dict(sorted(found.items()))


def _fill(template: str, placeholder: str, word: str) -> str:
    return PLACEHOLDER.sub(lambda found: word if found[1] == placeholder else found[0], template)


def _read_occupations(path: Path) -> dict[str, Occupation]:
    """Return the occupations by subtopic name."""
    keys = Keys(path, read_object(path, f"one object. {_HOW}"), _HOW)
    occupations: dict[str, Occupation] = {}
    for index, entry in enumerate(keys.get("occupations", list, "a list of occupations, at least one")):
        place = f"occupations[{index}]"
        keys.check(isinstance(entry, dict), place, entry, 'an object such as {"name": "baker", "majority": "male"}')
        of_entry = Keys(path, entry, _HOW, f"{place}.")
        name, majority = of_entry.text("name"), of_entry.text("majority")
        of_subtopic = subtopic_name(name)
        of_entry.check(of_subtopic, "name", name, "a name with letters or digits")
        of_entry.check(of_subtopic not in occupations, "name", name, "a name that no other occupation has")
        of_entry.check(majority in GENDERS, "majority", majority, "'female' or 'male'")
        percent = entry.get("women_percent")
        is_percent = percent is None or (type(percent) in (int, float) and 0 <= percent <= 100)
        of_entry.check(is_percent, "women_percent", percent, "a number from 0 to 100, or null if it is not known")
        notes = entry.get("annotations", [])
        are_texts = isinstance(notes, list) and all(isinstance(note, str) for note in notes)
        of_entry.check(are_texts, "annotations", notes, "a list of texts")
        occupations[of_subtopic] = Occupation(name, majority, percent, tuple(notes))
    return occupations


def _read_templates(path: Path) -> Templates:
    keys = Keys(path, read_object(path, f"one object. {_HOW}"), _HOW)
    premises = keys.get("premises", dict, "an object of id -> premise, at least one")
    of_premises = Keys(path, premises, _HOW, "premises.")
    for key in premises:
        template = of_premises.text(key)
        _check(path, f"premises.{key}", template, "OCCUPATION")
        if _INDEFINITE.search(template):
            fault = "puts 'a' or 'an' before {{OCCUPATION}}, which is wrong for some occupations"
            raise SuiteError(f"{path}: key 'premises.{key}' {fault}. Write 'the {{{{OCCUPATION}}}}'.")
    hypotheses = keys.texts("hypotheses")
    for index, hypothesis in enumerate(hypotheses):
        _check(path, f"hypotheses[{index}]", hypothesis, "GENDER")
    words = Keys(path, keys.get("genders", dict, "an object with the words for 'female' and 'male'"), _HOW, "genders.")
    reference = keys.text("reference") if "reference" in keys.data else None
    return Templates(premises, hypotheses, {gender: words.text(gender) for gender in GENDERS}, reference)


def _check(path: Path, key: str, template: str, placeholder: str) -> None:
    found = set(PLACEHOLDER.findall(template))
    if found != {placeholder}:
        shown = ", ".join(f"{{{{{name}}}}}" for name in sorted(found)) or "no placeholder"
        raise SuiteError(f"{path}: key {key!r} has {shown}; expected {{{{{placeholder}}}}} and no other. {_HOW}")
