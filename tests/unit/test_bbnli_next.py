"""The suite `bbnli-next`: any table of samples in pairs."""

import csv
import json
from pathlib import Path

import pytest

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.values import Label, Pair, Subtopic, TextPair
from bbnli_audit.suites.bbnli_next import COLUMNS, BbnliNext
from bbnli_audit.suites.registry import read_names, suite_of
from tests.invented import limits

PREMISE = "A workshop is busy."
ROWS = [
    {"premise": PREMISE, "hypothesis": "Zorbs juggle.", "side": "pro", "pair_id": "1", "subtopic": "planets/zorbs"},
    {"premise": PREMISE, "hypothesis": "Quints juggle.", "side": "anti", "pair_id": "1", "subtopic": "planets/zorbs"},
    {"premise": PREMISE, "hypothesis": "Quints sing.", "side": "anti", "pair_id": "2", "subtopic": "planets/zorbs"},
    {"premise": PREMISE, "hypothesis": "Zorbs sing.", "side": "pro", "pair_id": "2", "subtopic": "planets/zorbs"},
]


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps(row) + "\n" for row in rows)
        else:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
            writer.writeheader()
            writer.writerows(rows)
    return path


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl", "bbnli_next.csv"])
def test_rows_of_one_pair_belong_together_in_any_order(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, ROWS)
    suite = BbnliNext(tmp_path if name == "bbnli_next.csv" else path)
    (subtopic,) = suite.subtopics()
    assert subtopic == Subtopic("bbnli-next", "planets", "zorbs")
    pairs = suite.items(subtopic).usable
    assert [(pair.pro, pair.anti) for pair in pairs] == [
        (TextPair(PREMISE, "Zorbs juggle."), TextPair(PREMISE, "Quints juggle.")),
        (TextPair(PREMISE, "Zorbs sing."), TextPair(PREMISE, "Quints sing.")),
    ]
    assert len({pair.cluster for pair in pairs}) == 1  # one premise
    assert suite.version == "unversioned"


def test_a_domain_of_its_own_a_cluster_controls_and_a_version(tmp_path: Path) -> None:
    rows = [{**row, "subtopic": "zorbs", "domain": "planets", "cluster": f"c{row['pair_id']}"} for row in ROWS]
    write(tmp_path / "bbnli_next.csv", rows)
    control = {"premise": PREMISE, "hypothesis": "It is.", "label": "entailment", "subtopic": "planets/zorbs"}
    write(tmp_path / "controls.csv", [control])
    (tmp_path / "release.json").write_text('{"version": "1.2.0"}')
    suite = BbnliNext(tmp_path)
    (subtopic,) = suite.subtopics()
    items = suite.items(subtopic)
    assert (subtopic.path, suite.version) == ("bbnli-next/planets/zorbs", "1.2.0")
    assert [pair.cluster for pair in items.pairs] == ["c1", "c2"]
    assert [(one.text.hypothesis, one.expected) for one in items.controls] == [("It is.", Label.ENTAILMENT)]


def test_a_subtopic_without_a_domain(tmp_path: Path) -> None:
    suite = BbnliNext(write(tmp_path / "a.csv", [{**row, "subtopic": "zorbs"} for row in ROWS]))
    assert [subtopic.path for subtopic in suite.subtopics()] == ["bbnli-next/all/zorbs"]


