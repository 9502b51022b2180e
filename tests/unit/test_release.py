"""Which release a result is of: options before CI, CI before git, and never the clock unless asked."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.audit.release import find_release
from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.file import dump, read_result
from bbnli_audit.core.results.release import Release
from tests.invented import limits, write_templates

SECOND = "2001-09-09T01:46:40Z"  # a thousand million seconds
GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_SHA": "c" * 40, "GITHUB_REF": "refs/tags/v3"}
GITLAB = {"GITLAB_CI": "true", "CI_COMMIT_SHA": "d" * 40, "CI_COMMIT_TIMESTAMP": "2026-11-18T01:30:00+02:00"}


def options(**given: Any) -> AuditOptions:
    return AuditOptions(model="planted:ideal", **given)


def git(folder: Path, *words: str) -> str:
    names = {f"GIT_{who}_{what}": "zorb@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": "1000000000 +0000", "GIT_COMMITTER_DATE": "1000000000 +0200"}
    environment = {**os.environ, **names, **dates, "GIT_CONFIG_GLOBAL": str(folder / "none")}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "one")
    return tmp_path


def test_what_nobody_says_stays_absent(tmp_path: Path) -> None:
    assert find_release(options(), tmp_path, {}) is None
    assert find_release(options(), tmp_path / "nowhere", {"GIT_COMMIT": "a"}) is None  # no Jenkins


def test_git_says_commit_date_and_tag(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD").strip()
    assert find_release(options(), repository, {}) == Release(None, commit, SECOND)
    git(repository, "tag", "r1")
    assert find_release(options(), repository, {}) == Release("r1", commit, SECOND)
    git(repository, "tag", "latest")  # which of the two is the name?
    assert find_release(options(), repository, {}) == Release(None, commit, SECOND)


def test_a_repository_without_a_commit_says_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert find_release(options(), tmp_path, {}) is None


def test_ci_comes_before_git(repository: Path) -> None:
    git(repository, "tag", "r1")
    assert find_release(options(), repository, GITHUB) == Release("v3", "c" * 40, None)
    assert find_release(options(), repository, GITLAB) == Release(None, "d" * 40, "2026-11-17T23:30:00Z")
    head = git(repository, "rev-parse", "HEAD").strip()
    branch = {**GITHUB, "GITHUB_SHA": head, "GITHUB_REF": "refs/heads/main"}
    assert find_release(options(), repository, branch) == Release("r1", head, SECOND)


def test_options_come_first(repository: Path) -> None:
    given = options(release="r9", commit="abc", date="2026-11-18")
    assert find_release(given, repository, GITLAB) == Release("r9", "abc", "2026-11-18")
    # The date of another commit would be wrong.
    assert find_release(options(commit="abc"), repository, GITLAB) == Release(None, "abc", None)
    with_time = options(date="2026-11-18T01:00:00+01:00", commit="abc")
    assert find_release(with_time, repository, {}) == Release(None, "abc", "2026-11-18T00:00:00Z")


def test_the_epoch_of_reproducible_builds(tmp_path: Path) -> None:
    assert find_release(options(), tmp_path, {"SOURCE_DATE_EPOCH": "1000000000"}) == Release(date=SECOND)
    assert find_release(options(), tmp_path, {**GITLAB, "SOURCE_DATE_EPOCH": "1000000000"}) == Release(
        None, "d" * 40, SECOND
    )
    for wrong in ("soon", "-1", "9" * 40, ""):
        assert find_release(options(), tmp_path, {"SOURCE_DATE_EPOCH": wrong}) is None


def test_the_clock_only_where_it_is_asked_for(tmp_path: Path) -> None:
    before = datetime.now(UTC).date().isoformat()
    found = find_release(options(date="today"), tmp_path, {})
    assert found is not None
    assert found.date in (before, datetime.now(UTC).date().isoformat())


@pytest.mark.parametrize("wrong", ["soon", "18.11.2026", "2026-13-01", "20261118", "2026-W47-3"])
def test_what_is_no_date_is_refused_before_anything_runs(wrong: str) -> None:
    with pytest.raises(
        OptionError, match=rf"^--bbnli-date={wrong}: is not a date. Write it as 2026-11-18, or write today"
    ):
        run_audit(options(date=wrong))


def test_the_result_carries_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_templates(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    given = {"thresholds": limits(), "data": tmp_path / "data", "commit": "abc", "date": "2026-11-18"}
    result = run_audit(options(release="r1", report=tmp_path / "out", **given))
    assert dump(result)["release"] == {"name": "r1", "commit": "abc", "date": "2026-11-18"}
    assert read_result(tmp_path / "out") == result
    assert "\n- Release: `r1`, `abc`, `2026-11-18`\n" in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<dt>Name</dt><dd>r1</dd>" in page
    assert "<dt>Commit</dt><dd>abc</dd>" in page


def test_without_a_release_nothing_is_said_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SOURCE_DATE_EPOCH", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    write_templates(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    result = run_audit(options(thresholds=limits(), data=tmp_path / "data", report=tmp_path / "out"))
    assert result.release is None
    for name in ("summary.md", "report.html"):
        assert "Release" not in (tmp_path / "out" / name).read_text(encoding="utf-8")
