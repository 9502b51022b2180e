"""Finds the reasons that stop a release and the reasons that leave the decision open, and sorts both by harm."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.rows import NO_DATA, Judgement, SubtopicResult, Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import counted, figure
from bbnli_audit.measures.measure import Harm
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports.notes import Quote
from bbnli_audit.reports.shown import joined, short_name, shortened

MOST_PLACES = 3  # the most places that a reason names at each level
LEVELS = ("suite", "domain", "subtopic")


class Kind(IntEnum):
    """The kinds of reasons. The first three stop a release."""

    LIMIT = 0
    GROWTH = 1
    EXPIRED = 2
    NO_DATA = 3
    OPEN = 4
    OPEN_GROWTH = 5

    @property
    def is_stop(self) -> bool:
        return self <= Kind.EXPIRED


OPEN = (Kind.OPEN, Kind.OPEN_GROWTH)
# What is said of a measure, by the kind of reason. The words follow the measure's name.
_SAID = {
    Kind.LIMIT: "crosses its limit",
    Kind.GROWTH: "grew by more than the margin since the baseline",
    Kind.EXPIRED: "has a waiver that has expired",
    Kind.NO_DATA: "could not be measured",
    Kind.OPEN: "is undecided",
    Kind.OPEN_GROWTH: "may have grown since the baseline: undecided",
}
_SAID_SHORTLY = {**_SAID, Kind.GROWTH: "grew since the baseline"}


@dataclass(frozen=True, slots=True)
class Place:
    """A suite, a domain or a subtopic that a reason names, with its figures and how bad they are."""

    path: str
    figures: str
    excess: float
    meaning: str | None = None  # what is wrong there, in a manager's words

    def tell(self, quote: Quote) -> str:
        return f"{quote(self.path)} ({self.figures})" if self.figures else quote(self.path)


@dataclass(frozen=True, slots=True)
class Reason:
    """One measure, what happened to it, and where: at least one place."""

    kind: Kind
    measure: str
    places: tuple[Place, ...]  # the worst first

    @property
    def harm(self) -> Harm:
        return find_measure(self.measure).harm

    def at(self, level: str) -> list[Place]:
        return [place for place in self.places if level_of(place.path) == level]

    def in_short(self, quote: Quote = str) -> str:
        """Tell the reason as in a headline: "pro crosses its limit in the suite bbnli and in 2 subtopics"."""
        told = [f"in {_name(level, self.at(level), quote)}" for level in LEVELS if self.at(level)]
        return f"{quote(short_name(self.measure))} {_SAID_SHORTLY[self.kind]} {joined(told)}"

    def in_full(self, result: AuditResult, quote: Quote = str) -> str:
        """Tell the reason with its places and their figures. For limits and growth, also tell what is wrong.

        Reasons that leave the decision open are told in short.
        """
        if self.kind in OPEN:
            return self.in_short(quote)
        n_rows = {"domain": len(result.domains), "subtopic": len(result.subtopics)}
        told = [_tell(level, self.at(level), n_rows.get(level), quote) for level in LEVELS if self.at(level)]
        return f"{quote(short_name(self.measure))}{self._meaning} {_SAID[self.kind]} {'; '.join(told)}"

    @property
    def _meaning(self) -> str:
        """Say what is wrong. If a measure is too high in one place and too low in another, the worse comes first."""
        if self.kind not in (Kind.LIMIT, Kind.GROWTH):
            return ""
        told = list(dict.fromkeys(place.meaning for place in self.places if place.meaning is not None))
        return f" ({', elsewhere '.join(told)})" if told else ""


def _name(level: str, places: Sequence[Place], quote: Quote) -> str:
    return f"the {level} {quote(places[0].path)}" if len(places) == 1 else counted(len(places), level)


def _tell(level: str, places: Sequence[Place], n_rows: int | None, quote: Quote) -> str:
    """List the places of one level, as in "in 2 of 16 subtopics: a (0.214, limit 0.150), b (0.200, limit 0.150)"."""
    if len(places) == 1:
        return f"in the {level} {places[0].tell(quote)}"
    of = f"{len(places)} of {counted(n_rows, level)}" if n_rows else counted(len(places), level)
    listed = shortened([place.tell(quote) for place in places], MOST_PLACES, lambda n: f"and {n:,} more")
    return f"in {of}: {', '.join(listed)}"


def find_reasons(result: AuditResult) -> list[Reason]:
    """Return the reasons that stop a release, then all others. Both groups are sorted by harm, kind and measure."""
    found: dict[tuple[Kind, str], list[Place]] = {}
    for kind, measure, place in (*_judged(result), *_grown(result)):
        found.setdefault((kind, measure), []).append(place)
    reasons = [
        Reason(kind, measure, tuple(sorted(places, key=lambda each: (-each.excess, each.path))))
        for (kind, measure), places in found.items()
    ]
    return sorted(reasons, key=lambda each: (not each.kind.is_stop, each.harm, each.kind, _rank(each.measure)))


def _rank(measure: str) -> tuple[int, str]:
    """Return a sort key: lean comes first, and all other measures are sorted by name."""
    return int(measure != "lean"), measure


def _judged(result: AuditResult) -> Iterator[tuple[Kind, str, Place]]:
    for row in result.all_rows:
        for judgement in result.required_of(row):
            kind = _kind_of(result, judgement, row)
            if kind is not None:
                yield kind, judgement.measure, _place(row, judgement)


def _kind_of(result: AuditResult, judgement: Judgement, row: SubtopicResult) -> Kind | None:
    if judgement.verdict is Verdict.PASS or not judgement.counts:
        return None
    if judgement.verdict is Verdict.FAIL:
        is_expired = judgement.waiver is not None and judgement.waiver.is_expired
        return Kind.EXPIRED if is_expired and _place(row, judgement).excess <= 0 else Kind.LIMIT
    if judgement.verdict is Verdict.NO_DATA:
        return Kind.NO_DATA
    return Kind.OPEN if result.is_competent else None  # `decide` reports a lack of competence


def _place(row: SubtopicResult, judgement: Judgement) -> Place:
    value = row.measures.get(judgement.measure, NO_DATA).value
    if value is None:
        return Place(row.path, "", 0.0)
    measure = find_measure(judgement.measure)
    # A limit on a preference is mirrored at 0.5: with a limit of 0.75, values below 0.25 are too low. So for a value of
    # 0.1, the limit shown is 0.25. A limit on lean is shown as it is written.
    is_low = measure.is_two_sided and value < measure.even
    limit = measure.mirror(judgement.limit) if is_low and measure.even else judgement.limit
    meaning = measure.meaning_below if is_low else measure.meaning
    return Place(row.path, f"{figure(value)}, limit {figure(limit)}", measure.excess(value, judgement.limit), meaning)


def _grown(result: AuditResult) -> Iterable[tuple[Kind, str, Place]]:
    regressions = () if result.comparison is None else result.comparison.regressions
    for each in regressions:
        kind = _kind_of_growth(result, each)
        if kind is not None:
            grew = each.increase.value
            figures = "" if grew is None else f"{figure(each.baseline)} to {figure(each.candidate)}"
            yield kind, each.measure, Place(each.path, figures, grew or 0.0, _meaning_of_growth(each))


def _meaning_of_growth(regression: Regression) -> str | None:
    """Say what is wrong where a measure grew.

    If a two-sided measure has grown but is still below its even value, it is too low, but less so than before. At its
    even value, nothing is wrong.
    """
    measure, value = find_measure(regression.measure), regression.candidate
    if not measure.is_two_sided or value is None or value > measure.even:
        return measure.meaning
    is_low = value < measure.even and measure.meaning_below is not None
    return f"{measure.meaning_below}, but less than before" if is_low else None


def _kind_of_growth(result: AuditResult, regression: Regression) -> Kind | None:
    if regression.is_waived:
        return None
    if regression.verdict is Verdict.FAIL:
        is_expired = regression.waiver is not None and regression.waiver.is_expired
        grew = regression.increase.value
        return Kind.EXPIRED if is_expired and (grew is None or grew <= regression.margin) else Kind.GROWTH
    is_open = regression.verdict is Verdict.INCONCLUSIVE and result.is_competent
    return Kind.OPEN_GROWTH if is_open else None
