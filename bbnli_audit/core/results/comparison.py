"""What became of the measures since the baseline, as plain values that survive a JSON file."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bbnli_audit.core.results.audit import Measure, ModelInfo, Verdict


@dataclass(frozen=True, slots=True)
class Change:
    """A pair that counts otherwise than before. Cells are labels, the pro side first: "NN" became "EN"."""

    pair_id: str
    cluster: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Regression:
    """One measure of one subtopic, candidate against baseline, on the pairs that both have.

    `increase` is candidate less baseline; each of its bounds holds by itself with the confidence of the run.
    `p_adjusted` is `p_value` corrected for the number of tests of the run. `flipped` are the pairs that newly count
    towards the measure, or count more than before; `fixed` those that no longer do, or count less.
    """

    path: str
    measure: str
    margin: float
    source: str
    verdict: Verdict
    baseline: float | None
    candidate: float | None
    increase: Measure
    p_value: float
    p_mcnemar: float
    p_adjusted: float
    n_shared: int
    pairs_needed: int | None = None
    flipped: tuple[Change, ...] = ()
    fixed: tuple[Change, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        changes = {"flipped": list(map(asdict, self.flipped)), "fixed": list(map(asdict, self.fixed))}
        return {**asdict(self), "verdict": self.verdict.value, **changes}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Regression":
        return cls(
            **{
                **data,
                "verdict": Verdict(data["verdict"]),
                "increase": Measure(**data["increase"]),
                "flipped": tuple(Change(**change) for change in data["flipped"]),
                "fixed": tuple(Change(**change) for change in data["fixed"]),
            }
        )


@dataclass(frozen=True, slots=True)
class LoosenedLimit:
    """A limit that is wider than the one the baseline was held to."""

    path: str
    measure: str
    before: float
    after: float
    source: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against a baseline. `n_tests` is the number of tests that `p_adjusted` is corrected for."""

    baseline: ModelInfo
    source: str
    is_same_data: bool
    n_shared: int
    n_only_candidate: int
    n_only_baseline: int
    n_tests: int
    regressions: tuple[Regression, ...]
    loosened: tuple[LoosenedLimit, ...] = ()

    def of(self, path: str) -> list[Regression]:
        return [regression for regression in self.regressions if regression.path == path]

    def to_dict(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline.to_dict(),
            "source": self.source,
            "is_same_data": self.is_same_data,
            "n_shared": self.n_shared,
            "n_only_candidate": self.n_only_candidate,
            "n_only_baseline": self.n_only_baseline,
            "n_tests": self.n_tests,
            "regressions": [regression.to_dict() for regression in self.regressions],
            "loosened": [asdict(limit) for limit in self.loosened],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Comparison":
        return cls(
            **{
                **data,
                "baseline": ModelInfo.from_dict(data["baseline"]),
                "regressions": tuple(map(Regression.from_dict, data["regressions"])),
                "loosened": tuple(LoosenedLimit(**limit) for limit in data["loosened"]),
            }
        )
