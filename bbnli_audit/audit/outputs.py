"""Writes the files of a run: the report folder, a baseline for later runs, and the summary in a CI service."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bbnli_audit.core.errors import AuditError, OptionError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import NAME as RESULT
from bbnli_audit.core.results.file import read_result, write_result
from bbnli_audit.core.words import counted
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.reports.files import FILES, check_folder, remove_files, write_data, write_reports
from bbnli_audit.reports.folder import PAGE, SUMMARY, has_report
from bbnli_audit.reports.github import annotations, append_step_summary, is_github
from bbnli_audit.reports.report import Report
from bbnli_audit.reports.summary import summary_markdown

# A file in the report folder from the start of a run until everything is written. `bbnli-audit verify` looks for it.
UNFINISHED = "run-unfinished.txt"
_UNFINISHED_TEXT = "An audit began to write here and has not finished. If none is running, it broke: run it again.\n"


def name_from(path: Path, root: Path) -> str:
    """Return a path relative to the root folder: results must not depend on the machine they were made on."""
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.name


class Outputs:
    """Writes the files that the options ask for.

    `notes` and `troubles` are lines about these files for the user, `commands` are lines for the CI service.
    """

    _has_earlier = False  # the report folder holds the report of an earlier run

    def __init__(self, folder: Path | None, baseline: Path | None, root: Path, reports: Sequence[Report]) -> None:
        self._baseline = baseline
        self._baseline_name = "" if baseline is None else name_from(baseline, root)
        self.folder = folder
        self._reports = reports
        self.notes: list[str] = []
        self.troubles: list[str] = []
        self.commands: list[str] = []
        if baseline is not None:
            _check_place(baseline)
            self.keep("--bbnli-save-baseline", baseline)

    def keep(self, option: str, path: Path) -> None:
        """Refuse a path that files of the report folder would replace: a failed run would then destroy a baseline."""
        file = (path / RESULT if path.is_dir() else path).resolve()
        if self.folder is not None and file.parent == self.folder.resolve() and file.name in FILES:
            told = "is in the report folder, and the report of this run would replace it"
            raise OptionError(f"{option}={path}: {told} (--bbnli-report={self.folder}). Give another folder.")

    def prepare(self) -> None:
        """Make the report folder, and refuse one with files of others that would be replaced. Remove nothing yet."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise OptionError(f"--bbnli-report={self.folder}: cannot be made: {exc.strerror}.") from exc
        check_folder(self.folder, self._reports)
        self._has_earlier = has_report(self.folder)
        try:
            (self.folder / UNFINISHED).write_text(_UNFINISHED_TEXT, encoding="utf-8")
        except OSError as exc:
            raise OptionError(f"--bbnli-report={self.folder}: cannot be written to: {exc.strerror}.") from exc

    def write_nothing(self) -> None:
        """Say that a run without a result left the report of an earlier one in place."""
        if self._has_earlier:
            self.notes.append(f"Report not written: what is in {self.folder} is of an earlier run.")

    def write(
        self, result: AuditResult, get_pairs: Callable[[], PairTable], *, has_passed: bool, may_be_saved: bool = True
    ) -> None:
        """Write all files. If one cannot be written, the others still are.

        Only a run that has passed replaces an earlier baseline. Only with `may_be_saved` does a run become the first.
        """
        if self.folder is not None:
            pairs = get_pairs()
            with self._telling("--bbnli-report"):
                remove_files(self.folder, self._reports)  # no file with old figures must stay if writing fails
                write_data(result, pairs, self.folder)
                write_reports(result, pairs, self.folder, self._reports)
                self.notes.append(f"Report: {self.folder} (read {PAGE} first)")
        if self._baseline is not None:
            with self._telling("--bbnli-save-baseline"):
                self._save(result, self._baseline, has_passed=has_passed, may_be_saved=may_be_saved)
        self._tell_github(result)
        if self.folder is not None and not self.troubles:
            (self.folder / UNFINISHED).unlink(missing_ok=True)

    @contextmanager
    def _telling(self, option: str) -> Iterator[None]:
        try:
            yield
        except AuditError as exc:
            self.troubles.append(f"{option}: {exc}")

    def _save(self, result: AuditResult, path: Path, *, has_passed: bool, may_be_saved: bool) -> None:
        """Save the baseline. Replace an earlier baseline only if this run passed and has all of its subtopics."""
        name = self._baseline_name
        reason = _reason_to_keep(path, result, has_passed=has_passed)
        if reason is not None:
            self.notes.append(f"Baseline not saved: {name} is kept, because {reason}. Remove it to save this run.")
            return
        if not may_be_saved:
            advice = "Waive them, or keep the result.json that --bbnli-report writes by hand."
            self.notes.append(f"Baseline not saved: {name}: required limits are crossed without a waiver. {advice}")
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_result(result, path)
        except OSError as exc:
            raise OptionError(f"--bbnli-save-baseline={name}: cannot be written: {exc.strerror}.") from exc
        size = f"{counted(len(result.subtopics), 'subtopic')}, {counted(result.total.n_pairs, 'pair')}"
        self.notes.append(f"Baseline saved: {name} ({size})")

    def _tell_github(self, result: AuditResult) -> None:
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        if path:
            where = None if self.folder is None else f"{SUMMARY} in {self.folder.name}"
            warning = append_step_summary(summary_markdown(result), Path(path), where)
            if warning is not None:
                self.notes.append(warning)
        if is_github():
            self.commands.extend(annotations(result))


def _check_place(path: Path) -> None:
    """Refuse a place that cannot be written. Folders that do not exist yet are made when the baseline is saved."""
    folder = next((each for each in path.absolute().parents if each.exists()), path.parent)
    is_other = path.exists() and not path.is_file()
    if is_other or not folder.is_dir() or not os.access(folder, os.W_OK):
        problem = "is a folder or a device" if is_other else "its folder cannot be made, or cannot be written to"
        raise OptionError(f"--bbnli-save-baseline={path}: {problem}. Give the name of a file.")


def _reason_to_keep(path: Path, result: AuditResult, *, has_passed: bool) -> str | None:
    if not path.exists():
        return None
    if not has_passed:
        return "this run has not passed"
    try:
        earlier = {row.path for row in read_result(path).subtopics}
    except AuditError:
        return "it is not the result of an audit"
    missing = earlier - {row.path for row in result.subtopics}
    return f"this run lacks {len(missing)} of its subtopics" if missing else None
