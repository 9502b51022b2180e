"""Fixtures that several files of unit tests share: for calibration, a measured result and a project with it."""

from pathlib import Path

import pytest

from bbnli_audit import AuditResult
from tests.calibrated import measure_invented, write_project


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    """A measured result whose bounds are known."""
    return measure_invented(tmp_path_factory.mktemp("data"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: AuditResult) -> Path:
    """A working folder with that result and a threshold file."""
    monkeypatch.chdir(tmp_path)
    return write_project(tmp_path, measured)
