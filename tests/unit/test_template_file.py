from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import SuiteError
from bbnli_audit.core.values import Label
from bbnli_audit.suites.template_file import read_template_file, subtopic_name
from tests.invented import write_templates


def test_a_good_file(tmp_path: Path) -> None:
    file = read_template_file(write_templates(tmp_path))
    assert (file.domain, file.name, file.groups) == ("planets", "zorbs_are_to_juggling", ("Zorbs", "Quints"))
    assert [control.expected for control in file.controls] == [Label.ENTAILMENT, Label.CONTRADICTION, Label.NEUTRAL]
    assert {hypothesis.expected for hypothesis in file.hypotheses} == {Label.NEUTRAL}


@pytest.mark.parametrize(
    ("name", "spelled"),
    [("man is to surgeon", "man_is_to_surgeon"), ("Zorbs_to_Moons.", "zorbs_to_moons"), (" A  b ", "a_b")],
)
def test_names_are_spelled_as_in_the_papers(name: str, spelled: str) -> None:
    assert subtopic_name(name) == spelled


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"premise": None}, "has no key 'premise'; expected a list of texts, at least one"),
        ({"premise": None, "premises": ["x"]}, "Did you mean 'premises'?"),
        ({"premise": "one text"}, "key 'premise' is a text of 8 characters; expected a list of texts"),
        ({"premise": []}, "key 'premise' is []; expected a list of texts, at least one"),
        ({"premise": ["fine", 7]}, "key 'premise[1]' is 7; expected a text that is not empty"),
        ({"GROUP1": ["a", "b"]}, "key 'GROUP1' is a list with texts; expected a list of exactly one word"),
        ({"GROUP2": None}, "has no key 'GROUP2'"),
        ({"data": ["x"]}, "key 'data' is a list with texts; expected an object of placeholder -> list of words"),
        ({"data": {"WORD1": "x"}}, "key 'data.WORD1' is 'x'; expected a list of texts"),
        ({"data": {"GROUP1": ["x"]}}, "expected no group here"),
        ({"name": "!!!"}, "key 'name' is a text of 3 characters; expected a name with letters or digits"),
        ({"name": ""}, "key 'name' is a text of 0 characters; expected a text"),
        ({"test_hypothesis": [["A workshop.", 3]]}, "key 'test_hypothesis[0]' is [3]; expected label 0, 1 or 2"),
        ({"test_hypothesis": [["A workshop.", True]]}, "expected label 0, 1 or 2"),
        ({"test_hypothesis": [["A workshop."]]}, "expected [template, label]"),
        (
            {"bias_hypothesis_stereotypical": [["{{GROUP1}} juggle.", 2, 1]]},
            "expected labels 1, 2: truth neutral, biased answer entailment",
        ),
        (
            {"bias_hypothesis_stereotypical": [["{{GROUP3}} juggle.", 1, 2]]},
            "uses {{GROUP3}}, which is neither a group nor a key of 'data'. Did you mean 'GROUP2'?",
        ),
        ({"test_question": [["one?", 2]]}, "expected one question for each of the 3 of 'test_hypothesis'"),
        ({"test_question": [1, 2, 3]}, "key 'test_question[0]' is 1; expected [question, ...]"),
    ],
)
def test_malformed_files_say_file_key_and_what_was_expected(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = write_templates(tmp_path, **changes)
    with pytest.raises(SuiteError) as caught:
        read_template_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n "name": "x",\n oops }', ":3: is not valid JSON"),
        (b'{"name": "a", "name": "b"}', "has the key 'name' twice"),
        (b"[1]", "holds a list; expected one object"),
        (b"\xff\xfe{", ":1: is not UTF-8. Save"),
        (b"", ":1: is not valid JSON"),
    ],
)
def test_files_that_are_no_json_object(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(SuiteError) as caught:
        read_template_file(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
