"""Joins the findings on subtopics into one result. The order of the subtopics does not matter."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from platform import python_version
from typing import Any, TypeVar

from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.gate.verdict import competence_judgement
from bbnli_audit.audit.model_reader import Items, ModelReader
from bbnli_audit.core.results.audit import AuditResult, Settings
from bbnli_audit.core.results.file import dump, load
from bbnli_audit.core.results.rows import (
    FastPathCheck,
    Judgement,
    ModelInfo,
    Reliability,
    Skill,
    SubtopicResult,
    SuiteInfo,
    Verdict,
)
from bbnli_audit.core.values import Subtopic, level_of, levels_above
from bbnli_audit.core.versions import installed_version
from bbnli_audit.measures.apart import measure_apart
from bbnli_audit.measures.direction import SidesOfFact, find_facts_by_premise
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.readings.table import PairTable, join_tables
from bbnli_audit.measures.registry import MeasuredTable, measure_table
from bbnli_audit.measures.reliability import measure_reliability
from bbnli_audit.suites.protocol import audits_of

K = TypeVar("K")
V = TypeVar("V")
_PACKAGES = ("bbnli-audit", "numpy", "scipy", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Finding:
    """The findings on one subtopic: its row of the result, its pair table, and which controls the model got right."""

    subtopic: Subtopic
    result: SubtopicResult
    table: PairTable
    rights: Sequence[bool] = ()

    def facts(self, items: Items) -> dict[str, dict[str, SidesOfFact]]:
        """Return two accuracies by premise and fact id: where a fact fits the stereotype, and where it does not."""
        return find_facts_by_premise(items.of(self.subtopic).controls, self.rights)

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
    """What is known of a model after it was checked."""

    model: ModelInfo
    skill: Skill
    is_competent: bool  # whether it does the task well enough for a pass to mean anything
    fast_path: FastPathCheck | None

    @classmethod
    def of(cls, reader: ModelReader, thresholds: Thresholds) -> "ModelFacts":
        """Open and check a model."""
        model, skill = reader.info, reader.proof.skill
        is_able = competence_judgement(skill, thresholds).verdict is Verdict.PASS
        return cls(model, skill, is_able, reader.fast_path_check)


Levels = Mapping[str, Sequence[Finding]]  # path of a suite or a domain -> findings on its subtopics


def find_levels(findings: Sequence[Finding]) -> Levels:
    """Group findings by suite and by domain, in the order of the paths."""
    levels: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda each: each.subtopic.path):
        for path in levels_above(finding.subtopic.path):
            levels.setdefault(path, []).append(finding)
    return levels


def assemble(
    facts: ModelFacts,
    items: Items,
    thresholds: Thresholds,
    findings: Sequence[Finding],
    required: Collection[tuple[str, str]] | None,
    judged: "JudgedLevels",
    measured: Mapping[str, SubtopicResult],
) -> AuditResult:
    """Make one result of all findings.

    `required` has the path and the measure of each limit that tests required; None stands for all limits. `measured`
    has the rows of suites and domains that this process has already measured. Such a row is used again if `judged` says
    that the suite or domain was judged on exactly those of its subtopics that `findings` has.
    """
    found = sorted(findings, key=lambda finding: finding.subtopic.path)
    file, skill = thresholds.file, facts.skill
    levels = find_levels(found)
    rows = [
        measured[path]
        if path in measured and judged.is_about(path, members)
        else pool(path, members, file.confidence, items)[1]
        for path, members in levels.items()
    ]
    suites = [row for row in rows if level_of(row.path) == "suite"]
    total = replace(
        suites[0] if len(suites) == 1 else pool("total", found, file.confidence, items)[1],
        path="total",
        control_accuracy=skill.control_accuracy,
        n_controls=skill.n_controls,
        verdicts=(competence_judgement(skill, thresholds),),
    )
    rows = [replace(row, verdicts=judged.verdicts_of(row.path, levels[row.path])) for row in rows]
    limits = [(row.path, each.measure) for row in (*rows, *(f.result for f in found)) for each in row.verdicts]
    return AuditResult(
        model=facts.model,
        suites=describe_suites(items),
        settings=Settings(
            thresholds=thresholds.name,
            decide=file.decide,
            confidence=file.confidence,
            inconclusive=file.inconclusive,
            skill=skill,
            versions={"python": python_version(), **{name: installed_version(name) for name in _PACKAGES}},
            agreement=facts.fast_path,
            size=items.size,
            n_limits=judged.n_limits,
            not_audited=tuple(sorted(set(items.subtopics) - {finding.subtopic.path for finding in found})),
        ),
        subtopics=tuple(finding.result for finding in found),
        domains=tuple(row for row in rows if level_of(row.path) == "domain"),
        suite_rows=tuple(row for row in rows if level_of(row.path) == "suite"),
        total=total,
        required=tuple(sorted(limits if required is None else required)),
        pairs={finding.subtopic.path: finding.table.cells_by_cluster() for finding in found},
        directions=_without_empty({each.subtopic.path: each.table.pairs_by_direction() for each in found}),
        facts=_without_empty({each.subtopic.path: each.facts(items) for each in found}),
        reliability=_reliability(found),
    )


def _without_empty(by_path: Mapping[str, Mapping[K, V]]) -> dict[str, Mapping[K, V]]:
    return {path: found for path, found in by_path.items() if found}


def describe_suites(items: Items) -> tuple[SuiteInfo, ...]:
    return tuple(
        SuiteInfo(suite.name, suite.version, suite.sha256, suite.pairing.value, tuple(audits_of(suite)))
        for suite in items.suites
    )


def _reliability(found: Sequence[Finding]) -> tuple[Reliability, ...]:
    """Measure the reliability of each suite, on the `run` table of its tables. If there is none, join the tables."""
    suites = {path: members for path, members in find_levels(found).items() if level_of(path) == "suite"}
    tables = {path: [member.table for member in members] for path, members in suites.items()}
    return tuple(
        each
        for path, of_suite in tables.items()
        for each in measure_reliability(path, of_suite[0].run or join_tables(of_suite))
    )


@dataclass(frozen=True, slots=True)
class JudgedLevels:
    """The verdicts on each domain and suite, with the subtopics they are about, and the number of limits of the run."""

    verdicts: Mapping[str, tuple[Sequence[str], tuple[Judgement, ...]]] = field(default_factory=dict)
    n_limits: int = 0

    def is_about(self, path: str, members: Sequence[Finding]) -> bool:
        """Whether a suite or domain was judged on exactly these subtopics."""
        return path in self.verdicts and list(self.verdicts[path][0]) == [each.subtopic.path for each in members]

    def verdicts_of(self, path: str, members: Sequence[Finding]) -> tuple[Judgement, ...]:
        """Return the verdicts on a suite or domain. Return none if it was judged on subtopics other than `members`."""
        return self.verdicts[path][1] if self.is_about(path, members) else ()


def pool(
    path: str, members: Sequence[Finding], confidence: float, items: Items
) -> tuple[MeasuredTable, SubtopicResult]:
    """Measure several subtopics together, with the measures that all their suites have."""
    families = items.families([*{member.subtopic.suite for member in members}])
    table = join_tables([member.table for member in members])
    measured = measure_table(table, confidence, families)
    controls = [  # a cluster name that occurs in two subtopics stands for two clusters
        replace(control, cluster=f"{member.subtopic.path}/{control.cluster}")
        for member in members
        for control in items.of(member.subtopic).controls
    ]
    right = [each for member in members for each in member.rights]
    measured = measured.with_facts(controls, right, confidence)
    rows = [member.result for member in members]
    added_up = ("n_controls", "n_identical", "n_duplicates", "n_truncated", "n_unparsed", "n_asked", "n_unseen")
    sums = {name: sum(getattr(row, name) for row in rows) for name in added_up}
    row = SubtopicResult.of(
        path,
        measured.counts,
        n_clusters=measured.n_clusters,
        n_templates=measured.n_templates,
        measures=measured.measures,
        control_accuracy=sum(right) / len(right) if right else None,
        apart=measure_apart(table, confidence),
        **sums,
    )
    return measured, row
