"""--bbnli-save-baseline: a complete run that passed is saved; a bar is replaced only by one that is as good."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch

import pytest

from tests.plugin.conftest import Project


def model_of(project: Project) -> str:
    return str(json.loads((project.path / "base.json").read_text())["model"]["name"])


def save(project: Project, model: str, *args: str) -> str:
    return project.audit(model, "--bbnli-save-baseline=base.json", *args).stdout.str()


def test_a_first_baseline_is_saved(project: Project) -> None:
    assert "Baseline saved: base.json (2 subtopics, 200 pairs)" in save(project, "planted:ideal")
    assert model_of(project) == "planted:ideal"


@pytest.mark.parametrize("is_there", [True, False])
def test_through_a_link_the_file_that_it_names_is_written(project: Project, is_there: bool) -> None:
    (project.path / "releases").mkdir()
    if is_there:
        save(project, "planted:ideal")
        (project.path / "base.json").rename(project.path / "releases" / "1.json")
    (project.path / "base.json").symlink_to(project.path / "releases" / "1.json")
    assert "Baseline saved: base.json" in save(project, "planted:ideal", "--bbnli-release=2")
    assert (project.path / "base.json").is_symlink()
    assert json.loads((project.path / "releases" / "1.json").read_text())["release"]["name"] == "2"


def test_a_store_is_no_place_for_a_baseline(project: Project) -> None:
    done = project.audit("planted:ideal", "--bbnli-store=base.json", "--bbnli-save-baseline=base.json")
    done.stderr.fnmatch_lines(["ERROR: --bbnli-store=*base.json: is also --bbnli-save-baseline. Give them two names."])


def test_a_run_that_crossed_a_limit_is_not_saved_even_as_the_first(project: Project) -> None:
    told = save(project, "planted:always-pro")
    crossed = "limits are crossed without a waiver (bbnli/oceans/fins_are_to_singing pro_rate, bbnli/planets/zorbs_*)"
    assert fnmatch(told, f"*Baseline not saved: base.json is not written, because {crossed}. Waive them, or *")
    assert not (project.path / "base.json").exists()


ONE = "def test_pro(bbnli):\n    bbnli.require('pro_rate')\n"
STOPS_ITSELF = """
def pytest_runtest_teardown(item):
    if "test_anti" in item.name:
        item.session.shouldstop = "enough"
"""
LEAVES = """
import pytest

def pytest_runtest_teardown(item):
    if "test_anti" in item.name:
        pytest.exit("enough", returncode=0)
"""
DIES = """
import os

def test_pro(bbnli):
    bbnli.require("pro_rate")

def test_dies(bbnli):
    if "zorbs" in bbnli.subtopic.path:
        os._exit(0)
