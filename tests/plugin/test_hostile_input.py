"""Names, models and folders that would break a run, leak sentences, or act on the terminal."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.core.results.file import dump
from bbnli_audit.models.inference.store import PredictionStore
from tests.invented import LIMITS, limits
from tests.plugin.conftest import Project

ATTACK = "x\n::error::pwned\r\n##[error]pwned\x1b[31m\u202e"
OURS = re.compile(r"::(error|warning|notice) [^:]*title=Bias audit")


@pytest.fixture
def sentence(project: Project) -> str:
    """A premise, as a model reads it."""
    path = next((project.path / "data").glob("*/*.json"))
    text = json.loads(path.read_text(encoding="utf-8"))["premise"][0]
    return str(text.partition("{{")[0].strip())


def test_names_do_not_act_on_the_terminal_or_the_ci_service(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = AuditOptions(model="planted:ideal", thresholds=limits(), data=project.path / "data")
    result = run_audit(options)
    hostile = replace(result, model=replace(result.model, name=ATTACK))
    baseline = project.write("baseline.json", json.dumps(dump(hostile)))
    project.write("thresholds.yaml", LIMITS + "regression: {max_increase: 0.03}\n")
    project.write("data/suite.json", json.dumps({"version": ATTACK}))
    for path in (project.path / "data").glob("*/*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "annotations": [ATTACK]}))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    junit = tmp_path / "junit.xml"
    done = project.audit("planted:always-pro", f"--bbnli-baseline={baseline}", f"--junitxml={junit}", "-rA")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert "pwned" in done.stdout.str(), "the name is shown"
    for line in done.outlines:
        assert "\x1b" not in line
        assert "##[" not in line
        assert not line.lstrip().startswith("::") or OURS.match(line), line
    assert list(ET.parse(junit).getroot().iter("testcase"))


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\udcffb"])
def test_an_option_with_characters_that_cannot_be_shown_is_refused(project: Project, name: str) -> None:
    done = project.audit("planted:ideal", f"--bbnli-report={name}")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "--bbnli-report has a line break, another control character" in done.stderr.str()
    assert name not in done.stderr.str()


def test_a_cache_folder_that_cannot_be_made_costs_the_store_and_nothing_else(project: Project) -> None:
    project.write(".pytest_cache", "a file where pytest wants a folder")
    done = project.audit("planted:ideal", "-W", "ignore")
    done.assert_outcomes(passed=7)
    # A planted model keeps nothing between runs. With others the run ends with the words of the store.
    store = PredictionStore(project.path / ".pytest_cache" / "d" / "bbnli" / "predictions.sqlite")
    assert store.get("model", [b"text"]) == {}
    assert store.trouble is not None
    assert store.trouble.endswith("the run goes on without it, and new predictions are not kept")


@pytest.mark.parametrize("is_revealed", [False, True])
def test_a_failing_assert_shows_sentences_only_when_revealed(
    project: Project, sentence: str, *, is_revealed: bool
) -> None:
    project.write("audits/test_audits.py", "def test_x(bbnli):\n    assert bbnli.pairs.to_dict('list') == {}\n")
    reveal = ["--bbnli-reveal"] if is_revealed else []
    done = project.audit("planted:ideal", "-vv", "-l", *reveal)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert (sentence in done.stdout.str()) == is_revealed


def test_ctrl_c_shows_no_sentence(project: Project, sentence: str) -> None:
    project.write(
        "stopping.py",
        """
        def predict(texts):
            premises = [text.premise for text in texts]
            raise KeyboardInterrupt
        """,
    )
    args = ("audits", "--model=stopping:predict", "--bbnli-data=data", "-l", "--full-trace", "-p", "no:cacheprovider")
    done = project.pytester.runpytest_inprocess(*args, no_reraise_ctrlc=True)
    assert done.ret == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in done.stdout.str()
    assert sentence not in done.stdout.str()


def test_a_model_that_leaves_is_a_test_error(project: Project) -> None:
    project.write("leaving.py", "import sys\n\ndef predict(texts):\n    sys.exit(0)\n")
    done = project.audit("leaving:predict")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["*leaving:predict broke on the controls: SystemExit at leaving.py:4, in predict*"])
    assert "Traceback" not in done.stdout.str()


def test_pytest_main_returns_also_when_a_value_stands_apart(project: Project) -> None:
    """It used to end the program that called it."""
    found = project.pytester.inline_run("audits", "--bbnli-data", "data", "--model=planted:ideal")
    assert found.ret == pytest.ExitCode.OK
    found.assertoutcome(passed=7)


def test_a_variable_does_not_choose_the_server_of_a_strict_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    done = project.audit("openai:zorb", "--bbnli-strict", "--bbnli-prompt=entailed")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    told = (
        "ERROR: --bbnli-strict asks for *, but the environment variable OPENAI_BASE_URL says where the model is served*"
    )
    done.stderr.fnmatch_lines([told])
