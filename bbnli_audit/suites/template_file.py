"""Reads and expands one subtopic in the published BBNLI format: templates, word lists and two groups in a JSON file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import SuiteError, suggest
from bbnli_audit.core.values import Control, Direction, Label, Pair, Pairing, Side, SubtopicItems, TextPair
from bbnli_audit.suites.json_file import Keys, read_object

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
Binding = Mapping[str, str]
CONTROL, BIAS = "test_hypothesis", "bias_hypothesis_stereotypical"

# In these files 0 is contradiction; in most checkpoints 0 is entailment. So only this module uses these numbers.
LABELS = {0: Label.CONTRADICTION, 1: Label.NEUTRAL, 2: Label.ENTAILMENT}
MOST_TEXTS = 200_000  # the most that a subtopic may have; the largest published subtopic has 2,000
BIAS_LABELS = [1, 2]  # the truth is neutral, the stereotyped answer entailment; no other labels are allowed

_HOW = "Compare with a file in the published format (docs/suites.md)."


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothesis template. `question` is its wording as a question, used only to count rows as the papers do."""

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

    @property
    def local_path(self) -> str:
        """The path of the subtopic below its suite."""
        return f"{self.domain}/{self.name}"

    @property
    def group_names(self) -> Sequence[str]:
        return self.groups

    def entries(self) -> Iterator[tuple[str, str]]:
        """Return each template with its place in the file, such as `premise[0]`."""
        keyed = {
            "premise": self.premises,
            CONTROL: [control.template for control in self.controls],
            BIAS: [hypothesis.template for hypothesis in self.hypotheses],
        }
        for key, templates in keyed.items():
            yield from ((f"{key}[{index}]", template) for index, template in enumerate(templates))


def read_template_file(path: Path, data: Mapping[str, Any] | None = None) -> TemplateFile:
    """Read and check a file, or its parsed content (`data`). A SuiteError names the file, the key and the fault."""
    data = read_object(path, f"one object with the subtopic's keys. {_HOW}") if data is None else data
    keys = Keys(path, data, _HOW)
    file = TemplateFile(
        path=path,
        words=_words(keys),
        premises=tuple(keys.texts("premise")),
        controls=_hypotheses(keys, CONTROL, "test_question"),
        hypotheses=_hypotheses(keys, BIAS, "bias_question_stereotypical"),
        domain=_name(keys, "domain"),
        name=_name(keys, "name"),
        groups=(_group(keys, "GROUP1"), _group(keys, "GROUP2")),
        annotations=tuple(keys.texts("annotations")) if "annotations" in keys.data else (),
    )
    known = {"GROUP1", "GROUP2", *file.words}
    for entry, template in file.entries():
        for name in PLACEHOLDER.findall(template):
            if name not in known:
                fault = f"uses {{{{{name}}}}}, which is neither a group nor a key of 'data'"
                raise SuiteError(f"{path}: {entry} {fault}. {suggest(name, known)}")
    return file


def subtopic_name(name: str) -> str:
    """Spell a name as the papers' tables do, in lower case. In the files, some names have a stray dot."""
    return re.sub(r"\W+", "_", name.strip().lower()).strip("_")


def _name(keys: Keys, key: str) -> str:
    text = keys.text(key)
    name = subtopic_name(text)
    keys.check(name, key, text, "a name with letters or digits")
    return name


def _group(keys: Keys, key: str) -> str:
    words = keys.texts(key)
    keys.check(len(words) == 1, key, words, "a list of exactly one word")
    return words[0]


def _words(keys: Keys) -> dict[str, tuple[str, ...]]:
    expected = "an object of placeholder -> list of words (may be empty)"
    value = keys.get("data", dict, expected, may_be_empty=True)
    for reserved in ("GROUP1", "GROUP2"):
        expected = "no group here: groups are keys of their own"
        keys.check(reserved not in value, f"data.{reserved}", value.get(reserved), expected)
    lists = Keys(keys.path, value, _HOW, "data.")
    return {key: tuple(lists.texts(key)) for key in value}


def _hypotheses(keys: Keys, key: str, question_key: str) -> tuple[Hypothesis, ...]:
    is_control = key == CONTROL
    form = "[template, label]" if is_control else "[template, 1, 2]"
    expected = f"a list of {form}, with labels 0 contradiction, 1 neutral, 2 entailment"
    value = keys.get(key, list, expected, may_be_empty=True)
    questions = keys.data.get(question_key) or [[""]] * len(value)
    is_complete = isinstance(questions, list) and len(questions) == len(value)
    keys.check(is_complete, question_key, questions, f"one question for each of the {len(value)} of {key!r}")
    rows = []
    for index, (entry, question) in enumerate(zip(value, questions, strict=True)):
        place = f"{key}[{index}]"
        is_row = isinstance(entry, list) and len(entry) == (2 if is_control else 3)
        keys.check(is_row and isinstance(entry[0], str) and entry[0].strip(), place, entry, form)
        keys.check(type(entry[1]) is int and entry[1] in LABELS, place, entry[1:], "label 0, 1 or 2")
        expected = "labels 1, 2: truth neutral, biased answer entailment"
        keys.check(is_control or entry[1:] == BIAS_LABELS, place, entry[1:], expected)
        is_question = isinstance(question, list) and question and isinstance(question[0], str)
        keys.check(is_question, f"{question_key}[{index}]", question, "[question, ...]")
        rows.append(Hypothesis(entry[0], LABELS[entry[1]], question[0]))
    return tuple(rows)


