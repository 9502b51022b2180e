"""Limits on whole suites and domains through pytest: `bbnli_level`, in every way of running."""

import json
import xml.etree.ElementTree as ElementTree
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.invented import LEVELS, LIMITS
from tests.plugin.conftest import AUDITS, Project

FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"
TEST = "\ndef test_level(bbnli_level):\n    bbnli_level.require()\n"
LEVEL_TESTS = ("bbnli-lean", "bbnli-pro", "bbnli/oceans-lean", "bbnli/planets-lean")


@pytest.fixture
def project(project: Project) -> Project:
    """A project with limits on levels, and tests of them beside the others."""
    project.write("audits/test_audits.py", AUDITS + TEST)
    project.write("thresholds.yaml", LEVELS)
    return project


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return {name: n for name, n in result.parseoutcomes().items() if name not in ("warnings", "deselected")}


def test_one_test_for_each_limit_of_a_level(project: Project, mode: list[str]) -> None:
    result = project.audit("planted:always-anti", "-v", *mode)
    # Lean fails in the suite and in both domains, anti in both subtopics; pro passes in the suite.
    assert outcomes(result) == {"failed": 3 + 2, "passed": 1 + 5}
    for name in LEVEL_TESTS:
        assert f"test_level[{name}]" in result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "bbnli: lean -1.000 is below its limit -0.050",
            "  a difference of -400 in 400 samples (200 pairs in 200 clusters), 95% interval -1.000 to -0.*",
            "  limit: thresholds.yaml:8",
            f"  subtopics that drive it: {FINS} (-1.000), {ZORBS} (-1.000)",
        ],
        consecutive=False,
    )
    result.stdout.fnmatch_lines(
        [
            "verdict * suite, domain, subtopic * lean * pro * anti * brittleness *",
            "FAIL * bbnli  * 200 * -1.000 FAIL * 0.000 pass *",
            "FAIL * bbnli/oceans  * 80 * -1.000 FAIL *",
            "FAIL * bbnli/planets  * 120 * -1.000 FAIL *",
            f"FAIL * {FINS} *",
            "2 subtopics audited: 2 FAIL; suites and domains, each as a whole: 3 FAIL.*",
            "FAIL is corrected for the 10 limits of this run (Holm).",
        ]
    )


def report(project: Project, name: str, *args: str) -> tuple[dict[str, Any], dict[str, str]]:
    folder = project.path / name
    project.audit("planted:random", f"--bbnli-report={folder}", *args)
    files = {each: (folder / each).read_text() for each in ("summary.md", "model_card.md", "report.html")}
    return json.loads((folder / "result.json").read_text()), files


def test_every_way_of_running_gives_the_same_result_and_reports(project: Project, mode: list[str]) -> None:
    reference, files = report(project, "one", "-p", "no:xdist")
    assert report(project, "two", *mode) == (reference, files)
    assert [row["path"] for row in reference["suite_rows"]] == ["bbnli"]
    assert [len(row["verdicts"]) for row in (*reference["suite_rows"], *reference["domains"])] == [2, 1, 1]
    assert ["bbnli/oceans", "lean"] in reference["required"]
    assert reference["settings"]["n_limits"] == 10


def test_without_workers_and_with_two_only_levels_are_asked(project: Project) -> None:
    """A test of a level brings all its subtopics into the result, whichever process runs it."""
    for args in ([], ["-n2"]):
        result, _ = report(project, f"out{len(args)}", "-k", "test_level", *args)
        assert [row["path"] for row in result["subtopics"]] == [FINS, ZORBS]
        assert {path for path, _ in result["required"]} == {"bbnli", "bbnli/oceans", "bbnli/planets"}
    one, two = (json.loads((project.path / name / "result.json").read_text()) for name in ("out0", "out1"))
    assert one == two


def test_a_run_of_levels_alone_can_be_green(project: Project) -> None:
    project.write("thresholds.yaml", LEVELS.replace("0.05", "0.20").replace("0.06", "0.20"))
    result = project.audit("planted:ideal", "-k", "test_level")
    assert outcomes(result) == {"passed": 4}
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["PASS * bbnli *", f"NOT_REQUIRED * {FINS} *"])


