"""Writes for GitHub Actions: the summary of a step, and annotations on lines of the threshold file."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.rows import Judgement, SubtopicResult, Verdict
from bbnli_audit.core.words import counted
from bbnli_audit.reports.failure import headline, regression_headline
from bbnli_audit.reports.markdown import code
from bbnli_audit.reports.notes import grown
from bbnli_audit.reports.shown import judged_levels, short_name, worst_first

LARGEST_SUMMARY = 900 * 1024  # GitHub silently drops a summary above 1 MiB
MOST_ANNOTATIONS = 10  # errors, and as many warnings, in a step; GitHub silently drops any more

_IS_ADDRESS = re.compile(r"https?://[^\s<>|\\`]+")


def is_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def append_step_summary(text: str, path: Path, link: str | None = None) -> str | None:
    """Append Markdown to the summary of a step. If the summary would be too large to be shown, cut off the last lines.

    `path` is the file that $GITHUB_STEP_SUMMARY names; `link` is the address or path of the whole text. If nothing
    could be written, return a warning.
    """
    whole = link or "summary.md"
    where = f"<{whole}>" if _IS_ADDRESS.fullmatch(whole) else code(whole)
    try:
        with path.open("ab+") as file:
            n_before = file.tell()
            file.seek(max(n_before - 1, 0))
            before = b"" if file.read(1) in (b"", b"\n") else b"\n"
            shown = _cut(text, LARGEST_SUMMARY - n_before - len(before), f"The rest was cut off; the whole is {where}.")
            if shown is None:
                return f"The summary of this step is full, so this one was left out; the whole is {whole}."
            file.write(before + shown)
    except (OSError, ValueError) as exc:
        return f"The summary of this step could not be written: {getattr(exc, 'strerror', None) or exc}."
    return None


def _cut(text: str, room: int, closing: str) -> bytes | None:
    """Return the text. If it does not fit, return as many of its lines as fit, and then `closing`.

    If not even `closing` fits, return None.
    """
    data = text.encode("utf-8", errors="replace")
    data = data if data.endswith(b"\n") else data + b"\n"
    if len(data) <= room:
        return data
    end = f"\n{closing}\n".encode("utf-8", errors="replace")
    if len(end) > room:
        return None
    return data[: data.rfind(b"\n", 0, room - len(end)) + 1] + end


def annotations(result: AuditResult) -> list[str]:
    """Return workflow commands, errors first. Errors and warnings mark the line of a limit, margin or waiver."""
    found = list(_found(result))
    fails_open = result.settings.inconclusive == "fail"
    kinds = {
        "error": [one for verdict, one in found if verdict is not Verdict.INCONCLUSIVE or fails_open],
        "warning": [one for verdict, one in found if verdict is Verdict.INCONCLUSIVE and not fails_open],
    }
    lines = [f"::{kind} {one}" for kind, ones in kinds.items() for one in ones[:MOST_ANNOTATIONS]]
    more = {kind: len(ones) - MOST_ANNOTATIONS for kind, ones in kinds.items()}
    if told := " and ".join(counted(n, f"more {kind}") for kind, n in more.items() if n > 0):
        lines.append(f"::notice title=Bias audit::{told} not shown here; all of them are in summary.md and result.json")
    return lines


def _found(result: AuditResult) -> Iterator[tuple[Verdict, str]]:
    """Yield each verdict that does not pass, and its workflow command without the leading kind (error or warning)."""
    competence = result.competence
    if competence is not None and competence.verdict is not Verdict.PASS:
        text = f"{result.model.name}: {result.skill_shown}, so nothing has passed"
        yield competence.verdict, _annotation(competence.source, "the model is not competent", text)
    for row in (*judged_levels(result), *worst_first(result)):
        for judgement in result.required_of(row):
            if judgement.verdict is not Verdict.PASS and not judgement.is_waived:
                title = f"{judgement.verdict} {row.path} {short_name(judgement.measure)}"
                yield judgement.verdict, _annotation(_source(judgement), title, _text(result, row, judgement))
    if result.comparison is not None:
        for regression in grown(result.comparison, Verdict.FAIL, Verdict.INCONCLUSIVE):
            title = f"{regression.verdict} against the baseline: {regression.path} {short_name(regression.measure)}"
            yield regression.verdict, _annotation(_source(regression), title, regression_headline(regression))


def _source(found: Judgement | Regression) -> str:
    """Return the line of the waiver if there is one (expired, or covering too little), else of the limit or margin."""
    return (found.waiver or found).source


def _text(result: AuditResult, row: SubtopicResult, judgement: Judgement) -> str:
    if judgement.verdict is Verdict.INCONCLUSIVE and not result.is_competent:
        return f"{row.path}: {short_name(judgement.measure)} cannot pass: the model is not competent"
    return headline(row, judgement)


def _annotation(source: str, title: str, text: str) -> str:
    file, _, line = source.rpartition(":")
    place = {"file": file, "line": line} if file and line.isascii() and line.isdigit() else {}
    properties = {**place, "title": f"Bias audit: {title}"}
    return f"{','.join(f'{key}={_escaped_property(value)}' for key, value in properties.items())}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
