"""Code for the commands that change a threshold file: read it, find the subtopics that it may name, make a diff."""

import re
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from bbnli_audit.core.errors import AuditError, ThresholdsError
from bbnli_audit.core.values import Subtopic

if TYPE_CHECKING:
    from bbnli_audit.audit.gate.thresholds import Thresholds
    from bbnli_audit.core.results.audit import AuditResult


def read_text_and_limits(path: Path) -> "tuple[str, Thresholds]":
    """Read a threshold file once. Messages and diffs show its path below the working folder, as `git apply` needs."""
    from bbnli_audit.audit.gate.thresholds import name_below, parse_thresholds, read_thresholds_text

    name = name_below(path, Path.cwd())
    text = read_thresholds_text(path, name)
    return text, parse_thresholds(text, name)


def name_subtopics(result: "AuditResult", data: Path | None) -> dict[str, Subtopic]:
    """Return the subtopics of a result and of the data, by path, with the aliases that a threshold file may use."""
    from bbnli_audit.frontends.cli.projects import IN_PACKAGE, find_suite
    from bbnli_audit.suites.bbnli import Bbnli

    suite = Bbnli(data)
    named = {subtopic.path: subtopic for subtopic in (*suite.documented(), *suite.subtopics())}
    for own in (each.name for each in result.suites if each.name not in IN_PACKAGE):
        with suppress(AuditError):  # a suite that is not known here has no aliases
            named |= {subtopic.path: subtopic for subtopic in find_suite(own).subtopics()}
    for path in (*(row.path for row in result.subtopics), *result.settings.not_audited):
        suite_name, domain, name = path.split("/", 2)
        named.setdefault(path, Subtopic(suite_name, domain, name))
    return named


def unknown_subtopic(source: str, name: str) -> ThresholdsError:
    """Make the error about an unknown name in a threshold file, which may be an alias of a measured subtopic."""
    return ThresholdsError(
        f"{source}: the subtopic {name!r} is neither in the result nor in the data, so it may be another name of one "
        "that was measured. Pass the audited data with --data=DIR, or fix the name."
    )


def make_diff(before: str, after: str, name: str) -> str:
    """Return the change as a diff for `git apply -p0` and `patch -p0`."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    shown = f"{name}\t" if " " in name else name
    diff = unified_diff(old, new, fromfile=shown, tofile=shown)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)
