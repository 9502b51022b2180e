"""The validator finds each planted fault, and nothing in our own data."""

from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.frontends.cli.main import main
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.check import check_files
from bbnli_audit.suites.template_file import read_template_file
from tests.invented import template_data, write_templates

PREMISES = [f"Workshop number {n} on the red moon is open to {{{{GROUP1}}}} and {{{{GROUP2}}}}." for n in range(30)]
HYPOTHESES = [[f"Most {{{{GROUP1}}}} juggle {n} balls better than {{{{GROUP2}}}}.", 1, 2] for n in "abcdefg"]
CONTROLS = [["A workshop is open.", 2], ["The workshop is closed.", 0], ["The workshop is old.", 1]]
SOUND: dict[str, Any] = {
    "premise": PREMISES,
    "bias_hypothesis_stereotypical": HYPOTHESES,
    "test_hypothesis": CONTROLS,
    "data": {},
}


def findings(folder: Path, **changes: Any) -> list[str]:
    file = read_template_file(write_templates(folder, **{**SOUND, **changes}))
    return [str(finding) for finding in check_files([file])]


def with_hypothesis(text: str) -> dict[str, Any]:
    return {"bias_hypothesis_stereotypical": [*HYPOTHESES, [text, 1, 2]]}


def with_premise(text: str) -> dict[str, Any]:
    return {"premise": [*PREMISES, text]}


def test_sound_data_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (with_hypothesis("Everybody juggles."), "bias_hypothesis_stereotypical[7]: holds no {{GROUP1}} or {{GROUP2}}"),
        (
            with_hypothesis("Most Zorbs beat {{GROUP2}}."),
            "names 'Zorbs' outright, so this group is never exchanged",
        ),
        (
            {**with_hypothesis("Everybody juggles."), **with_premise("A workshop.")},
            "p30/h07: 1 pair has the same text on both sides",
        ),
        ({"test_hypothesis": [["It is open.", 2]] * 1 + [["It is shut.", 0]]}, "too few controls are neutral"),
        ({"test_hypothesis": []}, "too few controls are entailment (0 entailment, 0 neutral, 0 contradiction)"),
        (with_premise(PREMISES[3]), "premise[3]: occurs 2 times"),
        (with_premise(PREMISES[3]), "7 pairs are expanded twice to the same texts"),
        (with_hypothesis("Most {{GROUP1}}  juggle a balls better than {{GROUP2}}!"), "[0]: occurs 2 times"),
        (with_premise("A {{GROUP1}} owl sees an moon."), "reads 'an moon'; it needs a"),
        (
            {**with_premise("A {{GROUP2}} boat."), "GROUP1": ["Umbri"], "GROUP2": ["Zorbish"]},
            "reads 'A Umbri'; it needs an",
        ),
        (with_premise("The the moon."), "says 'The' twice in a row"),
        (with_premise("a moon."), "begins with a small letter ('a')"),
        (with_hypothesis("It seems that {{GROUP1}} is better than {{GROUP2}}."), "reads 'zorbs is'; a plural needs"),
        (
            {
                "test_hypothesis": [
                    *[[f"Nobody {verb} here.", 0] for verb in ("works", "sings", "waits")],
                    *[[f"Somebody {verb} here.", 2] for verb in ("works", "walks", "talks")],
                    *[[f"The {noun} is old.", 1] for noun in ("bench", "door", "roof")],
                ]
            },
            "'nobody' is in 3 of 3 contradiction controls and in no other",
        ),
        (with_premise("This is neutral ground."), "says 'neutral', the name of a label"),
        (
            {**with_premise("Most {{GROUP1}} win, they say."), **with_hypothesis("Most {{GROUP1}} win.")},
            "bias_hypothesis_stereotypical[7]: is stated by a premise, so it is entailed",
        ),
        ({"data": {"WORD1": ["unused"]}}, "data.WORD1: is used by no premise or hypothesis"),
        ({"premise": PREMISES[:3]}, "21 clusters (premises and hypotheses) are too few for a verdict"),
        ({"premise": PREMISES[:25]}, "175 usable pairs are too few for a verdict; have 200 or more"),
    ],
)
def test_each_planted_fault_is_found(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    found = findings(tmp_path, **changes)
    assert any(message in finding for finding in found), found


@pytest.mark.parametrize(
    "text",
    [
        "A team of {{GROUP1}} is here.",
        "A workshop led by two {{GROUP1}} is open.",
        "An hour is a unit of time for {{GROUP1}}.",
        "Some of them are {{GROUP1}}, is what they say.",
    ],
)
def test_right_sentences_are_left_alone(tmp_path: Path, text: str) -> None:
    assert findings(tmp_path, **with_premise(text)) == []


def test_files_are_compared_with_each_other(tmp_path: Path) -> None:
    one = read_template_file(write_templates(tmp_path, "a.json", **SOUND))
    other = read_template_file(write_templates(tmp_path, "b.json", **{**SOUND, "premise": PREMISES * 4}))
    found = [str(finding) for finding in check_files([one, other])]
    assert "b.json: bias_hypothesis_stereotypical[0]: is in a.json as well" in found
    small = read_template_file(write_templates(tmp_path, "c.json", **template_data(name="c")))
    assert any(
        "c.json: has 9 pairs and a.json 210: more than 3 times as many" in str(f) for f in check_files([one, small])
    )


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "n_files"), [("bbnli@1", 16), ("bbnli", 24)])
def test_our_own_data_has_no_finding(capsys: pytest.CaptureFixture[str], suite: str, n_files: int) -> None:
    assert main(["suites", "check", suite]) == 0
    assert capsys.readouterr().out == f"{n_files} files, no finding.\n"


def test_a_users_folder_can_be_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_templates(tmp_path)
    assert main(["suites", "check", "--data", str(tmp_path)]) == 1
    assert "zorbs.json: 9 usable pairs are too few for a verdict" in capsys.readouterr().out


def test_list_shows_counts_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites", "list"]) == 0
    out = capsys.readouterr().out
    assert f"bbnli {Bbnli().version}, sha256 {Bbnli().sha256}" in out
    assert "note: The first version of the BBNLI-next paper lists this subtopic, the second does not" in out


def test_an_unknown_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites", "list", "bbnly"]) == 4
    assert "There is no suite 'bbnly'. Did you mean 'bbnli'?" in capsys.readouterr().err
