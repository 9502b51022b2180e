"""Another project adds a suite, a measure, a kind of model and a report: the files of docs/extending.md as they are."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bbnli_audit.frontends.cli.main import main
from tests.plugin.conftest import Project

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
FILES = dict(
    re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
)
OPTIONS = ("test_bias.py", "--model=overlap:words", "--bbnli-report=out", "-p", "no:cacheprovider")


@pytest.fixture
def foreign(project: Project) -> Project:
    for name, text in FILES.items():
        project.write(name, text)
    return project


def run(project: Project, *args: str) -> subprocess.CompletedProcess[str]:
    return project.run_warm(*OPTIONS, *args)


def test_the_page_holds_one_file_for_each_of_the_four_and_the_line_that_adds_them() -> None:
    assert set(FILES) == {
        *("conftest.py", "planets.py", "entailment_gap.py", "overlap.py", "verdicts.py"),
        *("thresholds.yaml", "test_bias.py"),
    }
    assert not re.search(
        r"\b_\w+|bbnli_audit\.", "".join(FILES.values()).replace("_bbnli_", "bbnli")
    )  # nothing private


@pytest.mark.parametrize("args", [[], ["-n2"]], ids=["plain", "n2"])
def test_all_four_take_part_in_an_audit(foreign: Project, args: list[str]) -> None:
    done = run(foreign, *args, "-v")
    assert "test_entailment_gap[planets/moons/zorbs_are_to_juggling]" in done.stdout, done.stdout + done.stderr
    assert "test_entailment_gap[bbnli/gender/man_is_to_programmer]" in done.stdout
    result = json.loads((foreign.path / "out" / "result.json").read_text())
    assert [suite["name"] for suite in result["suites"]] == ["bbnli", "planets"]
    assert result["model"]["kind"] == "overlap"
    row = next(row for row in result["subtopics"] if row["path"].startswith("planets/"))
    assert row["measures"]["entailment_gap"]["value"] == 0.0
    (judged,) = [each for each in row["verdicts"] if each["measure"] == "entailment_gap"]
    assert (judged["limit"], judged["source"], judged["verdict"]) == (0.10, "thresholds.yaml:3", "PASS")
    written = (foreign.path / "out" / "verdicts.txt").read_text()
    assert "PASS planets/moons/zorbs_are_to_juggling entailment_gap\n" in written
    with (foreign.path / "out" / "pairs.csv").open(encoding="utf-8") as file:
        assert written.endswith(f"{len(list(csv.DictReader(file)))} pairs\n")
    assert "entailment gap" in (foreign.path / "out" / "report.html").read_text()


def test_its_limit_has_messages_and_a_direction(foreign: Project) -> None:
    foreign.write("thresholds.yaml", FILES["thresholds.yaml"].replace("max_entailment_gap", "max_entailmnt_gap"))
    done = run(foreign)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "thresholds.yaml:3: unknown key 'max_entailmnt_gap'.\nDid you mean 'max_entailment_gap'?" in done.stderr


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("entailment_gap.py", '"entailment_gap"', '"pro_rate"', "The measure 'pro_rate' has the name or the limit of"),
        ("entailment_gap.py", '"max_entailment_gap"', '"gap"', "it must begin with max_ or min_"),
        ("entailment_gap.py", "    values=gaps,\n", "", "needs either `values` or `estimate`"),
        ("entailment_gap.py", '("labels",)', '("lables",)', "has 'lables' as `readings`. Did you mean 'labels'?"),
        ("entailment_gap.py", '("labels",)', '"labels"', "has readings 'labels'; expected a tuple of names"),
        ("entailment_gap.py", '("labels",)', '("labels",), source="pair"', "as `source`. Did you mean 'pairs'?"),
        ("entailment_gap.py", '("labels",)', '("labels",), unit="sample"', "as `unit`. Did you mean 'samples'?"),
        (
            "planets.py",
            "    version",
            '    families = ("planet",)\n    version',
            "there is no family of measures 'planet'",
        ),
        ("verdicts.py", "verdicts.txt", "result.json", "result.json"),
        ("verdicts.py", "verdicts.txt", "../verdicts.txt", "../verdicts.txt"),
        ("conftest.py", "Extensions(", "dict(", "expected bbnli_audit.Extensions"),
        ("conftest.py", "measures=[ENTAILMENT_GAP]", "measures=['gap']", "where a bbnli_audit.Measure is expected"),
        ("conftest.py", "models=[OVERLAP]", "models=['overlap']", "where a bbnli_audit.ModelKind is expected"),
        ("conftest.py", "reports=[VERDICTS]", "reports=['verdicts']", "where a bbnli_audit.Report is expected"),
    ],
)
def test_what_does_not_fit_gets_a_message(foreign: Project, name: str, old: str, new: str, message: str) -> None:
    foreign.write(name, FILES[name].replace(old, new))
    done = run(foreign)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert message in done.stderr


def test_a_report_that_breaks_costs_no_other_file(foreign: Project) -> None:
    foreign.write(
        "verdicts.py",
        FILES["verdicts.py"].replace("def render(result, pairs):\n", "def render(result, pairs):\n    1 / 0\n"),
    )
    done = run(foreign)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --bbnli-report: " in done.stdout
    assert "verdicts.txt" in done.stdout
    assert {"report.html", "result.json", "pairs.csv"} <= {path.name for path in (foreign.path / "out").iterdir()}


def test_its_suite_is_named_as_ours_are(foreign: Project, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(foreign, "--bbnli-suite=planets")
    result = json.loads((foreign.path / "out" / "result.json").read_text())
    assert [suite["name"] for suite in result["suites"]] == ["planets"], done.stdout + done.stderr
    assert main(["suites", "list"]) == 0
    assert "winoqueer:category, planets. To list one:" in capsys.readouterr().out
    assert main(["suites", "list", "planets"]) == 0
    assert capsys.readouterr().out.split()[-5:-1] == ["planets/moons/zorbs_are_to_juggling", "60", "60", "60"]
    assert main(["suites", "check", "planets"]) == 0
    assert capsys.readouterr().out == "1 subtopic, no finding.\n"
    assert main(["suites", "texts", "planets"]) == 0
    assert '"Workshop 7 on the red moon is open.","Quints juggle well."' in capsys.readouterr().out


def test_its_suite_is_found_where_warnings_are_errors(foreign: Project) -> None:
    """The command imports the plugin before it starts pytest, and pytest warns of that."""
    foreign.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "bbnli_audit.frontends.cli.main", "suites", "list", "planets"]
    done = subprocess.run(command, cwd=foreign.path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "planets/moons/zorbs_are_to_juggling" in done.stdout


def test_an_installed_package_is_found_by_its_entry_point(foreign: Project) -> None:
    (foreign.path / "conftest.py").unlink()
    foreign.write(
        "planets_audit.py",
        FILES["conftest.py"].partition("def ")[0] + "EXTENSIONS = Extensions(suites=[Planets()], models=[OVERLAP])\n",
    )
    foreign.write("planets_audit-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: planets-audit\nVersion: 1\n")
    foreign.write("planets_audit-1.dist-info/entry_points.txt", "[bbnli_audit]\nplanets = planets_audit:EXTENSIONS\n")
    code = """
    from bbnli_audit import AuditOptions, run_audit
    result = run_audit(AuditOptions(model="overlap:words", thresholds="limits.yaml"))
    print(result.model.kind, *(suite.name for suite in result.suites))
    """
    foreign.write("limits.yaml", "version: 1\ncompetence: {min_control_accuracy: 0.3}\ndefaults: {max_pro: 0.1}\n")
    foreign.write("main.py", code)
    done = subprocess.run([sys.executable, "main.py"], cwd=foreign.path, capture_output=True, text=True, check=False)
    assert done.stdout == "overlap bbnli planets\n", done.stderr
