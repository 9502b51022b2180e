"""A subtopic in our own format: what it expands to, and what is wrong with a file, by line."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import SuiteError
from bbnli_audit.core.values import Direction, Label, Pairing, SubtopicItems, TextPair
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.quad_file import expand_quads, read_quad_file
from tests.invented import quad_data, write_quads


def expand(folder: Path, pairing: Pairing = Pairing.QUADS, **changes: Any) -> SubtopicItems:
    return expand_quads(read_quad_file(write_quads(folder, **changes)), pairing)


def test_a_disparity_gives_two_pairs_of_one_cell_and_a_scene_gives_one(tmp_path: Path) -> None:
    pairs = expand(tmp_path).usable
    assert [(pair.cluster, pair.direction) for pair in pairs] == [
        ("a1/h1", Direction.WITH),
        ("a1/h1", Direction.AGAINST),
        ("a3/h1", Direction.NONE),
        ("a2/h2", Direction.AGAINST),
        ("a2/h2", Direction.WITH),
    ]
    quad = {text for pair in pairs[:2] for text in (pair.pro, pair.anti)}
    assert quad == {
        TextPair(premise, hypothesis)
        for premise in ("Nine Zorbs and two Quints came.", "Nine Quints and two Zorbs came.")
        for hypothesis in ("Zorbs juggle well.", "Quints juggle well.")
    }
    assert [pair.pro.hypothesis for pair in pairs[:2]] == ["Zorbs juggle well."] * 2


def test_forms_of_a_group_and_the_first_letter(tmp_path: Path) -> None:
    texts = [pair.pro.premise for pair in expand(tmp_path).usable if pair.cluster == "a2/h2"]
    assert texts == ["A Quint won, not a Zorb.", "A Zorb won, not a Quint."]


def test_exchanged_on_both_sides_the_diagonal_is_left(tmp_path: Path) -> None:
    pairs = expand(tmp_path, Pairing.BOTH).usable
    assert [pair.direction for pair in pairs] == [Direction.NONE] * 3
    assert pairs[0].pro == TextPair("Nine Zorbs and two Quints came.", "Zorbs juggle well.")
    assert pairs[0].anti == TextPair("Nine Quints and two Zorbs came.", "Quints juggle well.")


def test_the_same_control_hypothesis_has_all_three_labels_equally_often(tmp_path: Path) -> None:
    controls = expand(tmp_path).controls
    labels: dict[str, Counter[Label]] = {}
    for control in controls:
        labels.setdefault(control.text.hypothesis, Counter())[control.expected] += 1
    assert len(labels) == 4
    assert all(counts == dict.fromkeys(Label, 1) for counts in labels.values())
    assert Counter(control.direction for control in controls) == {Direction.WITH: 6, Direction.AGAINST: 6}
    by_text = {(control.text.premise, control.text.hypothesis): control.expected for control in controls}
    assert by_text["Nine Zorbs and two Quints came.", "More Zorbs came than Quints."] is Label.ENTAILMENT
    assert by_text["Nine Zorbs and two Quints came.", "More Quints came than Zorbs."] is Label.CONTRADICTION


def test_in_the_benchmark_no_control_hypothesis_tells_its_label_or_direction() -> None:
    """The best table from hypothesis to label gets a third right."""
    suite = Bbnli()
    for subtopic in suite.subtopics():
        controls = suite.items(subtopic).controls
        labels = Counter((control.text.hypothesis, control.expected) for control in controls)
        for hypothesis, _ in labels:
            assert len({labels[hypothesis, label] for label in Label}) == 1
        directions = Counter(control.direction for control in controls)
        assert directions[Direction.WITH] == directions[Direction.AGAINST] == len(controls) / 2


def test_a_folder_says_by_its_files_how_it_is_paired(tmp_path: Path) -> None:
    write_quads(tmp_path)
    suite = Bbnli(tmp_path)
    assert suite.pairing is Pairing.QUADS
    (subtopic,) = suite.subtopics()
    assert subtopic.path == "bbnli/planets/zorbs_are_to_juggling"
    with pytest.raises(SuiteError, match="holds quads, but this command needs templates with two groups"):
        suite.templates()


def entry(key: str, index: int, **changes: Any) -> dict[str, Any]:
    entries = [dict(each) for each in quad_data()[key]]
    entries[index] = {name: value for name, value in {**entries[index], **changes}.items() if value is not None}
    return {key: entries}


@pytest.mark.parametrize(
    ("changes", "on_line", "message"),
    [
        ({"sources": None}, "{", "the file has no key 'sources'"),
        ({"extra": 1}, '"extra"', "the file has the unknown key 'extra'"),
        (
            {"groups": {"GROUP1": quad_data()["groups"]["GROUP1"]}},
            '"groups"',
            "the file has a wrong value for 'groups': dictionary should have at least 2 items",
        ),
        (
            entry("sources", 0, year="2001"),
            '"year"',
            "sources[0] has a wrong value for 'year': input should be a valid integer",
        ),
        (entry("sources", 0, year=True), '"year"', "sources[0] has a wrong value for 'year'"),
        (entry("sources", 0, year=float("nan")), '"year"', "sources[0] has a wrong value for 'year'"),
        (entry("premises", 0, id=1), '"id": 1', "premises[0] has a wrong value for 'id': input should be a valid str"),
        (
            entry("premises", 1, kind="story"),
            '"kind": "story"',
            "premises[1] has a wrong value for 'kind': input should be 'disparity'",
        ),
        (entry("premises", 0, direction=None), '"a1"', "is a disparity, so it needs a group and a direction"),
        (entry("premises", 2, text="Two {{GROUP1}} came."), '"a3"', "is a scene, so it names no group"),
        (entry("premises", 1, id="a1"), '"a1"', "has the id 'a1', which another entry has"),
        (entry("hypotheses", 0, text="They juggle."), '"h1"', "names no group, so its two sides say the same"),
        (
            entry("hypotheses", 0, text="{{GROUP3}} juggle."),
            '"h1"',
            "uses the unknown placeholder {{GROUP3}}.",
        ),
        (
            entry("hypotheses", 1, premises=["a9"]),
            '"h2"',
            "names the premise 'a9', which does not exist. Known: a1, a2, a3.",
        ),
        (entry("controls", 0, open_beside="a3"), '"c1"', "is a control on the scene 'a3'; controls need a disparity"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, changes: dict[str, Any], on_line: str, message: str
) -> None:
    path = write_quads(tmp_path, **changes)
    with pytest.raises(SuiteError) as caught:
        read_quad_file(path)
    told = str(caught.value)
    assert message in told
    line = int(told.removeprefix(f"{path}:").partition(":")[0])
    assert on_line in path.read_text().splitlines()[line - 1]
    assert "juggle" not in told  # no sentence is quoted
