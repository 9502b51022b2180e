"""Judgements as CSV and as Label Studio's JSON: messages name the place, and nothing is half imported."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.workbench.review.exchange import (
    LABELLING_CONFIG,
    read_csv,
    read_tasks,
    take_into,
    write_csv,
    write_tasks,
)
from bbnli_audit.workbench.review.judgements import Given, Judgements, Taken
from bbnli_audit.workbench.review.states import ReviewVerdict, State
from tests.review_workspace import make_items, state

ITEMS = make_items(4)
IDS = [item.id for item in ITEMS]
WHEN = "2026-03-01T10:00:00.000000Z"
STATES = {
    "ana@example.org": {
        IDS[0]: state("valid-pro", 'says "so", twice\nand more'),
        IDS[2]: State(note="a note alone", time=WHEN),
    },
    "ben@example.org": {IDS[0]: state("incoherent"), IDS[1]: State(ReviewVerdict.VALID, note="begun", time=WHEN)},
}
SAID = {(annotator, item): each for annotator, of in STATES.items() for item, each in of.items()}
HEADER = "item,annotator,verdict,stance,note,time\n"


def told(given: list[Given]) -> dict[tuple[str, str], State]:
    return {(each.annotator, each.item): each.state for each in given}


def test_csv_holds_judgements_begun_ones_and_notes(tmp_path: Path) -> None:
    path = tmp_path / "judgements.csv"
    assert write_csv(path, STATES) == 4
    assert told(read_csv(path)) == SAID


def test_label_studio_holds_a_task_for_each_item(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    assert write_tasks(path, ITEMS, STATES) == 4
    assert told(read_tasks(path, {})) == SAID
    tasks = json.loads(path.read_text(encoding="utf-8"))
    assert [task["data"]["item"] for task in tasks] == IDS
    assert tasks[0]["data"]["hypothesis"] == ITEMS[0].hypothesis
    assert "annotations" not in tasks[3]
    first = tasks[0]["annotations"][0]
    assert first["completed_by"] == {"email": "ana@example.org"}
    assert [(each["from_name"], each["to_name"], each["type"], each["value"]) for each in first["result"]] == [
        ("verdict", "hypothesis", "choices", {"choices": ["valid"]}),
        ("stance", "hypothesis", "choices", {"choices": ["pro"]}),
        ("note", "hypothesis", "textarea", {"text": ['says "so", twice\nand more']}),
    ]


def test_the_labelling_interface_names_what_the_import_reads() -> None:
    root = ElementTree.fromstring(LABELLING_CONFIG.read_text(encoding="utf-8"))
    names = {tag.get("name") for tag in root.iter() if tag.tag in ("Choices", "TextArea")}
    assert names == {"verdict", "stance", "note"}
    choices = {tag.get("name"): [choice.get("value") for choice in tag] for tag in root.iter("Choices")}
    assert choices == {"verdict": ["valid", "invalid", "incoherent"], "stance": ["pro", "anti"]}
    data = {(tag.get("value") or "").removeprefix("$") for tag in root.iter("Text")}
    assert data == {"hypothesis", "template", "word", "premise"}


def annotation(**changes: Any) -> dict[str, Any]:
    """An annotation as Label Studio exports it, with a few of the keys that we do not need."""
    result = [
        {
            "id": "Dx_aB91ISN",
            "from_name": "verdict",
            "to_name": "hypothesis",
            "type": "choices",
            "origin": "manual",
            "value": {"choices": ["invalid"]},
        }
    ]
    whole = {
        "id": 7,
        "completed_by": 3,
        "result": result,
        "was_cancelled": False,
        "lead_time": 4.288,
        "created_at": "2026-03-09T22:16:08.728353Z",
        "updated_at": "2026-03-10T22:16:08.728378Z",
    }
    return {key: value for key, value in {**whole, **changes}.items() if value is not None}


def export(path: Path, *annotations: Any, **changes: Any) -> Path:
    task = {"id": 1, "project": 83, "data": {"item": IDS[0]}, "annotations": list(annotations), "predictions": []}
    path.write_text(json.dumps([{**task, **changes}]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("user", "names", "annotator"),
    [
        (3, {}, "user-3"),
        (3, {"3": "ana"}, "ana"),
        ({"id": 3, "email": "ana@example.org", "first_name": "A"}, {}, "ana@example.org"),
        ({"id": 3, "email": "ana@example.org"}, {"ana@example.org": "ana"}, "ana"),
        ("ana", {}, "ana"),
    ],
)
def test_users_of_label_studio_become_annotators(
    tmp_path: Path, user: object, names: dict[str, str], annotator: str
) -> None:
    path = export(tmp_path / "export.json", annotation(completed_by=user))
    expected = State(ReviewVerdict.INVALID, None, "", "2026-03-10T22:16:08.728378Z")
    assert read_tasks(path, names) == [Given(annotator, IDS[0], expected)]


def test_skipped_tasks_and_tags_of_ones_own_are_left_out(tmp_path: Path) -> None:
    own = {"from_name": "fluency", "type": "rating", "value": {"rating": 4}}
    path = export(
        tmp_path / "export.json",
        annotation(was_cancelled=True, result=[]),
        annotation(result=[own, *annotation()["result"]]),
    )
    assert [each.state.label for each in read_tasks(path, {})] == ["invalid"]


def choice(name: str, value: object) -> list[dict[str, Any]]:
    return [{"from_name": name, "type": "choices", "value": value}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"completed_by": None}, "task 1, annotation 1: 'completed_by' names no user"),
        ({"completed_by": {"id": None}}, "task 1, annotation 1: 'completed_by' names no user"),
        ({"completed_by": "a\nb"}, r"task 1, annotation 1: The annotator 'a\\nb': a name has 1 to 64"),
        ({"result": {}}, "task 1, annotation 1: 'result' is not a list"),
        ({"result": []}, "task 1, annotation 1: verdict and note are both empty"),
        (
            {"result": choice("verdict", {"choices": ["good"]})},
            "annotation 1: verdict is 'good'; it must be valid",
        ),
        ({"result": choice("verdict", {"choices": ["valid", "invalid"]})}, "annotation 1: verdict has 2 choices"),
        ({"result": choice("verdict", {"rating": 1})}, "annotation 1: the value of 'verdict' has no list 'choices'"),
        ({"result": choice("verdict", None)}, "annotation 1: the value of 'verdict' has no list 'choices'"),
        ({"updated_at": None, "created_at": None}, "annotation 1: time is ''; write it like"),
    ],
)
def test_a_wrong_annotation_is_told_with_its_place(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = export(tmp_path / "export.json", annotation(**changes))
    with pytest.raises(WorkbenchError, match=f"export.json: .*{message}.*Nothing was imported"):
        read_tasks(path, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[\n{"data": }]', "export.json:2: is not valid JSON"),
        ("{}", "export.json: is not a list of tasks"),
        ('[{"item": 1}]', "export.json: task 1: is not an object with 'data'. Export as JSON"),
        ('[{"data": {}, "annotations": 1}]', "export.json: task 1: 'annotations' is not a list"),
        ('[{"data": {}, "annotations": [1]}]', "export.json: task 1, annotation 1: is not an object"),
        ('[{"data": {}, "annotations": [{"result": []}]}]', "export.json: task 1, annotation 1: has no data.item"),
    ],
)
def test_a_wrong_export_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "export.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(WorkbenchError, match=message):
        read_tasks(path, {})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f"{IDS[0]},ana,good,,,2026-01-01", "judgements.csv:3: verdict is 'good'; it must be"),
        (f"{IDS[0]},ana,invalid,pro,,2026-01-01", "judgements.csv:3: stance is 'pro' and verdict 'invalid'"),
        (f"{IDS[0]},ana,invalid,,,soon", "judgements.csv:3: time is 'soon'; write it like"),
        (f"{IDS[0]}, ,invalid,,,2026-01-01", "judgements.csv:3: The annotator ' ': a name has"),
        (",ana,invalid,,,2026-01-01", "judgements.csv:3: item is empty"),
        (f"{IDS[0]},ana,,,,2026-01-01", "judgements.csv:3: verdict and note are both empty"),
        (f"{IDS[0]},ana", "judgements.csv:3: has 2 values for 6 columns"),
    ],
)
def test_a_wrong_row_is_told_with_its_line(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "judgements.csv"
    path.write_text(f"{HEADER}{IDS[1]},ana,invalid,,,2026-01-01\n{row}\n", encoding="utf-8")
    with pytest.raises(WorkbenchError, match=message):
        read_csv(path)


def test_judgements_of_unknown_items_are_kept_and_those_of_another_review_refused(tmp_path: Path) -> None:
    path = tmp_path / "judgements.csv"
    given = [Given("ana", IDS[0], state("invalid")), Given("ana", "0" * 12, state("invalid"))]
    with Judgements(tmp_path / "review.sqlite") as judgements:
        with pytest.raises(
            WorkbenchError, match=r"judgements.csv: none of its 1 judgements is about an item of this review"
        ):
            take_into(judgements, path, given[1:], IDS)
        assert judgements.rows() == []
        assert take_into(judgements, path, given, IDS) == Taken(2, 0, 0, 1)
        assert set(judgements.states_of("ana")) == {IDS[0], "0" * 12}
