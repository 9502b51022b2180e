"""Holds what was measured to the limits of a threshold file."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from bbnli_audit.audit.gate.thresholds import Limit, Thresholds
from bbnli_audit.audit.gate.verdict import judge, judge_competence
from bbnli_audit.core.results.audit import COMPETENCE
from bbnli_audit.core.results.rows import Judgement, Skill, Verdict
from bbnli_audit.core.values import Subtopic

if TYPE_CHECKING:
    from bbnli_audit.measures.measuring import MeasuredTable


def judge_table(
    subtopic: Subtopic, measured: "MeasuredTable", thresholds: Thresholds, today: date, *, is_competent: bool
) -> Iterator[Judgement]:
    """Judge each measure that has a limit."""
    from bbnli_audit.measures.registry import find_measure

    for name in measured.measures:
        limit = thresholds.limit_for(subtopic, name) if find_measure(name).limit is not None else None
        if limit is not None:
            found = _judge(measured, limit, thresholds, is_competent=is_competent)
            waiver = thresholds.waiver_for(subtopic, name)
            if waiver is not None:
                told = waiver.on(today)
                found = replace(found, waiver=told, verdict=Verdict.FAIL if told.is_expired else found.verdict)
            yield found


def _judge(measured: "MeasuredTable", limit: Limit, thresholds: Thresholds, *, is_competent: bool) -> Judgement:
    from bbnli_audit.measures.registry import find_measure
    from bbnli_audit.measures.statistics.intervals import pairs_needed

    settings, name = thresholds.file, limit.measure
    is_minimum = find_measure(name).is_minimum
    verdict = judge(
        measured.measures[name],
        limit.value,
        decide=settings.decide,
        is_competent=is_competent,
        is_minimum=is_minimum,
    )
    needed = None
    if verdict is Verdict.INCONCLUSIVE and is_competent:
        estimate, allowed = measured.estimates[name], limit.value
        if is_minimum:  # mirrored: the share that is missing has a largest value
            estimate = estimate._replace(value=1 - estimate.value, low=1 - estimate.high, high=1 - estimate.low)
            allowed = 1 - allowed
        needed = pairs_needed(estimate, allowed, settings.confidence)
    return Judgement(name, limit.value, verdict, limit.source, needed)


def competence_judgement(skill: Skill, thresholds: Thresholds) -> Judgement:
    limit = thresholds.file.competence.min_control_accuracy
    source = thresholds.source("competence", "min_control_accuracy")
    return Judgement(COMPETENCE, limit, judge_competence(skill, limit), source)