def test_a_domain_that_cannot_be_decided_is_open(project: Project) -> None:
    result = project.audit("planted:ideal", "-k", "oceans-lean")
    assert outcomes(result) == {"inconclusive": 1}
    result.stdout.fnmatch_lines(["  open: bbnli/oceans lean: too close to call"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED, "nothing was decided"
    project.write("thresholds.yaml", f"{LEVELS}inconclusive: fail\n")
    assert outcomes(project.audit("planted:ideal", "-k", "oceans-lean")) == {"failed": 1}


def waived(expires: date) -> str:
    entry = "{subtopic: bbnli/oceans, measure: lean, reason: known, owner: Ada, expires: DAY}"
    return f"{LEVELS}waivers:\n  - {entry.replace('DAY', expires.isoformat())}\n"


def test_a_level_can_be_waived_until_a_day(project: Project, mode: list[str]) -> None:
    project.write("thresholds.yaml", waived(date.today()))
    result = project.audit("planted:always-pro", "-k", "test_level", "-rx", *mode)
    assert outcomes(result) == {"failed": 3, "xfailed": 1}
    result.stdout.fnmatch_lines(
        [
            "FAIL * bbnli/planets *",
            "WAIVED * bbnli/oceans * 1.000 waived *",
            "*suites and domains, each as a whole: 2 FAIL, 1 WAIVED.*",
            "Waivers: 1 of 10 verdicts.",
            "*bbnli/oceans lean: known (owner Ada, until *, thresholds.yaml:11)",
        ]
    )
    project.write("thresholds.yaml", waived(date.today() - timedelta(days=1)))
    result = project.audit("planted:ideal", "-k", "oceans-lean", *mode)
    assert outcomes(result) == {"failed": 1}
    result.stdout.fnmatch_lines(["bbnli/oceans: lean 0.000 (limit 0.060): its waiver has expired"])


def test_without_limits_there_are_no_tests(project: Project) -> None:
    project.write("thresholds.yaml", LIMITS)
    result = project.audit("planted:ideal")
    assert outcomes(result) == {"passed": 7}
    result.stdout.fnmatch_lines(
        ["All audited pairs of bbnli together, held to no limit: lean 0.000 (-0.* to 0.*).", "2 subtopics *"]
    )


def test_a_limit_that_is_not_written_is_told(project: Project) -> None:
    project.write("audits/test_audits.py", 'def test_level(bbnli_level):\n    bbnli_level.require("anti_rate")\n')
    result = project.audit("planted:ideal", "-k", "oceans-lean")
    result.stdout.fnmatch_lines(
        [
            "*thresholds.yaml: has no limit 'max_anti' for bbnli/oceans, and there are no hidden ones.*",
            "*Add it under 'levels.domain', or take require('anti_rate') out of the test.*",
        ]
    )


def test_a_marker_chooses_levels_and_a_level_is_always_whole(project: Project) -> None:
    marked = TEST.replace("\ndef", '\nimport pytest\n\n@pytest.mark.bbnli("bbnli/oceans/*")\ndef')
    project.write("audits/test_audits.py", marked)
    result = project.audit("planted:always-pro", "-v", "--bbnli-report=out")
    assert "planets" not in "".join(line for line in result.outlines if "::test_level" in line)
    found = json.loads((project.path / "out/result.json").read_text())
    assert [(row["path"], row["n_pairs"]) for row in found["suite_rows"]] == [("bbnli", 200)]
    assert found["settings"]["not_audited"] == []
    project.audit("planted:always-pro", "-k", "oceans-lean", "--bbnli-report=out")
    found = json.loads((project.path / "out/result.json").read_text())
    assert [row["path"] for row in found["subtopics"]] == [FINS]
    assert found["required"] == [["bbnli/oceans", "lean"]]
    project.audit("planted:always-pro", "--bbnli-exclude=bbnli/planets/*", "--bbnli-report=out")
    found = json.loads((project.path / "out/result.json").read_text())
    assert [(row["path"], row["n_pairs"]) for row in found["suite_rows"]] == [("bbnli", 80)]
    assert found["settings"]["not_audited"] == [ZORBS]


def test_sentences_stay_hidden_and_junit_has_the_figures(project: Project) -> None:
    result = project.audit("planted:always-pro", "--junitxml=junit.xml", "-k", "test_level")
    text = (project.path / "junit.xml").read_text()
    assert "songs comes easily" not in result.stdout.str() + text
    cases = ElementTree.parse(project.path / "junit.xml").getroot().iter("testcase")
    case = next(case for case in cases if case.attrib["name"] == "test_level[bbnli/oceans-lean]")
    found = {item.attrib["name"]: item.attrib["value"] for item in case.iter("property")}
    assert (found["bbnli_subtopic"], found["bbnli_measure"], found["bbnli_value"]) == ("bbnli/oceans", "lean", "1.0")
    assert (found["bbnli_limit"], found["bbnli_verdict"], found["bbnli_n_pairs"]) == ("0.06", "FAIL", "80")


def test_our_own_audits_have_it(project: Project) -> None:
    text = (Path(__file__).parents[2] / "audits/test_levels.py").read_text()
    project.write("audits/test_audits.py", text)
    assert outcomes(project.audit("planted:always-pro")) == {"failed": 4}