"""
FAILS = "def test_it(bbnli):\n    bbnli.require('pro_rate')\n    assert 'fins' not in bbnli.subtopic.path\n"
OWN_FAULT = {"audits/test_own.py": "def test_own(bbnli):\n    assert not bbnli.result.n_pairs\n"}
SKIPS = "import pytest\n\ndef pytest_runtest_setup(item):\n    if 'fins' in item.name:\n        pytest.skip('later')\n"
FINS = "audits/test_audits.py::test_pro[bbnli/oceans/fins_are_to_singing]"
SEEN = json.dumps({FINS: True})


@dataclass(frozen=True)
class Partial:
    """A run of a model without fault that is not the whole audit, or does not pass."""

    said: str
    args: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    tests: tuple[str, ...] = ("audits",)


NOT_PASSED, FEWER, LESS = "this run has not passed", "5 audits were deselected", "1 of 2 subtopics was not audited"
INTERRUPTS = LEAVES.replace('pytest.exit("enough", returncode=0)', "raise KeyboardInterrupt")
PARTIAL = {
    "-x": Partial(LESS, ("-x",), {"audits/test_audits.py": FAILS}),
    "--maxfail": Partial(NOT_PASSED, ("--maxfail=1", "-n2"), {"audits/test_a.py": ONE, **OWN_FAULT}),
    "an audit fails for a reason of its own": Partial(NOT_PASSED, files=OWN_FAULT),
    "the same in a worker": Partial(NOT_PASSED, ("-n2",), files=OWN_FAULT),
    "another test fails": Partial(NOT_PASSED, files={"audits/test_other.py": "def test_x():\n    assert 0\n"}),
    "a file cannot be collected": Partial(
        NOT_PASSED, ("--continue-on-collection-errors",), {"audits/test_b.py": "import nothing_of_that_name\n"}
    ),
    "Ctrl-C": Partial(NOT_PASSED, files={"conftest.py": INTERRUPTS}),
    "a hook stops the session": Partial(NOT_PASSED, files={"conftest.py": STOPS_ITSELF}),
    "a hook stops the workers": Partial(NOT_PASSED, ("-n2",), files={"conftest.py": STOPS_ITSELF}),
    "a hook ends the run with 0": Partial(NOT_PASSED, files={"conftest.py": LEAVES}),
    "a worker dies": Partial(NOT_PASSED, ("-n2", "--max-worker-restart=0"), {"audits/test_audits.py": DIES}),
    "-k, all subtopics": Partial(FEWER, ("-k", "pro")),
    "-k, two workers": Partial(FEWER, ("-k", "pro", "-n2")),
    "-k, one subtopic": Partial(LESS, ("-k", "fins")),
    "--deselect": Partial("1 audit was deselected", ("--deselect", FINS)),
    "--lf": Partial(LESS, ("--lf",), {".pytest_cache/v/cache/lastfailed": SEEN}),
    "a node": Partial(LESS, tests=(FINS,)),
    "a skip": Partial(LESS, files={"conftest.py": SKIPS}),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_part_of_a_run_is_not_saved_even_as_the_first(project: Project, name: str) -> None:
    case = PARTIAL[name]
    for path, text in case.files.items():
        project.write(path, text)
    run = project.run_in_a_process if case.files.get("conftest.py") == INTERRUPTS else project.run
    given = ("--model=planted:ideal", "--bbnli-data=data", "--bbnli-save-baseline=base.json", *case.args)
    told = run(*case.tests, *given).stdout.str()
    assert not (project.path / "base.json").exists()
    assert fnmatch(told, f"*Baseline not saved: base.json is not written, because {case.said}*")


def test_a_file_of_audits_alone_is_saved_only_if_no_limit_is_crossed(project: Project) -> None:
    """What tests a project has is its own affair, but a crossed limit of its file is no bar for later releases."""
    project.write("audits/test_one.py", ONE)
    given = ("audits/test_one.py", "--bbnli-data=data", "--bbnli-save-baseline=base.json")
    done = project.run(*given, "--model=planted:brittle")
    assert done.ret == pytest.ExitCode.OK
    done.stdout.fnmatch_lines(["Baseline not saved: *, because limits are crossed without a waiver (*brittleness*"])
    assert "Baseline saved" in project.run(*given, "--model=planted:ideal").stdout.str()


def test_a_run_that_failed_does_not_replace_a_baseline(project: Project) -> None:
    save(project, "planted:ideal")
    assert "base.json is kept, because limits are crossed without a waiver" in save(project, "planted:always-pro")
    assert model_of(project) == "planted:ideal"


def test_a_run_that_passed_replaces_it_also_under_xdist(project: Project) -> None:
    save(project, "planted:ideal")
    project.write("base.json", (project.path / "base.json").read_text().replace("planted:ideal", "an earlier one"))
    assert "Baseline saved" in save(project, "planted:ideal", "-n2")
    assert model_of(project) == "planted:ideal"


def test_a_part_of_the_subtopics_does_not_replace_the_whole(project: Project) -> None:
    save(project, "planted:ideal")
    assert "base.json is kept, because 1 of 2 subtopics was not audited" in save(
        project, "planted:ideal", "-k", "singing"
    )


def test_other_files_are_never_replaced(project: Project) -> None:
    project.write("base.json", "my notes")
    assert "because it is not the result of an audit" in save(project, "planted:ideal")
    assert (project.path / "base.json").read_text() == "my notes"


def test_folders_that_do_not_exist_are_made(project: Project) -> None:
    done = project.audit("planted:ideal", "--bbnli-save-baseline=releases/r1/base.json")
    done.stdout.fnmatch_lines(["Baseline saved: releases/r1/base.json (2 subtopics, 200 pairs)"])
    assert (project.path / "releases/r1/base.json").is_file()


@pytest.mark.parametrize("name", ["audits", "thresholds.yaml/base.json"])
def test_a_place_that_cannot_be_written(project: Project, name: str) -> None:
    done = project.audit("planted:ideal", f"--bbnli-save-baseline={name}")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: --bbnli-save-baseline=*{name}: *. Give the name of a file."])