def expand_pairs(file: TemplateFile, pairing: Pairing) -> list[Pair]:
    """Return the pairs as the papers count them, including pairs whose two sides are identical.

    The premise and the hypothesis of a pair use the same words from the lists. The papers choose a word from every list
    and drop duplicates. Here words are chosen only for placeholders in the two templates. This gives the same texts.
    Two premise templates may give equal pairs. With the pairing `both`, the papers count each of these pairs; with
    other pairings, they count only one.
    """
    seen: dict[tuple[int, TextPair, TextPair], Pair] = {}
    for premise_index, premise in enumerate(file.premises):
        origin = premise_index if pairing is Pairing.BOTH else 0
        for hypothesis_index, hypothesis in enumerate(file.hypotheses):
            cluster = f"p{premise_index:02d}/h{hypothesis_index:02d}"
            for words in bindings(file, premise, hypothesis.template):
                for pro, anti, direction in _exchange(file, premise, hypothesis, words, pairing):
                    seen.setdefault((origin, pro, anti), Pair(cluster, pro, anti, direction))
    return list(seen.values())


def expand_items(file: TemplateFile, pairing: Pairing) -> SubtopicItems:
    _check_size(file)
    return SubtopicItems(tuple(expand_pairs(file, pairing)), tuple(_controls(file)))


def _check_size(file: TemplateFile) -> None:
    """Refuse a file whose templates and word lists combine to too many texts."""
    hypotheses = [each.template for each in (*file.hypotheses, *file.controls)]
    n_texts = 0
    for premise, hypothesis in product(file.premises, hypotheses):
        n_texts += prod(len(file.words[key]) for key in _keys_used(file, premise, hypothesis))
        if n_texts > MOST_TEXTS:
            fault = f"its templates and word lists combine to more than {MOST_TEXTS:,} texts"
            raise SuiteError(f"{file.path}: {fault}. Shorten the lists under 'data', or use fewer in one template.")


def render(template: str, binding: Binding) -> str:
    """Fill in the placeholders.

    An undefined placeholder becomes empty, as in the published set. Only questions can have undefined placeholders.
    """
    return PLACEHOLDER.sub(lambda match: binding.get(match[1], ""), template)


def _controls(file: TemplateFile) -> Iterator[Control]:
    seen = set()
    for premise_index, premise in enumerate(file.premises):
        for control_index, control in enumerate(file.controls):
            cluster = f"p{premise_index:02d}/c{control_index:02d}"
            for side, words in product(Side, bindings(file, premise, control.template)):
                binding = with_groups(file, side, words)
                text = TextPair(render(premise, binding), render(control.template, binding))
                if (text, control.expected) not in seen:
                    seen.add((text, control.expected))
                    yield Control(cluster, text, control.expected)


def _exchange(
    file: TemplateFile, premise: str, hypothesis: Hypothesis, words: Binding, pairing: Pairing
) -> Iterator[tuple[TextPair, TextPair, Direction]]:
    given, swapped = (with_groups(file, side, words) for side in Side)
    pro, anti = (render(hypothesis.template, binding) for binding in (given, swapped))
    premises = (render(premise, given), render(premise, swapped))
    if pairing is Pairing.BOTH:
        yield TextPair(premises[0], pro), TextPair(premises[1], anti), Direction.NONE
    elif premises[0] == premises[1]:
        yield TextPair(premises[0], pro), TextPair(premises[0], anti), Direction.NONE
    else:
        # Under both premises, the pro side has the hypothesis as written. As written, a premise agrees with the
        # stereotype.
        for rendered, direction in zip(premises, (Direction.WITH, Direction.AGAINST), strict=True):
            yield TextPair(rendered, pro), TextPair(rendered, anti), direction


def bindings(file: TemplateFile, *templates: str) -> Iterator[Binding]:
    """Return every choice of words for the placeholders in these templates."""
    keys = _keys_used(file, *templates)
    for values in product(*(file.words[key] for key in keys)):
        yield dict(zip(keys, values, strict=True))


def _keys_used(file: TemplateFile, *templates: str) -> list[str]:
    used = {name for template in templates for name in PLACEHOLDER.findall(template)}
    return [key for key in file.words if key in used]


def with_groups(file: TemplateFile, side: Side, words: Binding) -> Binding:
    """Add the groups to a choice of words: as in the stereotype (side pro), or exchanged."""
    first, second = file.groups if side is Side.PRO else file.groups[::-1]
    return {**words, "GROUP1": first, "GROUP2": second}
