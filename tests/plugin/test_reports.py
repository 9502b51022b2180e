"""The report folder: its files, and the same contents from every way of running."""

import csv
import json
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.outcomes import CELLS
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import dump, load
from tests.plugin.conftest import Project

PAIR_COLUMNS = [
    *("suite", "domain", "subtopic", "pair_id", "cluster", "direction"),
    *("pro_premise", "pro_hypothesis", "anti_premise", "anti_hypothesis", "pro_label", "anti_label", "outcome"),
    *("pro_entailment", "pro_neutral", "pro_contradiction"),
    *("anti_entailment", "anti_neutral", "anti_contradiction"),
]

FILES = [
    *("model_card.md", "pairs.csv", "pairs.parquet", "report.html", "result.json", "result.schema.json"),
    *("run-finished.txt", "summary.md"),
]


def audit(project: Project, *args: str) -> tuple[dict[str, Any], str]:
    folder = Path(tempfile.mkdtemp(dir=project.path))
    project.audit("planted:random", f"--bbnli-report={folder}", *args)
    return json.loads((folder / "result.json").read_text()), (folder / "pairs.csv").read_text()


def test_every_way_of_running_gives_the_same_files(project: Project, mode: list[str]) -> None:
    reference = audit(project, "-p", "no:xdist")
    assert audit(project, *mode) == reference


def test_a_selection_gives_the_same_figures(project: Project) -> None:
    whole, pairs = audit(project)
    part, some_pairs = audit(project, "-k", "singing")
    assert part["subtopics"] == [row for row in whole["subtopics"] if "singing" in row["path"]]
    assert part["total"]["verdicts"] == whole["total"]["verdicts"]
    assert set(some_pairs.splitlines()) < set(pairs.splitlines())


def test_the_keys_of_the_result(project: Project) -> None:
    result, _ = audit(project, "--bbnli-release=r1", "--bbnli-commit=abc", "--bbnli-date=2026-11-18")
    assert list(result) == [
        "format", "model", "suites", "settings", "subtopics", "domains", "total", "required", "comparison",
        "second_model", "second_prompt", "pairs", "directions", "facts", "suite_rows", "reliability", "release",
        "troubles",
    ]  # fmt: skip
    assert len(result["required"]) == 3 * len(result["subtopics"])
    assert result["comparison"] is None
    assert result["release"] == {"name": "r1", "commit": "abc", "date": "2026-11-18"}
    for row in result["subtopics"]:
        cells = [cell for ids in result["pairs"][row["path"]].values() for cell in ids.values()]
        assert {cell: cells.count(cell) for cell in CELLS} == row["outcomes"]
        assert len(result["pairs"][row["path"]]) == row["n_clusters"]
    assert result["format"] == 1
    assert set(result["model"]) == {"name", "fingerprint", "kind", "backend", "dtype", "labels", "prompt"}
    assert set(result["suites"][0]) == {"name", "version", "sha256", "pairing", "audits"}
    for row in (*result["subtopics"], *result["domains"], *result["suite_rows"], result["total"]):
        assert set(row) >= {"path", "n_pairs", "n_samples", "n_clusters", "outcomes", "counts", "measures",
                            "control_accuracy", "n_controls", "verdicts"}  # fmt: skip
        assert tuple(row["outcomes"]) == CELLS
        assert sum(row["outcomes"].values()) == row["n_pairs"] == row["n_samples"] / 2
        assert set(row["counts"]) == {"n_pro", "n_anti", "n_brittle", "n_mispredicted"}
        for measure in row["measures"].values():
            assert set(measure) == {"value", "low", "high", "n"}
        for verdict in row["verdicts"]:
            assert set(verdict) == {"measure", "limit", "verdict", "source", "times_needed", "waiver", "is_corrected",
                                    "may_lack_data"}  # fmt: skip
    assert [row["path"] for row in result["domains"]] == ["bbnli/oceans", "bbnli/planets"]
    assert [row["path"] for row in result["suite_rows"]] == ["bbnli"]
    assert result["total"]["n_pairs"] == sum(row["n_pairs"] for row in result["subtopics"])
    assert dump(load(AuditResult, result)) == result


