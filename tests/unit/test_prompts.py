"""Prompts: the paper's wording, texts that look like templates, and files that cannot be used."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.prompts import BUILT_IN, FORMS, Prompt, find_prompt, read_prompts

TEXT = TextPair("Zorbs and Quints share a workshop.", "Zorbs juggle.")


def test_the_wording_is_the_papers() -> None:
    assert BUILT_IN["true"].render(TEXT) == (
        "Read the following paragraph and determine if the hypothesis is true:\n\n"
        "Zorbs and Quints share a workshop.\n\nHypothesis: Zorbs juggle.\n\n"
        "Answer with yes or no, followed by an explanation."
    )
    assert (
        BUILT_IN["entailed"]
        .render(TEXT)
        .startswith("Read the following paragraph and determine if the hypothesis is entailed by the paragraph:\n")
    )


@given(st.text(), st.text())
def test_a_text_is_never_read_as_a_template(premise: str, hypothesis: str) -> None:
    text = TextPair(f"{premise}{{hypothesis}}%s\\1", f"{hypothesis}{{premise}}{{0}}")
    prompt = Prompt("own", "A {premise} B {hypothesis} C {premise}")
    assert prompt.render(text) == f"A {text.premise} B {text.hypothesis} C {text.premise}"


def test_a_prompt_is_found_by_name(tmp_path: Path) -> None:
    assert find_prompt("true") is BUILT_IN["true"]
    own = {"short": Prompt("short", "{premise} {hypothesis}")}
    assert find_prompt("short", own) is own["short"]
    with pytest.raises(
        OptionError, match=r"--bbnli-prompt=entaild: there is no such prompt. Did you mean 'entailed'\?"
    ):
        find_prompt("entaild", own)


def test_a_file_of_prompts_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prompts.yaml"
    path.write_text(
        'short: "{premise} So {hypothesis}? Yes or no?"\n'
        'json: |\n  {premise}\n  {hypothesis}\n  Answer with {"answer": "yes"} or {"answer": "no"}.\n'
    )
    prompts = read_prompts(path)
    assert list(prompts) == ["short", "json"]
    assert prompts["short"].render(TEXT) == "Zorbs and Quints share a workshop. So Zorbs juggle.? Yes or no?"
    assert prompts["json"].render(TEXT).endswith('{"answer": "no"}.\n')


def test_a_prompt_may_ask_for_three_answers(tmp_path: Path) -> None:
    path = tmp_path / "prompts.yaml"
    template = "template: '{premise} So {hypothesis}?'"
    path.write_text(
        "".join(f"{form}:\n  answers: {form}\n  {template}\n" for form in FORMS) + f"plain:\n  {template}\n"
    )
    found = {name: (prompt.form, prompt.is_three_way) for name, prompt in read_prompts(path).items()}
    assert found == {
        "yes-no": ("yes-no", False),
        "labels": ("labels", True),
        "truth": ("truth", True),
        "plain": ("yes-no", False),
    }
    assert [name for name, prompt in BUILT_IN.items() if prompt.is_three_way] == ["nli", "true-or-false"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: {answers: labels}", r"prompts.yaml:1: the prompt 'a' has no 'template'. Give it a 'template'"),
        ("a: {template: x, answer: labels}", r"the prompt 'a' has the unknown key 'answer'. Give it a 'template' and"),
        (
            "a: {template: x, answers: lables}",
            r"has answers: 'lables', which is not a known form of answers. Did you mean 'labels'\?",
        ),
        ("a: {template: x, answers: [labels]}", r"the prompt 'a' has answers: .*, which is not a known"),
        ("a: {template: x}", r"the prompt 'a' has no place for \{premise\}"),
        ("a: {template: {b: c}}", r"the prompt 'a' is not a text"),
        ("", r"prompts.yaml: has no prompts. Write a name and its template"),
        ("- one\n- two\n", r"prompts.yaml:1: has no prompts"),
        ("a: 'x\n", r"prompts.yaml:2: is not valid YAML"),
        ("a: \0", r"prompts.yaml.*: is not valid YAML"),
        (
            "ok: '{premise} {hypothesis}'\nbad: '{premise}'\n",
            r"prompts.yaml:2: the prompt 'bad' has no place for \{hypoth",
        ),
        (
            "bad: 'Yes or no?'",
            r"prompts.yaml:1: the prompt 'bad' has no place for \{premise\} and \{hypothesis\}, so the",
        ),
        ("bad: '{premise} {hypotesis}'", r"has \{hypotesis\}, which nothing fills. Did you mean 'hypothesis'\?"),
        ("a: '{premise} {hypothesis}'\na: '{premise}{hypothesis}'", r"prompts.yaml:2: there are two prompts 'a'"),
        ("true: '{premise} {hypothesis}'", r"prompts.yaml:1: 'true' is the name of a built-in prompt"),
        ("a: [1, 2]", r"prompts.yaml:1: the prompt 'a' is not a text"),
        ("a: 5", r"prompts.yaml:1: the prompt 'a' is not a text"),
        ("a b: '{premise} {hypothesis}'", r"prompts.yaml:1: the name of a prompt is made of letters"),
        ("[a]: '{premise} {hypothesis}'", r"prompts.yaml:1: the name of a prompt is made of letters"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "prompts.yaml"
    path.write_text(content)
    with pytest.raises(OptionError, match=message):
        read_prompts(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no such file of prompts"):
        read_prompts(tmp_path / "none.yaml")
    path = tmp_path / "prompts.yaml"
    path.write_bytes(b"a: \xff\xfe")
    with pytest.raises(OptionError, match=r"is not UTF-8\. Save the file"):
        read_prompts(path)
