"""The export to MLflow, read back from a real local store."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit import AuditError, AuditOptions, AuditResult, Extensions, mlflow_report, run_audit
from bbnli_audit.core.results.file import read_result
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.reports.mlflow_export import metrics_of, tags_of
from bbnli_audit.suites.bbnli import Bbnli
from tests.browser import pages
from tests.invented import LEVELS, limits, write_large_suite
from tests.reported import HOSTILE

pytestmark = pytest.mark.slow

ZORBS = "bbnli/planets/zorbs_are_to_juggling"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of an empty store in a folder."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the other stores of MLflow need a server or a database
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    if os.environ.get("CI") != "true":
        pytest.importorskip("mlflow", reason='needs MLflow: pip install "bbnli-audit[mlflow]"')
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=(tmp_path / "store").as_uri())


def audit(store: Any, folder: Path, **to: Any) -> tuple[AuditResult, dict[str, Any]]:
    """Audit with the export as an extension, and return the result and what mlflow.json says."""
    data = write_large_suite(folder / "data")
    options = AuditOptions(
        model=PlantedPredictor("always-pro", [Bbnli(data)]),
        thresholds=limits(LEVELS),
        data=data,
        report=folder / "out",
        release="r1",
        extensions=(Extensions(reports=[mlflow_report(tracking_uri=store.tracking_uri, **to)]),),
    )
    result = run_audit(options)
    return result, json.loads((folder / "out" / "mlflow.json").read_text(encoding="utf-8"))


def test_a_run_has_all_measures_and_the_files_of_the_report(store: Any, tmp_path: Path) -> None:
    result, told = audit(store, tmp_path, experiment="zorbs")
    run = store.get_run(told["run_id"])
    assert (run.info.run_name, run.info.status) == ("r1", "FINISHED")
    assert store.get_experiment(run.info.experiment_id).name == "zorbs"
    for row in (*result.suite_rows, *result.domains, *result.subtopics):
        for name, measured in row.measures.items():
            ends = ("", ".low", ".high")
            assert [run.data.metrics[f"{row.path}/{name}{end}"] for end in ends] == [
                measured.value, measured.low, measured.high,
            ]  # fmt: skip
    assert run.data.metrics["verdicts/FAIL"] == 5
    assert len(run.data.metrics) == told["n_metrics"]
    assert run.data.tags["bbnli.release"] == "r1"
    assert run.data.tags["bbnli.fingerprint"] == result.model.fingerprint
    assert run.data.tags["bbnli.verdict"].startswith("1 of 1 suite")
    files = {file.path for file in store.list_artifacts(told["run_id"])}
    assert files == {"result.json", "report.html", "summary.md", "model_card.md"}
    for name in files - {"result.json"}:
        kept = Path(store.download_artifacts(told["run_id"], name, str(tmp_path)))
        assert kept.read_bytes() == (tmp_path / "out" / name).read_bytes()
    kept = Path(store.download_artifacts(told["run_id"], "result.json", str(tmp_path)))
    assert read_result(kept) == read_result(tmp_path / "out") == result


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditResult, PairTable]:
    return pages.audit(tmp_path_factory.mktemp("audited"), 3)


def test_each_audit_is_a_run_of_one_experiment(store: Any, audited: tuple[AuditResult, PairTable]) -> None:
    report = mlflow_report(tracking_uri=store.tracking_uri)
    runs = [json.loads(report.render(*audited))["run_id"] for _ in range(2)]
    experiment = store.get_experiment_by_name("bias-audit")
    assert {run.info.run_id for run in store.search_runs([experiment.experiment_id])} == set(runs)


def test_a_run_that_exists_goes_on(store: Any, audited: tuple[AuditResult, PairTable]) -> None:
    own = store.create_run(store.create_experiment("training"), run_name="epoch 3").info.run_id
    report = mlflow_report(tracking_uri=store.tracking_uri, run_id=own)
    assert json.loads(report.render(*audited))["run_id"] == own
    run = store.get_run(own)
    assert (run.info.run_name, run.info.status) == ("epoch 3", "RUNNING")
    assert run.data.metrics[f"{ZORBS}/pro_rate"] == audited[0].subtopics[1].measures["pro_rate"].value


def test_a_run_that_breaks_off_is_marked(store: Any, audited: tuple[AuditResult, PairTable], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    experiment = store.create_experiment("broken", artifact_location=(tmp_path / "file" / "below").as_uri())
    with pytest.raises(OSError, match="file"):
        mlflow_report("broken", store.tracking_uri).render(*audited)
    assert [run.info.status for run in store.search_runs([experiment])] == ["FAILED"]


def test_a_store_that_cannot_be_used_is_told_and_all_other_files_are_there(store: Any, tmp_path: Path) -> None:
    with pytest.raises(AuditError, match=r"The report 'mlflow.json' could not be made: MlflowException: "):
        audit(store, tmp_path, run_id="0" * 32)
    assert (tmp_path / "out" / "report.html").exists()


def test_any_names_can_be_logged(store: Any, audited: tuple[AuditResult, PairTable]) -> None:
    from mlflow.entities import Metric, RunTag

    run_id = store.create_run(store.create_experiment("names")).info.run_id
    for name in (*HOSTILE, "a/../b", "x" * 400):
        row = replace(audited[0].subtopics[0], path=name)
        named = replace(audited[0], subtopics=(row,), model=replace(audited[0].model, name=name))
        store.log_batch(
            run_id,
            metrics=[Metric(key, value, 0, 0) for key, value in metrics_of(named).items()],
            tags=[RunTag(key, value) for key, value in tags_of(named).items()],
        )


def test_what_is_absent_has_no_tag(audited: tuple[AuditResult, PairTable]) -> None:
    tags = tags_of(replace(audited[0], release=None))
    assert not {"bbnli.release", "bbnli.date", "bbnli.commit"} & set(tags)
    assert "bbnli.verdict" in tags


def test_a_missing_package_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bbnli_audit.reports.mlflow_export.find_spec", lambda _: None)
    with pytest.raises(AuditError) as caught:
        mlflow_report()
    assert str(caught.value) == 'mlflow_report needs the package mlflow-skinny: pip install "bbnli-audit[mlflow]"'
