"""`run_audit` and the plugin give the same result.json, byte for byte."""

from pathlib import Path

import pytest

from bbnli_audit import AuditOptions, run_audit
from tests.e2e.runs import run_pytest
from tests.shared_data import shared_path
from tests.warm.runs import ROOT

FIRST = "--bbnli-suite=bbnli@1"  # whose controls the models can do, so that they can be compared
SMALL = "--bbnli-size=small"  # a fifth of the pairs: what differs between the two ways does so with any number
RUNS = {
    "labels": ["--model=demo", "--bbnli-exclude=bbnli/religion/*", FIRST, SMALL],
    "several suites": ["--model=planted:always-pro", "--bbnli-suite=occupations,winoqueer", SMALL],
    "a baseline and a second model": ["--model={tiny}", "--bbnli-baseline={base}", "--bbnli-also=demo", FIRST, SMALL],
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint, a result of another one to compare with, and a store that all runs share."""
    folder = tmp_path_factory.mktemp("same")
    given = {"thresholds": ROOT / "thresholds.yaml", "report": folder, "store": folder / "store"}
    run_audit(AuditOptions(model="demo", suite="bbnli@1", size="small", **given))  # type: ignore[arg-type]
    return {"tiny": shared_path("models", "tiny-nli"), "base": folder / "result.json", "store": folder / "store"}


@pytest.mark.e2e
@pytest.mark.parametrize("name", RUNS)
def test_both_write_the_same_result(
    name: str, places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = [arg.format(**places) for arg in RUNS[name]]
    done = run_pytest("audits", *args, f"--bbnli-report={tmp_path / 'plugin'}", f"--bbnli-store={places['store']}")
    assert (tmp_path / "plugin" / "result.json").exists(), done.stdout
    monkeypatch.chdir(ROOT)
    given = dict(arg.removeprefix("--").removeprefix("bbnli-").split("=", 1) for arg in args)
    options = {key: Path(value) if key == "baseline" else value for key, value in given.items()}
    run_audit(AuditOptions(**options, report=tmp_path / "direct", store=places["store"]))  # type: ignore[arg-type]
    for file in ("result.json", "pairs.csv", "report.html", "summary.md"):
        assert (tmp_path / "plugin" / file).read_bytes() == (tmp_path / "direct" / file).read_bytes(), file
