"""No model: audits among other tests skip; a run of nothing but audits is a usage error."""

import pytest

from tests.plugin.conftest import Project

TOLD = (
    "ERROR: nothing was audited: 5 audits were skipped, because no model was given; give one: pytest --model=CHECKPOINT"
)


def test_audits_among_other_tests_skip_and_name_the_option(project: Project, mode: list[str]) -> None:
    project.write("tests/test_other.py", "def test_other():\n    pass\n")
    result = project.run("audits", "tests", "-rs", *mode)
    result.assert_outcomes(passed=1, skipped=5)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*no model to audit; give one: pytest --model=CHECKPOINT*"])
    result.stdout.fnmatch_lines([TOLD])


def test_audits_among_other_tests_fail_a_strict_run(project: Project, mode: list[str]) -> None:
    project.write("tests/test_other.py", "def test_other():\n    pass\n")
    result = project.run("audits", "tests", "-o", "bbnli_strict=true", *mode)
    result.assert_outcomes(passed=1, skipped=5)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines([TOLD])


def test_a_strict_run_without_audits_and_model_is_left_alone_by_the_setting_and_refused_by_the_option(
    project: Project,
) -> None:
    project.write("tests/test_other.py", "def test_other():\n    pass\n")
    assert project.run("tests", "-o", "bbnli_strict=true").ret == pytest.ExitCode.OK
    refused = project.run("tests", "--bbnli-strict")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["ERROR: --bbnli-strict: no model was given; give one: pytest --model=CHECKPOINT"])


def test_an_option_model_of_somebody_else_is_named(project: Project) -> None:
    project.write("conftest.py", "def pytest_addoption(parser):\n    parser.addoption('--model', default='none')\n")
    project.write("tests/test_other.py", "def test_other():\n    pass\n")
    result = project.run("audits", "tests", "--model=planted:ideal")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["ERROR: nothing was audited: 5 *; --model belongs to another * --bbnli-model=CHECKPOINT"]
    )


def test_nothing_but_audits_is_a_usage_error(project: Project, mode: list[str]) -> None:
    result = project.run("audits", *mode)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines([TOLD])


@pytest.mark.parametrize("parallel", [[], ["-n2"]], ids=["plain", "n2"])
def test_an_audit_that_asks_for_its_fixture_when_it_runs_is_an_audit(project: Project, parallel: list[str]) -> None:
    project.write("audits/test_audits.py", "def test_model(request):\n    request.getfixturevalue('bbnli_model')\n")
    result = project.run("audits", *parallel)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: nothing was audited: 1 audit was skipped, because no model was given; *"])


def test_collecting_only_is_fine(project: Project) -> None:
    assert project.run("audits", "--collect-only").ret == pytest.ExitCode.OK
