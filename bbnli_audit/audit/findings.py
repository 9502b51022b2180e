"""What was found in subtopics, and how it becomes one result. The order of the subtopics does not matter."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from platform import python_version
from typing import Any

from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.gate.verdict import competence_judgement
from bbnli_audit.audit.model_reader import Items, ModelReader
from bbnli_audit.core.results.audit import AuditResult, Settings
from bbnli_audit.core.results.file import dump, load
from bbnli_audit.core.results.rows import FastPathCheck, ModelInfo, Skill, SubtopicResult, SuiteInfo, Verdict
from bbnli_audit.core.values import Subtopic
from bbnli_audit.core.versions import installed_version
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.readings.table import PairTable, join_tables
from bbnli_audit.measures.registry import measure_table

_PACKAGES = ("bbnli-audit", "numpy", "scipy", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found in one subtopic: its row of the result, the pair table behind it, and which controls are right."""

    subtopic: Subtopic
    result: SubtopicResult
    table: PairTable
    rights: Sequence[bool] = ()

    def pack(self) -> dict[str, Any]:
        """Return plain values, without sentences, that can be sent to another process."""
        frame = self.table.frame
        pairs = {str(name): frame[name].tolist() for name in frame}
        return {"result": dump(self.result), "pairs": pairs, "rights": list(self.rights)}


def unpack_finding(packed: dict[str, Any], subtopic: Subtopic, model: ModelInfo) -> Finding:
    import pandas as pd

    table = PairTable(pd.DataFrame(packed["pairs"]), reading_of(model.kind))
    return Finding(subtopic, load(SubtopicResult, packed["result"]), table, packed["rights"])


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model once it is checked."""

    model: ModelInfo
    skill: Skill
    is_competent: bool  # does the task well enough for a pass to mean anything; True if there is no task
    fast_path: FastPathCheck | None

    @classmethod
    def of(cls, reader: ModelReader, thresholds: Thresholds) -> "ModelFacts":
        """Open and check a model."""
        model, skill = reader.info, reader.proof.skill
        is_able = competence_judgement(skill, thresholds).verdict is Verdict.PASS
        return cls(model, skill, is_able or not reader.reading.has_task, reader.fast_path_check)


def assemble(
    facts: ModelFacts,
    items: Items,
    thresholds: Thresholds,
    findings: Sequence[Finding],
    required: Collection[tuple[str, str]] | None,
) -> AuditResult:
    """Make one result of all findings. `required`: path and measure of each limit that tests required; None for all."""
    found = sorted(findings, key=lambda finding: finding.subtopic.path)
    by_domain: dict[str, list[Finding]] = {}
    for finding in found:
        by_domain.setdefault(f"{finding.subtopic.suite}/{finding.subtopic.domain}", []).append(finding)
    file, skill = thresholds.file, facts.skill
    has_task = found[0].table.reading.has_task
    total = replace(
        _pool("total", found, file.confidence, items),
        control_accuracy=skill.control_accuracy,
        n_controls=skill.n_controls,
        verdicts=(competence_judgement(skill, thresholds),) if has_task else (),
    )
    limits = [(finding.result.path, each.measure) for finding in found for each in finding.result.verdicts]
    return AuditResult(
        model=facts.model,
        suites=tuple(SuiteInfo(suite.name, suite.version, suite.sha256, suite.pairing.value) for suite in items.suites),
        settings=Settings(
            thresholds=thresholds.name,
            decide=file.decide,
            confidence=file.confidence,
            inconclusive=file.inconclusive,
            skill=skill,
            versions={"python": python_version(), **{name: installed_version(name) for name in _PACKAGES}},
            agreement=facts.fast_path,
            size=items.size,
            not_audited=tuple(sorted(set(items.subtopics) - {finding.subtopic.path for finding in found})),
        ),
        subtopics=tuple(finding.result for finding in found),
        domains=tuple(_pool(path, members, file.confidence, items) for path, members in by_domain.items()),
        total=total,
        required=tuple(sorted(limits if required is None else required)),
        pairs={finding.subtopic.path: finding.table.cells_by_cluster() for finding in found},
    )


def _pool(path: str, members: Sequence[Finding], confidence: float, items: Items) -> SubtopicResult:
    """Measure several subtopics together, with the measures that all their suites have."""
    families = items.families([*{member.subtopic.suite for member in members}])
    measured = measure_table(join_tables([member.table for member in members]), confidence, families)
    controls = [  # clusters of different subtopics are different
        replace(control, cluster=f"{member.subtopic.path}/{control.cluster}")
        for member in members
        for control in items.of(member.subtopic).controls
    ]
    right = [each for member in members for each in member.rights]
    measured = measured.with_facts(controls, right, confidence)
    rows = [member.result for member in members]
    added_up = ("n_controls", "n_identical", "n_duplicates", "n_truncated", "n_unparsed")
    sums = {name: sum(getattr(row, name) for row in rows) for name in added_up}
    return SubtopicResult.of(
        path,
        measured.counts,
        n_clusters=measured.n_clusters,
        measures=measured.measures,
        control_accuracy=sum(right) / len(right) if right else None,
        **sums,
    )
