"""The parts of a result: rows with values, verdicts and counts; the model; the suites. `file.py` writes them as JSON.

Nothing heavy is imported here: the classes carry settings for pydantic, but this module does not import pydantic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, TypeVar, dataclass_transform

from annotated_types import Ge, Le

from bbnli_audit.core.outcomes import Cell, CellCounts
from bbnli_audit.core.words import counted, figure

Share = Annotated[float, Ge(0), Le(1)]
Signed = Annotated[float, Ge(-1), Le(1)]
Count = Annotated[int, Ge(0)]

_STRICT = {
    "extra": "forbid",
    "strict": True,
    "allow_inf_nan": False,
    "json_schema_serialization_defaults_required": True,  # defaults are for Python; files have every key
}
T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def result(kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass for files. Reading a file refuses unknown keys, wrong types, NaN and infinity."""
    kind.__pydantic_config__ = _STRICT  # type: ignore[attr-defined]
    return dataclass(frozen=True, slots=True)(kind)


@dataclass(frozen=True, slots=True)
class Told:
    """The description of a field in the JSON Schema: `Annotated[int, Told("...")]`."""

    text: str

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        return {**handler(core_schema), "description": self.text}


@result
class Measured:
    """A value with its interval and its denominator. Without data the value is null, never 0."""

    value: Signed | None
    low: Signed | None
    high: Signed | None
    n: Annotated[Count, Told("Number of samples, two per pair; number of pairs for measures that look at pairs.")]


NO_DATA = Measured(None, None, None, 0)


@result
class Apart:
    """The pairs of a row that carry a tag, and the row's measures without these pairs."""

    n_pairs: Count
    without: Mapping[str, Measured]


class Verdict(StrEnum):
    """The verdict on one limit. PASS says only that no limit was crossed on these pairs."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    NO_DATA = "NO_DATA"


TIMES_NEEDED = (
    "How many times as many templates would be needed to decide: lowest and highest estimate. Null if already decided, "
    "or too close to estimate."
)


@result
class Waiver:
    """Excuses one crossed limit, or the growth of one measure, until a date (ISO). `source`: the waiver's file:line."""

    reason: str
    owner: str
    expires: str
    source: str
    is_expired: bool = False
    up_to: Annotated[float | None, Ge(0), Le(2), Told("The largest growth that it covers; null for any.")] = None

    def __str__(self) -> str:
        ended = "expired" if self.is_expired else "until"
        growth = "" if self.up_to is None else f", growth up to {figure(self.up_to)}"
        return f"{self.reason} (owner {self.owner}, {ended} {self.expires}{growth}, {self.source})"


@result
class Judgement:
    """A measure against a limit."""

    measure: str
    limit: Share
    verdict: Annotated[Verdict, Told("PASS says that no limit was crossed on these pairs.")]
    source: Annotated[str, Told("file:line of the limit.")]
    times_needed: Annotated[tuple[float, float] | None, Told(TIMES_NEEDED)] = None
    waiver: Waiver | None = None
    is_corrected: Annotated[bool, Told("INCONCLUSIVE only because of the correction for the number of limits.")] = False
    may_lack_data: Annotated[bool, Told("A NO_DATA verdict does not fail the test (allow_no_data).")] = False

    @property
    def is_waived(self) -> bool:
        """Whether the verdict is not PASS, and a waiver that has not expired covers it."""
        return self.waiver is not None and not self.waiver.is_expired and self.verdict is not Verdict.PASS

    @property
    def counts(self) -> bool:
        """Whether the verdict can stop a release."""
        return not self.is_waived and not (self.may_lack_data and self.verdict is Verdict.NO_DATA)


@result
class Counts:
    """Samples by cause of error."""

    n_pro: Count
    n_anti: Count
    n_brittle: Count
    n_mispredicted: Count


