"""No model: audits among other tests skip; a run of nothing but audits is a usage error."""

import pytest

from tests.plugin.conftest import Project


def test_audits_among_other_tests_skip_and_name_the_option(project: Project, mode: list[str]) -> None:
    project.write("tests/test_other.py", "def test_other():\n    pass\n")
    result = project.run("audits", "tests", "-rs", *mode)
    result.assert_outcomes(passed=1, skipped=5)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*no model to audit; give one: pytest --model=CHECKPOINT*"])


def test_nothing_but_audits_is_a_usage_error(project: Project, mode: list[str]) -> None:
    result = project.run("audits", *mode)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: nothing was audited: no model was given; give one: pytest --model=CHECKPOINT"])


def test_collecting_only_is_fine(project: Project) -> None:
    assert project.run("audits", "--collect-only").ret == pytest.ExitCode.OK
