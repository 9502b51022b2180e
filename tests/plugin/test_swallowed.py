"""What a test asks for counts in every process, and for every handle; other ways are in test_ways_to_green.py."""

import pytest

from tests.invented import LEVELS, LIMITS, write_templates
from tests.plugin.conftest import Project

TESTS = """
import pytest

@pytest.fixture
def gate(bbnli):
    with pytest.raises(AssertionError):
        bbnli.require("pro_rate")
    pytest.skip("later")

def test_pro(gate):
    pass

@pytest.mark.xfail
def test_both(bbnli, bbnli_level):
    bbnli_level.require()
"""


@pytest.mark.parametrize("parallel", [[], ["-n2"]], ids=["plain", "n2"])
def test_a_required_failure_is_never_green_and_never_saved(project: Project, parallel: list[str]) -> None:
    project.write("thresholds.yaml", LIMITS + "levels: {suite: {max_lean: 0.05}}\n")
    project.write("audits/test_audits.py", TESTS)
    done = project.audit("planted:always-pro", "--bbnli-save-baseline=base.json", *parallel)
    done.assert_outcomes(skipped=2, xfailed=2)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    told = "ERROR: required limits are not met, although pytest would have passed: bbnli lean is FAIL, and 2 more.*"
    done.stdout.fnmatch_lines(
        ["Baseline not saved: base.json is not *, because limits are crossed without a waiver (bbnli lean, *", told]
    )
    assert not (project.path / "base.json").exists()


def test_a_strict_run_of_two_workers_knows_what_was_deselected(project: Project) -> None:
    done = project.audit("planted:ideal", "--bbnli-strict", "-n2", "-k", "not test_anti")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["ERROR: --bbnli-strict asks for the whole audit, but 2 audits were deselected *"])


def test_a_limit_without_data_that_is_allowed_stays_green(project: Project) -> None:
    allowed = "suites: {bbnli: {subtopics: {planets/empty: {allow_no_data: true, reason: not written yet}}}}\n"
    project.write("thresholds.yaml", LIMITS + allowed)
    write_templates(project.path / "data", "planets/empty.json", name="empty", bias_hypothesis_stereotypical=[])
    assert project.audit("planted:ideal").ret == pytest.ExitCode.OK


STOPS = """
import pytest

def test_last():
    pytest.exit("enough", returncode=0)
"""


@pytest.mark.parametrize("parallel", [[], ["-n2"]], ids=["plain", "n2"])
def test_a_run_that_ends_before_its_audits_is_no_pass(project: Project, parallel: list[str]) -> None:
    """Without that test the run passes; with it some audits have no report, and nothing has failed."""
    assert project.audit("planted:ideal", *parallel).ret == pytest.ExitCode.OK
    project.write("audits/test_before.py", "def test_pro(bbnli):\n    bbnli.require('pro_rate')\n" + STOPS)
    project.write("audits/test_zz_after.py", "def test_anti(bbnli):\n    bbnli.require('anti_rate')\n")
    done = project.run_in_a_process("audits", "--model=planted:ideal", "--bbnli-data=data", *parallel)
    assert done.ret != pytest.ExitCode.OK


@pytest.mark.parametrize("parallel", [[], ["-n2"]], ids=["plain", "n2"])
def test_the_decision_knows_which_audits_did_not_end(project: Project, parallel: list[str]) -> None:
    """The first test measures a subtopic, and nothing is crossed: that alone would read Release."""
    project.write("audits/test_audits.py", "def test_pro(bbnli):\n    bbnli.require('pro_rate')\n    assert 0\n")
    told = "Cannot tell: 2 audits failed: audits/test_audits.py::test_pro[[]bbnli/*]"
    project.audit("planted:ideal", *parallel).stdout.fnmatch_lines([f"{told}, audits/test_audits.py::test_pro[[]*"])
    project.write("conftest.py", "def pytest_runtest_teardown(item):\n    item.session.shouldstop = 'enough'\n")
    project.write(
        "audits/test_audits.py",
        "def test_all(bbnli_level):\n    bbnli_level.require()\n\ndef test_pro(bbnli):\n    pass\n",
    )
    project.write("thresholds.yaml", LEVELS)
    project.audit("planted:ideal", *parallel).stdout.fnmatch_lines(["Cannot tell: * audits did not run to the end: *"])


@pytest.mark.parametrize("parallel", [[], ["-n2"]], ids=["plain", "n2"])
def test_a_file_that_could_not_be_collected_is_not_called_a_failed_audit(project: Project, parallel: list[str]) -> None:
    project.write("audits/test_b.py", "import nothing_of_that_name\n")
    lost = "audits/test_b.py could not be collected, so audits may be missing"
    done = project.audit("planted:ideal", "--continue-on-collection-errors", *parallel)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines([f"Cannot tell: {lost}"])
    project.write("audits/test_audits.py", "def test_pro(bbnli):\n    bbnli.require('pro_rate')\n    assert 0\n")
    done = project.audit("planted:ideal", "--continue-on-collection-errors", *parallel)
    done.stdout.fnmatch_lines([f"Cannot tell: 2 audits failed: audits/test_audits.py::*; {lost}"])


def test_workers_that_die_at_their_end_have_told_what_was_deselected(project: Project) -> None:
    dies = "import os\n\ndef pytest_sessionfinish(session):\n    if hasattr(session.config, 'workerinput'):\n"
    project.write("conftest.py", f"{dies}        os._exit(0)\n")
    done = project.audit("planted:ideal", "--bbnli-strict", "-n2", "--max-worker-restart=0", "-k", "test_pro")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["ERROR: --bbnli-strict asks for the whole audit, but 5 audits were deselected *"])
