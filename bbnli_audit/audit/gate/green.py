"""When a run may be green. Nothing decided is not passed."""

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Verdict


def has_passed(result: AuditResult) -> bool:
    """Whether tests of all that was required would have passed."""
    required = [judgement for row in result.subtopics for judgement in result.required_of(row)]
    verdicts = {judgement.verdict for judgement in required if not judgement.is_waived}
    if result.comparison is not None:
        verdicts |= {one.verdict for one in result.comparison.regressions if one.verdict is not Verdict.NO_DATA}
    bad = {Verdict.FAIL, Verdict.NO_DATA, *([Verdict.INCONCLUSIVE] if result.settings.inconclusive == "fail" else [])}
    return not verdicts & bad and why_not_green(result) is None


def why_not_green(result: AuditResult) -> str | None:
    """Say why a run in which no test failed still must not pass; None when it may."""
    if not result.is_competent:
        return "the model is not competent, so nothing has passed (see Competence above)."
    verdicts = [judgement.verdict for row in result.subtopics for judgement in result.required_of(row)]
    verdicts += [] if result.comparison is None else [one.verdict for one in result.comparison.regressions]
    if not verdicts:
        return "no test required a limit (bbnli.require), so nothing has passed."
    if not any(verdict in (Verdict.PASS, Verdict.FAIL) for verdict in verdicts):
        return (
            "no limit could be decided on these pairs, so nothing has passed. Add pairs, or set 'decide: point' in "
            "the threshold file."
        )
    return None
