"""Defines the keys of thresholds.yaml. The checks of the file, its messages and its JSON Schema use these keys.

The keys of limits come from the registry of measures, so the pydantic models are made when a file is read.
"""

from datetime import date
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.registry import find_limited, limited_measures

Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Growth = Annotated[float, Field(ge=0, le=2, strict=True)]  # up to 2, because lean can grow from -1 to 1
Text = Annotated[str, Field(pattern=r"\S", strict=True)]
# Measures whose growth is tested. Lean is first: it is what people mean by bias. The misprediction rate is left out: it
# is the sum of the causes. The last two measures need data whose premises point with or against the stereotype, so some
# baselines lack these measures.
GROWTH_MEASURES = ("lean", *CAUSES, "overreach", "fact_gap")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Strict):
    """Limits as shares. A measure at its limit passes."""

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
    min_recall: Share | None = Field(
        default=None, description="Smallest share of the controls of each label that a model must find."
    )
    min_fact_preference: Annotated[float, Field(ge=0.5, le=1, strict=True)] = Field(
        default=0.5,
        description="Likelihoods: the share of facts whose true version is likelier must be above this; 0.5 is chance.",
    )


class Levels(_Strict):
    """Limits on several subtopics together: a small bias in every subtopic shows there, and not in a single one."""

    suite: Limits = Field(default=Limits(), description="On all subtopics of a suite together.")
    domain: Limits = Field(default=Limits(), description="On all subtopics of a domain together.")


class Regression(_Strict):
    max_increase: Share = Field(description="By how much a measure of a subtopic may exceed the baseline's.")
    domain: Share | None = Field(default=None, description="By how much in a domain; by default as in a subtopic.")
    suite: Share | None = Field(default=None, description="By how much in a whole suite; by default as in a domain.")


class WaiverEntry(_Strict):
    """Lets one crossed limit, or growth since the baseline, pass until a date."""

    subtopic: Text = Field(description="Full path, such as bbnli/gender/man_is_to_programmer, or bbnli/gender.")
    measure: str
    reason: Text
    owner: Text = Field(description="Who answers for it.")
    expires: date = Field(strict=True, description="Last day it holds; from the next day on the test fails.")
    waives: Literal["limit", "growth"] = Field(
        default="limit", description="limit: a crossed limit. growth: growth since the baseline beyond its margin."
    )
    up_to: Growth | None = Field(default=None, description="The largest growth that it covers; any if left out.")
    accepted: Text | None = Field(default=None, description="Which model it was accepted for; only for readers.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.waives == "limit" and self.up_to is not None:
            raise ValueError("up_to is for growth: add 'waives: growth', or remove it")
        if self.waives == "growth" and find_limited(self.measure).name not in GROWTH_MEASURES:
            known = ", ".join(find_limited(name).short for name in GROWTH_MEASURES)
            raise ValueError(f"growth of {self.measure} is not tested; it is for {known}")
        return self


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
    levels: Levels = Levels()
    suites: dict[str, SuiteLimits] = {}
    regression: Regression | None = None
    waivers: list[WaiverEntry] = []


def thresholds_model() -> type[ThresholdsFile]:
    """Return the pydantic model of a threshold file, with a limit for every measure that is known now."""
    return _make_model(limited_measures())


def _describe(measure: Measure) -> str:
    if measure.is_two_sided and measure.even:
        return f"Largest value allowed; as far below {measure.even:g} is the smallest. {measure.sentence}"
    kind = "size" if measure.is_two_sided else "value"
    return f"{'Smallest' if measure.is_minimum else 'Largest'} {kind} allowed. {measure.sentence}"


@cache
def _make_model(measures: tuple[Measure, ...]) -> type[ThresholdsFile]:
    fields: dict[str, Any] = {}
    pooled: dict[str, Any] = {}
    for each in measures:
        fields[str(each.limit)] = (Share | None, Field(default=None, description=_describe(each), ge=each.even or None))
        if each.can_be_pooled:
            pooled[str(each.limit)] = fields[str(each.limit)]
    limits = create_model("Limits", __base__=Limits, __doc__=Limits.__doc__, **fields)
    override = create_model("Override", __base__=Override, __doc__=Override.__doc__, **fields)
    named: dict[str, Any] = {"domains": (dict[str, override], {}), "subtopics": (dict[str, override], {})}  # type: ignore[valid-type]
    suite = create_model("SuiteLimits", __base__=SuiteLimits, defaults=(limits, limits()), **named)
    # The measures are known only at run time. Short names come first, because reports and messages use them.
    names: Any = Literal[tuple(dict.fromkeys([*(each.short for each in measures), *(each.name for each in measures)]))]
    waiver = create_model("WaiverEntry", __base__=WaiverEntry, __doc__=WaiverEntry.__doc__, measure=(names, ...))
    together = create_model("LevelLimits", __base__=Limits, __doc__="Limits on several subtopics together.", **pooled)
    at_levels: Any = {
        name: (together, Field(default=together(), description=field.description))
        for name, field in Levels.model_fields.items()
    }
    levels = create_model("Levels", __base__=Levels, __doc__=Levels.__doc__, **at_levels)
    lists: dict[str, Any] = {"suites": (dict[str, suite], {}), "waivers": (list[waiver], [])}  # type: ignore[valid-type]
    lists["levels"] = (levels, levels())
    return create_model(
        "ThresholdsFile", __base__=ThresholdsFile, __doc__=ThresholdsFile.__doc__, defaults=(limits, ...), **lists
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema that editors check thresholds.yaml with."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **thresholds_model().model_json_schema()}


def known_keys(location: tuple[str | int, ...]) -> set[str]:
    """List the keys that are allowed at a place of the file, so that a message can suggest one for an unknown key."""
    if not location:
        return set(ThresholdsFile.model_fields)
    top = str(location[0])
    if top == "suites" and len(location) == 2:
        return set(SuiteLimits.model_fields)
    others: dict[str, type[BaseModel]] = {"competence": Competence, "regression": Regression, "waivers": WaiverEntry}
    if top in others:
        return set(others[top].model_fields)
    if top == "levels" and len(location) == 1:
        return set(Levels.model_fields)
    limits = {str(measure.limit) for measure in limited_measures() if top != "levels" or measure.can_be_pooled}
    return limits | set((Limits if top in ("defaults", "levels") else Override).model_fields)
