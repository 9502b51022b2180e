"""Proposes limits, and writes them into the text of a threshold file.

A proposed limit is the worse end of a measured interval, made looser by a margin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from bbnli_audit.audit.gate.thresholds import Limit, Thresholds, local_names, parse_thresholds
from bbnli_audit.audit.gate.thresholds_edit import quote, set_values
from bbnli_audit.core.errors import ResultError, ThresholdsError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import NO_DATA, Verdict
from bbnli_audit.core.values import Subtopic, level_of
from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.registry import find_measure, limited_measures

# Reasons that calibration writes begin with this text. Any other reason was written by a person, and is kept.
REASON = "calibrated with "

Where = tuple[str, ...]  # the keys that lead to a place in the file
Places = dict[Where, dict[str, Any]]  # the keys and values to write at each place
Place = Subtopic | str  # a subtopic, or the path of a domain or a suite
Wanted = Mapping[tuple[Place, str], float]  # place and measure -> limit


@dataclass(frozen=True, slots=True)
class Proposal:
    """A limit to write at one place in the file.

    The limit may hold for several subtopics, domains or suites. `subtopic` is the path of the one with the worst bound.
    """

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
        return find_measure(self.measure).excess(self.new, self.old) > 0


@dataclass(frozen=True, slots=True)
class KeptLimit:
    """A limit in the file that stays as it is: its scope is narrower than that of the proposed limit, so it wins."""

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
    """The changes to write. `wanted` has the limits that must be in force once the changes are written."""

    proposals: tuple[Proposal, ...]
    kept: tuple[KeptLimit, ...]
    failures: tuple[Failure, ...]
    no_data: tuple[tuple[str, str], ...]
    wanted: Wanted

    @property
    def changes(self) -> list[Proposal]:
        return [proposal for proposal in self.proposals if proposal.new != proposal.old]


def propose(
    result: AuditResult, thresholds: Thresholds, subtopics: Sequence[Subtopic], margin: float, per: str
) -> Calibration:
    """Propose limits that the measured model passes.

    `subtopics` are the subtopics of the result, with their aliases. A limit is proposed only where the file already
    sets one. `per` says where limits of subtopics are written: `defaults`, `domain` or `subtopic`. Limits of whole
    suites and domains are written under `levels`. A model that is not competent is refused.
    """
    _check_competence(result)
    rows = {row.path: row for row in result.all_rows}
    data = thresholds.file.model_dump(exclude_none=True)
    found: dict[tuple[Where, Measure], list[tuple[float, Place, Limit]]] = {}
    kept, no_data = [], []
    wanted: dict[tuple[Place, str], float] = {}
    places: list[Place] = [*subtopics, *(row.path for row in (*result.domains, *result.suite_rows))]
    for place in places:
        for measure in limited_measures():
            limit, path = thresholds.limit_for(place, measure.name), _path_of(place)
            measured = rows[path].measures.get(measure.name)
            if limit is None or measured is None:  # no limit is set, or the suite or model lacks this measure
                continue
            bound, key = measure.worse_bound(measured), str(measure.limit)
            where = ("levels", level_of(place)) if isinstance(place, str) else _find_place(data, place, key, per)
            if bound is None:
                no_data.append((path, measure.name))
            elif where is None:
                kept.append(KeptLimit(path, key, limit.value, limit.source, measure.name, bound))
                wanted[place, measure.name] = limit.value
            else:
                found.setdefault((where, measure), []).append((bound, place, limit))
    proposals = []
    for (where, measure), members in found.items():
        bound, worst, limit = max(members, key=lambda member: measure.excess(member[0], 0))
        new, key = add_margin(measure, bound, margin), str(measure.limit)
        proposals.append(Proposal(where, key, measure.name, limit.value, new, limit.source, _path_of(worst), bound))
        wanted.update({(place, measure.name): new for _, place, _ in members})
    failures = [
        Failure(row.path, judgement.measure, row.measures.get(judgement.measure, NO_DATA).value, judgement.limit)
        for row in (*result.subtopics, *result.domains, *result.suite_rows)
        for judgement in row.verdicts
        if judgement.verdict is Verdict.FAIL
    ]
    return Calibration(tuple(proposals), tuple(kept), tuple(failures), tuple(no_data), wanted)


def add_margin(measure: Measure, bound: float, margin: float) -> float:
    """Turn a bound and a margin into a limit from 0 to 1: two decimals, rounded to the looser side."""
    is_minimum = measure.is_minimum
    # Rounded first, because as floats 0.07 + 0.02 is more than 0.09.
    exact = Decimal(repr(round(bound - margin if is_minimum else bound + margin, 9)))
    limit = float(exact.quantize(Decimal("0.01"), ROUND_FLOOR if is_minimum else ROUND_CEILING))
    return min(max(limit, 0.0), 1.0)


def _check_competence(result: AuditResult) -> None:
    if result.is_competent:
        return
    judgement = result.competence
    limit = "" if judgement is None else f", limit {judgement.limit:g}, {judgement.source}"
    raise ResultError(
        f"{result.model.name} is not competent ({result.skill_shown}{limit}), so its errors say nothing about "
        "bias, and limits made from them would mean nothing.\nCalibrate with a model that passes the competence test."
    )


def edit(text: str, calibration: Calibration, thresholds: Thresholds, source: str) -> str:
    """Return the text of the file with the proposed limits, and nothing else changed. New reasons name `source`."""
    places: Places = {}
    for proposal in calibration.changes:
        places.setdefault(proposal.where, {})[proposal.key] = proposal.new
    kept_reasons = own_reasons(calibration, thresholds)
    expected = thresholds.file.model_dump(exclude_unset=True)
    for where, values in places.items():
        is_override = where[2:3] in (("domains",), ("subtopics",))
        if is_override and where not in kept_reasons:
            values["reason"] = f"{REASON}{source}"
        written = {key: quote(value) if key == "reason" else f"{value:.2f}" for key, value in values.items()}
        text = set_values(text, where, written, thresholds.name)
        below = expected
        for key in where:
            below = below.setdefault(key, {})
        below.update(values)
    _verify(text, thresholds.name, expected, places, calibration.wanted)
    return text


def own_reasons(calibration: Calibration, thresholds: Thresholds) -> list[Where]:
    """List the changed places whose reason was written by a person. Somebody must check that it still holds."""
    data = thresholds.file.model_dump(exclude_unset=True)
    places = dict.fromkeys(proposal.where for proposal in calibration.changes)
    return [where for where in places if not _at(data, where).get("reason", REASON).startswith(REASON)]


def _verify(text: str, name: str, expected: Mapping[str, Any], places: Places, wanted: Wanted) -> None:
    """Read the new text as an audit would, and check that the proposed limits hold and nothing else has changed."""
    try:
        changed = parse_thresholds(text, name)
        found = changed.file.model_dump(exclude_unset=True)
    except ThresholdsError:
        changed, found = None, {}
    if changed is None or found != expected:
        where = next((where for where in places if _at(found, where) != _at(expected, where)), next(iter(places)))
        limits = ", ".join(f"{key}: {value}" for key, value in places[where].items())
        fault = "cannot be changed without changing other places (it has an anchor, or an unusual layout)"
        raise ThresholdsError(f"{name}: {'.'.join(where)} {fault}. Nothing was written. Set by hand: {limits}")
    for (place, measure), value in wanted.items():
        limit = changed.limit_for(place, measure)
        if limit is None or limit.value != value:
            told = f"{name}: the limit for {measure} of {_path_of(place)} should be {value}"
            other = "no limit would be in force" if limit is None else f"another would be in force ({limit.source})"
            raise ThresholdsError(f"{told}, but {other}. Nothing was written. Set it by hand.")


def _path_of(place: Place) -> str:
    return place if isinstance(place, str) else place.path


def _find_place(data: Mapping[str, Any], subtopic: Subtopic, key: str, per: str) -> Where | None:
    """Return the place for a proposed limit. Return None if the file has a limit for a scope narrower than `per`."""
    suite: Where = ("suites", subtopic.suite)
    own = [(*suite, "subtopics", name) for name in local_names(subtopic)]
    if per == "subtopic":
        return next((where for where in own if _at(data, where)), own[0])
    if any(key in _at(data, where) for where in own):
        return None
    domain = (*suite, "domains", subtopic.domain)
    if per == "domain":
        return domain
    if key in _at(data, domain):
        return None
    defaults = (*suite, "defaults")
    return defaults if key in _at(data, defaults) else ("defaults",)


def _at(data: Mapping[str, Any], where: Where) -> Mapping[str, Any]:
    """Return the keys and values at a place in the file; an empty mapping if the file does not have the place."""
    for key in where:
        data = data.get(key, {})
    return data
