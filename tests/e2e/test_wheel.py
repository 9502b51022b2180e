"""The wheel holds what an audit needs: a flat layout hides what was forgotten."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.invented import LIMITS
from tests.plugin.conftest import AUDITS

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


def run_python(*args: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_audit_from_the_installed_wheel(tmp_path: Path) -> None:
    site, project = tmp_path / "site", tmp_path / "project"
    run_python("-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={tmp_path}", str(ROOT), cwd=tmp_path)
    wheel = next(tmp_path.glob("*.whl"))
    run_python("-m", "pip", "install", "--quiet", "--no-deps", f"--target={site}", str(wheel), cwd=tmp_path)
    assert (site / "bbnli_audit" / "py.typed").exists()
    assert (site / "bbnli_audit" / "models" / "demo" / "model.safetensors").exists()
    (project / "audits").mkdir(parents=True)
    (project / "audits" / "test_audits.py").write_text(AUDITS)
    (project / "thresholds.yaml").write_text(LIMITS)
    where = run_python("-c", "import bbnli_audit; print(bbnli_audit.__file__)", cwd=project, PYTHONPATH=str(site))
    assert Path(where.strip()).is_relative_to(site)
    out = run_python("-m", "pytest", "audits", "--model=planted:ideal", cwd=project, PYTHONPATH=str(site))
    assert "16 subtopics audited: 16 PASS." in out
