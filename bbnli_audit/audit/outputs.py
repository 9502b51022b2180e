"""Writes the files of a run: the report folder, a baseline for later runs, and the summary in a CI service."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bbnli_audit.core.errors import AuditError, OptionError, list_some
from bbnli_audit.core.files import replacing
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import NAME as RESULT
from bbnli_audit.core.results.file import read_result, write_result
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.words import counted
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.reports.files import FILES, check_folder, remove_files, write_data, write_reports
from bbnli_audit.reports.folder import (
    PAGE,
    SUMMARY,
    UNFINISHED,
    UNFINISHED_TEXT,
    has_report,
    mark_finished,
    writing,
)
from bbnli_audit.reports.github import annotations, append_step_summary, is_github
from bbnli_audit.reports.report import Report
from bbnli_audit.reports.summary import summary_markdown

NOT_PASSED = "this run has not passed. Save a run that ends with 0."  # why the run is not saved as a baseline


def name_from(path: Path, root: Path) -> str:
    """Return a path relative to the root folder: results must not depend on the machine they were made on."""
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # on Windows: the path is on another drive
        return path.name


class Outputs:
    """Writes the files that the options ask for.

    `notes` and `troubles` are lines for the user about these files. `commands` are lines for the CI service.
    """

    _has_earlier = False  # whether the report folder holds the report of an earlier run

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
        """Refuse a path if this run would replace the file there. Even a failed run could then destroy a baseline."""
        file = (path / RESULT if path.is_dir() else path).resolve()
        if option == "--bbnli-store" and self._baseline is not None and file == self._baseline.resolve():
            raise OptionError(f"{option}={path}: is also --bbnli-save-baseline. Give them two names.")
        if self.folder is not None and file.parent == self.folder.resolve() and file.name in FILES:
            told = "is in the report folder, and the report of this run would replace it"
            raise OptionError(f"{option}={path}: {told} (--bbnli-report={self.folder}). Give another folder.")

    def keep_apart(self, reader_of: Callable[[Path], str | None]) -> None:
        """Refuse to write where a model or a suite reads its files. `reader_of` names that model or suite."""
        report = None if self.folder is None else self.folder / RESULT
        for option, path, file in (
            ("--bbnli-report", self.folder, report),
            ("--bbnli-save-baseline", self._baseline, self._baseline),
        ):
            what = None if file is None else reader_of(file)
            if what is not None:
                told = f"{what} reads its files there, and what is written would become one of them"
                raise OptionError(f"{option}={path}: {told}. Give another folder.")

    def prepare(self) -> None:
        """Make the report folder, and mark the run as unfinished. The files of an earlier run stay for now.

        Refuse a folder in which someone else's file would be replaced.
        """
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            reason = "it is a link that leads nowhere" if self.folder.is_symlink() else exc.strerror
            raise OptionError(f"--bbnli-report={self.folder}: cannot be made: {reason}.") from exc
        check_folder(self.folder, self._reports)
        self._has_earlier = has_report(self.folder)
        try:
            with replacing(self.folder / UNFINISHED) as file:
                file.write(UNFINISHED_TEXT)
        except OSError as exc:
            raise OptionError(f"--bbnli-report={self.folder}: cannot be written to: {exc.strerror}.") from exc

    def write_nothing(self) -> None:
        """If the folder holds the report of an earlier run, note that this run did not replace it."""
        if self._has_earlier:
            self.notes.append(f"Report not written: the files in {self.folder} are from an earlier run.")

    def write(self, result: AuditResult, get_pairs: Callable[[], PairTable], why_no_pass: str | None) -> None:
        """Write all files. If the report cannot be written, the run does not pass.

        `why_no_pass` says why the run is not a complete pass; None if it is one. Only a complete pass is saved as a
        baseline.
        """
        if self.folder is not None:
            pairs = get_pairs()
            with self._telling("--bbnli-report"):
                remove_files(self.folder, self._reports)  # if writing fails, no file with old figures may stay
                write_data(result, pairs, self.folder)
                write_reports(result, pairs, self.folder, self._reports)
                self.notes.append(f"Report: {self.folder} (read {PAGE} first)")
        if self._baseline is not None:
            with self._telling("--bbnli-save-baseline"):
                self._save(result, self._baseline, NOT_PASSED if self.troubles else why_no_pass)
        self._tell_github(result)
        if self.folder is not None and not self.troubles:
            with self._telling("--bbnli-report"), writing(self.folder, f"--bbnli-report={self.folder}"):
                mark_finished(self.folder)

    @contextmanager
    def _telling(self, option: str) -> Iterator[None]:
        try:
            yield
        except AuditError as exc:
            told = str(exc)
            self.troubles.append(told if told.startswith(option) else f"{option}: {told}")

    def _save(self, result: AuditResult, path: Path, why_no_pass: str | None) -> None:
        """Save the result as the baseline, if it may be one."""
        name = self._baseline_name
        reason = _why_not_saved(result, why_no_pass) or _why_kept(path, result)
        if reason is not None:
            what = "kept" if path.exists() else "not written"
            self.notes.append(f"Baseline not saved: {name} is {what}, because {reason}")
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_result(result, path.resolve())  # if the path is a link, replace the file it points to
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


def _why_not_saved(result: AuditResult, why_no_pass: str | None) -> str | None:
    """Say why a result must not be the baseline of later releases; None if it may be.

    Crossed limits count even if no test required them: which tests ran must not decide how lenient the baseline is.
    """
    crossed = [
        f"{row.path} {each.measure}"
        for row in result.all_rows
        for each in row.verdicts
        if each.verdict is Verdict.FAIL and not each.is_waived
    ]
    if crossed:
        advice = f"Waive them, or keep by hand the {RESULT} that --bbnli-report writes."
        return f"limits are crossed without a waiver ({list_some(crossed)}). {advice}"
    missing = sorted({*result.settings.not_audited} - {*result.settings.excluded})
    if missing:
        n_all, were = len(missing) + len(result.subtopics), "was" if len(missing) == 1 else "were"
        told = f"{len(missing)} of {counted(n_all, 'subtopic')} {were} not audited ({list_some(missing)})"
        return f"{told}. Audit all of them, or name those to leave out: --bbnli-exclude=PATHS."
    return why_no_pass


def _why_kept(path: Path, result: AuditResult) -> str | None:
    """Say why an existing file must not be replaced by this result; None if it may be."""
    if not path.exists():
        return None
    try:
        earlier = {row.path for row in read_result(path).subtopics}
    except AuditError:
        return "it is not the result of an audit. Give another name."
    missing = earlier - {row.path for row in result.subtopics}
    lacks = f"it has {counted(len(missing), 'subtopic')} that this run lacks"
    return f"{lacks}. Remove the file to save this run." if missing else None
