"""What a measure is. Everything that must be known of one stands in one place; `registry.py` lists them all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bbnli_audit.core.results.rows import Measured
from bbnli_audit.measures.evidence import Evidence
from bbnli_audit.measures.readings.table import Floats, PairTable
from bbnli_audit.measures.statistics.intervals import Estimate

PairValues = Callable[[PairTable], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure: how it is computed, judged and told.

    Attributes:
        name: As results and tests name it, such as `pro_rate`.
        sentence: What it is, for people: in the schema of thresholds.yaml, the docs and the page.
        limit: The key of its limit. `max_...` is a largest value, `min_...` a smallest; None when it has no limit.
        values: What each pair adds, in [0, 1]. The measure is the mean over pairs.
        estimate: Computes it with its interval instead, where it is not a mean.
        unit: What its denominator counts.
        readings: Which readings of a model have it, by name.
        family: Only suites that name this family in `families` have it; None for all suites.
        evidence: What a failing test shows beside the numbers: a function of the measure and its pair table.
        title: How a model card calls it; a card leaves out measures without a title.
        source: What it is computed from: the pairs, the answers to two prompts, or the controls.
        is_over_all: Whether pairs without an outcome count too.
    """

    name: str
    sentence: str
    limit: str | None = None
    values: PairValues | None = None
    estimate: Callable[[PairTable, float], Estimate] | None = None
    unit: Literal["samples", "pairs"] = "pairs"
    readings: tuple[str, ...] = ("labels", "answers")
    family: str | None = None
    evidence: Callable[..., Evidence] | None = None
    title: str | None = None
    source: Literal["pairs", "prompts", "controls"] = "pairs"
    is_over_all: bool = False

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
        """Return what each pair adds in the unit of the measure, the worse the more: 0, 1 or 2 samples."""
        assert self.values is not None
        values = self.values(table)
        worse = 1 - values if self.is_minimum else values
        return 2 * worse if self.unit == "samples" else worse
