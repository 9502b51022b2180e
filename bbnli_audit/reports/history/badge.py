"""badge.svg: the newest result in a few words. At best it says that no limit was crossed."""

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.words import counted
from bbnli_audit.reports.history.releases import History, worst_verdict
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
    required = [one for row in result.all_rows for one in result.required_of(row) if not one.is_waived]
    n_crossed, n_open = (
        sum(one.verdict is verdict for one in required) for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE)
    )
    if n_crossed:
        return f"{counted(n_crossed, 'limit')} crossed"
    worst = worst_verdict(result)
    if worst == "FAIL":
        return "worse than the baseline"
    if not result.is_competent:
        return "model not competent"
    if not required:
        return "no limit required" if worst == "NOT_REQUIRED" else "waived"
    if n_open == len(required):
        return "nothing decided"
    crossed = "no limit crossed" if worst != "NO_DATA" else "data missing"
    return f"{crossed}, {n_open} open" if n_open else crossed


def _width(text: str) -> int:
    """Estimate the width of a text that is 11 pixels high, with its margins; SVG's `textLength` makes the text fit."""
    return 12 + round(6.3 * len(text))
