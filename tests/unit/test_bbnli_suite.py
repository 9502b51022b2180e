import errno
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.core.errors import AuditError, OptionError, SuiteError
from bbnli_audit.core.values import Direction, Pairing
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.registry import open_suite
from tests.invented import limits, write_templates


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


def test_a_domain_that_cannot_be_listed_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit of the other domains would look whole."""
    write_templates(tmp_path)
    closed = write_templates(tmp_path, "oceans/fins.json", name="fins").parent

    def refusing(name: str) -> Callable[[Any], Any]:
        real = getattr(os, name)

        def call(path: Any = ".") -> Any:
            if Path(path) == closed:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return real(path)

        return call

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, refusing(name))
    with pytest.raises(PermissionError, match="oceans"):
        Bbnli(tmp_path).subtopics()
    with pytest.raises(AuditError, match="oceans: cannot be used: Permission denied"):
        run_audit(AuditOptions(model="planted:ideal", thresholds=limits(), data=tmp_path))


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


@pytest.mark.parametrize("pairing", [Pairing.QUADS, Pairing.HYPOTHESIS])
def test_our_own_benchmark_has_enough_for_a_verdict_in_every_subtopic(pairing: Pairing) -> None:
    suite = open_suite("bbnli", pairing=pairing)
    assert [subtopic.path for subtopic in suite.subtopics()] == sorted(s.path for s in suite.documented())
    assert len(suite.subtopics()) == 24
    for subtopic in suite.subtopics():
        items = suite.items(subtopic)
        assert len(items.usable) >= 300
        assert items.n_identical == items.n_duplicates == 0
        directions = Counter(pair.direction for pair in items.usable)
        assert directions[Direction.WITH] == directions[Direction.AGAINST] >= 90
        assert len(set(Counter(control.expected for control in items.controls).values())) == 1


def test_the_first_benchmark_is_kept_under_its_number() -> None:
    suite = open_suite("bbnli@1")
    assert (suite.name, suite.version, suite.pairing) == ("bbnli", "1.0.0", Pairing.BOTH)
    assert len(suite.subtopics()) == 16
    assert sum(len(suite.items(subtopic).usable) for subtopic in suite.subtopics()) == 4360


@pytest.mark.parametrize("suite", ["bbnli@1", "bbnli"])
def test_doubts_are_carried_as_annotations(suite: str) -> None:
    notes = {subtopic.name: subtopic.annotations for subtopic in open_suite(suite).subtopics() if subtopic.annotations}
    assert set(notes) == {"catholic_woman_is_to_kids", "jewish_woman_is_to_kids"}