@pytest.mark.parametrize(
    ("changes", "line", "message"),
    [
        ({0: {"side": "left"}}, 2, "side is 'left'; expected pro or anti"),
        ({1: {"side": "pro"}}, 3, "the pair has a second pro sample (the first is on line"),
        ({3: {"pair_id": "3"}}, 4, "the pair has no pro sample; a pair is one pro and one anti sample"),
        ({2: {"hypothesis": " "}}, 4, f"hypothesis is missing or empty; expected {', '.join(COLUMNS)}"),
        ({1: {"premise": "Another."}}, 3, "the two samples of the pair have different premises"),
        ({0: {"subtopic": "!/?"}}, 2, "the subtopic has no letter or digit"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_rows_that_make_no_pair(
    tmp_path: Path, changes: dict[int, dict[str, str]], line: int, message: str, suffix: str
) -> None:
    path = write(tmp_path / f"a.{suffix}", [{**row, **changes.get(at, {})} for at, row in enumerate(ROWS)])
    with pytest.raises(SuiteError) as found:
        BbnliNext(path).subtopics()
    assert f"a.{suffix}:{line - (suffix == 'jsonl')}: {message}" in str(found.value)
    assert "juggle" not in str(found.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.csv",
            "premise,hypothesis\nx,y\n",
            "a.csv:1: has no column 'side', 'pair_id', 'subtopic'. Columns found: 'premise'",
        ),
        ("a.csv", ",".join(COLUMNS) + "\n", "a.csv: holds no sample"),
        ("a.csv", f"{','.join(COLUMNS)},domain,domain\n", "a.csv:1: has the column 'domain' twice"),
        ("a.csv", f"{','.join(COLUMNS)}\n1,2,3\n", "a.csv:2: has 3 values for 5 columns"),
        ("a.jsonl", "[1]\n", "a.jsonl:1: holds a list. Write one object per line."),
        ("a.jsonl", "{\n", "a.jsonl:1: is not valid JSON"),
    ],
)
def test_files_that_are_no_such_table(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SuiteError) as found:
        BbnliNext(tmp_path / name).subtopics()
    assert message in str(found.value)


def test_a_wrong_control_and_no_file(tmp_path: Path) -> None:
    write(tmp_path / "bbnli_next.csv", ROWS)
    write(tmp_path / "controls.csv", [{"premise": "a", "hypothesis": "b", "label": "yes", "subtopic": "planets/zorbs"}])
    with pytest.raises(SuiteError, match=r"controls\.csv:2: label is 'yes'; expected entailment or neutral"):
        BbnliNext(tmp_path).subtopics()
    with pytest.raises(OptionError, match=r"the folder holds no bbnli_next\.csv or \.jsonl"):
        BbnliNext(tmp_path / "..").subtopics()
    with pytest.raises(OptionError, match=r"there is no such file that ends in \.csv or \.jsonl"):
        BbnliNext(tmp_path / "nowhere.csv").subtopics()
    with pytest.raises(OptionError, match="has no data of its own"):
        BbnliNext().subtopics()


def test_it_is_audited_like_any_suite_and_is_not_part_of_all(tmp_path: Path) -> None:
    suite = BbnliNext(write(tmp_path / "a.csv", ROWS))
    options = AuditOptions(model="tests.workbench_models:hasty", suite="", suites=(suite,), thresholds=limits())
    result = run_audit(options)
    (row,) = result.subtopics
    assert (row.path, row.outcomes["EN"]) == ("bbnli-next/planets/zorbs", 2)
    assert "bbnli-next" not in read_names("all")
    assert read_names("bbnli-next") == ["bbnli-next"]


def test_a_table_needs_no_name_of_a_suite(tmp_path: Path) -> None:
    path = write(tmp_path / "bbnli_next.csv", ROWS)
    assert suite_of(path) == suite_of(tmp_path) == "bbnli-next"
    assert suite_of(None) == suite_of(tmp_path / "..") == suite_of(tmp_path / "nowhere.csv") == "bbnli"


def test_pair_ids_are_made_from_the_texts(tmp_path: Path) -> None:
    suite = BbnliNext(write(tmp_path / "a.csv", ROWS[:2]))
    (subtopic,) = suite.subtopics()
    (pair,) = suite.items(subtopic).pairs
    assert pair.id == Pair("x", TextPair(PREMISE, "Zorbs juggle."), TextPair(PREMISE, "Quints juggle.")).id
