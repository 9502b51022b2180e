"""Verifies from the files of a run that a given model passed, completely and recently, with given limits and suites.

An exit code comes from the process that ran the model, and the model's own code can end that process with any exit
code. So another process reads the files of the run, and decides again whatever can be decided from them.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from bbnli_audit.audit.audit import Audit
from bbnli_audit.audit.findings import describe_suites
from bbnli_audit.audit.gate.idle import find_idle_limits
from bbnli_audit.audit.gate.recheck import recheck_growth, recheck_limits
from bbnli_audit.audit.gate.verdict import find_unmet, why_not_green
from bbnli_audit.core.errors import ResultError, list_some
from bbnli_audit.core.reading import Source
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import NAME, read_result
from bbnli_audit.core.results.rows import SuiteInfo
from bbnli_audit.core.versions import VERSION
from bbnli_audit.core.words import counted
from bbnli_audit.reports.files import read_pairs
from bbnli_audit.reports.folder import FINISHED, FINISHED_MARK, UNFINISHED
from bbnli_audit.suites.sizes import FULL

_CLOCKS_DIFFER = 1.0  # hours by which the clock of another machine may be ahead of ours


def read_left(folder: Path, max_hours: float) -> AuditResult:
    """Read the result in a report folder. Raise a ResultError if it is missing, unfinished, invalid or too old."""
    path = folder / NAME
    try:
        is_unfinished = (folder / UNFINISHED).exists()
    except OSError as exc:
        raise ResultError(f"{folder}: cannot be read: {exc.strerror}.") from exc
    if is_unfinished:
        raise ResultError(f"{folder}: the run that began last has not finished ({UNFINISHED} is there). Run it again.")
    result = read_result(path)
    hours = (datetime.now(UTC) - _read_finished(folder)).total_seconds() / 3600
    if not -_CLOCKS_DIFFER <= hours <= max_hours:
        told = f"was written {hours:.1f} hours ago, and --max-age allows {max_hours:g}"
        raise ResultError(f"{path}: {told}. Run the audit again, or allow more.")
    return result


def _read_finished(folder: Path) -> datetime:
    """Return the time at which the run finished, as the run noted it in its folder."""
    source = Source(folder / FINISHED, ResultError, str(folder / FINISHED), advice="Run the audit again.")
    text = source.read_text()
    try:
        found = datetime.fromisoformat(text.removeprefix(FINISHED_MARK).rstrip(".\n"))
    except ValueError as exc:
        raise source.wrong("does not say when the run finished") from exc
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def find_faults(result: AuditResult, folder: Path, audit: Audit, fingerprint: str | None) -> Iterator[str]:
    """Yield the reasons why a result is not a complete pass of `audit`. Yield nothing if it is one.

    `audit` is made from the options that the run should have had. `fingerprint` is the fingerprint that the model has
    now. It is None if the model could not be opened.
    """
    yield from _check_model(result, str(audit.options.model), fingerprint)
    yield from _check_suites(result, folder, audit)
    yield from recheck_limits(result, audit.thresholds, audit.subtopics)
    if audit.regressions is not None:
        yield from recheck_growth(result, audit.regressions, audit.thresholds, audit.subtopics)
    idle = find_idle_limits(result)
    if idle:
        yield f"nothing can cross some limits: {list_some(idle)}"
    unmet = [f"{path} {measure} is {verdict}" for (path, measure), verdict in find_unmet(result)]
    if unmet:
        yield f"the decision is not a pass: {list_some(unmet)}"
    reason = why_not_green(result) or next(iter(result.troubles), None)
    if reason is not None:
        yield f"the decision is not a pass: {reason.rstrip('.')}"


def _check_model(result: AuditResult, name: str, fingerprint: str | None) -> Iterator[str]:
    found, written = result.model, result.settings.versions.get("bbnli-audit")
    if fingerprint is None:
        yield f"the model {name} cannot be opened, or ended the process that opened it"
    elif found.fingerprint != fingerprint:
        now = f"{name} is now another model ({fingerprint[:12]})"
        yield f"it is about {found.name} ({found.fingerprint[:12]}), and {now}"
    if written != VERSION:
        yield f"it was written by bbnli-audit {written}, and this is {VERSION}"


def _check_suites(result: AuditResult, folder: Path, audit: Audit) -> Iterator[str]:
    found, expected = _tell(result.suites), _tell(describe_suites(audit.items))
    if found != expected:
        yield f"it is about the suites {found}, and should be about {expected}"
        return
    if result.settings.size != FULL:
        yield f"it is about a part of the pairs (--bbnli-size={result.settings.size})"
        return
    audited = {row.path for row in result.subtopics}
    missing = [path for path in audit.items.subtopics if path not in audited]
    if missing:
        yield f"{len(missing)} of {len(audit.items.subtopics)} subtopics were not audited ({list_some(missing)})"
    yield from _check_pairs(result, folder, audit)


def _tell(suites: Iterable[SuiteInfo]) -> str:
    return ", ".join(sorted(f"{each.name} {each.version} ({each.pairing}, {each.sha256[:12]})" for each in suites))


def _check_pairs(result: AuditResult, folder: Path, audit: Audit) -> Iterator[str]:
    try:
        table = read_pairs(result, folder)
    except ResultError as exc:
        yield str(exc).partition("\n")[0].rstrip(".")
        return
    found: dict[str, set[str]] = {}
    for path, pair_id in zip(table.paths(), table.frame["pair_id"].tolist(), strict=True):
        found.setdefault(path, set()).add(str(pair_id))
    for row in result.subtopics:
        if row.path in audit.subtopics:
            subtopic, own = audit.subtopics[row.path], found.get(row.path, set())
            expected = {pair.id for pair in audit.items.pairs(subtopic)}
            # The number of pairs whose two sides differ as texts, but are alike to the model.
            n_alike = row.n_identical - audit.items.of(subtopic).n_identical
            n_other = len(expected ^ own)
            if n_other != n_alike or own - expected:
                yield f"{row.path}: the result and the suite differ in {counted(n_other, 'pair')}"
