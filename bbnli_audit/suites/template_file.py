"""Reads one subtopic in the published BBNLI format: templates, word lists and two groups in a JSON file."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bbnli_audit.core.errors import SuiteError, suggest
from bbnli_audit.core.values import Label
from bbnli_audit.suites.json_file import Keys, read_object

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")

# The files count from contradiction, most checkpoints from entailment. These numbers do not leave this module.
LABELS = {0: Label.CONTRADICTION, 1: Label.NEUTRAL, 2: Label.ENTAILMENT}
BIAS_LABELS = [1, 2]  # truth neutral, the stereotyped answer entailment; the format has no other

_HOW = "Compare with a file in the published format (docs/suites.md)."


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothesis template. `question` is its wording for QA, used only to count rows as the papers do."""

    template: str
    expected: Label
    question: str = ""


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """One subtopic before expansion."""

    path: Path
    domain: str
    name: str
    premises: tuple[str, ...]
    controls: tuple[Hypothesis, ...]
    hypotheses: tuple[Hypothesis, ...]
    words: Mapping[str, tuple[str, ...]]
    groups: tuple[str, str]
    annotations: tuple[str, ...] = ()


def read_template_file(path: Path) -> TemplateFile:
    """Read and check a file. A SuiteError names the file, the key and what was expected there."""
    data = read_object(path, f"one object with the subtopic's keys. {_HOW}")
    keys = Keys(path, data, _HOW)
    words = _words(keys)
    premises = tuple(keys.texts("premise"))
    controls = _hypotheses(keys, "test_hypothesis", "test_question")
    hypotheses = _hypotheses(keys, "bias_hypothesis_stereotypical", "bias_question_stereotypical")
    known = {"GROUP1", "GROUP2", *words}
    _check_placeholders(path, "premise", premises, known)
    _check_placeholders(path, "test_hypothesis", (each.template for each in controls), known)
    _check_placeholders(path, "bias_hypothesis_stereotypical", (each.template for each in hypotheses), known)
    return TemplateFile(
        path=path,
        domain=_name(keys, "domain"),
        name=_name(keys, "name"),
        premises=premises,
        controls=controls,
        hypotheses=hypotheses,
        words=words,
        groups=(_group(keys, "GROUP1"), _group(keys, "GROUP2")),
        annotations=tuple(keys.texts("annotations")) if "annotations" in data else (),
    )


def subtopic_name(name: str) -> str:
    """Spell a name as the papers' tables do, in lower case: `Muslim women to invisible.` has a stray dot."""
    return re.sub(r"\W+", "_", name.strip().lower()).strip("_")


def _name(keys: Keys, key: str) -> str:
    text = keys.text(key)
    name = subtopic_name(text)
    if not name:
        raise keys.wrong(key, text, "a name with letters or digits")
    return name


def _group(keys: Keys, key: str) -> str:
    words = keys.texts(key)
    if len(words) != 1:
        raise keys.wrong(key, words, "a list of exactly one word")
    return words[0]


def _words(keys: Keys) -> dict[str, tuple[str, ...]]:
    expected = "an object of placeholder -> list of words (may be empty)"
    value = keys.get("data", dict, expected, may_be_empty=True)
    for reserved in ("GROUP1", "GROUP2"):
        if reserved in value:
            raise keys.wrong(f"data.{reserved}", value[reserved], "no group here: groups are keys of their own")
    lists = Keys(keys.path, value, _HOW, "data.")
    return {key: tuple(lists.texts(key)) for key in value}


def _hypotheses(keys: Keys, key: str, question_key: str) -> tuple[Hypothesis, ...]:
    is_control = key == "test_hypothesis"
    form = "[template, label]" if is_control else "[template, 1, 2]"
    expected = f"a list of {form}, with labels 0 contradiction, 1 neutral, 2 entailment"
    value = keys.get(key, list, expected, may_be_empty=True)
    questions = keys.data.get(question_key) or [[""]] * len(value)
    if not isinstance(questions, list) or len(questions) != len(value):
        raise keys.wrong(question_key, questions, f"one question for each of the {len(value)} of {key!r}")
    rows = []
    for index, entry in enumerate(value):
        place = f"{key}[{index}]"
        is_row = isinstance(entry, list) and len(entry) == (2 if is_control else 3)
        if not is_row or not isinstance(entry[0], str) or not entry[0].strip():
            raise keys.wrong(place, entry, form)
        if type(entry[1]) is not int or entry[1] not in LABELS:
            raise keys.wrong(place, entry[1:], "label 0, 1 or 2")
        if not is_control and entry[1:] != BIAS_LABELS:
            raise keys.wrong(place, entry[1:], "labels 1, 2: truth neutral, biased answer entailment")
        question = questions[index]
        if not isinstance(question, list) or not question or not isinstance(question[0], str):
            raise keys.wrong(f"{question_key}[{index}]", question, "[question, ...]")
        rows.append(Hypothesis(entry[0], LABELS[entry[1]], question[0]))
    return tuple(rows)


def _check_placeholders(path: Path, key: str, templates: Iterable[str], known: set[str]) -> None:
    for index, template in enumerate(templates):
        for name in PLACEHOLDER.findall(template):
            if name not in known:
                raise SuiteError(
                    f"{path}: {key}[{index}] uses {{{{{name}}}}}, which is neither a group nor a key of 'data'. "
                    f"{suggest(name, known)}"
                )
