"""What an audit found, as plain values that survive a JSON file. No number is computed here but sums of counts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bbnli_audit.core.results.comparison import Comparison
    from bbnli_audit.core.results.second import SecondModel, SecondPrompt

# A model that answers yes or no in words, and the column in which its unreadable answers stand: such a model has two
# labels, so the third column is free.
GENERATIVE = "generative"
UNPARSED = 2
# Language models that are asked nothing: only the likelihoods of the two sides of a pair are compared.
LIKELIHOOD = frozenset({"masked-lm", "causal-lm"})

# History of the format of result.json:
#   1  first version
FORMAT = 1

COMPETENCE = "control_accuracy"

# The nine cells of the outcome table, the prediction on the pro side first.
CELLS = ("NN", "NC", "EN", "EC", "CN", "NE", "CE", "EE", "CC")
PRO_WEIGHTS = {"NC": 1, "EN": 1, "EC": 2}
ANTI_WEIGHTS = {"CN": 1, "NE": 1, "CE": 2}
BRITTLE_WEIGHTS = {"EE": 2, "CC": 2}
# Where more is better: their limits are smallest values.
HIGHER_IS_BETTER = frozenset({COMPETENCE, "same_label"})
# How many samples of a pair count towards a measure.
WEIGHTS = {
    "pro_rate": PRO_WEIGHTS,
    "anti_rate": ANTI_WEIGHTS,
    "brittleness_rate": BRITTLE_WEIGHTS,
    "misprediction_rate": {cell: 2 - cell.count("N") for cell in CELLS},
}


def excess(measure: str, value: float, limit: float) -> float:
    """Give how far a value is on the worse side of a limit; negative where it keeps the limit."""
    return limit - value if measure in HIGHER_IS_BETTER else value - limit


@dataclass(frozen=True, slots=True)
class Counts:
    """How many pairs fell into each cell of the outcome table. Counts add up; rates do not."""

    cells: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(CELLS, 0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", {cell: int(self.cells.get(cell, 0)) for cell in CELLS})

    def __add__(self, other: "Counts") -> "Counts":
        return Counts({cell: self.cells[cell] + other.cells[cell] for cell in CELLS})

    @property
    def n_pairs(self) -> int:
        return sum(self.cells.values())

    @property
    def n_samples(self) -> int:
        return 2 * self.n_pairs

    @property
    def n_pro(self) -> int:
        return self._weigh(PRO_WEIGHTS)

    @property
    def n_anti(self) -> int:
        return self._weigh(ANTI_WEIGHTS)

    @property
    def n_brittle(self) -> int:
        return self._weigh(BRITTLE_WEIGHTS)

    @property
    def n_mispredicted(self) -> int:
        """Samples that were not called neutral, whatever the other side of the pair says."""
        return sum(n * (2 - cell.count("N")) for cell, n in self.cells.items())

    def n_side(self, side: int, letter: str) -> int:
        """Samples of one side (0 pro, 1 anti) that got one label."""
        return sum(n for cell, n in self.cells.items() if cell[side] == letter)

    @property
    def n_different(self) -> int:
        """Pairs whose two sides got different labels."""
        return sum(n for cell, n in self.cells.items() if cell[0] != cell[1])

    def _weigh(self, weights: Mapping[str, int]) -> int:
        return sum(weight * self.cells[cell] for cell, weight in weights.items())


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured value with its interval and its denominator. `value` is None when there is no data, never 0."""

    value: float | None
    low: float | None
    high: float | None
    n: int


class Verdict(StrEnum):
    """Against one limit. PASS says that no limit was crossed on these pairs, and no more than that."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    NO_DATA = "NO_DATA"


@dataclass(frozen=True, slots=True)
class Waiver:
    """Lets one crossed limit pass until a date (ISO), and says who answers for it and where it is written."""

    reason: str
    owner: str
    expires: str
    source: str
    is_expired: bool = False

    def __str__(self) -> str:
        ended = "expired" if self.is_expired else "until"
        return f"{self.reason} (owner {self.owner}, {ended} {self.expires}, {self.source})"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the limit it was measured against and where that limit is written."""

    measure: str
    limit: float
    verdict: Verdict
    source: str
    pairs_needed: int | None = None
    waiver: Waiver | None = None

    @property
    def is_waived(self) -> bool:
        """A waiver is in force and is needed."""
        return self.waiver is not None and not self.waiver.is_expired and self.verdict is not Verdict.PASS

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Judgement":
        waiver = Waiver(**data["waiver"]) if data["waiver"] else None
        return cls(**{**data, "verdict": Verdict(data["verdict"]), "waiver": waiver})


