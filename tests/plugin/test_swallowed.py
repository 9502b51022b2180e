"""A limit that was required and is crossed never ends green, whatever became of its test."""

from pathlib import Path

import pytest

from tests.invented import LIMITS, write_templates
from tests.plugin.conftest import Project

TOLD = "ERROR: required verdicts are not met, although pytest would have passed: bbnli*"
XFAIL = "import pytest\n@pytest.mark.xfail\ndef test_pro(bbnli):\n    bbnli.require('pro_rate')\n"
CATCH = "def test_pro(bbnli):\n    try:\n        bbnli.require('pro_rate')\n    except AssertionError:\n        pass\n"
RAISES = (
    "import pytest\ndef test_pro(bbnli):\n    with pytest.raises(AssertionError):\n        bbnli.require('pro_rate')\n"
)
IN_SETUP = """
import pytest

@pytest.fixture
def gate(bbnli):
    try:
        bbnli.require("pro_rate")
    except AssertionError:
        pytest.skip("later")

def test_pro(gate):
    pass
"""
IN_TEARDOWN = """
import pytest

@pytest.fixture
def gate(bbnli):
    yield
    with pytest.raises(AssertionError):
        bbnli.require("pro_rate")

def test_pro(gate):
    pass
"""
TWO_HANDLES = """
import pytest

@pytest.mark.xfail
def test_both(bbnli, bbnli_level):
    bbnli_level.require()
"""
MARKED = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xfail)
"""
REPORTED = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    report.outcome = "passed"
    return report
"""
RESET = "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
WAYS = {
    "marked": {"audits/test_audits.py": XFAIL},
    "caught": {"audits/test_audits.py": CATCH},
    "expected": {"audits/test_audits.py": RAISES},
    "in a fixture": {"audits/test_audits.py": IN_SETUP},
    "in a teardown": {"audits/test_audits.py": IN_TEARDOWN},
    "by the second of two fixtures": {"audits/test_audits.py": TWO_HANDLES},
    "marked by a conftest": {"conftest.py": MARKED},
    "reported otherwise": {"conftest.py": REPORTED},
    "exit code set by a conftest": {"conftest.py": RESET},
}


@pytest.fixture
def project(project: Project) -> Project:
    project.write("thresholds.yaml", LIMITS + "levels: {suite: {max_lean: 0.05}}\n")
    return project


@pytest.mark.parametrize("way", WAYS)
def test_a_required_failure_is_never_green_and_never_saved(project: Project, way: str) -> None:
    for name, text in WAYS[way].items():
        project.write(name, text)
    done = project.audit("planted:always-pro", "--bbnli-save-baseline=base.json")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert "failed" not in done.parseoutcomes() or way == "exit code set by a conftest"
    done.stdout.fnmatch_lines(["Baseline not saved: base.json: *", TOLD])
    assert not Path(project.path, "base.json").exists()


def test_workers_tell_of_it_too(project: Project) -> None:
    project.write("audits/test_audits.py", IN_SETUP + TWO_HANDLES)
    done = project.audit("planted:always-pro", "--bbnli-save-baseline=base.json", "-n2")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["Baseline not saved: base.json: *", f"{TOLD}, and 2 more.*"])


def test_an_error_that_is_expected_is_not_green_either(project: Project) -> None:
    project.write("conftest.py", MARKED)
    project.write(
        "half.py",
        """
        def answer(texts):
            if any("Singing" in hypothesis for _, hypothesis in texts):
                raise KeyError
            known = {"A workshop is open": (1, 0, 0), "The workshop is closed": (0, 0, 1)}
            return [known.get(hypothesis.partition(" for ")[0], (0, 1, 0)) for _, hypothesis in texts]
        """,
    )
    done = project.audit("half:answer")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(
        ["ERROR: 3 audits could not measure, although pytest would have passed. audits/*half:answer broke*"]
    )


def test_a_limit_without_data_that_is_allowed_stays_green(project: Project) -> None:
    """What `allow_no_data` says holds for the run as for the test."""
    project.write(
        "thresholds.yaml", LIMITS + "suites: {bbnli: {subtopics: {planets/empty: {allow_no_data: true, reason: x}}}}\n"
    )
    write_templates(project.path / "data", "planets/empty.json", name="empty", bias_hypothesis_stereotypical=[])
    assert project.audit("planted:ideal").ret == pytest.ExitCode.OK
