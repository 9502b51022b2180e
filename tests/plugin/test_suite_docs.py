"""The examples of docs/suites.md, run as they are: a file in the published format, and a suite of one's own."""

import json
import re
from pathlib import Path

import pytest

from bbnli_audit.frontends.cli.main import main
from bbnli_audit.suites.bbnli import Bbnli
from tests.plugin.conftest import Project

PAGE = (Path(__file__).parents[2] / "docs" / "suites.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"`([\w./]+)`:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
PUBLISHED = "data/planets/zorbs_are_to_juggling.json"
GARDENS = "gardens/ponds/snails_are_to_racing"


@pytest.fixture
def gardens(project: Project) -> Project:
    for name, text in FILES.items():
        project.write(name, text)
    return project


def test_the_page_has_these_files() -> None:
    assert set(FILES) == {PUBLISHED, "conftest.py", "thresholds.yaml", "test_gardens.py"}


def test_the_file_in_the_published_format_is_a_suite(tmp_path: Path) -> None:
    path = tmp_path / PUBLISHED.removeprefix("data/")
    path.parent.mkdir(parents=True)
    path.write_text(FILES[PUBLISHED], encoding="utf-8")
    suite = Bbnli(tmp_path)
    (subtopic,) = suite.subtopics()
    items = suite.items(subtopic)
    assert (subtopic.path, len(items.pairs), len(items.controls)) == ("bbnli/planets/zorbs_are_to_juggling", 7, 18)
    assert not [text for pair in items.pairs for text in (*pair.pro, *pair.anti) if "{{" in text]


def test_the_suite_is_audited_by_its_name_and_brings_its_audits(
    gardens: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    done = gardens.run("test_gardens.py", "--model=planted:ideal", "--bbnli-suite=gardens", "--bbnli-report=out")
    done.assert_outcomes(passed=2)
    assert done.ret == pytest.ExitCode.OK
    result = json.loads((gardens.path / "out" / "result.json").read_text())
    assert [(suite["name"], suite["audits"]) for suite in result["suites"]] == [("gardens", ["misprediction_rate"])]
    assert (GARDENS, "misprediction_rate") in [tuple(each) for each in result["required"]]
    capsys.readouterr()
    assert main(["suites", "check", "gardens"]) == 0
    assert capsys.readouterr().out == "1 subtopic, no finding.\n"
    assert main(["init", "new", "--suite=gardens", "--ci=none"]) == 0
    written = (gardens.path / "new" / "thresholds.yaml").read_text()
    assert "suites:\n  gardens:\n    defaults:\n      max_misprediction: 0.20  # " in written


def test_commands_that_change_limits_know_its_aliases(gardens: Project, capsys: pytest.CaptureFixture[str]) -> None:
    other = "the_racing_one"
    conftest = FILES["conftest.py"].replace('"snails_are_to_racing")', f'"snails_are_to_racing", ("{other}",))')
    gardens.write("conftest.py", conftest)
    shared = "defaults: {max_misprediction: 0.20}"
    own = f"{shared}, subtopics: {{ponds/{other}: {{max_misprediction: 0.5, reason: invented}}}}"
    gardens.write("thresholds.yaml", FILES["thresholds.yaml"].replace(shared, own))
    done = gardens.run("test_gardens.py", "--model=planted:ideal", "--bbnli-suite=gardens", "--bbnli-report=out")
    assert done.ret == pytest.ExitCode.OK
    capsys.readouterr()
    assert main(["calibrate", "out", "--per=subtopic"]) == 0
    assert f"{{ponds/{other}: {{max_misprediction: 0.08, " in capsys.readouterr().out


def test_without_its_audits_it_is_not_green_and_takes_no_data(gardens: Project) -> None:
    gardens.write("test_gardens.py", FILES["test_gardens.py"].partition("def test_suite")[0])
    done = gardens.run("test_gardens.py", "--model=planted:ideal", "--bbnli-suite=gardens")
    done.stdout.fnmatch_lines(["ERROR: the suite gardens was audited, but no test held its own measures to a limit: *"])
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done = gardens.run("test_gardens.py", "--model=planted:ideal", "--bbnli-suite=gardens", "--bbnli-data=gardens=x")
    done.stderr.fnmatch_lines(["ERROR: --bbnli-data=gardens=*: the suite 'gardens' takes no data. Leave the data out."])
    done = gardens.run("test_gardens.py", "--model=planted:ideal", "--bbnli-suite=gardens", "--bbnli-data=gardens=+x")
    done.stderr.fnmatch_lines(["ERROR: --bbnli-data=gardens=*: * adds no data to its own. Leave the data out."])
