"""Checks that the limits, verdicts, waivers and margins of a result follow from a threshold file.

The figures of the result are taken as they are. The correction of FAIL needs the pairs, so it is not repeated: it can
only turn FAIL into INCONCLUSIVE.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from bbnli_audit.audit.gate.baseline import Regressions
from bbnli_audit.audit.gate.growth import find_rule
from bbnli_audit.audit.gate.thresholds import Limit, Thresholds
from bbnli_audit.audit.gate.verdict import allow_for_unseen, competence_judgement, judge, judge_increase, sides_of
from bbnli_audit.core.errors import list_some
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Judgement, Measured, SubtopicResult, Verdict
from bbnli_audit.core.values import Subtopic, level_of
from bbnli_audit.measures.registry import find_measure

Subtopics = Mapping[str, Subtopic]


def recheck_limits(result: AuditResult, thresholds: Thresholds, subtopics: Subtopics) -> Iterator[str]:
    """Describe where a result was not judged by all limits of the file, or not as the file says."""
    file, settings = thresholds.file, result.settings
    for name in ("decide", "confidence", "inconclusive"):
        if getattr(file, name) != getattr(settings, name):
            yield f"it was judged with {name}: {getattr(settings, name)}, and the file says {getattr(file, name)}"
    competence = competence_judgement(settings.skill, thresholds)
    if result.has_task and _essence(competence) != _essence(result.competence):
        yield "its verdict on competence does not follow from the limits"
    strangers = [row.path for row in result.subtopics if row.path not in subtopics]
    if strangers:
        yield f"the suites do not have {list_some(strangers)}"
    known = [row for row in result.all_rows if row.path not in strangers]
    faults = [fault for row in known for fault in _recheck_row(result, row, thresholds, subtopics)]
    if faults:
        yield f"{len(faults)} limits are not kept as the file says: {list_some(faults)}"


def _recheck_row(
    result: AuditResult, row: SubtopicResult, thresholds: Thresholds, subtopics: Subtopics
) -> Iterator[str]:
    place = subtopics.get(row.path, row.path)
    judged = {judgement.measure: judgement for judgement in row.verdicts}
    for name, measured in row.measures.items():
        limit = None if find_measure(name).limit is None else thresholds.limit_for(place, name)
        judgement = judged.pop(name, None)
        told = _compare_limits(judgement, limit)
        if told is None and judgement is not None and limit is not None:
            told = _recheck(result, row, measured, judgement, limit)
        if told is None and judgement is not None and judgement.is_waived:
            waiver = thresholds.waiver_for(place, name)
            told = None if waiver is not None and waiver.on(date.today()) == judgement.waiver else "has no such waiver"
        if told is not None:
            yield f"{row.path} {name} {told}"
    yield from (f"{row.path} {name} was judged and not measured" for name in judged)


def _compare_limits(judgement: Judgement | None, limit: Limit | None) -> str | None:
    found, expected = (
        None if each is None else f"{each:g}"
        for each in (None if judgement is None else judgement.limit, None if limit is None else limit.value)
    )
    if found == expected:
        return None
    return f"was judged by {'no limit' if found is None else found}, and the file has {expected or 'none'}"


def _recheck(
    result: AuditResult, row: SubtopicResult, measured: Measured, judgement: Judgement, limit: Limit
) -> str | None:
    """Return what is wrong with the verdict on one measure; None if nothing is."""
    if (row.path, judgement.measure) not in result.required:
        return "was not required (run with --bbnli-strict)"
    if judgement.may_lack_data and not limit.allow_no_data:
        return "may lack data, and the file does not allow it"
    sides = sides_of(find_measure(judgement.measure))
    verdict = judge(measured, limit.value, decide=result.settings.decide, is_competent=result.is_competent, **sides)
    is_expired = judgement.waiver is not None and judgement.waiver.is_expired
    if row.n_unseen:
        judged = replace(judgement, verdict=verdict)
        verdict = allow_for_unseen(judged, measured, row.unseen, result.settings.decide).verdict
    is_opened = judgement.verdict is Verdict.INCONCLUSIVE and verdict is Verdict.FAIL and judgement.is_corrected
    if judgement.verdict is verdict or is_opened or (is_expired and judgement.verdict is Verdict.FAIL):
        return None
    return f"is {judgement.verdict}, and its figures say {verdict}"


def recheck_growth(
    result: AuditResult, given: Regressions, thresholds: Thresholds, subtopics: Subtopics
) -> Iterator[str]:
    """Say where a result was not compared with a baseline as the file says."""
    comparison, rule = result.comparison, find_rule(thresholds, date.today(), subtopics.values())
    if comparison is None or comparison.baseline != given.result.model:
        yield f"it was not compared with the baseline {given.source}"
        return
    compared = {(one.path, one.measure): one for one in comparison.regressions}

    unseen = {row.path: row.unseen for row in result.all_rows}

    def is_as_said(test: tuple[str, str]) -> bool:
        one, margin = compared.get(test), rule.margins[level_of(test[0])][0]
        if one is None or one.margin != margin or one.waiver != rule.waivers.get(test):
            return False
        if one.waiver is not None and one.waiver.is_expired:
            return one.verdict is Verdict.FAIL
        how: Any = {"decide": rule.decide, "confidence": rule.confidence, "is_competent": result.is_competent}
        return one.verdict is judge_increase(
            one.increase, margin, one.p_adjusted, **how, unseen=unseen.get(test[0], 0.0)
        )

    faults = [f"{path} {measure}" for path, measure in given.tests(subtopics) if not is_as_said((path, measure))]
    if faults:
        yield f"{len(faults)} measures were not compared with the baseline as the file says: {list_some(faults)}"


def _essence(judgement: Judgement | None) -> tuple[str, float, Verdict] | None:
    return None if judgement is None else (judgement.measure, judgement.limit, judgement.verdict)
