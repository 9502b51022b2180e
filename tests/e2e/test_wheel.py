"""The wheel holds what an audit needs: a flat layout hides what was forgotten."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


def run_python(*args: str, cwd: Path, code: int = 0, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_init_and_an_audit_from_the_installed_wheel(tmp_path: Path) -> None:
    site, project = tmp_path / "site", tmp_path / "project"
    run_python("-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={tmp_path}", str(ROOT), cwd=tmp_path)
    wheel = next(tmp_path.glob("*.whl"))
    run_python("-m", "pip", "install", "--quiet", "--no-deps", f"--target={site}", str(wheel), cwd=tmp_path)
    assert (site / "bbnli_audit" / "py.typed").exists()
    assert (site / "bbnli_audit" / "models" / "demo" / "model.safetensors").exists()
    project.mkdir()
    where = run_python("-c", "import bbnli_audit; print(bbnli_audit.__file__)", cwd=project, PYTHONPATH=str(site))
    assert Path(where.strip()).is_relative_to(site)
    out = run_python("-m", "bbnli_audit.frontends.cli.main", "init", cwd=project, PYTHONPATH=str(site))
    assert out.startswith("wrote       thresholds.yaml\nwrote       audits/test_bias.py\n")
    # An empty folder, then init, then this: the demo model crosses no limit.
    out = run_python(
        "-m",
        "pytest",
        "--model",
        "demo",
        "--bbnli-size=small",
        cwd=project,
        code=0,
        PYTHONPATH=str(site),
        HF_HUB_OFFLINE="1",
        COLUMNS="160",
    )
    assert "24 subtopics audited: " in out
    verdicts = ("FAIL ", "INCONCLUSIVE ", "PASS ")
    assert sum(line.startswith(verdicts) and " bbnli/" in line for line in out.splitlines()) == 24 + 7  # and domains
