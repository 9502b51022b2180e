"""The keys of thresholds.yaml. The checks, the messages and the JSON Schema for editors all come from here."""

from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

# Limits are spelled by direction; each belongs to one measure of metrics/rates.py or metrics/families.py. The short
# name is what a waiver and a test id say.
LIMIT_MEASURES = {
    "max_pro": "pro_rate",
    "max_anti": "anti_rate",
    "max_brittleness": "brittleness_rate",
    "max_misprediction": "misprediction_rate",
    "max_unparsed": "unparsed_rate",
    "max_prompt_sensitivity": "prompt_sensitivity",
    "max_token_preference": "token_preference",
    "min_same_label": "same_label",
    "max_probability_gap": "probability_gap",
    "max_pro_preference": "pro_preference",
    **{f"max_m{n}": f"m{n}" for n in range(1, 9)},
}
SHORT_NAMES = {key.removeprefix("max_").removeprefix("min_"): measure for key, measure in LIMIT_MEASURES.items()}

Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Text = Annotated[str, Field(pattern=r"\S", strict=True)]
ShortName = Literal[
    "pro",
    "anti",
    "brittleness",
    "misprediction",
    "unparsed",
    "prompt_sensitivity",
    "token_preference",
    "same_label",
    "probability_gap",
    "pro_preference",
    "m1",
    "m2",
    "m3",
    "m4",
    "m5",
    "m6",
    "m7",
    "m8",
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Strict):
    """Limits as shares of samples. A measure at its limit passes."""

    max_pro: Share | None = Field(default=None, description="Largest share of samples wrong the way of the stereotype.")
    max_anti: Share | None = Field(default=None, description="Largest share of samples wrong against the stereotype.")
    max_brittleness: Share | None = Field(default=None, description="Largest share wrong the same way for both groups.")
    max_misprediction: Share | None = Field(default=None, description="Largest share of samples wrong for any cause.")
    max_unparsed: Share | None = Field(
        default=None, description="Generative models: largest share of answers that could not be read."
    )
    max_prompt_sensitivity: Share | None = Field(
        default=None, description="Generative models: largest share of answers that change with a second prompt."
    )
    max_token_preference: Share | None = Field(
        default=None,
        description="Language models: largest share with the stereotyped side likelier; 0.5 is even.",
    )
    min_same_label: Share | None = Field(
        default=None, description="occupations: smallest share with the same answer for both genders (S)."
    )
    max_probability_gap: Share | None = Field(
        default=None, description="occupations: largest mean difference of the two genders' probabilities (ΔP)."
    )
    max_pro_preference: Share | None = Field(
        default=None,
        description="occupations: largest share with the majority gender likelier (B); 0.5 is even.",
    )
    max_m1: Share | None = Field(default=None, description="winoqueer: M1, the identity is entailed more.")
    max_m2: Share | None = Field(default=None, description="winoqueer: M2, entailed with a probability above 0.25.")
    max_m3: Share | None = Field(default=None, description="winoqueer: M3, entailed with a probability above 0.5.")
    max_m4: Share | None = Field(default=None, description="winoqueer: M4, entailed with a probability above 0.75.")
    max_m5: Share | None = Field(default=None, description="winoqueer: M5, entailment less contradiction is larger.")
    max_m6: Share | None = Field(default=None, description="winoqueer: M6, the same with half of neutral taken off.")
    max_m7: Share | None = Field(default=None, description="winoqueer: M7, entailed against neutral.")
    max_m8: Share | None = Field(default=None, description="winoqueer: M8, entailed against contradicted.")
    allow_no_data: bool | None = Field(default=None, strict=True, description="Let a subtopic without pairs pass.")


class Override(Limits):
    """Limits of one domain or subtopic, and why they differ."""

    reason: Text = Field(description="Why these limits differ from the defaults.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set - {"reason"}:
            raise ValueError("it sets no limit")
        return self


class SuiteLimits(_Strict):
    defaults: Limits = Limits()
    domains: dict[str, Override] = {}
    subtopics: dict[str, Override] = {}


class Competence(_Strict):
    min_control_accuracy: Share = Field(description="Smallest share of control samples a model must get right.")


class Regression(_Strict):
    max_increase: Share = Field(description="By how much a measure may exceed the baseline's.")


class WaiverEntry(_Strict):
    """Lets one crossed limit pass until a date."""

    subtopic: Text = Field(description="Full path, such as bbnli/gender/man_is_to_programmer.")
    measure: ShortName
    reason: Text
    owner: Text = Field(description="Who answers for it.")
    expires: date = Field(strict=True, description="Last day it holds; from the next day on the test fails.")


class ThresholdsFile(_Strict):
    """Limits of an audit with bbnli-audit."""

    version: Literal[1]
    decide: Literal["bounds", "point"] = Field(
        default="bounds", description="bounds: three-valued, from the interval. point: the estimate alone."
    )
    confidence: Annotated[float, Field(ge=0.5, lt=1, strict=True)] = 0.95
    inconclusive: Literal["warn", "fail"] = Field(
        default="warn",
        description="What an INCONCLUSIVE verdict does to its test: skip it with a reason, or fail it.",
    )
    competence: Competence
    defaults: Limits
    suites: dict[str, SuiteLimits] = {}
    regression: Regression | None = None
    waivers: list[WaiverEntry] = []


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema that editors check thresholds.yaml with."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ThresholdsFile.model_json_schema()}
