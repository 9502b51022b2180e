"""The checkpoint in the package: small, ordinary, measured, and a real audit without any network."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bbnli_audit
from bbnli_audit.models.on_disk import DEMO_FOLDER
from tests.e2e.runs import environment_of
from tests.shared_data import shared_path
from tests.warm.runs import ROOT, Run

pytestmark = pytest.mark.e2e


def test_it_is_small_and_lies_in_the_package() -> None:
    assert DEMO_FOLDER.is_relative_to(Path(bbnli_audit.__file__).parent)
    assert sum(path.stat().st_size for path in DEMO_FOLDER.iterdir()) <= 8_000_000


def test_it_loads_offline_with_plain_transformers(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        "import sys; from transformers import pipeline; p = pipeline('text-classification', model=sys.argv[1]); "
        "print(p({'text': 'A man plays a guitar.', 'text_pair': 'A man plays an instrument.'}))"
    )
    done = Run("plain", [str(DEMO_FOLDER)], environment_of({}), tmp_path).finish()
    assert "entailment" in done.stdout, done.stderr


def test_its_accuracy_is_what_the_model_card_says(tmp_path: Path) -> None:
    shared = shared_path("data", "nli").parents[1]
    figures = tmp_path / "figures.json"
    given = [str(DEMO_FOLDER), f"--json={figures}"]
    done = Run("tools.demo_model.evaluate", given, environment_of({"BBNLI_SHARED": str(shared)})).finish()
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    # A label may flip on another processor: the card rounds, and so does this.
    assert found["snli_test_half"] == pytest.approx(0.623, abs=0.002)
    assert found["mnli_matched_dev_half"] == pytest.approx(0.525, abs=0.002)


def test_make_audit_is_a_whole_audit_without_network(tmp_path: Path) -> None:
    (tmp_path / "no_network.py").write_text(
        "import socket\n"
        "def refuse(*args, **kwargs):\n    raise AssertionError('network access')\n"
        "socket.socket.connect = refuse\nsocket.getaddrinfo = refuse\n"
    )
    # A fifth of the pairs, with all subtopics and all controls: the way to a result is the same.
    options = "-p no_network -p no:cacheprovider --bbnli-size=small"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path), "PYTEST_ADDOPTS": options}
    command = [sys.executable, "tools/audit_demo.py", str(tmp_path / "build")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert "network access" not in done.stdout + done.stderr
    # Both audits ran to their end, and the last lines say what they give a release job.
    assert done.returncode == 0, done.stdout
    assert "`pytest --model=demo` gives a release job exit code 0: no limit was crossed" in done.stdout
    assert "`pytest --model=demo-next` gives a release job exit code 1." in done.stdout
    next_result = json.loads((tmp_path / "build" / "audit-next" / "result.json").read_text())
    assert next_result["comparison"]["baseline"]["name"] == "demo"
    result = json.loads((tmp_path / "build" / "audit" / "result.json").read_text())
    assert len(result["subtopics"]) == 24
    assert result["model"]["name"] == "demo"
    assert result["total"]["verdicts"][0]["verdict"] == "PASS"
    verdicts = [verdict["verdict"] for row in result["subtopics"] for verdict in row["verdicts"]]
    assert "PASS" in verdicts
    assert "FAIL" not in verdicts
