"""Defines a measure: one object with all its properties. `registry.py` lists all measures."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from bbnli_audit.core.results.rows import Measured
from bbnli_audit.measures.drivers import Evidence, show_clusters, show_pairs
from bbnli_audit.measures.readings.table import Floats, PairTable, PairValues
from bbnli_audit.measures.statistics.intervals import Estimate


class Harm(IntEnum):
    """The harm that a crossed limit shows, the worst first. Decisions give their reasons in this order."""

    STEREOTYPE = 0  # the stereotype itself
    PREMISE = 1  # a difference in the premise is taken for a difference in people
    FACTS = 2  # facts are read better when they fit the stereotype
    AGAINST = 3  # errors against the stereotype
    QUALITY = 4  # not bias, but not right either


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure: how it is computed, judged and reported."""

    name: str  # as results and tests name it, such as `pro_rate`
    sentence: str  # its definition, shown in the schema of thresholds.yaml, the docs and the page
    limit: str | None = None  # the key of its limit: `max_...` is a largest value, `min_...` a smallest
    values: PairValues | None = None  # what each pair adds, in [0, 1]; the measure is the mean over pairs
    # Computes the measure if it is not a mean of values in [0, 1]. It is given instead of `values`.
    estimate: Callable[[PairTable, float], Estimate] | None = None
    # Only with `estimate`, and only if the measure is a mean of values in [-1, 1]: the value of each pair. A pair that
    # is left out has nan.
    signed: PairValues | None = None
    unit: Literal["samples", "pairs"] = "pairs"  # what its denominator counts
    readings: tuple[str, ...] = ("labels", "answers")  # names of the readings that have this measure
    family: str | None = None  # only suites that name this family in `families` have the measure; None for all suites
    evidence: Callable[..., Evidence] | None = None  # finds in the pair table what a failing test shows
    harm: Harm = Harm.STEREOTYPE
    meaning: str | None = None  # in a manager's words: what is wrong if the measure crosses its limit
    meaning_below: str | None = None  # what is wrong if a two-sided measure crosses its limit below `even`
    paper: str | None = None  # its name in its paper, such as ΔP; reports show it for suites as a whole
    title: str | None = None  # its name in a model card; a card leaves out measures without a title
    source: Literal["pairs", "prompts", "facts", "controls"] = "pairs"  # the data it is computed from
    is_two_sided: bool = False  # both high and low values are bad: the limit holds on both sides of `even`
    even: float = 0.0  # the best value of a two-sided measure; for example, with 0.5 a limit of 0.6 allows 0.4 to 0.6
    is_of_halves: bool = False  # whether it compares two halves of the pairs, such as the directions of the premise
    is_over_all: bool = False  # whether it includes pairs without an outcome
    can_show: Callable[[PairTable], bool] | None = None  # if this is False for a table, the measure has no data
    is_shown: bool = False  # whether tables of subtopics show it even without a limit

    @property
    def short(self) -> str:
        """The name in waivers, test ids and tables."""
        if self.limit is None:
            return self.name.removesuffix("_rate")
        return self.limit.removeprefix("max_").removeprefix("min_")

    @property
    def pair_values(self) -> PairValues | None:
        """What each pair adds; None if the measure is not the mean of what pairs add."""
        return self.values or self.signed

    @property
    def is_minimum(self) -> bool:
        """Whether the limit is a smallest value, because more is better."""
        return self.limit is not None and self.limit.startswith("min_")

    @property
    def can_be_pooled(self) -> bool:
        """Whether the measure is also computed for several subtopics together."""
        return self.source != "prompts"

    def excess(self, value: float, limit: float) -> float:
        """Return how far a value is beyond a limit; negative if it is within the limit."""
        if self.is_two_sided:
            return max(value, self.mirror(value)) - limit
        return limit - value if self.is_minimum else value - limit

    def mirror(self, value: float) -> float:
        """Return the value on the other side of `even`, at the same distance."""
        return 2 * self.even - value

    def worse_bound(self, measured: Measured) -> float | None:
        """Return the worse end of the interval: the tightest limit that this measure would pass."""
        if self.is_two_sided and measured.low is not None and measured.high is not None:
            return max(self.mirror(measured.low), measured.high)
        return measured.low if self.is_minimum else measured.high

    def count(self, table: PairTable) -> Floats:
        """Return what each pair adds, in the unit of the measure (such as 0, 1 or 2 samples); more is worse."""
        assert self.values is not None
        values = self.values(table)
        is_low = self.is_minimum or (self.is_two_sided and float(values.mean()) < self.even)
        worse = 1 - values if is_low else values
        return 2 * worse if self.unit == "samples" else worse


def counted_evidence(measure: Measure, table: PairTable) -> Evidence:
    """Show the clusters that add most and the worst pairs, for measures that count samples."""
    return show_clusters(table, measure.count(table))


def valued_evidence(measure: Measure, table: PairTable) -> Evidence:
    """Show only the worst pairs, for measures that do not count samples."""
    return show_pairs(table, measure.count(table))
