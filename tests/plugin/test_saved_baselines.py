"""--bbnli-save-baseline: a bar is replaced only by one that is as good."""

import json

import pytest

from tests.plugin.conftest import Project


def model_of(project: Project) -> str:
    return str(json.loads((project.path / "base.json").read_text())["model"]["name"])


def save(project: Project, model: str, *args: str) -> str:
    return project.audit(model, "--bbnli-save-baseline=base.json", *args).stdout.str()


def test_a_first_baseline_is_saved(project: Project) -> None:
    assert "Baseline saved: base.json (2 subtopics, 200 pairs)" in save(project, "planted:ideal")
    assert model_of(project) == "planted:ideal"


def test_a_run_that_crossed_a_limit_is_not_saved_even_as_the_first(project: Project) -> None:
    told = save(project, "planted:always-pro")
    assert "Baseline not saved: base.json: required limits are crossed without a waiver. Waive them, or " in told
    assert not (project.path / "base.json").exists()


def test_a_run_that_failed_does_not_replace_a_baseline(project: Project) -> None:
    save(project, "planted:ideal")
    assert "base.json is kept, because this run has not passed" in save(project, "planted:always-pro")
    assert model_of(project) == "planted:ideal"


def test_a_run_that_passed_replaces_it_also_under_xdist(project: Project) -> None:
    save(project, "planted:ideal")
    project.write("base.json", (project.path / "base.json").read_text().replace("planted:ideal", "an earlier one"))
    assert "Baseline saved" in save(project, "planted:ideal", "-n2")
    assert model_of(project) == "planted:ideal"


def test_a_part_of_the_subtopics_does_not_replace_the_whole(project: Project) -> None:
    save(project, "planted:ideal")
    assert "because this run lacks 1 of its subtopics" in save(project, "planted:ideal", "-k", "singing or competence")


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
