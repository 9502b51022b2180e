"""`bbnli-audit suites`: what is shown of a subtopic, what stays hidden, and the JSON of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.values import Pairing
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.suites.bbnli import Bbnli
from tests.invented import write_templates
from tests.unit.test_suite_check import SOUND

PATH = "bbnli/planets/zorbs_are_to_juggling"
PHENOMENON = "Zorbs are seen as born jugglers"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_templates(tmp_path, phenomenon=PHENOMENON, annotations=["One paper doubts it."])
    return tmp_path


def show(data: Path, *args: str) -> int:
    return main(["suites", "show", *args, "--data", str(data)])


def read_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_subtopic_is_shown_without_its_sentences(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(data, "bbnli", PATH) == 0
    out = capsys.readouterr().out
    ids = [pair.id for pair in Bbnli(data).items(Bbnli(data).subtopics()[0]).usable][:3]
    assert out == (
        f"bbnli unversioned, sha256 {Bbnli(data).sha256}\n\n"
        f"{PATH}\n"
        "  also named zorbs\n"
        "  pairs      9 in 6 clusters; 15 with a fixed premise\n"
        "  left out   0 the same on both sides, 0 duplicates\n"
        "  controls   5 entailment, 5 neutral, 5 contradiction\n"
        "  templates  3 premises, 2 hypotheses, 3 control hypotheses\n"
        f"  pair ids   {', '.join(ids)}, ...\n"
        "  note       One paper doubts it.\n"
        "\nGroups and sentences are hidden; --reveal shows them.\n"
    )


def test_sentences_are_shown_when_asked_for(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(data, "bbnli", PATH, "--reveal") == 0
    out = capsys.readouterr().out
    pair = Bbnli(data).items(Bbnli(data).subtopics()[0]).usable[0]
    assert f"  measures   {PHENOMENON}\n" in out
    assert "  groups     Zorbs / Quints\n" in out
    assert (
        f"  pair {pair.id} (p00/h00)\n"
        f"    pro   premise     {pair.pro.premise}\n          hypothesis  {pair.pro.hypothesis}\n"
        f"    anti  premise     {pair.anti.premise}\n          hypothesis  {pair.anti.hypothesis}\n"
    ) in out
    assert "hidden" not in out


@pytest.mark.parametrize(
    "names",
    [
        ["bbnli", PATH],
        ["bbnli", "planets/zorbs_are_to_juggling"],
        ["bbnli", "planets/zorbs"],
        ["bbnli", "bbnli/planets/zorbs"],
        ["bbnli"],
        [PATH],
        ["planets/zorbs_are_to_juggling"],
        [],
    ],
)
def test_names_that_find_it(data: Path, capsys: pytest.CaptureFixture[str], names: list[str]) -> None:
    assert show(data, *names, "--json") == 0
    assert [row["path"] for row in read_json(capsys)["subtopics"]] == [PATH]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("planets/zorps_are_to_juggling", "Did you mean 'planets/zorbs_are_to_juggling'?"),
        ("bbnli/planets/zorbs_are_to_jugling", f"Did you mean '{PATH}'?"),
        ("zorbs_are_to_juggling", "Did you mean 'planets/zorbs_are_to_juggling'?"),
        ("zorbz", "Did you mean 'planets/zorbs'?"),
        ("xyz", "See: bbnli-audit suites list bbnli"),
    ],
)
def test_a_name_that_does_not_exist(data: Path, capsys: pytest.CaptureFixture[str], name: str, hint: str) -> None:
    assert show(data, "bbnli", name) == 4
    assert capsys.readouterr().err == f"ERROR: The suite 'bbnli' has no subtopic '{name}'. {hint}\n"


def test_our_own_subtopics_say_what_they_measure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites", "show", "--json"]) == 0
    found = read_json(capsys)
    assert (found["suite"], found["version"], found["sha256"]) == ("bbnli", Bbnli().version, Bbnli().sha256)
    assert len(found["subtopics"]) == 24
    for row in found["subtopics"]:
        assert row["phenomenon"]
        assert not {"pairs", "groups"} & set(row)
    assert main(["suites", "show", "bbnli", found["subtopics"][0]["path"]]) == 0
    assert f"  measures   {found['subtopics'][0]['phenomenon']}\n" in capsys.readouterr().out


def test_the_json_of_one_subtopic(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = Bbnli(data).items(Bbnli(data).subtopics()[0])
    hidden: dict[str, Any] = {
        "path": PATH,
        "aliases": ["zorbs"],
        "annotations": ["One paper doubts it."],
        "n_pairs": len(items.usable),
        "n_clusters": 6,
        "n_pairs_hypothesis": len(Bbnli(data, Pairing.HYPOTHESIS).items(Bbnli(data).subtopics()[0]).usable),
        "controls": {"entailment": 5, "neutral": 5, "contradiction": 5},
        "phenomenon": None,
        "templates": {"premise": 3, "test_hypothesis": 3, "bias_hypothesis_stereotypical": 2},
        "sources": [],
        "n_identical": 0,
        "n_duplicates": 0,
        "pair_ids": [pair.id for pair in items.usable[:3]],
    }
    assert show(data, PATH, "--json") == 0
    assert read_json(capsys)["subtopics"] == [hidden]
    assert show(data, PATH, "--json", "--reveal") == 0
    first = items.usable[0]
    (revealed,) = read_json(capsys)["subtopics"]
    assert (revealed["groups"], revealed["phenomenon"]) == (["Zorbs", "Quints"], PHENOMENON)
    assert revealed["pairs"][0] == {
        "id": first.id,
        "cluster": "p00/h00",
        "pro": {"premise": first.pro.premise, "hypothesis": first.pro.hypothesis},
        "anti": {"premise": first.anti.premise, "hypothesis": first.anti.hypothesis},
    }


@pytest.mark.slow
def test_the_json_of_list_and_check(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    title = {"suite": "bbnli", "version": "unversioned", "sha256": Bbnli(data).sha256}
    assert main(["suites", "list", "--data", str(data), "--json"]) == 0
    found = read_json(capsys)
    assert {key: found[key] for key in title} == title
    assert list(found["subtopics"][0]) == [
        "path",
        "aliases",
        "annotations",
        "n_pairs",
        "n_clusters",
        "n_pairs_hypothesis",
        "controls",
    ]
    assert main(["suites", "check", "--data", str(data), "--json"]) == 1
    found = read_json(capsys)
    assert {key: found[key] for key in title} == title
    assert found["n_files"] == 1
    problem = "9 usable pairs are too few for a verdict; have 200 or more"
    assert {"file": "zorbs.json", "entry": "", "problem": problem} in found["findings"]
    write_templates(data, **SOUND)
    assert main(["suites", "check", "--data", str(data), "--json"]) == 0
    assert read_json(capsys)["findings"] == []
