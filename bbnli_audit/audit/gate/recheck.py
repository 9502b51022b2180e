"""Checks that the limits, verdicts, waivers and margins of a result follow from a threshold file.

Measured values and their intervals are taken from the result as they are. A comparison with a baseline is computed
again. Holm's correction of FAIL needs the pair table, so it is not repeated. The correction can only turn FAIL into
INCONCLUSIVE. So where the figures say FAIL, an INCONCLUSIVE that is marked as corrected is accepted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from math import isclose
from pathlib import Path

from bbnli_audit.audit.gate.baseline import Regressions, compare_with
from bbnli_audit.audit.gate.compared import Shown
from bbnli_audit.audit.gate.growth import find_rule
from bbnli_audit.audit.gate.thresholds import Limit, Thresholds
from bbnli_audit.audit.gate.unseen import SEEN, Unseen
from bbnli_audit.audit.gate.verdict import allow_for_unseen, competence_judgement, judge, sides_of
from bbnli_audit.core.errors import ResultError, list_some
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.file import read_result
from bbnli_audit.core.results.rows import NO_DATA, Judgement, Measured, SubtopicResult, Verdict
from bbnli_audit.core.values import Subtopic
from bbnli_audit.core.words import counted
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports.shown import leading_measures

_ROUNDING = 1e-7  # another version of numpy or scipy may change the last digits
Subtopics = Mapping[str, Subtopic]


def recheck_limits(result: AuditResult, thresholds: Thresholds, subtopics: Subtopics) -> Iterator[str]:
    """Yield where the verdicts of a result do not follow from the limits in the threshold file."""
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
        yield f"it does not apply {counted(len(faults), 'limit')} as the threshold file says: {list_some(faults)}"


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
    yield from (f"{row.path} {name} has a verdict, but was not measured" for name in judged)
    for name in leading_measures(result) if row.n_pairs else ():
        if name not in row.measures and thresholds.limit_for(place, name) is not None:
            yield f"{row.path} {name} was not measured"


def _compare_limits(judgement: Judgement | None, limit: Limit | None) -> str | None:
    found, expected = None if judgement is None else judgement.limit, None if limit is None else limit.value
    if found == expected:
        return None
    had, has = "no limit" if found is None else found, "none" if expected is None else expected
    return f"was judged by {had}, and the file has {has}"


def _recheck(
    result: AuditResult, row: SubtopicResult, measured: Measured, judgement: Judgement, limit: Limit
) -> str | None:
    """Return what is wrong with the verdict on one measure. Return None if nothing is wrong."""
    if (row.path, judgement.measure) not in result.required:
        return "was not required (run with --bbnli-strict)"
    if judgement.may_lack_data and not limit.allow_no_data:
        return "may lack data, and the file does not allow it"
    return _contradiction(result, measured, judgement, Unseen.of(row))


def _contradiction(result: AuditResult, measured: Measured, judgement: Judgement, unseen: Unseen) -> str | None:
    """Return how a verdict differs from what its own figures, limit and settings give. Return None if they agree."""
    sides = sides_of(find_measure(judgement.measure))
    how = result.settings.decide
    verdict = judge(measured, judgement.limit, decide=how, is_competent=result.is_competent, **sides)
    is_expired = judgement.waiver is not None and judgement.waiver.is_expired
    if any(unseen):
        verdict = allow_for_unseen(replace(judgement, verdict=verdict), measured, unseen, how).verdict
    can_be_opened = judgement.is_corrected and how == "bounds"  # point verdicts are not corrected
    is_opened = judgement.verdict is Verdict.INCONCLUSIVE and verdict is Verdict.FAIL and can_be_opened
    if judgement.verdict is verdict or is_opened or (is_expired and judgement.verdict is Verdict.FAIL):
        return None
    return f"is {judgement.verdict}, and its figures say {verdict}"


def read_judged(path: Path) -> AuditResult:
    """Read a result, and refuse one with a verdict that does not follow from its own figures."""
    result = read_result(path)
    for row in result.all_rows:
        for judgement in row.verdicts:
            measured = row.measures.get(judgement.measure, NO_DATA)
            is_known = find_measure(judgement.measure).limit is not None  # False for a measure of another project
            # Earlier versions charged less for pairs that were not read whole. Their verdicts are read as they are.
            told = [_contradiction(result, measured, judgement, each) for each in (Unseen.of(row), SEEN)]
            if is_known and None not in told:
                where = f"{row.path} {judgement.measure} {told[0]}"
                raise ResultError(f"{path}: contradicts itself: {where}. Use the file as the audit wrote it.")
    return result


def recheck_growth(
    result: AuditResult, given: Regressions, thresholds: Thresholds, subtopics: Subtopics
) -> Iterator[str]:
    """Yield how a result's comparison with the baseline differs from the rule in the threshold file."""
    comparison, rule = result.comparison, find_rule(thresholds, date.today(), subtopics.values())
    if comparison is None or comparison.baseline != given.result.model:
        yield f"it was not compared with the baseline {given.source}"
        return
    found = {(one.path, one.measure): one for one in comparison.regressions}
    tests, shown = given.tests(subtopics), Shown.of(result)
    again = compare_with(given.result, tests, result.model, shown, rule, is_competent=result.is_competent)
    faults = [f"{one.path} {one.measure}" for one in again if not _is_same(found.get((one.path, one.measure)), one)]
    if faults:
        told = f"{counted(len(faults), 'comparison')} with the baseline came out differently when computed again"
        yield f"{told} from the baseline and the threshold file: {list_some(faults)}"
    lacking = [f"{one.path} {one.measure}" for one in again if one.verdict is Verdict.NO_DATA]
    if lacking:
        told = f"{counted(len(lacking), 'measure')} could not be compared, because the baseline lacks the data"
        yield f"{told}: {list_some(lacking)}"


def _is_same(found: Regression | None, again: Regression) -> bool:
    """Whether the comparison in a result (`found`) equals the comparison that was computed again (`again`)."""
    if found is None or (found.verdict, found.margin, found.n_shared) != (again.verdict, again.margin, again.n_shared):
        return False
    figures = [
        (each.baseline, each.candidate, each.increase.value, each.increase.low, each.increase.high, each.p_adjusted)
        for each in (found, again)
    ]
    are_close = (
        one is other or (one is not None and other is not None and isclose(one, other, abs_tol=_ROUNDING))
        for one, other in zip(*figures, strict=True)
    )
    return found.waiver == again.waiver and all(are_close)


def _essence(judgement: Judgement | None) -> tuple[str, float, Verdict] | None:
    return None if judgement is None else (judgement.measure, judgement.limit, judgement.verdict)