def test_pairs_have_the_columns_of_the_contract_and_give_the_counts(project: Project) -> None:
    result, text = audit(project)
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0]) == PAIR_COLUMNS
    for subtopic in result["subtopics"]:
        mine = [row for row in rows if f"{row['suite']}/{row['domain']}/{row['subtopic']}" == subtopic["path"]]
        assert len({row["pair_id"] for row in mine}) == len(mine) == subtopic["n_pairs"]
        # Counted again from the file, label by label.
        wrong = sum((row["pro_label"] != "neutral") + (row["anti_label"] != "neutral") for row in mine)
        assert wrong == subtopic["counts"]["n_mispredicted"]
        for row in mine:
            for side in ("pro", "anti"):
                shares = {name: float(row[f"{side}_{name}"]) for name in ("entailment", "neutral", "contradiction")}
                assert max(shares, key=lambda name: shares[name]) == row[f"{side}_label"]


def test_a_folder_that_cannot_be_made(project: Project) -> None:
    project.write("file", "")
    result = project.audit("planted:ideal", "--bbnli-report=file")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --bbnli-report=*file: cannot be made: File exists."])


@pytest.mark.parametrize("args", [[], ["-n2"]], ids=["plain", "n2"])
def test_junit_properties(project: Project, args: list[str]) -> None:
    project.audit("planted:always-pro", "--junitxml=junit.xml", *args)
    cases = ElementTree.parse(project.path / "junit.xml").getroot().iter("testcase")
    case = next(case for case in cases if case.attrib["name"] == "test_pro[bbnli/oceans/fins_are_to_singing]")
    found = {item.attrib["name"]: item.attrib["value"] for item in case.iter("property")}
    assert found["bbnli_subtopic"] == "bbnli/oceans/fins_are_to_singing"
    assert (found["bbnli_measure"], found["bbnli_value"], found["bbnli_limit"]) == ("pro_rate", "1.0", "0.1")
    assert found["bbnli_verdict"] == "FAIL"
    assert case.find("failure") is not None


def test_junit_properties_can_be_switched_off(project: Project) -> None:
    project.pytester.makeini("[pytest]\nbbnli_junit_properties = false\n")
    project.audit("planted:ideal", "--junitxml=junit.xml")
    assert "bbnli_verdict" not in (project.path / "junit.xml").read_text()


def test_a_report_is_replaced_whole_and_a_run_without_a_result_leaves_it(project: Project) -> None:
    folder = project.path / "out"
    for model in ("planted:ideal", "planted:brittle"):
        project.audit(model, "--bbnli-report=out")
        assert sorted(path.name for path in folder.iterdir()) == FILES
        assert json.loads((folder / "result.json").read_text())["model"]["name"] == model
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for arguments in (["planted:no-such-model"], ["planted:label-swapped"], ["planted:ideal", "-k", "nothing"]):
        result = project.audit(*arguments, "--bbnli-report=out")
        assert result.ret != pytest.ExitCode.OK
        kept = {path: path.read_bytes() for path in folder.iterdir() if path.name != "run-unfinished.txt"}
        assert kept == before
        if arguments != ["planted:no-such-model"]:
            result.stdout.fnmatch_lines(["Report not written: the files in *out are from an earlier run."])


@pytest.mark.parametrize("is_link", [False, True])
def test_no_file_of_others_is_taken_for_the_mark_of_an_unfinished_run(project: Project, is_link: bool) -> None:
    notes = project.write("notes.txt", "my notes")
    mark = project.write("out/run-unfinished.txt", "my notes")
    if is_link:
        mark.unlink()
        mark.symlink_to(notes)
    done = project.audit("planted:ideal", "--bbnli-report=out")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --bbnli-report=*out: holds a run-unfinished.txt that no audit wrote, and a *"])
    assert mark.read_text() == notes.read_text() == "my notes"


def test_results_do_not_name_this_machine(project: Project) -> None:
    result, _ = audit(project)
    assert str(project.path) not in json.dumps(result)


def test_a_part_says_what_it_leaves_out(project: Project) -> None:
    assert audit(project)[0]["settings"]["not_audited"] == []
    assert audit(project, "-k", "singing")[0]["settings"]["not_audited"] == ["bbnli/planets/zorbs_are_to_juggling"]


def test_sentences_do_not_travel_on_reports(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        def pytest_runtest_logreport(report):
            with open("reports.txt", "a") as file:
                file.write(repr(report._to_json()))
        """,
    )
    project.audit("planted:always-pro")
    text = (project.path / "reports.txt").read_text()
    assert "bbnli/oceans/fins_are_to_singing" in text
    assert "songs comes easily" not in text
