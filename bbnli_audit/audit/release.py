"""Finds out which release is audited: from the options, or else from the CI service, or else from git.

The clock is read only if the options ask for it, so equal inputs give equal results.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.release import Release

TODAY = "today"


class _Service(NamedTuple):
    """The names of the environment variables of a CI service. If `marker` is set, the audit runs in this service."""

    marker: str
    commit: str
    tag: str  # the value is the name of a tag, or a full ref such as refs/heads/main
    date: str = ""


_SERVICES = (
    _Service("GITHUB_ACTIONS", "GITHUB_SHA", "GITHUB_REF"),
    _Service("GITLAB_CI", "CI_COMMIT_SHA", "CI_COMMIT_TAG", "CI_COMMIT_TIMESTAMP"),
    _Service("TF_BUILD", "BUILD_SOURCEVERSION", "BUILD_SOURCEBRANCH"),
    _Service("BITBUCKET_BUILD_NUMBER", "BITBUCKET_COMMIT", "BITBUCKET_TAG"),
    _Service("CIRCLECI", "CIRCLE_SHA1", "CIRCLE_TAG"),
    _Service("JENKINS_URL", "GIT_COMMIT", "TAG_NAME"),
)


def check_date(given: str | None) -> None:
    """Refuse an invalid date before anything is audited."""
    _read_given(given)


def find_release(options: AuditOptions, root: Path, environment: Mapping[str, str] = os.environ) -> Release | None:
    """Return what is known of the release; None if nothing is known. Git is asked in the folder `root`."""
    service, git = _ask_service(environment), _ask_git(root)
    commit = options.commit or service.commit or git.commit
    is_checked_out = commit is not None and git.commit is not None and git.commit.startswith(commit)
    found = Release(
        name=options.release or service.name or (git.name if is_checked_out else None),
        commit=commit,
        date=_read_given(options.date)
        or _read_epoch(environment.get("SOURCE_DATE_EPOCH"))
        or (service.date if commit == service.commit else None)
        or (git.date if is_checked_out else None),
    )
    return None if found == Release() else found


def _ask_service(environment: Mapping[str, str]) -> Release:
    service = next((each for each in _SERVICES if environment.get(each.marker)), None)
    if service is None:
        return Release()
    ref = environment.get(service.tag, "").removeprefix("refs/tags/")
    date = environment.get(service.date, "")
    return Release(
        name=None if not ref or ref.startswith("refs/") else ref,
        commit=environment.get(service.commit) or None,
        date=_in_utc(datetime.fromisoformat(date)) if _is_time(date) else None,
    )


def _ask_git(root: Path) -> Release:
    """Return commit, date and tag of the checkout. All are empty if git, a repository or a commit is missing."""
    command = ("git", "-c", "log.showSignature=false", "log", "-1", "--decorate=full", "--format=%H%n%ct%n%D")
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, timeout=20, check=True)  # noqa: S603 - fixed words
    except (OSError, subprocess.SubprocessError):
        return Release()
    commit, seconds, refs, *_ = [*done.stdout.decode("utf-8", "replace").split("\n"), "", ""]
    tags = [ref.removeprefix("tag: refs/tags/") for ref in refs.split(", ") if ref.startswith("tag: ")]
    # With several tags, it is unclear which of them names the release.
    return Release(name=tags[0] if len(tags) == 1 else None, commit=commit or None, date=_read_epoch(seconds))


def _read_given(given: str | None) -> str | None:
    if given is None:
        return None
    if given == TODAY:
        return datetime.now(UTC).date().isoformat()
    if not _is_time(given):
        raise OptionError(f"--bbnli-date={given}: is not a date. Write it as 2026-11-18, or write {TODAY}.")
    found = datetime.fromisoformat(given)
    return given if len(given) == len("2026-11-18") else _in_utc(found)


def _is_time(text: str) -> bool:
    try:
        return re.match(r"\d{4}-\d\d-\d\d", text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _in_utc(time: datetime) -> str:
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return aware.strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_epoch(seconds: str | None) -> str | None:
    """Read seconds since 1970, as in SOURCE_DATE_EPOCH (reproducible-builds.org)."""
    if not seconds or not seconds.isascii() or not seconds.isdigit() or len(seconds) > len("99999999999"):
        return None
    return _in_utc(datetime.fromtimestamp(int(seconds), UTC))
