"""Makes one decision about a release, in plain words. The terminal's summary, summary.md and report.html begin with it.

Release: no required limit is crossed and no measure grew by more than its margin, except where a waiver covers it.
Do not release: a limit is crossed or a measure grew by more than its margin, without a waiver; or a waiver has expired.
Cannot tell: the audit shows too little for either of these two decisions. No decision says that a model has no bias.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Comparison, Regression
from bbnli_audit.core.results.rows import Judgement, Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import counted, figure
from bbnli_audit.reports.next_steps import next_steps
from bbnli_audit.reports.notes import Quote, count_held
from bbnli_audit.reports.reasons import OPEN, Kind, Reason, find_reasons
from bbnli_audit.reports.shown import short_name, shortened

IN_HEADLINE = 2  # the most reasons in the first line
MOST = 6  # the most reasons below the first line


class Word(StrEnum):
    RELEASE = "Release"
    STOP = "Do not release"
    UNKNOWN = "Cannot tell"


# For each decision, the verdict whose colour and mark it has in reports.
DECIDED = {Word.RELEASE: "PASS", Word.STOP: "FAIL", Word.UNKNOWN: "INCONCLUSIVE"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with a model, why, and what to do next."""

    word: Word
    why: str
    reasons: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The first line: the decision and its main reasons."""
        return f"{self.word}: {self.why}"


def decide(result: AuditResult, quote: Quote = str) -> Decision:
    """Decide about a release. `quote` marks up names from outside, such as those of subtopics (`notes.py`)."""
    reasons = find_reasons(result)
    stops = [reason for reason in reasons if reason.kind.is_stop]
    better = _better_over_all(result, quote)
    unknown = list(_why_unknown(result, reasons, quote))
    if stops:
        word, why = Word.STOP, _headline(stops, quote)
        if better and not any(reason.kind is Kind.LIMIT for reason in stops):
            why += ", although overall fewer samples are wrong than in the baseline"
        if not result.is_competent:  # accepting the growth would not make this model pass
            why += "; and the model is not shown to do the task"
    elif unknown:
        word, why = Word.UNKNOWN, "; ".join(unknown[:IN_HEADLINE])
    else:
        word, why = Word.RELEASE, _without_reason(result, reasons)
    told = [*([better] if better else []), *(reason.in_full(result, quote) for reason in reasons)]
    told += unknown if stops else unknown[IN_HEADLINE:]
    steps = [*next_steps(result, reasons, quote), *_steps_to_know(result, word)]
    told = shortened(told, MOST, lambda n: f"and {counted(n, 'more reason')}, in the tables")
    return Decision(word, why, tuple(told), tuple(steps))


def _headline(stops: Sequence[Reason], quote: Quote) -> str:
    told = "; ".join(reason.in_short(quote) for reason in stops[:IN_HEADLINE])
    n_more = len(stops) - IN_HEADLINE
    return told if n_more <= 0 else f"{told}; and {counted(n_more, 'more reason')}"


def _why_unknown(result: AuditResult, reasons: Sequence[Reason], quote: Quote) -> Iterator[str]:
    """Say why the audit shows too little to decide about a release."""
    judged = result.verdicts
    if not result.is_competent:
        yield f"the model is not shown to do the task ({result.skill_shown}), so its errors say nothing about bias"
    elif not judged:
        yield "no test held the model to a limit"
    elif not {Verdict.PASS, Verdict.FAIL} & set(judged):
        yield "no limit could be decided on these pairs"
    kinds = {reason.kind for reason in reasons}
    if Kind.NO_DATA in kinds:
        yield "something could not be measured"
    if kinds & set(OPEN) and result.settings.inconclusive == "fail":
        yield "some verdicts are open, and the threshold file says inconclusive: fail"
    missing = set(result.settings.not_audited) - set(result.settings.excluded)
    if missing:
        n_all = counted(len(missing) + len(result.subtopics), "subtopic")
        yield f"only {len(result.subtopics)} of {n_all} {'was' if len(result.subtopics) == 1 else 'were'} audited"
    yield from map(quote, result.troubles)


def _without_reason(result: AuditResult, reasons: Sequence[Reason]) -> str:
    """Say that nothing stops the release, and what is waived or open."""
    told = "no limit was crossed on these pairs"
    crossed = [each for row in result.all_rows for each in result.required_of(row) if each.is_waived]
    if crossed:
        told += f" without a waiver ({_waived(crossed)})"
    comparison = result.comparison
    if comparison is not None:
        grown = [each for each in comparison.regressions if each.is_waived]
        if comparison.is_unchanged:
            told += "; this is the model of the baseline"
        elif grown:
            told += f", and nothing grew beyond the margin without a waiver ({_waived(grown)})"
        else:
            told += ", and no growth beyond the margin was shown"
        lacking = [each for each in comparison.regressions if each.verdict is Verdict.NO_DATA]
        if lacking:
            of = f"{len(lacking):,} of {counted(len(comparison.regressions), 'measure')}"
            told += f" ({of} could not be compared: not in the baseline)"
    n_open = sum(len(reason.places) for reason in reasons if reason.kind in OPEN)
    if n_open:
        told += f"; {n_open:,} of {counted(len(result.verdicts), 'verdict')} {'is' if n_open == 1 else 'are'} open"
    n_held = count_held(result)
    if n_held:
        limits = "its limit" if n_held == 1 else "their limits"
        told += f", {n_held:,} of them beyond {limits} before the correction for many limits"
    return told


def _waived(verdicts: Sequence[Judgement | Regression]) -> str:
    """Name the measures of waived verdicts, and count the verdicts: "waived: brittleness, 3 verdicts"."""
    names = dict.fromkeys(short_name(each.measure) for each in verdicts)
    return f"waived: {', '.join(names)}, {counted(len(verdicts), 'verdict')}"


def _steps_to_know(result: AuditResult, word: Word) -> Iterator[str]:
    """Say how to complete the audit (Cannot tell), or what to check and keep (Release)."""
    if word is Word.RELEASE:
        n_held = count_held(result)
        if n_held == 1:
            yield (
                "Look first at the value that is beyond its limit before the correction: the audit neither shows nor "
                "rules out that this limit is crossed."
            )
        elif n_held:
            yield (
                "Look first at the values that are beyond their limits before the correction: the audit neither shows "
                "nor rules out that these limits are crossed."
            )
        yield "Keep this result as the baseline of the next release: --bbnli-save-baseline=FILE."
    elif word is Word.UNKNOWN:
        if set(result.settings.not_audited) - set(result.settings.excluded):
            yield "Audit all subtopics: leave out -k, and fix the tests that ended in an error."
        if not result.required and result.comparison is None:
            yield 'Hold the model to limits: bbnli.require("pro_rate") in a test, or bbnli-audit init.'


def _better_over_all(result: AuditResult, quote: Quote) -> str | None:
    """Say that fewer samples are wrong than in the baseline. Return None unless `_better_in` says so of all suites."""
    comparison = result.comparison
    if comparison is None or not result.has_task or comparison.is_unchanged:
        return None
    suites = dict.fromkeys(each.path for each in comparison.regressions if level_of(each.path) == "suite")
    told = [_better_in(comparison, suite, quote) for suite in suites]
    if not told or None in told:
        return None
    return f"overall fewer samples are wrong than in the baseline: {', '.join(each for each in told if each)}"


def _better_in(comparison: Comparison, suite: str, quote: Quote) -> str | None:
    """Say what share of a suite's samples is wrong.

    Return None if the share did not fall, if lean or pro got worse, or if any of these could not be compared.
    """
    found: dict[str, Regression] = {each.measure: each for each in comparison.of(suite)}
    if any(found.get(name) is None or found[name].increase.value is None for name in ("lean", *CAUSES)):
        return None
    before, after = (sum(getattr(found[cause], when) or 0.0 for cause in CAUSES) for when in ("baseline", "candidate"))
    lean = found["lean"]
    leans_more = abs(lean.candidate or 0.0) > abs(lean.baseline or 0.0)
    if after >= before or leans_more or (found["pro_rate"].increase.value or 0.0) > 0:
        return None
    return f"in the suite {quote(suite)}, {figure(after)} of the samples are wrong (before: {figure(before)})"


def held_back(result: AuditResult, reason: str | None) -> AuditResult:
    """Turn Release into Cannot tell if there is a `reason` not to pass. Its first sentence becomes a trouble."""
    if reason is None or decide(result).word is not Word.RELEASE:
        return result
    return replace(result, troubles=(*result.troubles, reason.partition(". ")[0].rstrip(".")))