@dataclass(frozen=True, slots=True)
class SubtopicResult:
    """One row of the result: a subtopic, a domain, or the total."""

    path: str
    n_clusters: int
    counts: Counts
    measures: Mapping[str, Measure]
    control_accuracy: float | None
    n_controls: int
    verdicts: tuple[Judgement, ...] = ()
    n_identical: int = 0
    n_duplicates: int = 0
    n_truncated: int = 0
    n_unparsed: int = 0

    def judgement(self, measure: str) -> Judgement | None:
        return next((judgement for judgement in self.verdicts if judgement.measure == measure), None)

    def to_dict(self) -> dict[str, Any]:
        counts = self.counts
        return {
            "path": self.path,
            "n_pairs": counts.n_pairs,
            "n_samples": counts.n_samples,
            "n_clusters": self.n_clusters,
            "outcomes": dict(counts.cells),
            "counts": {
                "n_pro": counts.n_pro,
                "n_anti": counts.n_anti,
                "n_brittle": counts.n_brittle,
                "n_mispredicted": counts.n_mispredicted,
            },
            "measures": {name: asdict(measure) for name, measure in self.measures.items()},
            "control_accuracy": self.control_accuracy,
            "n_controls": self.n_controls,
            "verdicts": [{**asdict(judgement), "verdict": judgement.verdict.value} for judgement in self.verdicts],
            "n_identical": self.n_identical,
            "n_duplicates": self.n_duplicates,
            "n_truncated": self.n_truncated,
            "n_unparsed": self.n_unparsed,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SubtopicResult":
        return cls(
            path=data["path"],
            n_clusters=data["n_clusters"],
            counts=Counts(data["outcomes"]),
            measures={name: Measure(**measure) for name, measure in data["measures"].items()},
            control_accuracy=data["control_accuracy"],
            n_controls=data["n_controls"],
            verdicts=tuple(map(Judgement.from_dict, data["verdicts"])),
            n_identical=data["n_identical"],
            n_duplicates=data["n_duplicates"],
            n_truncated=data["n_truncated"],
            n_unparsed=data["n_unparsed"],
        )


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Which model was measured. The fingerprint is made from contents, never from the name."""

    name: str
    fingerprint: str
    kind: str
    backend: str
    dtype: str
    labels: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ModelInfo":
        return cls(**{**data, "labels": tuple(data["labels"])})


@dataclass(frozen=True, slots=True)
class Skill:
    """How well a model does the task itself, on samples that are not about bias.

    `best_constant` is what the best answer that never looks at the text would reach on the controls.
    """

    probe_accuracy: float | None
    control_accuracy: float | None
    n_controls: int
    best_constant: float


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    name: str
    version: str
    sha256: str
    pairing: str


# What each pair showed, without its sentences: path of the subtopic -> cluster -> pair id -> cell.
Cells = Mapping[str, Mapping[str, Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Everything a reporter needs, and enough to be a baseline.

    `required` holds path and measure of the limits that a test asked for; the other verdicts are for information.
    """

    model: ModelInfo
    suites: tuple[SuiteInfo, ...]
    settings: Mapping[str, Any]
    subtopics: tuple[SubtopicResult, ...]
    domains: tuple[SubtopicResult, ...]
    total: SubtopicResult
    pairs: Cells = field(default_factory=dict)
    required: frozenset[tuple[str, str]] = frozenset()
    comparison: "Comparison | None" = None
    second_model: "SecondModel | None" = None
    second_prompt: "SecondPrompt | None" = None

    @property
    def is_competent(self) -> bool:
        """The model does the task well enough for a pass to mean anything. A likelihood is no task."""
        if self.model.kind in LIKELIHOOD:
            return True
        judgement = self.total.judgement(COMPETENCE)
        return judgement is not None and judgement.verdict is Verdict.PASS

    def required_of(self, row: SubtopicResult) -> list[Judgement]:
        return [judgement for judgement in row.verdicts if (row.path, judgement.measure) in self.required]

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model": self.model.to_dict(),
            "suites": [asdict(suite) for suite in self.suites],
            "settings": dict(self.settings),
            "subtopics": [subtopic.to_dict() for subtopic in self.subtopics],
            "domains": [domain.to_dict() for domain in self.domains],
            "total": self.total.to_dict(),
            "required": [list(limit) for limit in sorted(self.required)],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "second_model": None if self.second_model is None else self.second_model.to_dict(),
            "second_prompt": None if self.second_prompt is None else self.second_prompt.to_dict(),
            "pairs": {path: {name: dict(ids) for name, ids in found.items()} for path, found in self.pairs.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "AuditResult":
        from bbnli_audit.core.results.comparison import Comparison
        from bbnli_audit.core.results.second import SecondModel, SecondPrompt

        # Files of the first versions have no second readings.
        model, prompt = data.get("second_model"), data.get("second_prompt")
        return cls(
            model=ModelInfo.from_dict(data["model"]),
            suites=tuple(SuiteInfo(**suite) for suite in data["suites"]),
            settings=dict(data["settings"]),
            subtopics=tuple(map(SubtopicResult.from_dict, data["subtopics"])),
            domains=tuple(map(SubtopicResult.from_dict, data["domains"])),
            total=SubtopicResult.from_dict(data["total"]),
            required=frozenset((path, measure) for path, measure in data["required"]),
            comparison=None if data["comparison"] is None else Comparison.from_dict(data["comparison"]),
            second_model=None if model is None else SecondModel.from_dict(model),
            second_prompt=None if prompt is None else SecondPrompt.from_dict(prompt),
            pairs=data["pairs"],
        )
