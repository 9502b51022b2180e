"""The items of a suite, judged by people: what they are, that readers are blind, and what becomes of the judgements."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from bbnli_audit.core.errors import OptionError, WorkbenchError
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.registry import open_suite
from bbnli_audit.workbench.review.exchange import COLUMNS
from bbnli_audit.workbench.review.items import read_items, suite_items, write_suite_items
from bbnli_audit.workbench.review.states import ReviewVerdict, Stance, State, as_verdict
from tests.invented import write_quads


@pytest.fixture
def suite(tmp_path: Path) -> Bbnli:
    write_quads(tmp_path / "data")
    return Bbnli(tmp_path / "data")


def test_each_hypothesis_with_each_premise_it_meets_and_each_control(suite: Bbnli) -> None:
    items = suite_items(suite)
    assert Counter(item.expected for item in items) == {"neither": 3 + 2, "entailed": 2, "contradicted": 2}
    assert [item.template for item in items[:3]] == ["a1/h1", "a3/h1", "a2/h2"]
    assert len({item.id for item in items}) == len(items) == 9
    assert {(item.group1, item.group2) for item in items} == {("Quints", "Zorbs")}  # by the alphabet


def test_the_shipped_benchmark_can_be_judged_in_parts() -> None:
    suite = open_suite("bbnli")
    items = suite_items(suite, "gender/man_is_to_s*,class/*", sample=20)
    assert Counter(item.path for item in items) == {"class/poor_is_to_lazy": 20, "gender/man_is_to_surgeon": 20}
    assert {item.id for item in items} < {item.id for item in suite_items(suite, "gender/*,class/*", sample=40)}
    with pytest.raises(OptionError, match=r"--subtopics=clas/\*: names no subtopic of the suite"):
        suite_items(suite, "clas/*")
    with pytest.raises(OptionError, match=r"--subtopics=: names no subtopic\. Give paths"):
        suite_items(suite, "")


def test_readers_see_the_two_sentences_and_no_more(suite: Bbnli, tmp_path: Path) -> None:
    write_suite_items(tmp_path / "work" / "items.csv", suite_items(suite))
    items = read_items(tmp_path / "work" / "items.csv")
    assert list(items) == suite_items(suite)
    for item in items:
        shown = item.shown()
        assert "expected" not in shown
        told = {name for name, value in shown.items() if value}
        assert told == {"id", "premise", "hypothesis", "group1", "group2"}


def test_the_folder_of_a_workbench_is_left_alone(suite: Bbnli, tmp_path: Path) -> None:
    (tmp_path / "filter.manifest.json").write_text("{}")
    with pytest.raises(WorkbenchError, match=r"is the folder of a workbench. Judge a suite in a folder of its own"):
        write_suite_items(tmp_path / "items.csv", suite_items(suite))


def test_a_judgement_is_finished_with_a_group_unless_it_is_malformed() -> None:
    assert not State(ReviewVerdict.NEITHER).is_finished
    assert State(ReviewVerdict.NEITHER, Stance.NONE).is_finished
    assert State(ReviewVerdict.MALFORMED).is_finished
    assert as_verdict("entailed", "both") == (ReviewVerdict.ENTAILED, Stance.BOTH)
    for verdict, stance in (("entailed", "pro"), ("valid", "first"), ("malformed", "none"), ("", "both")):
        with pytest.raises(ValueError, match="this verdict has no such stance"):
            as_verdict(verdict, stance)


def judge(work: Path, wrong: dict[str, list[int]]) -> Path:
    """Let ana and ben judge as expected, except for the items at these places."""
    path = work / "given.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for name, places in wrong.items():
            for at, item in enumerate(read_items(work / "items.csv")):
                said = ("malformed", "") if at in places else (item.expected, "second")
                writer.writerow((item.id, name, *said, "", "2026-01-01T00:00:00.000000Z"))
    return path


def test_agreement_and_what_to_rewrite(suite: Bbnli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = tmp_path / "work"
    write_suite_items(work / "items.csv", suite_items(suite))
    given = judge(work, {"ana": [0], "ben": [0, 1]})
    assert main(["extend", "annotations", "import", str(work), str(given)]) == 0
    capsys.readouterr()
    assert main(["extend", "agree", str(work)]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[1].split()[-3:] == ["kappa", "95%", "interval"]
    (line,) = [each.split() for each in out.splitlines() if " verdict  " in each]
    assert line[:7] == ["ana", "/", "ben", "all", "verdict", "9", "88.9%"]
    low, high = float(line[8]), float(line[10])
    assert low < float(line[7]) < high <= 1
    assert "planets/zorbs_are_to_juggling: 9 judged by two or more, 7 as the suite expects, 2 not\n" in out
    with (work / "judged.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["is_kept"] for row in rows] == ["no", "no", *["yes"] * 7]
    assert rows[1]["verdicts"] == "neither;malformed"
    assert rows[2]["stereotype_of"] == "Zorbs;Zorbs"
    assert not any(name in rows[0] for name in ("premise", "hypothesis"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--sample=5"], "--sample needs --suite NAME."),
        (["--suite=bbnli", "--sample=0"], "--sample=0: expected a number from 1."),
        (["--suite=bbnli@3"], "There is no suite 'bbnli@3'. Did you mean 'bbnli@2'?"),
    ],
)
def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    assert main(["extend", "review", str(tmp_path), "--annotator=ana", *args]) == 4
    assert message in capsys.readouterr().err


def test_items_of_a_suite_that_were_edited_are_told(suite: Bbnli, tmp_path: Path) -> None:
    path = tmp_path / "work" / "items.csv"
    write_suite_items(path, suite_items(suite))
    path.write_text(path.read_text().replace("juggle well", "juggle badly", 1))
    with pytest.raises(WorkbenchError, match=r"items.csv:2: the item is called .* the row was edited"):
        read_items(path)
