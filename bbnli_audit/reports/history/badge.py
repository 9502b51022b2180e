"""badge.svg: the newest result in a few words. At best it says "no limit crossed" or "no growth shown"."""

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.words import counted
from bbnli_audit.reports.history.releases import History, measured_growth, worst_verdict
from bbnli_audit.reports.templates import render

TITLE = "bias audit"
# White text on each of these colours has a contrast of more than 4.5.
_COLORS = {"FAIL": "#a80f36", "PASS": "#1d6a46", "WAIVED": "#66409c", "NOT_REQUIRED": "#625e57"}
_OPEN = "#745200"


def render_badge(history: History) -> str:
    result = history.newest.result
    text = badge_text(result)
    widths = [_width(TITLE), _width(text)]
    color = _COLORS.get(worst_verdict(result), _OPEN)
    return render("badge.svg.jinja", result, title=TITLE, text=text, widths=widths, color=color)


def badge_text(result: AuditResult) -> str:
    """Say in a few words how a result ended."""
    limits = [one for row in result.all_rows for one in result.required_of(row)]
    n_crossed = sum(one.verdict is Verdict.FAIL and not one.is_waived for one in limits)
    if n_crossed:
        return f"{counted(n_crossed, 'limit')} crossed"
    worst = worst_verdict(result)
    if worst == "FAIL":
        return "worse than the baseline"
    if not result.is_competent:
        return "model not competent"
    judged = limits or measured_growth(result)
    if not judged:
        return "no limit required"
    verdicts = [one.verdict for one in judged if not one.is_waived]
    if not verdicts:
        return "waived"
    n_open = verdicts.count(Verdict.INCONCLUSIVE)
    if n_open == len(verdicts):
        return "nothing decided"
    found = "no limit crossed" if limits else "no growth shown"
    found = "data missing" if worst == "NO_DATA" else found
    return f"{found}, {n_open} open" if n_open else found


def _width(text: str) -> int:
    """Estimate the width of a text 11 pixels high, with its margins. SVG's `textLength` then makes the text fit."""
    return 12 + round(6.3 * len(text))
