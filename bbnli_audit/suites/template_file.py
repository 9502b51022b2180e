"""Reads one subtopic in the published BBNLI format: templates, word lists and two groups in a JSON file."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import SuiteError, suggest
from bbnli_audit.core.values import Label
from bbnli_audit.suites.json_file import json_type, read_object

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")

# The files count from contradiction, most checkpoints from entailment: numbers do not leave this module.
LABELS = {0: Label.CONTRADICTION, 1: Label.NEUTRAL, 2: Label.ENTAILMENT}
BIAS_LABELS = [1, 2]  # truth neutral, the stereotyped answer entailment; the format knows no other

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
    """Read and check a file.

    Raises:
        SuiteError: naming the file, the key and what was expected there.
    """
    data = read_object(path, f"one object with the subtopic's keys. {_HOW}")
    words = _words(path, data)
    premises = tuple(_strings(path, data, "premise"))
    controls = _hypotheses(path, data, "test_hypothesis", "test_question")
    hypotheses = _hypotheses(path, data, "bias_hypothesis_stereotypical", "bias_question_stereotypical")
    known = {"GROUP1", "GROUP2", *words}
    for key, templates in (
        ("premise", premises),
        ("test_hypothesis", [control.template for control in controls]),
        ("bias_hypothesis_stereotypical", [hypothesis.template for hypothesis in hypotheses]),
    ):
        _check_placeholders(path, key, templates, known)
    return TemplateFile(
        path=path,
        domain=_name(path, data, "domain"),
        name=_name(path, data, "name"),
        premises=premises,
        controls=controls,
        hypotheses=hypotheses,
        words=words,
        groups=(_group(path, data, "GROUP1"), _group(path, data, "GROUP2")),
        annotations=tuple(_strings(path, data, "annotations")) if "annotations" in data else (),
    )


def subtopic_name(name: str) -> str:
    """Spell a name as the papers' tables do, in lower case: `Muslim women to invisible.` has a stray dot."""
    return re.sub(r"\W+", "_", name.strip().lower()).strip("_")


def _get(path: Path, data: Mapping[str, Any], key: str, expected: str) -> Any:
    if key not in data:
        raise SuiteError(f"{path}: has no key {key!r}; expected {expected}. {suggest(key, data)}")
    return data[key]


def _wrong(path: Path, key: str, value: object, expected: str) -> SuiteError:
    return SuiteError(f"{path}: key {key!r} is {_show(value)}; expected {expected}. {_HOW}")


def _string(path: Path, data: Mapping[str, Any], key: str) -> str:
    expected = "a text that is not empty"
    value = _get(path, data, key, expected)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(path, key, value, expected)
    return value


def _name(path: Path, data: Mapping[str, Any], key: str) -> str:
    name = subtopic_name(_string(path, data, key))
    if not name:
        raise _wrong(path, key, data[key], "a name with letters or digits")
    return name


def _strings(path: Path, data: Mapping[str, Any], key: str) -> list[str]:
    expected = "a list of texts, at least one"
    value = _get(path, data, key, expected)
    if not isinstance(value, list) or not value:
        raise _wrong(path, key, value, expected)
    for index, text in enumerate(value):
        if not isinstance(text, str) or not text.strip():
            raise _wrong(path, f"{key}[{index}]", text, "a text that is not empty")
    return value


def _group(path: Path, data: Mapping[str, Any], key: str) -> str:
    words = _strings(path, data, key)
    if len(words) != 1:
        raise _wrong(path, key, words, "a list of exactly one word")
    return words[0]


def _words(path: Path, data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    expected = "an object of placeholder -> list of words (may be empty)"
    value = _get(path, data, "data", expected)
    if not isinstance(value, dict):
        raise _wrong(path, "data", value, expected)
    for reserved in ("GROUP1", "GROUP2"):
        if reserved in value:
            raise _wrong(path, f"data.{reserved}", value[reserved], "no group here: groups are keys of their own")
    return {key: tuple(_strings(path, value, key)) for key in value}


def _hypotheses(path: Path, data: Mapping[str, Any], key: str, question_key: str) -> tuple[Hypothesis, ...]:
    is_control = key == "test_hypothesis"
    form = "[template, label]" if is_control else "[template, 1, 2]"
    expected = f"a list of {form}, with labels 0 contradiction, 1 neutral, 2 entailment"
    value = _get(path, data, key, expected)
    if not isinstance(value, list):
        raise _wrong(path, key, value, expected)
    questions = data.get(question_key)
    if questions is not None and (not isinstance(questions, list) or len(questions) != len(value)):
        raise _wrong(path, question_key, questions, f"one question for each of the {len(value)} of {key!r}")
    rows = []
    for index, entry in enumerate(value):
        is_row = isinstance(entry, list) and len(entry) == (2 if is_control else 3)
        if not is_row or not isinstance(entry[0], str) or not entry[0].strip():
            raise _wrong(path, f"{key}[{index}]", entry, form)
        if type(entry[1]) is not int or entry[1] not in LABELS:
            raise _wrong(path, f"{key}[{index}]", entry[1:], "label 0, 1 or 2")
        if not is_control and entry[1:] != BIAS_LABELS:
            raise _wrong(path, f"{key}[{index}]", entry[1:], "labels 1, 2: truth neutral, biased answer entailment")
        rows.append(Hypothesis(entry[0], LABELS[entry[1]], _question(path, questions, question_key, index)))
    return tuple(rows)


def _question(path: Path, questions: list[Any] | None, key: str, index: int) -> str:
    if questions is None:
        return ""
    entry = questions[index]
    if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
        raise _wrong(path, f"{key}[{index}]", entry, "[question, ...]")
    return entry[0]


def _check_placeholders(path: Path, key: str, templates: list[str] | tuple[str, ...], known: set[str]) -> None:
    for index, template in enumerate(templates):
        for name in PLACEHOLDER.findall(template):
            if name not in known:
                raise SuiteError(
                    f"{path}: {key}[{index}] uses {{{{{name}}}}}, which is no group and no key of 'data'. "
                    f"{suggest(name, known)}"
                )


def _show(value: object) -> str:
    """Show a wrong value, but no sentence: what a file holds may state stereotypes."""
    shown = json.dumps(value, ensure_ascii=False, default=str)
    if '"' not in shown:
        return shown
    return f"a text of {len(value)} characters" if isinstance(value, str) else f"a {json_type(value)} with texts"
