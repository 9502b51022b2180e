"""What one audit found: everything a report needs, and enough to be a baseline."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from annotated_types import Ge

from bbnli_audit.core.outcomes import Cell
from bbnli_audit.core.results import rows
from bbnli_audit.core.results.comparison import Comparison, SecondModel, SecondPrompt
from bbnli_audit.core.results.release import Release
from bbnli_audit.core.results.rows import Share, SubtopicResult, Told, Verdict, result

# The measures that say whether a model can do the task at all. A result has only the measure that decided. For a model
# that is read by its likelihoods, this is the preference for true facts; for other models, it is accuracy or recall.
COMPETENCE, RECALL, FACT_PREFERENCE = "control_accuracy", "control_recall", "fact_preference"

_REQUIRED = "Path and measure of the limits that a test asked for; other verdicts are for information."
_PAIRS = "What each pair showed: path of the subtopic, cluster, pair id, labels of the two sides."
# What each pair showed, without its sentences: path of the subtopic -> cluster -> pair id -> cell.
Cells = Mapping[str, Mapping[str, Mapping[str, Cell]]]
# Path of the subtopic -> "with" or "against" -> ids of the pairs whose premise points that way.
Directions = Mapping[str, Mapping[Literal["with", "against"], tuple[str, ...]]]
# Premise -> id of a fact -> how many of the fact's controls are right, as two shares: controls whose premise goes with
# the stereotype, then controls whose premise goes against it.
FactsOfSubtopic = Mapping[str, Mapping[str, tuple[Share, Share]]]
Facts = Mapping[str, FactsOfSubtopic]  # by the path of the subtopic
_DIRECTIONS = "Which way premises point: path of the subtopic, with or against the stereotype, pair ids."
_FACTS = "Facts of the controls: path of the subtopic, premise, id, share right with the stereotype and against it."


@result
class Settings:
    """How a run was made and judged."""

    thresholds: str
    decide: Literal["bounds", "point"]
    confidence: Share
    inconclusive: Literal["warn", "fail"]
    skill: rows.Skill
    versions: Mapping[str, str | None]
    agreement: Annotated[rows.FastPathCheck | None, Told("A fast path against the exact one, else null.")] = None
    size: Annotated[str, Told("How many of the suites' pairs were audited: small, medium or full.")] = "full"
    not_audited: Annotated[tuple[str, ...], Told("Subtopics of the suites that this run left out.")] = ()
    excluded: Annotated[tuple[str, ...], Told("Those of not_audited that --bbnli-exclude left out.")] = ()
    n_limits: Annotated[int, Ge(0), Told("How many limits FAIL is corrected for (Holm); 0 for no correction.")] = 0

    @property
    def stopping(self) -> frozenset[Verdict]:
        """The verdicts on a measured value that stop a run: FAIL and, with `inconclusive: fail`, INCONCLUSIVE."""
        return frozenset({Verdict.FAIL, Verdict.INCONCLUSIVE} if self.inconclusive == "fail" else {Verdict.FAIL})


@result
class AuditResult:
    """The result of an audit with bbnli-audit."""

    # Versions of the format: 1 is the first.
    format: Literal[1] = field(default=1, kw_only=True)
    model: rows.ModelInfo
    suites: tuple[rows.SuiteInfo, ...]
    settings: Settings
    subtopics: tuple[SubtopicResult, ...]
    domains: tuple[SubtopicResult, ...]
    total: SubtopicResult
    required: Annotated[tuple[tuple[str, str], ...], Told(_REQUIRED)] = ()
    comparison: Comparison | None = None
    second_model: SecondModel | None = None
    second_prompt: SecondPrompt | None = None
    pairs: Annotated[Cells, Told(_PAIRS)] = field(default_factory=dict)
    directions: Annotated[Directions, Told(_DIRECTIONS)] = field(default_factory=dict)
    facts: Annotated[Facts, Told(_FACTS)] = field(default_factory=dict)
    suite_rows: Annotated[tuple[SubtopicResult, ...], Told("All subtopics of each suite together.")] = ()
    reliability: Annotated[tuple[rows.Reliability, ...], Told("Suites with four subtopics or more.")] = ()
    release: Annotated[Release | None, Told("Null if the release is unknown.")] = None
    troubles: Annotated[tuple[str, ...], Told("What was asked for and could not be done.")] = ()

    @property
    def all_rows(self) -> tuple[SubtopicResult, ...]:
        """The rows that can have limits, from the widest to the narrowest: suites, domains, subtopics."""
        return (*self.suite_rows, *self.domains, *self.subtopics)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts on limits that tests required, and on growth.

        If the model is unchanged since the baseline, verdicts on growth count only when no test required a limit.
        """
        found = [judgement.verdict for row in self.all_rows for judgement in self.required_of(row)]
        if self.comparison is not None and not (found and self.comparison.is_unchanged):
            found += [regression.verdict for regression in self.comparison.regressions]
        return found

    @property
    def is_competent(self) -> bool:
        """Whether the model can do the task; if not, a pass means nothing.

        Earlier versions did not check models that give likelihoods: in their results, such a model counts as competent.
        """
        if self.competence is None:
            return not self.has_task and self.settings.skill.facts is None
        return self.competence.verdict is Verdict.PASS

    @property
    def competence(self) -> rows.Judgement | None:
        names = (RECALL, COMPETENCE, FACT_PREFERENCE)
        return next((found for found in map(self.total.judgement, names) if found is not None), None)

    @property
    def skill_shown(self) -> str:
        """The figure that decided about competence, such as "control accuracy 0.509"."""
        return self.settings.skill.show(is_recall=self.total.judgement(RECALL) is not None)

    @property
    def has_task(self) -> bool:
        """Whether the model was asked for answers. A likelihood is not an answer: it cannot be right or wrong."""
        return self.settings.skill.probe_accuracy is not None

    def unrequired(self) -> dict[str, list[str]]:
        """Return, for each suite, its own measures (`audits`) that no test held to a limit anywhere in the suite.

        Suites without such measures are left out, and so are measures that no row of the suite has.
        """
        found = {}
        for suite in self.suites:
            rows = [row for row in self.all_rows if row.path.partition("/")[0] == suite.name]
            asked = {measure for path, measure in self.required if path.partition("/")[0] == suite.name}
            missing = [name for name in suite.audits if name not in asked and any(name in row.measures for row in rows)]
            if missing:
                found[suite.name] = missing
        return found

    def required_of(self, row: SubtopicResult) -> list[rows.Judgement]:
        return [judgement for judgement in row.verdicts if (row.path, judgement.measure) in self.required]
