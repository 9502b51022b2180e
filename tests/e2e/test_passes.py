"""One pass and its store, in whole runs: killed, resumed, at once, changed, and without torch."""

import shutil
import signal
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.runs import read_report, read_usage, run_cold_pytest, run_pytest, start_pytest
from tests.shared_data import shared_path
from tests.warm.runs import ROOT

pytestmark = pytest.mark.e2e


class Whole(NamedTuple):
    """One run that nothing happened to: what was given, its store and its report."""

    given: tuple[str, ...]
    store: Path
    report: Path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    # One domain is enough, and the tests stay short.
    shutil.copytree(
        shared_path("data", "bbnli", "religion"), folder / "data" / "religion", copy_function=shutil.copyfile
    )
    given = (f"--model={shared_path('models', 'tiny-nli')}", f"--bbnli-data={folder / 'data'}")
    done = run_pytest(*given, f"--bbnli-store={folder / 'store'}", f"--bbnli-report={folder / 'report'}")
    n_texts, n_stored, n_predicted = read_usage(done.stdout)
    assert (n_stored, n_predicted) == (0, n_texts)
    assert n_texts > 400
    return Whole(given, folder / "store", folder / "report")


def n_kept(store: Path) -> int:
    with suppress(sqlite3.Error):
        connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        with suppress(sqlite3.Error):
            return int(connection.execute("SELECT count(*) FROM predictions").fetchone()[0])
        connection.close()
    return 0


@pytest.mark.parametrize("mode", [[], ["-n", "2"]], ids=["plain", "n2"])
def test_a_killed_run_resumes_where_it_stopped(tmp_path: Path, whole: Whole, mode: list[str]) -> None:
    store, report = tmp_path / "store", tmp_path / "report"
    args = [*whole.given, *mode, f"--bbnli-store={store}", f"--bbnli-report={report}"]
    killed = start_pytest(*args)
    deadline = time.monotonic() + 120
    while n_kept(store) < 100 and not killed.is_over() and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.kill()
    assert killed.finish().returncode == -signal.SIGKILL
    assert not (report / "result.json").exists()

    again = run_pytest(*args)
    n_texts, n_stored, n_predicted = read_usage(again.stdout)
    assert n_stored >= 100
    assert n_stored + n_predicted == n_texts
    for name in ("result.json", "pairs.csv"):
        assert (report / name).read_bytes() == (whole.report / name).read_bytes()


def test_two_runs_at_once_share_one_store(tmp_path: Path, whole: Whole) -> None:
    args = [*whole.given, f"--bbnli-store={tmp_path / 'store'}"]
    reports = [tmp_path / name for name in ("one", "two")]
    runs = [start_pytest(*args, f"--bbnli-report={report}") for report in reports]
    usages = [read_usage(run.finish().stdout) for run in runs]
    n_texts = usages[0][0]
    assert sum(n_predicted for _, _, n_predicted in usages) == n_texts
    assert all(n_predicted > 0 for _, _, n_predicted in usages)
    for report in reports:
        assert read_report(report) == read_report(whole.report)


FORBID = """
import sys

class Forbid:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "tokenizers", "safetensors"):
            raise ImportError(f"{name} is not to be imported")

sys.meta_path.insert(0, Forbid())
"""


def test_a_changed_limit_needs_no_model(tmp_path: Path, whole: Whole) -> None:
    limits = (ROOT / "thresholds.yaml").read_text().replace("max_brittleness: 0.20", "max_brittleness: 0.99")
    (tmp_path / "limits.yaml").write_text(limits)
    (tmp_path / "forbid_torch.py").write_text(FORBID)
    args = [*whole.given, f"--bbnli-store={whole.store}", f"--bbnli-report={tmp_path / 'report'}"]
    done = run_cold_pytest(
        *args, *("-p", "forbid_torch", f"--bbnli-thresholds={tmp_path / 'limits.yaml'}"), PYTHONPATH=str(tmp_path)
    )
    n_texts, n_stored, n_predicted = read_usage(done.stdout)
    assert (n_stored, n_predicted) == (n_texts, 0)
    found, expected = (read_report(folder) for folder in (tmp_path / "report", whole.report))
    assert found[1] == expected[1]
    assert found[0]["settings"]["thresholds"] != expected[0]["settings"]["thresholds"]
    assert [row["counts"] for row in found[0]["subtopics"]] == [row["counts"] for row in expected[0]["subtopics"]]


def test_a_truncated_store_costs_time_and_no_number(tmp_path: Path, whole: Whole) -> None:
    store = tmp_path / "store"
    content = whole.store.read_bytes()
    store.write_bytes(content[: len(content) // 2])
    done = run_pytest(*whole.given, f"--bbnli-store={store}", f"--bbnli-report={tmp_path / 'report'}")
    assert read_report(tmp_path / "report") == read_report(whole.report)
    assert f"Warning: the prediction store {store} is damaged" in done.stdout
    assert (tmp_path / "store.damaged-1").exists()


def test_a_copy_is_the_same_model_and_without_a_store_all_is_predicted(tmp_path: Path, whole: Whole) -> None:
    store, folder = tmp_path / "store", tmp_path / "other name"
    shutil.copyfile(whole.store, store)
    shutil.copytree(shared_path("models", "tiny-nli"), folder, copy_function=shutil.copyfile)
    args = [f"--model={folder}", whole.given[1], "-k", "competence"]
    n_texts, n_stored, n_predicted = read_usage(run_pytest(*args, f"--bbnli-store={store}").stdout)
    assert (n_stored, n_predicted) == (n_texts, 0)
    assert read_usage(run_pytest(*args, "--bbnli-no-store").stdout) == (n_texts, 0, n_texts)


def test_a_run_on_ray_equals_a_local_run(tmp_path: Path, whole: Whole) -> None:
    report = tmp_path / "report"
    done = run_pytest(
        *whole.given, "--bbnli-engine=ray", f"--bbnli-store={tmp_path / 'store'}", f"--bbnli-report={report}"
    )
    n_texts, n_stored, n_predicted = read_usage(done.stdout)
    assert (n_stored, n_predicted) == (0, n_texts)
    for name in ("result.json", "pairs.csv"):
        assert (report / name).read_bytes() == (whole.report / name).read_bytes()
    # The same store serves the local engine.
    again = run_pytest(*whole.given, f"--bbnli-store={tmp_path / 'store'}")
    assert read_usage(again.stdout) == (n_texts, n_texts, 0)


def test_a_fast_path_says_how_far_it_agrees(tmp_path: Path, whole: Whole) -> None:
    args = [*whole.given, "--bbnli-backend=onnx", "-k", "wives", f"--bbnli-store={whole.store}"]
    done = run_pytest(*args, f"--bbnli-report={tmp_path}")
    result, _ = read_report(tmp_path)
    agreement = result["settings"]["agreement"]
    assert agreement["n_checked"] > 48
    assert agreement == {"n_checked": agreement["n_checked"], "n_different": 0, "limit": 0.01}
    assert f"Computed with onnx, float32: on {agreement['n_checked']} texts that were also run on" in done.stdout
    exact = next(
        row for row in read_report(whole.report)[0]["subtopics"] if row["path"] == result["subtopics"][0]["path"]
    )
    assert result["subtopics"][0]["counts"] == exact["counts"]
    assert result["model"]["fingerprint"] != read_report(whole.report)[0]["model"]["fingerprint"]
