"""Suites by name, and a suite in another division."""

import json
from pathlib import Path

import pytest

from bbnli_audit.core.errors import OptionError
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.suites.nli_coal import ANTI_FILE, NONSTEREO_FILE, PRO_FILE, NliCoal
from bbnli_audit.suites.registry import (
    BUILT_IN,
    DIVISIONS,
    NEEDS_DATA,
    Data,
    open_suite,
    place_data,
    read_data,
    read_names,
)
from bbnli_audit.suites.winoqueer import Winoqueer
from tests.invented import write_templates

CATEGORY = "winoqueer:category"
N_CATEGORIES = 144  # of all nine identities; an identity has those that its literature knows


def test_a_division_has_the_name_and_the_data_of_its_suite() -> None:
    whole, divided = open_suite("winoqueer"), open_suite(CATEGORY)
    assert isinstance(divided, Winoqueer)
    assert (divided.name, divided.version, divided.sha256) == ("winoqueer", whole.version, whole.sha256)
    assert len(whole.subtopics()) == 9
    assert len(divided.subtopics()) == N_CATEGORIES
    assert {subtopic.suite for subtopic in divided.subtopics()} == {"winoqueer"}
    # A threshold file that names subtopics of the whole suite can be used with both.
    assert set(whole.subtopics()) <= set(divided.documented())


def test_every_division_is_of_a_suite_and_none_is_a_suite() -> None:
    assert {name.partition(":")[0] for name in DIVISIONS} <= set(BUILT_IN)
    assert not set(DIVISIONS) & set(BUILT_IN)
    assert not set(DIVISIONS) & set(read_names("all"))


def test_every_suite_opens_under_its_own_name() -> None:
    for name in BUILT_IN:
        assert open_suite(name).name == name.partition("@")[0]


def test_suites_without_data_of_their_own_are_not_part_of_all() -> None:
    assert read_names("all") == ["bbnli", "occupations", "winoqueer"]
    assert set(BUILT_IN) - set(read_names("all")) == {*NEEDS_DATA, "bbnli@1"}
    for name in NEEDS_DATA:
        assert read_names(name) == [name]
        with pytest.raises(OptionError, match=f"--bbnli-suite={name}: has no data of its own. Name .* --bbnli-data="):
            open_suite(name).subtopics()


def test_nli_coal_is_found_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"sentence1": "The zorb waves.", "occ_word": "zorb", "occ_type": "male-stereo"}
    for file, number, text in ((PRO_FILE, 3, "A man waves."), (ANTI_FILE, 1003, "A woman waves.")):
        (tmp_path / file).write_text(json.dumps({**row, "id": number, "sentence2": text}))
    other = {**row, "occ_type": "neutral", "id": 2003, "sentence2": "A man waves."}
    (tmp_path / NONSTEREO_FILE).write_text(json.dumps(other))
    assert isinstance(open_suite("nli-coal", tmp_path), NliCoal)
    assert read_data(f"nli-coal={tmp_path}", ["bbnli", "nli-coal"]) == {"nli-coal": str(tmp_path)}
    assert main(["suites", "show", "nli-coal", "--data", str(tmp_path), "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["subtopics"]
    assert (shown["path"], shown["n_pairs"]) == ("nli-coal/occupations/male_stereo", 1)


def test_names_are_read() -> None:
    assert read_names(None) == ["bbnli"]
    assert read_names(f"bbnli, {CATEGORY},bbnli") == ["bbnli", CATEGORY]
    with pytest.raises(OptionError, match=r"--bbnli-suite=winoqueer:categry: .* Did you mean 'winoqueer:category'\?"):
        read_names("winoqueer:categry")
    with pytest.raises(OptionError, match=f"{CATEGORY} has the pairs of winoqueer, in other subtopics. Audit one of"):
        read_names(f"{CATEGORY},winoqueer")
    with pytest.raises(OptionError, match=r"There is no suite 'winoqueer:'. Did you mean 'winoqueer'\?"):
        open_suite("winoqueer:")


def test_data_is_given_by_the_name_of_the_suite(tmp_path: Path) -> None:
    names = ["bbnli", CATEGORY]
    assert read_data("bbnli=here", names) == {"bbnli": "here"}
    assert read_data("bbnli=here, winoqueer = there", names) == {"bbnli": "here", CATEGORY: "there"}
    assert read_data("some/folder", names) == {"bbnli": "some/folder"}
    with pytest.raises(OptionError, match="occupations is not audited"):
        read_data("occupations=here", names)
    with pytest.raises(OptionError, match="the published rows have no categories"):
        open_suite(CATEGORY, tmp_path)


def test_the_command_lists_and_shows_a_division(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites", "list", CATEGORY, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["subtopics"]
    assert len(rows) == N_CATEGORIES
    assert {(row["n_pairs"], row["n_clusters"]) for row in rows} == {(8, 4), (16, 8), (24, 12), (32, 16)}
    for name in ("pansexual/work", "winoqueer/pansexual/work"):
        assert main(["suites", "show", CATEGORY, name]) == 0
        assert "winoqueer/pansexual/work\n  pairs      8 in 4 clusters" in capsys.readouterr().out


def test_suites_of_other_projects_are_named_as_ours_are(tmp_path: Path) -> None:
    others = {"planets": NliCoal()}  # any suite
    assert read_names(None, others) == ["bbnli", "planets"]
    assert read_names("planets", others) == ["planets"]
    assert read_names("bbnli", others) == ["bbnli"]
    assert read_names("all", others) == ["bbnli", "occupations", "winoqueer", "planets"]
    assert open_suite("planets", others=others) is others["planets"]
    with pytest.raises(OptionError, match="Did you mean 'planets'"):
        read_names("planet", others)
    assert read_data("planets=here", ["planets"], others) == {"planets": "here"}
    told = r"--bbnli-data=nli-coal=.*: the suite 'nli-coal' takes no data\. Leave the data out\."
    with pytest.raises(OptionError, match=told):
        open_suite("planets", tmp_path, others=others)


def test_coal_is_another_name() -> None:
    assert read_names("coal,bbnli@2") == ["nli-coal", "bbnli"]
    assert read_data("coal=here", ["nli-coal"]) == {"nli-coal": "here"}
    assert open_suite("coal").name == "nli-coal"


def test_data_replaces_or_with_a_plus_is_added(tmp_path: Path) -> None:
    write_templates(tmp_path)
    assert place_data("+here", tmp_path) == Data(tmp_path / "here", is_added=True)
    assert place_data("here", tmp_path) == Data(tmp_path / "here")
    own, theirs, both = (open_suite("bbnli", data) for data in (None, tmp_path, Data(tmp_path, is_added=True)))
    assert set(both.subtopics()) == {*own.subtopics(), *theirs.subtopics()}
    assert both.version == f"{own.version} + unversioned"
    assert both.sha256 not in (own.sha256, theirs.sha256)
    with pytest.raises(OptionError, match=r"the suite 'occupations' adds no data to its own. Write the path without"):
        open_suite("occupations", Data(tmp_path, is_added=True))
