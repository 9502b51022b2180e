"""Installed in a project that does not audit, the plugin changes nothing."""

import os
import re
import subprocess
import sys

import pytest

from tests.plugin.conftest import Project

UNRELATED = """
import warnings

def test_one():
    assert True

def test_two():
    warnings.warn("careful")
    assert 1 == 2
"""
READS_MODEL = """
def test_mine(request):
    assert request.config.getoption('--model') == 'x'
"""
HEAVY = ("torch", "transformers", "pandas", "numpy", "scipy", "yaml", "pydantic")


def run_pytest(project: Project, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *args],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("args", [[], ["-v", "-ra"], ["-q", "--collect-only"]])
def test_the_output_of_an_unrelated_suite_is_byte_identical(project: Project, args: list[str]) -> None:
    project.write("tests/test_unrelated.py", UNRELATED)
    outputs = []
    for disabled in ([], ["-p", "no:bbnli_audit"]):
        done = run_pytest(project, "tests", "-p", "no:randomly", "-p", "no:cacheprovider", *args, *disabled)
        # pytest itself lists every installed plugin in one line of its header; that line is not ours to change.
        output = re.sub(r", bbnli-audit-[\d.]+", "", done.stdout + done.stderr)
        outputs.append(re.sub(r"\d+\.\d+s", "0.00s", output))
    assert outputs[0] == outputs[1]
    made = {path.name for path in project.path.iterdir()}
    assert made == {"audits", "data", "tests", "thresholds.yaml", "tox.ini"}


@pytest.mark.parametrize("args", [["--help"], ["tests"], ["--version"], ["--markers"], ["--fixtures"]])
def test_nothing_heavy_is_imported(project: Project, args: list[str]) -> None:
    project.write("tests/test_unrelated.py", UNRELATED)
    code = (
        "import sys, pytest; pytest.main(sys.argv[1:]); "
        f"found = [m for m in {HEAVY!r} if m in sys.modules]; sys.exit(f'imported: {{found}}' if found else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "-p", "no:hypothesispytest", *args],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "imported" not in done.stderr
    assert done.returncode == 0


def test_a_project_that_owns_model_keeps_it(project: Project, mode: list[str]) -> None:
    project.write(
        "conftest.py",
        """
        def pytest_addoption(parser):
            parser.addoption("--model", default="none", help="mine")
        """,
    )
    project.write(
        "tests/test_mine.py", "def test_mine(request):\n    assert request.config.getoption('--model') == 'x'\n"
    )
    result = project.run("tests", "--model=x", *mode)
    result.assert_outcomes(passed=1)
    assert "bbnli" not in result.stdout.str().replace("bbnli-audit", "")
    audited = project.run("audits", "--bbnli-model=planted:ideal", "--bbnli-data=data", *mode)
    audited.assert_outcomes(passed=7)


def test_a_plugin_that_owns_model_keeps_it(project: Project) -> None:
    project.write("owner.py", "def pytest_addoption(parser):\n    parser.addoption('--model', action='store_true')\n")
    project.write(
        "tests/test_mine.py", "def test_mine(request):\n    assert request.config.getoption('--model') is True\n"
    )
    project.run("-p", "owner", "--model", "tests").assert_outcomes(passed=1)


def test_help_shows_our_options_and_the_second_spelling(project: Project) -> None:
    done = run_pytest(project, "--help", COLUMNS="120")
    for option in ("--bbnli-model", "--model=CHECKPOINT", "--bbnli-thresholds", "--bbnli-data", "--bbnli-reveal"):
        assert option in done.stdout
    assert "bbnli_thresholds" in done.stdout


def test_the_plugin_can_be_named_when_autoload_is_off(project: Project) -> None:
    args = ("audits", "-p", "bbnli_audit", "--bbnli-model=planted:ideal", "--bbnli-data=data")
    done = project.run_warm(*args, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "7 passed" in done.stdout


def test_colours_are_left_out_when_asked(project: Project) -> None:
    done = project.run_warm("audits", "--model=planted:random", "--bbnli-data=data", NO_COLOR="1")
    assert "failed" in done.stdout
    assert "\x1b[" not in done.stdout


def test_a_folder_named_like_us_is_left_alone(project: Project) -> None:
    project.write("tests/bbnli/test_x.py", "import pytest\n@pytest.mark.skip\ndef test_bbnli():\n    pass\n")
    assert project.run("tests").ret == pytest.ExitCode.OK


def test_a_later_conftest_may_own_model(project: Project) -> None:
    project.write(
        "pkg/tests/conftest.py", "def pytest_addoption(parser):\n    parser.addoption('--model', default='mine')\n"
    )
    project.write("pkg/tests/test_x.py", "def test_x():\n    pass\n")
    result = project.run("pkg")
    without = project.run("pkg", "-p", "no:bbnli_audit")
    assert (result.ret, result.parseoutcomes()) == (without.ret, without.parseoutcomes())


def test_paths_as_arguments_of_pytest_main_are_left_alone(project: Project) -> None:
    project.write("tests/test_x.py", "def test_x():\n    pass\n")
    code = "import pathlib, pytest; print('code', int(pytest.main([pathlib.Path('tests')])))"
    done = subprocess.run([sys.executable, "-c", code], cwd=project.path, capture_output=True, text=True, check=False)
    assert "code 0" in done.stdout


OWNER = "import pytest\n\ndef pytest_addoption(parser):\n    parser.addoption('--model')\n\n"
LEAVES = {
    "when it is imported": "import sys\n\nsys.exit(0)\n",
    "before the run": f"{OWNER}def pytest_configure():\n    pytest.exit('enough', returncode=0)\n",
    "in place of the run": f"{OWNER}def pytest_cmdline_main():\n    return 0\n",
}


@pytest.mark.parametrize("conftest", LEAVES.values(), ids=LEAVES)
def test_a_project_without_audits_may_leave_with_0_whatever_its_model(project: Project, conftest: str) -> None:
    project.write("conftest.py", conftest)
    (project.path / "thresholds.yaml").unlink()
    done = run_pytest(project, "tests", "--model=x")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bbnli" not in done.stderr
