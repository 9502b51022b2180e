"""Proposes limits from a measured model: the worse bound of each measure and a margin, as a changed threshold file."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from bbnli_audit.audit.gate.thresholds import Limit, Thresholds, parse_thresholds
from bbnli_audit.audit.gate.thresholds_edit import quote, set_values
from bbnli_audit.core.errors import ResultError, ThresholdsError
from bbnli_audit.core.results.audit import COMPETENCE, HIGHER_IS_BETTER, AuditResult, Measure, Verdict, excess
from bbnli_audit.core.values import Subtopic

PER = ("defaults", "domain", "subtopic")
REASON = "calibrated with "  # how a reason of ours begins; other reasons are somebody's own and stay

Where = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A limit that a place of the file should have; `subtopic` is the one with the worst bound there."""

    where: Where
    key: str
    measure: str
    old: float
    new: float
    source: str
    subtopic: str
    bound: float

    @property
    def is_looser(self) -> bool:
        return excess(self.measure, self.new, self.old) > 0


@dataclass(frozen=True, slots=True)
class KeptLimit:
    """A limit nearer to a subtopic than what is calibrated: it goes on to hold."""

    subtopic: str
    key: str
    limit: float
    source: str
    measure: str
    bound: float


@dataclass(frozen=True, slots=True)
class Failure:
    subtopic: str
    measure: str
    value: float | None
    limit: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What to write, and what each measured subtopic is then held to (`wanted`)."""

    proposals: tuple[Proposal, ...]
    kept: tuple[KeptLimit, ...]
    failures: tuple[Failure, ...]
    no_data: tuple[tuple[str, str], ...]
    wanted: Mapping[tuple[Subtopic, str], float]

    @property
    def changes(self) -> list[Proposal]:
        return [proposal for proposal in self.proposals if proposal.new != proposal.old]


def propose(
    result: AuditResult, thresholds: Thresholds, subtopics: Sequence[Subtopic], margin: float, per: str
) -> Calibration:
    """Find the limits that the measured model would need.

    Args:
        result: What was measured.
        thresholds: The limits in force.
        subtopics: The subtopics of the result, with their other names.
        margin: What is allowed beyond the worse bound.
        per: One of `PER`: where limits are written.

    Raises:
        ResultError: when the model is not competent, so that its errors say nothing.
    """
    from bbnli_audit.audit.gate.thresholds_schema import LIMIT_MEASURES

    check_competence(result)
    rows = {row.path: row for row in result.subtopics}
    data = thresholds.file.model_dump(exclude_none=True)
    found: dict[tuple[Where, str], list[tuple[float, Subtopic, Limit]]] = {}
    kept: list[KeptLimit] = []
    no_data: list[tuple[str, str]] = []
    wanted: dict[tuple[Subtopic, str], float] = {}
    for subtopic in subtopics:
        for key, measure in LIMIT_MEASURES.items():
            limit = thresholds.limit_for(subtopic, measure)
            measured = rows[subtopic.path].measures.get(measure)
            if limit is None or measured is None:  # a measure that the suite or the kind of model does not have
                continue
            bound = worse_bound(measure, measured)
            if bound is None:
                no_data.append((subtopic.path, measure))
                continue
            target = _target(data, subtopic, key, per)
            if target is None:
                kept.append(KeptLimit(subtopic.path, key, limit.value, limit.source, measure, bound))
                wanted[subtopic, measure] = limit.value
            else:
                found.setdefault((target, key), []).append((bound, subtopic, limit))
    proposals = []
    for (target, key), members in found.items():
        bound, worst, limit = max(members, key=lambda member: excess(member[2].measure, member[0], 0))
        new = add_margin(limit.measure, bound, margin)
        proposals.append(Proposal(target, key, limit.measure, limit.value, new, limit.source, worst.path, bound))
        wanted.update({(subtopic, limit.measure): new for _, subtopic, _ in members})
    return Calibration(tuple(proposals), tuple(kept), tuple(_failures(result)), tuple(no_data), wanted)


def worse_bound(measure: str, measured: Measure) -> float | None:
    """Give the end of the interval that a limit must allow."""
    return measured.low if measure in HIGHER_IS_BETTER else measured.high


def add_margin(measure: str, bound: float, margin: float) -> float:
    """Give a bound and a margin as a limit: two decimals, rounded to the loose side, from 0 to 1."""
    is_minimum = measure in HIGHER_IS_BETTER
    exact = Decimal(repr(round(bound - margin if is_minimum else bound + margin, 9)))  # 0.08 + 0.02 is 0.1 exactly
    limit = float(exact.quantize(Decimal("0.01"), ROUND_FLOOR if is_minimum else ROUND_CEILING))
    return min(max(limit, 0.0), 1.0)


def check_competence(result: AuditResult) -> None:
    if result.is_competent:
        return
    judgement = result.total.judgement(COMPETENCE)
    accuracy = result.total.control_accuracy
    shown = "was not measured" if accuracy is None else f"is {accuracy:.3f}"
    limit = "" if judgement is None else f", the limit {judgement.limit:g}, {judgement.source}"
    raise ResultError(
        f"{result.model.name} is not competent (its control accuracy {shown}{limit}), so its errors say nothing about "
        "bias, and limits made from them would mean nothing.\nCalibrate with a model that passes the competence test."
    )


def edit(text: str, calibration: Calibration, thresholds: Thresholds, reason: str) -> str:
    """Write the proposed limits into the text of the file, and nothing else.

    Raises:
        ThresholdsError: naming what must be written by hand.
    """
    places: dict[Where, dict[str, Any]] = {}
    for proposal in calibration.changes:
        places.setdefault(proposal.where, {})[proposal.key] = proposal.new
    before = thresholds.file.model_dump(exclude_unset=True)
    expected = deepcopy(before)
    for where, values in places.items():
        if is_override(where) and find_reason(before, where).startswith(REASON):
            values["reason"] = reason
        written = {key: quote(value) if key == "reason" else f"{value:.2f}" for key, value in values.items()}
        text = set_values(text, where, written, thresholds.name)
        below = expected
        for key in where:
            below = below.setdefault(key, {})
        below.update(values)
    _verify(text, expected, thresholds.name, places, calibration.wanted)
    return text


def is_override(where: Where) -> bool:
    return "domains" in where[2:3] or "subtopics" in where[2:3]


def find_reason(data: Mapping[str, Any], where: Where) -> str:
    """Give the reason that stands at a place; ours when there is nothing yet."""
    found = _at(data, where)
    return REASON if found is None else str(found["reason"])


def _verify(
    text: str,
    expected: Mapping[str, Any],
    name: str,
    places: Mapping[Where, Mapping[str, Any]],
    wanted: Mapping[tuple[Subtopic, str], float],
) -> None:
    """Read the new text as an audit would: the limits proposed must hold, and nothing else may have changed."""
    try:
        changed = parse_thresholds(text, name)
        found = changed.file.model_dump(exclude_unset=True)
    except ThresholdsError:
        changed, found = None, {}
    wrong = next((where for where in places if _at(found, where) != _at(expected, where)), None)
    if wrong is not None or found != expected or changed is None:
        where = wrong or next(iter(places))
        limits = ", ".join(f"{key}: {value}" for key, value in places[where].items())
        raise ThresholdsError(
            f"{name}: {'.'.join(where)} cannot be changed without changing more (an anchor, or an unusual layout). "
            f"Nothing was written. Write there by hand: {limits}"
        )
    for (subtopic, measure), value in wanted.items():
        limit = changed.limit_for(subtopic, measure)
        if limit is None or limit.value != value:
            raise ThresholdsError(
                f"{name}: {measure} of {subtopic.path} should be held to {value}, but another limit would hold "
                f"({'none' if limit is None else limit.source}). Nothing was written. Write it by hand."
            )


def _target(data: Mapping[str, Any], subtopic: Subtopic, key: str, per: str) -> Where | None:
    """Say where the limit of a subtopic is to be written; None when a nearer one than that holds."""
    suite: Where = ("suites", subtopic.suite)
    names = (subtopic.local_path, *(f"{subtopic.domain}/{alias}" for alias in subtopic.aliases))
    own = [(*suite, "subtopics", name) for name in names]
    if per == "subtopic":
        return next((where for where in own if _at(data, where) is not None), own[0])
    if any(key in (_at(data, where) or {}) for where in own):
        return None
    domain = (*suite, "domains", subtopic.domain)
    if per == "domain":
        return domain
    if key in (_at(data, domain) or {}):
        return None
    defaults = (*suite, "defaults")
    return defaults if key in (_at(data, defaults) or {}) else ("defaults",)


def _at(data: Mapping[str, Any], where: Where) -> Mapping[str, Any] | None:
    found: Any = data
    for key in where:
        if key not in found:
            return None
        found = found[key]
    return dict(found)


def _failures(result: AuditResult) -> Iterable[Failure]:
    for row in result.subtopics:
        for judgement in row.verdicts:
            if judgement.verdict is Verdict.FAIL:
                measured = row.measures.get(judgement.measure)
                yield Failure(row.path, judgement.measure, measured.value if measured else None, judgement.limit)
