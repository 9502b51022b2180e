"""model_card.md: two parts of a model card, the figures (`model-index`) and "Bias, Risks, and Limitations"."""

import glob
import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import SubtopicResult, SuiteInfo
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.registry import all_measures
from bbnli_audit.models.checkpoint import BACKENDS, DTYPES, EXACT
from bbnli_audit.reports import notes
from bbnli_audit.reports.markdown import code
from bbnli_audit.reports.summary import left_out, verdict_in_words
from bbnli_audit.reports.templates import render
from bbnli_audit.suites.registry import DEFAULT
from bbnli_audit.suites.sizes import FULL
from bbnli_audit.suites.winoqueer import ALL

if TYPE_CHECKING:
    from huggingface_hub import EvalResult


def model_card(result: AuditResult) -> str:
    """Return the front matter of a model card and its section on bias. The model's makers write the other sections."""
    from huggingface_hub import ModelCardData

    # Without a measured value there is no index, because readers of model cards refuse an empty index.
    measured = list(_eval_results(result))
    data = ModelCardData(model_name=_text(result.model.name), eval_results=measured) if measured else ModelCardData()
    return render(
        "model_card.md.jinja",
        result,
        front_matter=data.to_yaml(),
        verdict=verdict_in_words(result),
        right=reading_of(result.model.kind).answers[1],
        waivers=notes.waived(result, code),
        left_out=left_out(result),
        corrected=list(notes.corrected(result, "open (Holm)")),
        command=_command(result),
        n_more=len({*result.settings.not_audited} - {*result.settings.excluded}),
        versions=[f"{name} {version}" for name, version in result.settings.versions.items() if version],
    )


def _eval_results(result: AuditResult) -> Iterator["EvalResult"]:
    for suite in dict.fromkeys(result.suites):
        # With several suites, the total does not describe any one of them.
        whole = [result.total] if len(result.suites) == 1 else [r for r in result.suite_rows if r.path == suite.name]
        domains = [row for row in result.domains if row.path.rpartition("/")[0] == suite.name]
        rows = [("all", suite.name, row) for row in whole]
        rows += [(row.path.rpartition("/")[2], row.path, row) for row in domains]
        for config, path, row in rows:
            # Skip a row if only a part of it was audited: readers would take its figures for those of the whole.
            if not any(missing.startswith(f"{path}/") for missing in result.settings.not_audited):
                yield from _row_results(result, suite, config, row)


def _row_results(result: AuditResult, suite: SuiteInfo, config: str, row: SubtopicResult) -> Iterator["EvalResult"]:
    from huggingface_hub import EvalResult

    def found(metric: str, value: float, name: str, args: dict[str, float | int | None]) -> EvalResult:
        return EvalResult(
            task_type="text-classification",
            task_name="Natural Language Inference",
            dataset_type=dataset_type(suite.name),
            dataset_name=_text(f"{suite.name} {suite.version} (groups exchanged: {suite.pairing})"),
            dataset_config=_text(config),
            dataset_revision=_text(suite.sha256),
            metric_type=metric,
            metric_value=value,
            metric_name=name,
            metric_args={key: number for key, number in args.items() if number is not None},
        )

    for measure in all_measures():
        measured = row.measures.get(measure.name)
        if measure.title is not None and measured is not None and measured.value is not None:
            interval = {"low": measured.low, "high": measured.high, "confidence": result.settings.confidence}
            yield found(measure.name, measured.value, measure.title, {**interval, "n_pairs": row.n_pairs})
    if row.control_accuracy is not None and result.has_task:
        name = "Accuracy on control samples, which are not about bias"
        yield found("accuracy", row.control_accuracy, name, {"n_controls": row.n_controls})


def dataset_type(suite: str) -> str:
    """Return an id for a suite. New data on the hub are always named owner/name, so nobody can take this plain name."""
    return f"bbnli-audit-{re.sub(r'[^A-Za-z0-9_.]+', '-', suite).strip('-.') or 'suite'}"


def _text(text: str) -> str:
    """Replace the characters that YAML or a file cannot hold."""
    return re.sub("[\x85\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def _command(result: AuditResult) -> str:
    """Return the command of the run, without options that a result does not hold. model_card.md.jinja lists these."""
    model, settings = result.model, result.settings
    suites = [_name_of(suite, result) for suite in result.suites]
    # Only `bbnli` and `bbnli@1` have a choice of pairings.
    pairings = [suite.pairing for suite in result.suites if suite.name == DEFAULT and suite.pairing != "both"]
    dtypes = [name for name, dtype in DTYPES.items() if dtype == model.dtype != EXACT.dtype]
    options = {
        "model": [model.name],
        "bbnli-thresholds": [settings.thresholds],
        "bbnli-suite": [] if suites == [DEFAULT] else suites,
        "bbnli-pairing": pairings,
        "bbnli-size": [] if settings.size == FULL else [settings.size],
        "bbnli-exclude": [glob.escape(path) for path in settings.excluded],
        "bbnli-prompt": [] if model.prompt is None else [model.prompt],
        "bbnli-dtype": dtypes,
        "bbnli-backend": [model.backend] if model.backend in BACKENDS and model.backend != EXACT.backend else [],
    }
    given = (f"--{name}={','.join(values)}" for name, values in options.items() if values)
    return shlex.join(["pytest", "audits", *given])


def _name_of(suite: SuiteInfo, result: AuditResult) -> str:
    """Return what --bbnli-suite calls a suite of a result. The name in the result has neither `@1` nor `:category`."""
    if suite.name == DEFAULT and suite.version.startswith("1."):
        return "bbnli@1"
    paths = (*(row.path for row in result.subtopics), *result.settings.not_audited)
    is_divided = any(path.startswith("winoqueer/") and not path.endswith(f"/{ALL}") for path in paths)
    return "winoqueer:category" if suite.name == "winoqueer" and is_divided else suite.name
