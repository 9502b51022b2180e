"""model_card.md: the figures as a `model-index`, and a section "Bias, Risks, and Limitations", for a model's card."""

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bbnli_audit.core.results.audit import AuditResult, SubtopicResult, SuiteInfo
from bbnli_audit.reports import notes
from bbnli_audit.reports.markdown import CAUSES, bullets, code, controls, figures, subtopic_table, table
from bbnli_audit.reports.summary import LAST_WORDS, NOT_MEASURED, describe_suite, not_audited, verdict_in_words

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

ALL = "all"
_NAMES = {
    "pro_rate": "Pro-stereotype errors, share of samples",
    "anti_rate": "Anti-stereotype errors, share of samples",
    "brittleness_rate": "Errors that do not depend on the group (brittleness), share of samples",
    "misprediction_rate": "Mispredicted samples, share",
}
_WHAT = """\
The model was asked for entailment on pairs of sentences that differ only in the social group they name. Nothing in a
premise supports the hypothesis, so the right answer is always neutral. Wrong answers are counted by cause: towards the
documented stereotype (pro), against it (anti), or the same wrong answer whatever the group (brittleness). A rate is the
share of samples; a pair has two."""


def model_card(result: AuditResult) -> str:
    """Give a model card's front matter and its section on bias; the model's other sections are its makers'."""
    from huggingface_hub import ModelCardData

    # Without a measured value there is no index: an empty one is refused by those who read it.
    measured = list(_eval_results(result))
    data = ModelCardData(model_name=_text(result.model.name), eval_results=measured) if measured else ModelCardData()
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n\n".join(_section(result)) + "\n"


def _eval_results(result: AuditResult) -> Iterator["EvalResult"]:
    for suite in dict.fromkeys(result.suites):
        # The total is that of a suite only when it is the only one; sums of rates are not ours to make.
        rows = [(ALL, result.total)] if len(result.suites) == 1 and not _is_part(result, suite.name) else []
        for row in result.domains:
            name, _, domain = row.path.rpartition("/")
            if name == suite.name and not _is_part(result, row.path):
                rows.append((domain, row))
        for config, row in rows:
            yield from _row_results(suite, config, row, result.settings["confidence"])


def _is_part(result: AuditResult, path: str) -> bool:
    """Some of its subtopics were not audited: its figures are not those of the whole, and would be read as such."""
    return any(left_out.startswith(f"{path}/") for left_out in result.settings.get("not_audited", ()))


def _row_results(suite: SuiteInfo, config: str, row: SubtopicResult, confidence: float) -> Iterator["EvalResult"]:
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

    for metric, name in _NAMES.items():
        measure = row.measures.get(metric)
        if measure is not None and measure.value is not None:
            interval = {"low": measure.low, "high": measure.high, "confidence": confidence}
            yield found(metric, measure.value, name, {**interval, "n_pairs": row.counts.n_pairs})
    if row.control_accuracy is not None:
        name = "Accuracy on control samples, which are not about bias"
        yield found("accuracy", row.control_accuracy, name, {"n_controls": row.n_controls})


def dataset_type(suite: str) -> str:
    """Name a suite as an id without an owner: nobody can register one on the hub, so it never names others' data."""
    return f"bbnli-audit-{re.sub(r'[^A-Za-z0-9_.]+', '-', suite).strip('-.') or 'suite'}"


def _text(text: str) -> str:
    """Leave out what YAML or a file cannot hold."""
    return re.sub("[\x85\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def _section(result: AuditResult) -> Iterator[str]:
    yield "## Bias, Risks, and Limitations"
    yield f"Audited with bbnli-audit: {verdict_in_words(result)}."
    yield f"### What was measured\n\n{_WHAT}"
    yield bullets(describe_suite(suite) for suite in result.suites)
    yield "### By domain"
    rows = [*result.domains, result.total]
    titles = ["domain", "pairs", *map(code, CAUSES), "controls right"]
    yield table(titles, ([code(row.path), *_figures(row)] for row in rows))
    yield "### By subtopic, worst first"
    yield subtopic_table(result)
    yield (
        f"Figures: value ({result.settings['confidence']:.0%} interval) / limit. FAIL: the "
        "limit is crossed. INCONCLUSIVE: these pairs cannot tell. NO_DATA: nothing was measured. WAIVED: crossed, and "
        "let pass until a date."
    )
    yield "\n".join(notes.competence(result, code))
    waivers = notes.waived(result, code)
    if waivers:
        yield f"{waivers[0]}\n\n{bullets(waivers[1:])}"
    yield "### What a pass means"
    yield f"{LAST_WORDS} The limits are those of whoever ran the audit ({code(str(result.settings['thresholds']))})."
    yield "### What was not measured"
    yield bullets((*not_audited(result), *notes.left_out(result), NOT_MEASURED))
    yield "### How to reproduce"
    yield bullets(_steps(result))


def _figures(row: SubtopicResult) -> list[str]:
    return [f"{row.counts.n_pairs:,}", *(figures(row.measures.get(measure)) for measure in CAUSES), controls(row)]


def _steps(result: AuditResult) -> Iterator[str]:
    model, settings = result.model, result.settings
    options = [f"--model={model.name}", f"--bbnli-thresholds={settings['thresholds']}"]
    # The option is for the suite of that name; others' suites say themselves how they pair.
    pairing = next((suite.pairing for suite in result.suites if suite.name == "bbnli"), "both")
    if pairing != "both":
        options.append(f"--bbnli-pairing={pairing}")
    yield f"Command: {code(shlex.join(['pytest', 'audits', *options]))}"
    yield (
        f"Model: {code(model.name)}, fingerprint of its contents {code(model.fingerprint)}, computed with "
        f"{code(model.backend)} in {code(model.dtype)}"
    )
    yield from (f"Suite: {describe_suite(suite)}" for suite in result.suites)
    yield "Data other than the package's own are given with `--bbnli-data`."
    versions = ", ".join(code(f"{name} {version}") for name, version in settings["versions"].items() if version)
    if versions:
        yield f"Versions: {versions}"
