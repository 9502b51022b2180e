"""Exports a result to MLflow, as a `Report` (docs/extending.md). This report, mlflow.json, has MLflow's run id."""

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.printable import printable
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import NAME as RESULT
from bbnli_audit.core.results.file import dump
from bbnli_audit.core.results.release import Release
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.reports.files import REPORTS
from bbnli_audit.reports.notes import count_verdicts
from bbnli_audit.reports.report import Report
from bbnli_audit.reports.summary import verdict_in_words

NAME = "mlflow.json"
_MOST_METRICS = 1000  # the most that MLflow takes in one call
_LONGEST_KEY, _LONGEST_TAG = 250, 1000


def mlflow_report(experiment: str = "bias-audit", tracking_uri: str | None = None, run_id: str | None = None) -> Report:
    """Return a report that logs an audit to MLflow: all measures, with result.json and our own reports as artifacts.

    Without `tracking_uri`, it logs where MLflow is set up to log (MLFLOW_TRACKING_URI). With `run_id`, it logs into an
    existing run, such as that of the training, and leaves this run open. Without `run_id`, each audit is a new run of
    the experiment.
    """
    if find_spec("mlflow") is None:
        raise OptionError('mlflow_report needs the package mlflow-skinny: pip install "bbnli-audit[mlflow]"')

    def export(result: AuditResult, pairs: PairTable) -> str:
        from mlflow import MlflowClient

        client: Any = MlflowClient(tracking_uri=tracking_uri)
        run, status = run_id or _start(client, experiment, result), "FAILED"
        try:
            n_metrics = _log(client, run, result, pairs)
            status = "FINISHED"
        finally:
            if run_id is None:
                client.set_terminated(run, status)
        return f"{json.dumps({'run_id': run, 'n_metrics': n_metrics}, indent=1)}\n"

    return Report(NAME, export)


def _start(client: Any, experiment: str, result: AuditResult) -> str:
    """Start a run and return its id. If there is no experiment of this name, make one."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(experiment)
    try:
        experiment_id = client.create_experiment(experiment) if found is None else found.experiment_id
    except MlflowException:
        found = client.get_experiment_by_name(experiment)
        if found is None:
            raise
        experiment_id = found.experiment_id  # another job has just made the experiment
    name = (result.release or Release()).name or result.model.name
    return str(client.create_run(str(experiment_id), run_name=printable(name)).info.run_id)


def _log(client: Any, run_id: str, result: AuditResult, pairs: PairTable) -> int:
    """Log tags, metrics and files, and return the number of metrics."""
    from mlflow.entities import Metric, RunTag

    time = client.get_run(run_id).info.start_time
    metrics = [Metric(key, value, time, 0) for key, value in metrics_of(result).items()]
    client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags_of(result).items()])
    for start in range(0, len(metrics), _MOST_METRICS):
        client.log_batch(run_id, metrics=metrics[start : start + _MOST_METRICS])
    client.log_text(run_id, json.dumps(dump(result), indent=1, ensure_ascii=False), RESULT)
    for report in REPORTS:
        client.log_text(run_id, report.render(result, pairs), report.name)
    return len(metrics)


def metrics_of(result: AuditResult) -> dict[str, float]:
    """Return all figures by name.

    A value is named by path and measure: suite/domain/subtopic/measure. The names of its bounds end in .low and .high.
    """
    found = {f"verdicts/{verdict}": float(n) for verdict, n in count_verdicts(result, result.all_rows).items()}
    return found | {_key(name): value for name, value in _figures(result)}


def _figures(result: AuditResult) -> Iterator[tuple[str, float]]:
    for row in (result.total, *result.all_rows):
        yield f"{row.path}/n_pairs", float(row.n_pairs)
        if row.control_accuracy is not None:
            yield f"{row.path}/control_accuracy", row.control_accuracy
        for name, measured in row.measures.items():
            for end, value in (("", measured.value), (".low", measured.low), (".high", measured.high)):
                if value is not None:
                    yield f"{row.path}/{name}{end}", value


def _key(name: str) -> str:
    """Replace what MLflow does not allow in the name of a metric. If the name is too long, keep its end."""
    parts = [re.sub(r"[^\w. :-]", "_", part, flags=re.ASCII) for part in name.split("/")]
    return "/".join("_" if part in ("", ".", "..") else part for part in parts)[-_LONGEST_KEY:].lstrip("/")


def tags_of(result: AuditResult) -> dict[str, str]:
    """Return tags that say what is known of the run besides its figures. What is not known has no tag."""
    release = result.release or Release()
    tags = {
        "bbnli.verdict": verdict_in_words(result),
        "bbnli.model": result.model.name,
        "bbnli.fingerprint": result.model.fingerprint,
        "bbnli.suites": ", ".join(f"{suite.name} {suite.version}" for suite in result.suites),
        "bbnli.release": release.name,
        "bbnli.date": release.date,
        "bbnli.commit": release.commit,
    }
    return {key: printable(value)[:_LONGEST_TAG] for key, value in tags.items() if value}
