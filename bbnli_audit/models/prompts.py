"""The prompts: two with the wording of the BBNLI-next paper, two of ours with three answers, and the user's own."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.reading import Source
from bbnli_audit.core.values import TextPair

if TYPE_CHECKING:
    from yaml.nodes import Node, ScalarNode

# The forms of a question, by the answers it asks for: yes or no; the three labels; true, cannot tell or false.
YES_NO, LABELS, TRUTH = FORMS = ("yes-no", "labels", "truth")
_PLACES = ("premise", "hypothesis")
_PLACE = re.compile(r"\{(premise|hypothesis)\}")
# Braces around one word look like a placeholder. The braces of a JSON example do not.
_LIKE_PLACE = re.compile(r"\{\s*(\w+)\s*\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question about a text. Only its `{premise}` and `{hypothesis}` are filled in, with the text's sentences."""

    name: str
    template: str
    form: str = YES_NO  # one of FORMS

    @property
    def is_three_way(self) -> bool:
        return self.form != YES_NO

    def render(self, text: TextPair) -> str:
        # Fill both at once, so that a premise that contains "{hypothesis}" stays as it is.
        return _PLACE.sub(lambda place: text.premise if place[1] == "premise" else text.hypothesis, self.template)


def _built_in(name: str, task: str, answers: str, form: str = YES_NO) -> Prompt:
    return Prompt(
        name,
        f"Read the following paragraph and determine {task}:\n\n{{premise}}\n\nHypothesis: {{hypothesis}}\n\n"
        f"Answer with {answers}, followed by an explanation.",
        form,
    )


DEFAULT_PROMPT = "entailed"
BUILT_IN: Mapping[str, Prompt] = MappingProxyType(
    {
        prompt.name: prompt
        for prompt in (
            # The first two have the wording of the paper.
            _built_in("true", "if the hypothesis is true", "yes or no"),
            _built_in("entailed", "if the hypothesis is entailed by the paragraph", "yes or no"),
            _built_in(
                "nli",
                "if the hypothesis is entailed by the paragraph, contradicted by it, or neither (neutral)",
                "entailment, neutral or contradiction",
                LABELS,
            ),
            _built_in(
                "true-or-false",
                "if the hypothesis is true, false, or if the paragraph cannot tell",
                "true, cannot tell or false",
                TRUTH,
            ),
        )
    }
)


def find_prompt(name: str, own: Mapping[str, Prompt] = MappingProxyType({})) -> Prompt:
    known = {**BUILT_IN, **own}
    if name not in known:
        raise OptionError(f"--bbnli-prompt={name}: there is no such prompt. {suggest(name, known)}")
    return known[name]


def read_prompts(path: Path) -> dict[str, Prompt]:
    """Read the user's prompts: a YAML file of names and templates. Error messages name the file and the line."""
    node = Source(path, OptionError, if_missing="there is no such file of prompts. Give another.").read_yaml()
    prompts: dict[str, Prompt] = {}
    for key, value in _entries(node, path):
        where = f"{path}:{key.start_mark.line + 1}"
        if key.value in prompts:
            raise OptionError(f"{where}: there are two prompts {key.value!r}. Give one of them another name.")
        if key.value in BUILT_IN:
            raise OptionError(f"{where}: {key.value!r} is the name of a built-in prompt. Give it another name.")
        prompts[key.value] = _read_prompt(key.value, value, f"{where}: the prompt {key.value!r}")
    return prompts


def _read_prompt(name: str, value: "Node", prompt: str) -> Prompt:
    """Read a template, or a mapping of `template` and `answers`."""
    import yaml

    if not isinstance(value, yaml.MappingNode):
        return Prompt(name, _check_template(value, prompt))
    parts = {str(key.value): part for key, part in value.value}
    wrong = [key for key in parts if key not in ("template", "answers")]
    if wrong or "template" not in parts:
        problem = f"has the unknown key {wrong[0]!r}" if wrong else "has no 'template'"
        raise OptionError(f"{prompt} {problem}. Give it a 'template' and, if it asks for three answers, 'answers'.")
    form = str(parts["answers"].value) if "answers" in parts else YES_NO
    if form not in FORMS:
        problem = f"has answers: {form!r:.40}, which is not a known form of answers"
        raise OptionError(f"{prompt} {problem}. {suggest(form, FORMS)}")
    return Prompt(name, _check_template(parts["template"], prompt), form)


def _entries(node: "Node | None", path: Path) -> Iterator[tuple["ScalarNode", "Node"]]:
    import yaml

    example = 'short: "{premise} Does it follow that {hypothesis}? Yes or no?"'
    if not isinstance(node, yaml.MappingNode) or not node.value:
        line = "" if node is None else f":{node.start_mark.line + 1}"
        raise OptionError(f"{path}{line}: has no prompts. Write a name and its template on a line, as in\n  {example}")
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or re.fullmatch(r"[\w.-]+", key.value) is None:
            problem = "the name of a prompt is made of letters, digits, '.', '_' and '-'"
            raise OptionError(f"{path}:{key.start_mark.line + 1}: {problem}.")
        yield key, value


def _check_template(value: "Node", prompt: str) -> str:
    import yaml

    if not isinstance(value, yaml.ScalarNode) or value.tag != "tag:yaml.org,2002:str":
        raise OptionError(f"{prompt} is not a text. Put its template in quotes, or behind '|'.")
    template = str(value.value)
    wrong = [place for place in _LIKE_PLACE.findall(template) if place not in _PLACES]
    if wrong:
        raise OptionError(f"{prompt} has {{{wrong[0]}}}, which nothing fills. {suggest(wrong[0], _PLACES)}")
    missing = [f"{{{place}}}" for place in _PLACES if f"{{{place}}}" not in template]
    if missing:
        raise OptionError(f"{prompt} has no place for {' and '.join(missing)}, so the model would not see it.")
    return template
