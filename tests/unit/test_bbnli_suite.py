from pathlib import Path

import pytest

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Label, Pairing
from bbnli_audit.suites.bbnli import Bbnli
from tests.invented import write_templates


def test_subtopics_are_sorted_and_named_by_the_file_with_the_file_name_as_alias(tmp_path: Path) -> None:
    write_templates(tmp_path, "x/zeta.json", name="alpha", domain="X")
    write_templates(tmp_path, "x/beta.json", name="beta", domain="x")
    subtopics = Bbnli(tmp_path).subtopics()
    assert [(subtopic.path, subtopic.aliases) for subtopic in subtopics] == [
        ("bbnli/x/alpha", ("zeta",)),
        ("bbnli/x/beta", ()),
    ]


def test_two_files_with_one_name_are_refused(tmp_path: Path) -> None:
    write_templates(tmp_path, "x/one.json")
    write_templates(tmp_path, "x/two.json")
    with pytest.raises(SuiteError, match=r"two\.json: is named 'zorbs_are_to_juggling' .*, and so is .*one\.json"):
        Bbnli(tmp_path).subtopics()


def test_an_empty_folder_and_a_missing_one(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="holds no subtopic file"):
        Bbnli(tmp_path).subtopics()
    with pytest.raises(OptionError, match="there is no such folder"):
        Bbnli(tmp_path / "nowhere").subtopics()


def test_the_hash_follows_the_content(tmp_path: Path) -> None:
    path = write_templates(tmp_path)
    before = Bbnli(tmp_path).sha256
    assert Bbnli(tmp_path).sha256 == before
    path.write_text(path.read_text().replace("nimble", "agile"))
    assert Bbnli(tmp_path).sha256 != before


def test_a_manifest_gives_the_version(tmp_path: Path) -> None:
    write_templates(tmp_path)
    assert Bbnli(tmp_path).version == "unversioned"
    (tmp_path / "suite.json").write_text('{"version": "3.1"}')
    assert Bbnli(tmp_path).version == "3.1"
    (tmp_path / "suite.json").write_text("{}")
    with pytest.raises(SuiteError, match=r"suite\.json: expected"):
        _ = Bbnli(tmp_path).version


@pytest.mark.parametrize("pairing", list(Pairing))
def test_our_own_benchmark_has_the_sixteen_subtopics_with_enough_for_a_verdict(pairing: Pairing) -> None:
    suite = Bbnli(pairing=pairing)
    assert [subtopic.path for subtopic in suite.subtopics()] == sorted(s.path for s in suite.documented())
    sizes = []
    for subtopic, file in zip(suite.subtopics(), suite.files(), strict=True):
        assert len(file.hypotheses) >= 12
        assert len(file.premises) >= 8
        assert len(file.controls) >= 9
        groups = [("GROUP1" in premise or "GROUP2" in premise) for premise in file.premises]
        assert True in groups
        assert False in groups
        items = suite.items(subtopic)
        sizes.append(len(items.usable))
        assert len({pair.cluster for pair in items.usable}) >= 24
        assert items.n_identical == items.n_duplicates == 0
        assert {control.expected for control in items.controls} == set(Label)
    assert min(sizes) >= 200
    assert max(sizes) <= 3 * min(sizes)


def test_doubts_are_carried_as_annotations() -> None:
    notes = {subtopic.name: subtopic.annotations for subtopic in Bbnli().subtopics() if subtopic.annotations}
    assert set(notes) == {"catholic_woman_is_to_kids", "jewish_woman_is_to_kids"}
