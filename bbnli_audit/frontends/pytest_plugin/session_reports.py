"""What one run of pytest leaves behind: the report folder, a baseline for later, and what a CI service shows."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bbnli_audit.core.errors import AuditError, OptionError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.frontends.pytest_plugin.session_baseline import SavedBaseline
from bbnli_audit.reports.files import PAGE, SUMMARY, remove_files, write_data, write_reports
from bbnli_audit.reports.github import annotations, append_step_summary, is_github

if TYPE_CHECKING:
    import pandas as pd


class SessionReports:
    """Writes the files that the options ask for, at the end of the run, in the process that gathers the results."""

    def __init__(self, config: pytest.Config, find_path: Callable[[str], Path | None]) -> None:
        saved = find_path("save_baseline")
        self._saved = None if saved is None else SavedBaseline(saved, config.rootpath)
        self.folder = find_path("report")
        if self.folder is not None:
            self._prepare(
                self.folder, is_used=not hasattr(config, "workerinput") and not config.getoption("collectonly")
            )
        self._notes: list[str] = []
        self.troubles: list[str] = []

    @staticmethod
    def _prepare(folder: Path, *, is_used: bool) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if is_used:
                remove_files(folder)  # a run that breaks must not leave an earlier run's figures behind
        except OSError as exc:
            raise OptionError(f"--bbnli-report={folder}: cannot be made: {exc.strerror}.") from exc

    def write(self, result: AuditResult, get_pairs: "Callable[[], pd.DataFrame]", *, has_passed: bool) -> None:
        """Write everything; what cannot be written costs nothing else.

        Args:
            result: What was found.
            get_pairs: Gives the pair table with its sentences; only a report needs it.
            has_passed: Whether the run may replace a baseline.
        """
        if self.folder is not None:
            folder, pairs = self.folder, get_pairs()
            if self._try("--bbnli-report", lambda: write_data(result, pairs, folder)):
                self._try("--bbnli-report", lambda: write_reports(result, pairs, folder))
            if not self.troubles:
                self._notes.append(f"Report: {folder} (read {PAGE} first)")
        if self._saved is not None:
            saved = self._saved
            self._try("--bbnli-save-baseline", lambda: self._notes.append(saved.save(result, has_passed=has_passed)))
        self._tell_github(result)

    def _try(self, option: str, write: Callable[[], None]) -> bool:
        try:
            write()
        except AuditError as exc:
            self.troubles.append(f"{option}: {exc}")
            return False
        return True

    def _tell_github(self, result: AuditResult) -> None:
        from bbnli_audit.reports.summary import summary_markdown

        path = os.environ.get("GITHUB_STEP_SUMMARY")
        if path:
            where = None if self.folder is None else f"{SUMMARY} in {self.folder.name}"
            warning = append_step_summary(summary_markdown(result), Path(path), where)
            if warning is not None:
                self._notes.append(warning)
        if is_github():
            self._notes.extend(annotations(result))

    def lines(self) -> Iterator[str]:
        yield from self._notes
