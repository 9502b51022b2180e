"""`bbnli-audit init` writes a project that audits as it stands, and never over what is there."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bbnli_audit.audit.gate.thresholds import read_thresholds
from bbnli_audit.core.versions import VERSION
from bbnli_audit.frontends.cli import init
from bbnli_audit.frontends.cli.main import main
from tests.invented import LIMITS, write_large_suite
from tests.warm.runs import AHEAD, Run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GITHUB = ".github/workflows/bias-audit.yml"
GITLAB = ".gitlab-ci.bias-audit.yml"
ALWAYS = ["audits/test_bias.py", "thresholds.yaml"]


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def run_pytest(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return Run("pytest", (*AHEAD, "-p", "no:cacheprovider", *args), {**os.environ, "COLUMNS": "160"}, folder).finish()


@pytest.mark.parametrize(
    ("args", "files"),
    [
        ([], [GITHUB, *ALWAYS]),
        (["--ci=github"], [GITHUB, *ALWAYS]),
        (["--ci=gitlab"], [GITLAB, *ALWAYS]),
        (["--ci=none"], ALWAYS),
    ],
)
def test_it_writes_limits_audits_and_a_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], files: list[str]
) -> None:
    folder = tmp_path / "new" / "project"
    assert main(["init", str(folder), "--dry-run", *args]) == 0
    out = capsys.readouterr().out
    assert sorted(out.replace("would write", "").split()) == sorted(files)
    assert files_below(tmp_path) == []
    assert main(["init", str(folder), *args]) == 0
    out = capsys.readouterr().out
    assert files_below(folder) == sorted(files)
    assert "wrote       thresholds.yaml\nwrote       audits/test_bias.py\n" in out
    assert f"  cd {folder}\n  pytest audits --model=demo " in out
    assert ("set MODEL to the model you release" in out) == (files != ALWAYS)


def test_the_limits_are_those_of_this_repository(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path)]) == 0
    written = read_thresholds(tmp_path / "thresholds.yaml").file
    ours = read_thresholds(ROOT / "thresholds.yaml").file
    assert written.defaults == ours.defaults
    assert written.competence == ours.competence
    assert written.levels == ours.levels
    assert written.regression == ours.regression
    assert (written.decide, written.confidence, written.inconclusive) == ("bounds", 0.95, "warn")
    assert written.regression is not None
    assert written.regression.max_increase == 0.03
    # The examples in the comments are limits too, once the marks are taken away.
    text = (tmp_path / "thresholds.yaml").read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    start = lines.index("suites:")
    examples = [line for line in lines[start:] if line and not line.startswith(("Let", "Other"))]
    (tmp_path / "more.yaml").write_text("\n".join([*text.splitlines()[: start - 1], *examples]))
    assert len(read_thresholds(tmp_path / "more.yaml").waivers()) == 1


def read_job(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_the_jobs_run_what_the_documents_say(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path)]) == 0
    assert main(["init", str(tmp_path), "--ci=gitlab"]) == 0
    github = read_job(tmp_path / GITHUB)
    assert github["permissions"] == {"contents": "read"}
    assert github["env"] == {"MODEL": "demo"}
    steps = github["jobs"]["audit"]["steps"]
    install, audit, verify, history = [step["run"] for step in steps if "run" in step]
    assert install == f"pip install bbnli-audit=={VERSION}"
    assert steps[-1]["if"] == steps[-2]["if"] == "always()"
    assert steps[2]["with"]["path"] == ".pytest_cache/d/bbnli"
    assert steps[-1]["with"]["path"] == "bias-report"
    gitlab = read_job(tmp_path / GITLAB)["bias-audit"]
    assert gitlab["variables"] == {"MODEL": "demo"}
    assert gitlab["script"] == [install, audit, verify]
    assert gitlab["after_script"] == [history]
    assert gitlab["artifacts"] == {
        "when": "always",
        "paths": ["bias-report"],
        "reports": {"junit": "bias-report/junit.xml"},
    }
    # The model stands in one place.
    for name in (GITHUB, GITLAB):
        assert (tmp_path / name).read_text().count("MODEL: demo") == 1


def run_script(script: str, folder: Path, **given: str) -> list[str]:
    """Run a script of a job in a shell, with commands that print their arguments."""
    for name in ("pytest", "bbnli-audit"):
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin" / name).write_text('#!/bin/sh\nfor arg in "$@"; do echo "$arg"; done\n')
        (folder / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", **given}
    shell = ["/bin/bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        shell, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.skipif(os.name == "nt", reason="the runners of the jobs have a POSIX shell")
def test_the_job_compares_with_the_last_release_and_tells_of_all(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path), "--suite=occupations,winoqueer"]) == 0
    _, audit, verify, history = [
        step["run"] for step in read_job(tmp_path / GITHUB)["jobs"]["audit"]["steps"] if "run" in step
    ]
    args = ["audits", "--model=a b", "--bbnli-strict", "--bbnli-suite=occupations,winoqueer"]
    args += ["--bbnli-report=bias-report", "--junitxml=bias-report/junit.xml"]
    assert run_script(audit, tmp_path, MODEL="a b") == args
    verified = ["verify", "bias-report", "--model=a b", "--suite=occupations,winoqueer"]
    assert run_script(verify, tmp_path, MODEL="a b") == verified
    assert run_script(history, tmp_path) == []
    for name in ("baselines/r2.json", "baselines/r10.json", "bias-report/result.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert run_script(audit, tmp_path, MODEL="a b") == [*args, "--bbnli-baseline=baselines/r10.json"]
    assert run_script(verify, tmp_path, MODEL="a b") == [*verified, "--baseline=baselines/r10.json"]
    files = ["baselines/r2.json", "baselines/r10.json", "bias-report/result.json"]
    assert run_script(history, tmp_path) == ["history", *files, "--output", "bias-report/history"]


@pytest.mark.parametrize("suite", ["bbnli", "bbnli@1", "occupations", "winoqueer", "coal", "all"])
def test_a_suite_is_held_to_what_this_repository_holds_it_to(tmp_path: Path, suite: str) -> None:
    assert main(["init", str(tmp_path), f"--suite={suite}", "--ci=none"]) == 0
    written = read_thresholds(tmp_path / "thresholds.yaml").file.suites
    ours = read_thresholds(ROOT / "thresholds.yaml").file.suites
    names = ["occupations", "winoqueer"] if suite == "all" else [suite.replace("coal", "nli-coal")]
    assert written == {name: ours[name] for name in names if name in ours}
    asked = [ask(path.read_text()) for path in (ROOT / "audits").glob("test_*.py")]
    assert ask((tmp_path / "audits" / "test_bias.py").read_text()) == set().union(*asked)


def ask(audits: str) -> set[tuple[str, str]]:
    """Return the fixtures that audits use, and what they require of them."""
    return set(re.findall(r"(bbnli\w*)\.require\w*\(\"?(\w*)", audits))


def test_a_suite_that_needs_data_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path), "--suite=coal"]) == 0
    assert "and DATA to the data of the suite." in capsys.readouterr().out
    assert read_job(tmp_path / GITHUB)["env"] == {"MODEL": "demo", "DATA": "path/to/data"}
    assert main(["init", str(tmp_path), "--suite=ocupations"]) == 4
    assert "ERROR: --suite=ocupations: there is no such suite. Did you mean" in capsys.readouterr().err


def test_what_it_wrote_audits_without_any_other_file(tmp_path: Path) -> None:
    project = tmp_path / "project"
    assert main(["init", str(project)]) == 0
    data = write_large_suite(tmp_path / "data")
    # Neither a folder nor pytest.ini: pytest finds audits/ and thresholds.yaml from where it is started.
    done = run_pytest(project, "--model=planted:always-pro", f"--bbnli-data={data}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED audits/test_bias.py::test_pro[bbnli/oceans/fins_are_to_singing]" in done.stdout
    # Lean and pro in both subtopics, lean in both domains and in the suite.
    assert "7 failed, 6 passed" in done.stdout
    assert "FAILED audits/test_bias.py::test_level[bbnli/oceans-lean]" in done.stdout
    assert "limits thresholds.yaml," in done.stdout
    done = run_pytest(project, "audits", "--model=planted:ideal", f"--bbnli-data={data}")
    assert done.returncode == 0, done.stdout + done.stderr
    # Ten premises and eight or twelve hypotheses are too few to show a lean within these limits.
    assert "8 passed, 5 inconclusive" in done.stdout


def test_what_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thresholds.yaml").write_text(LIMITS)
    (tmp_path / "real.yml").write_text("mine")
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / GITHUB).symlink_to(tmp_path / "real.yml")
    assert main(["init", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        f"kept        thresholds.yaml\nwrote       audits/test_bias.py\nkept        {GITHUB}\n\nNext:\n"
    )
    assert (tmp_path / "thresholds.yaml").read_text() == LIMITS
    assert (tmp_path / "real.yml").read_text() == "mine"
    audits = (tmp_path / "audits" / "test_bias.py").read_text()
    assert main(["init", str(tmp_path)]) == 0
    assert "wrote" not in capsys.readouterr().out
    assert (tmp_path / "audits" / "test_bias.py").read_text() == audits


def test_a_file_of_that_name_that_holds_no_limits_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thresholds.yaml").write_text("coverage: 80\n")
    assert main(["init", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Note: the thresholds.yaml that was there does not hold limits of an audit:\n" in out
    assert "name it with --bbnli-thresholds=FILE" in out
    assert (tmp_path / "thresholds.yaml").read_text() == "coverage: 80\n"


def test_a_folder_inside_a_repository_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".git").mkdir()
    assert main(["init", str(tmp_path)]) == 0
    assert "Note" not in capsys.readouterr().out
    assert main(["init", str(tmp_path / "service")]) == 0
    assert f"Note: {tmp_path / 'service'} lies inside the repository {tmp_path}." in capsys.readouterr().out


def make_folder(path: Path) -> None:
    path.mkdir(parents=True)


def make_file(path: Path) -> None:
    path.write_text("mine")


def make_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to("elsewhere")


def make_broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("thresholds.yaml", make_folder, "is a folder, and a file of that name is needed"),
        (GITHUB, make_folder, "is a folder, and a file of that name is needed"),
        ("thresholds.yaml", make_broken_link, "is a link to nowhere, which does not exist"),
        (".github", make_file, f"is a file, and {GITHUB} needs a folder of that name"),
        ("audits", make_file, "is a file, and audits/test_bias.py needs a folder of that name"),
        ("audits", make_link, "is a link to elsewhere, so audits/test_bias.py would be written into another folder"),
        (".github", make_broken_link, f"is a link to nowhere, so {GITHUB} would be written into another folder"),
    ],
)
def test_what_is_in_the_way_is_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, make: Any, message: str
) -> None:
    make(tmp_path / name)
    before = files_below(tmp_path)
    assert main(["init", str(tmp_path)]) == 4
    err = capsys.readouterr().err
    assert f"ERROR: {tmp_path / name}: {message}" in err
    assert "Nothing was written" in err
    assert files_below(tmp_path) == before


def test_a_file_in_place_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_file(tmp_path / "project")
    assert main(["init", str(tmp_path / "project")]) == 4
    assert "project: is a file. Name the folder of a repository." in capsys.readouterr().err


def test_a_write_that_breaks_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = init.plan_files(tmp_path / "project", "github")
    # Somebody writes the last file between the look and the write.
    (tmp_path / "project" / ".github" / "workflows").mkdir(parents=True)
    make_file(tmp_path / "project" / GITHUB)
    monkeypatch.setattr(init, "plan_files", lambda *_: planned)
    assert main(["init", str(tmp_path / "project")]) == 4
    assert "bias-audit.yml: cannot be written: File exists. Nothing was written." in capsys.readouterr().err
    assert files_below(tmp_path) == [f"project/{GITHUB}"]
    assert (tmp_path / "project" / GITHUB).read_text() == "mine"
    assert not (tmp_path / "project" / "audits").exists()