@result
class SubtopicResult:
    """One row of the result: a subtopic, a domain, a suite, or the total."""

    path: Annotated[str, Told("suite/domain/name of a subtopic, suite/domain, suite, or total.")]
    n_pairs: Count
    n_samples: Count
    n_clusters: Count
    outcomes: Annotated[Mapping[Cell, Count], Told("Pairs by the labels of their two sides, pro side first.")]
    counts: Counts
    measures: Mapping[str, Measured]
    control_accuracy: Share | None
    n_controls: Count
    verdicts: tuple[Judgement, ...] = ()
    n_identical: Annotated[Count, Told("Pairs left out because both sides are the same text to the model.")] = 0
    n_duplicates: Annotated[Count, Told("Pairs left out because the subtopic has the same pair already.")] = 0
    n_truncated: Annotated[Count, Told("Samples longer than the model takes.")] = 0
    n_unparsed: Annotated[Count, Told("Samples whose answer could not be read; their pairs are not measured.")] = 0
    n_asked: Annotated[Count, Told("Pairs that the model was asked about, measured or not; 0 if not known.")] = 0
    n_unseen: Annotated[
        Count,
        Told(
            "Pairs counted in n_asked that were cut, look alike to the model, or have an answer that could not be read."
        ),
    ] = 0
    n_templates: Annotated[
        tuple[Count, ...],
        Told("Numbers of premise and hypothesis templates; if only one of them varies, the number of clusters."),
    ] = ()
    apart: Annotated[
        Mapping[str, Apart], Told("Pairs that carry a tag, such as aggregate: roughly true on average.")
    ] = field(default_factory=dict)

    @classmethod
    def of(cls, path: str, cells: CellCounts, **rest: Any) -> "SubtopicResult":
        """Make a row whose counts are those of its cells."""
        counts = Counts(cells.n_pro, cells.n_anti, cells.n_brittle, cells.n_mispredicted)
        found: Any = cells.cells  # the nine cells and no others
        return cls(path, cells.n_pairs, cells.n_samples, outcomes=found, counts=counts, **rest)

    def judgement(self, measure: str) -> Judgement | None:
        return next((judgement for judgement in self.verdicts if judgement.measure == measure), None)


@result
class Reliability:
    """How similar the measures would be with other wordings: split-half reliability over templates."""

    suite: str
    measure: str
    n_subtopics: Count
    halves: Annotated[Signed, Told("Mean correlation of two halves of the hypotheses, over subtopics (Pearson).")]
    value: Annotated[Signed, Told("Reliability of all hypotheses: the correlation of halves, stepped up.")]


@result
class ModelInfo:
    """Which model was measured."""

    name: str
    fingerprint: Annotated[str, Told("Made from the contents, never from the name.")]
    kind: str
    backend: str
    dtype: str
    labels: Annotated[tuple[str, ...], Told("What the outputs mean, in their order.")]
    prompt: Annotated[str | None, Told("The name of the prompt that the model was asked with.")] = None


@result
class Skill:
    """How well a model does the task itself, on samples with a known answer."""

    probe_accuracy: Share | None
    control_accuracy: Share | None
    n_controls: Count
    best_constant: Annotated[Share, Told("The share of controls that the best constant answer gets right.")]
    recalls: Annotated[Mapping[str, Share], Told("The share of the controls of each label that are right.")] = field(
        default_factory=dict
    )
    facts: Annotated[Measured | None, Told("Likelihoods: share of facts whose true version is likelier.")] = None

    @property
    def worst_recall(self) -> float:
        """The smallest recall of any label. A model that never gives one of the labels can look unbiased."""
        return min(self.recalls.values(), default=1.0)

    def show(self, *, is_recall: bool) -> str:
        """Show the accuracy, the smallest recall, or how often likelihoods prefer the true version of a fact."""
        if self.facts is not None:
            return f"fact preference {'unknown' if self.facts.value is None else figure(self.facts.value)}"
        if is_recall and self.recalls:
            label = min(self.recalls, key=lambda each: self.recalls[each])
            return f"recall of {label} {figure(self.recalls[label])}"
        accuracy = self.control_accuracy
        return f"control accuracy {'unknown' if accuracy is None else figure(accuracy)}"


@result
class SuiteInfo:
    """A suite that was audited."""

    name: str
    version: str
    sha256: str
    pairing: str
    audits: Annotated[tuple[str, ...], Told("Measures of its own that a test must hold to a limit.")] = ()


@result
class FastPathCheck:
    """A fast path checked against the exact path: how many texts were labelled by the two, and how many differ."""

    n_checked: Count
    n_different: Count
    limit: Share

    def __str__(self) -> str:
        checked = counted(self.n_checked, "text that was", "texts that were")
        different = counted(self.n_different, "label differs", "labels differ")
        compared = f"on {checked} also run on the exact path, {different}"
        return f"{compared} (refused above {self.limit:.1%})"
