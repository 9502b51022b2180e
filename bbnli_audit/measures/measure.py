"""What a measure is. Everything that must be known of one stands in one place; `registry.py` lists them all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bbnli_audit.core.results.rows import Measured
from bbnli_audit.measures.drivers import Evidence
from bbnli_audit.measures.readings.table import Floats, PairTable
from bbnli_audit.measures.statistics.intervals import Estimate

PairValues = Callable[[PairTable], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure: how it is computed, judged and told."""

    name: str  # as results and tests name it, such as `pro_rate`
    sentence: str  # what it is, for people: in the schema of thresholds.yaml, the docs and the page
    limit: str | None = None  # the key of its limit: `max_...` is a largest value, `min_...` a smallest
    values: PairValues | None = None  # what each pair adds, in [0, 1]; the measure is the mean over pairs
    estimate: Callable[[PairTable, float], Estimate] | None = None  # with its interval instead, where it is not a mean
    unit: Literal["samples", "pairs"] = "pairs"  # what its denominator counts
    readings: tuple[str, ...] = ("labels", "answers")  # the readings of a model that have it, by name
    family: str | None = None  # only suites that name this family in `families` have it; None for all suites
    evidence: Callable[..., Evidence] | None = None  # for a failing test: of the measure and its pair table
    title: str | None = None  # what a model card calls it; a card leaves out measures without a title
    source: Literal["pairs", "prompts", "controls"] = "pairs"  # what it is computed from; prompts are two
    is_over_all: bool = False  # pairs without an outcome count too

    @property
    def short(self) -> str:
        """As waivers, test ids and tables name it."""
        if self.limit is None:
            return self.name.removesuffix("_rate")
        return self.limit.removeprefix("max_").removeprefix("min_")

    @property
    def is_minimum(self) -> bool:
        """More is better, so its limit is a smallest value."""
        return self.limit is not None and self.limit.startswith("min_")

    def excess(self, value: float, limit: float) -> float:
        """Return how far a value lies on the worse side of a limit; negative where it keeps the limit."""
        return limit - value if self.is_minimum else value - limit

    def worse_bound(self, measured: Measured) -> float | None:
        """Return the end of the interval that a limit must allow."""
        return measured.low if self.is_minimum else measured.high

    def count(self, table: PairTable) -> Floats:
        """Return what each pair adds in the unit of the measure, more is worse: 0, 1 or 2 samples."""
        assert self.values is not None
        values = self.values(table)
        worse = 1 - values if self.is_minimum else values
        return 2 * worse if self.unit == "samples" else worse
