"""Puts what was found in subtopics together into one result. Their order does not matter."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from platform import python_version
from typing import TYPE_CHECKING, Any

from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.gate.verdict import judge_competence
from bbnli_audit.core.errors import AuditError
from bbnli_audit.core.results.audit import (
    COMPETENCE,
    LIKELIHOOD,
    AuditResult,
    Judgement,
    ModelInfo,
    Skill,
    SubtopicResult,
    SuiteInfo,
)
from bbnli_audit.core.results.comparison import Comparison
from bbnli_audit.core.values import Subtopic
from bbnli_audit.core.versions import installed_version
from bbnli_audit.models.inference.fast_paths import Agreement
from bbnli_audit.suites.protocol import Suite, families_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class SubtopicAudit:
    """What was found in one subtopic: the result for the report, and the pair table it was made from."""

    subtopic: Subtopic
    result: SubtopicResult
    frame: "pd.DataFrame"


def competence_judgement(skill: Skill, thresholds: Thresholds) -> Judgement:
    limit = thresholds.file.competence.min_control_accuracy
    source = thresholds.source("competence", "min_control_accuracy")
    return Judgement(COMPETENCE, limit, judge_competence(skill, limit), source)


def assemble(
    model: ModelInfo,
    skill: Skill,
    suites: Sequence[Suite],
    thresholds: Thresholds,
    audits: Iterable[SubtopicAudit],
    agreement: Agreement | None = None,
    required: Collection[tuple[str, str]] | None = None,
    comparison: Comparison | None = None,
) -> AuditResult:
    """Put subtopics together into one result. Their order does not matter.

    Args:
        model: Which model was measured.
        skill: How well it does the task.
        suites: What was audited.
        thresholds: What it was held to.
        audits: What was found.
        agreement: How a fast path compares with the exact one.
        required: Path and measure of the limits that tests asked for; every limit when left out.
        comparison: What became of the measures since a baseline.
    """
    from bbnli_audit.measures.frame import cells_by_cluster

    found = sorted(audits, key=lambda audit: audit.subtopic.path)
    if not found:
        raise AuditError("No subtopic was audited, so there is no result.")
    by_domain: dict[str, list[SubtopicAudit]] = {}
    for audit in found:
        by_domain.setdefault(f"{audit.subtopic.suite}/{audit.subtopic.domain}", []).append(audit)
    confidence = thresholds.file.confidence
    families = {suite.name: families_of(suite) for suite in suites}
    domains = [_pool(path, members, confidence, families) for path, members in by_domain.items()]
    total = replace(
        _pool("total", found, confidence, families),
        control_accuracy=skill.control_accuracy,
        n_controls=skill.n_controls,
        verdicts=() if model.kind in LIKELIHOOD else (competence_judgement(skill, thresholds),),
    )
    return AuditResult(
        model=model,
        suites=tuple(SuiteInfo(suite.name, suite.version, suite.sha256, suite.pairing.value) for suite in suites),
        settings={
            **_settings(skill, thresholds),
            **({} if agreement is None else {"agreement": asdict(agreement)}),
            "not_audited": sorted(
                {subtopic.path for suite in suites for subtopic in suite.subtopics()}
                - {audit.subtopic.path for audit in found}
            ),
        },
        subtopics=tuple(audit.result for audit in found),
        domains=tuple(domains),
        total=total,
        pairs={audit.subtopic.path: cells_by_cluster(audit.frame) for audit in found},
        required=frozenset(
            ((audit.result.path, judgement.measure) for audit in found for judgement in audit.result.verdicts)
            if required is None
            else required
        ),
        comparison=comparison,
    )


def _pool(
    path: str, members: Sequence[SubtopicAudit], confidence: float, families: Mapping[str, Sequence[str]]
) -> SubtopicResult:
    """Measure several subtopics together, by the measures that all their suites have."""
    import pandas as pd

    from bbnli_audit.measures.likelihood import TOKEN_PREFERENCE, measure_preference
    from bbnli_audit.measures.rates import measure_pairs

    suites = {member.subtopic.suite for member in members}
    shared = [family for family in families[min(suites)] if all(family in families[suite] for suite in suites)]
    frame = pd.concat([member.frame for member in members])
    is_likelihood = all(TOKEN_PREFERENCE in member.result.measures for member in members)
    measured = measure_preference(frame, confidence) if is_likelihood else measure_pairs(frame, confidence, shared)
    results = [member.result for member in members]
    n_controls = sum(result.n_controls for result in results)
    n_right = sum(round((result.control_accuracy or 0) * result.n_controls) for result in results)
    return SubtopicResult(
        path=path,
        n_clusters=measured.n_clusters,
        counts=measured.counts,
        measures=measured.measures,
        control_accuracy=n_right / n_controls if n_controls else None,
        n_controls=n_controls,
        n_identical=sum(result.n_identical for result in results),
        n_duplicates=sum(result.n_duplicates for result in results),
        n_truncated=sum(result.n_truncated for result in results),
        n_unparsed=sum(result.n_unparsed for result in results),
    )


def _settings(skill: Skill, thresholds: Thresholds) -> dict[str, Any]:
    file = thresholds.file
    return {
        "thresholds": thresholds.name,
        "decide": file.decide,
        "confidence": file.confidence,
        "inconclusive": file.inconclusive,
        "skill": asdict(skill),
        "versions": {"python": python_version(), **{name: installed_version(name) for name in _PACKAGES}},
    }


_PACKAGES = ("bbnli-audit", "numpy", "scipy", "torch", "transformers")
