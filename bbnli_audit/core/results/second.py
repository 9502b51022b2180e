"""The same pairs read a second time, by another model or with another prompt, as plain values for a JSON file."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bbnli_audit.core.results.audit import Measure, ModelInfo, Skill

# Which way a model leans on a pair: pro (P), neither (T, a tie), anti (A). The first model's letter stands first.
LEANS = ("PP", "PT", "PA", "TP", "TT", "TA", "AP", "AT", "AA")
# The share of pairs whose pro side is more entailed, a tie counting half: what token_preference is for likelihoods.
ENTAILMENT_PREFERENCE = "entailment_preference"
PROMPT_SENSITIVITY = "prompt_sensitivity"


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """Two models on the same pairs, of one subtopic or of all.

    `first` and `second` are their mean leans, `agreement` the share of pairs on which they lean the same way.
    None says that a figure is not defined on these pairs.
    """

    path: str
    n_pairs: int
    n_clusters: int
    first: Measure
    second: Measure
    leans: Mapping[str, int]
    agreement: Measure
    by_chance: float | None
    kappa: float | None
    rank_correlation: float | None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "leans": dict(self.leans)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "AgreementRow":
        measures = {name: Measure(**data[name]) for name in ("first", "second", "agreement")}
        return cls(**{**data, **measures, "leans": dict(data["leans"])})


@dataclass(frozen=True, slots=True)
class SecondModel:
    """What a second model (--bbnli-also) made of the pairs. It is held to no limit.

    `measures` names what `first` and `second` are in the rows; pairs that only one of the models could be measured on
    are in no row.
    """

    model: ModelInfo
    skill: Skill
    is_competent: bool
    measures: tuple[str, str]
    n_only_first: int
    n_only_second: int
    r_squared: float | None
    subtopics: tuple[AgreementRow, ...]
    total: AgreementRow

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model.to_dict(),
            "skill": asdict(self.skill),
            "is_competent": self.is_competent,
            "measures": list(self.measures),
            "n_only_first": self.n_only_first,
            "n_only_second": self.n_only_second,
            "r_squared": self.r_squared,
            "subtopics": [row.to_dict() for row in self.subtopics],
            "total": self.total.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SecondModel":
        return cls(
            **{
                **data,
                "model": ModelInfo.from_dict(data["model"]),
                "skill": Skill(**data["skill"]),
                "measures": tuple(data["measures"]),
                "subtopics": tuple(map(AgreementRow.from_dict, data["subtopics"])),
                "total": AgreementRow.from_dict(data["total"]),
            }
        )


@dataclass(frozen=True, slots=True)
class PromptDifference:
    """A measure under both prompts, on the pairs that were answered under both; `difference` is second less first."""

    measure: str
    first: float | None
    second: float | None
    difference: Measure

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PromptDifference":
        return cls(**{**data, "difference": Measure(**data["difference"])})


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One model asked in two ways, in one subtopic or in all. `n_pairs` had four answers that could be read."""

    path: str
    n_pairs: int
    n_clusters: int
    n_changed: int
    n_unread: int
    sensitivity: Measure
    differences: tuple[PromptDifference, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "differences": [asdict(difference) for difference in self.differences]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PromptRow":
        differences = tuple(map(PromptDifference.from_dict, data["differences"]))
        return cls(**{**data, "sensitivity": Measure(**data["sensitivity"]), "differences": differences})


@dataclass(frozen=True, slots=True)
class SecondPrompt:
    """What a second prompt (--bbnli-also-prompt) changed. `prompts` are the names of the two."""

    model: ModelInfo
    skill: Skill
    is_competent: bool
    prompts: tuple[str, str]
    subtopics: tuple[PromptRow, ...]
    total: PromptRow

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model.to_dict(),
            "skill": asdict(self.skill),
            "is_competent": self.is_competent,
            "prompts": list(self.prompts),
            "subtopics": [row.to_dict() for row in self.subtopics],
            "total": self.total.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SecondPrompt":
        return cls(
            **{
                **data,
                "model": ModelInfo.from_dict(data["model"]),
                "skill": Skill(**data["skill"]),
                "prompts": tuple(data["prompts"]),
                "subtopics": tuple(map(PromptRow.from_dict, data["subtopics"])),
                "total": PromptRow.from_dict(data["total"]),
            }
        )
