"""comment.md: what the newest release changed, for a pull request. Names are escaped and pairs are only counted."""

from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.words import NO_VALUE, counted
from bbnli_audit.reports.decision import decide
from bbnli_audit.reports.history.changes import Changed, count_flips, find_changes
from bbnli_audit.reports.history.releases import Entry, History, Series
from bbnli_audit.reports.markdown import code, figures, signed, table
from bbnli_audit.reports.notes import grown
from bbnli_audit.reports.shown import NOT_REQUIRED, short_name
from bbnli_audit.reports.templates import render

MOST_CHANGES = 40  # GitHub takes 65,536 characters
_TITLES = ("suite, domain, subtopic", "measure", "before", "now", "change", "verdict")


def render_comment(history: History) -> str:
    """Return Markdown for a pull request. Its first line is a mark by which a job finds the comment again."""
    newest = history.newest.result
    return render(
        "comment.md.jinja",
        newest,
        history=history,
        words=lambda result: decide(result, code).line,
        parts=[_part(series) for series in history.series],
        name=_name,
        short_name=short_name,
        grown=[] if newest.comparison is None else grown(newest.comparison, Verdict.FAIL),
    )


def _part(series: Series) -> dict[str, object]:
    changes = find_changes(series)
    n_verdicts = sum(change.has_other_verdict for change in changes)
    return {
        "series": series,
        "n_verdicts": counted(n_verdicts, "verdict"),
        "table": table(_TITLES, map(_cells, changes[:MOST_CHANGES]), n_left=2) if changes else "",
        "n_more": max(0, len(changes) - MOST_CHANGES),
        "flips": count_flips(series) if len(series.entries) > 1 else {},
    }


def _name(entry: Entry) -> str:
    commit = entry.release.short_commit
    told = [code(commit)] if commit else []
    told += [code(entry.release.day)] if entry.release.day else []
    return f"{code(entry.label)} ({', '.join(told)})" if told else code(entry.label)


def _cells(change: Changed) -> list[str]:
    before, after = (_word(verdict) for verdict in (change.verdict_before, change.verdict_after))
    verdict = f"{before} → **{after}**" if change.has_other_verdict else after
    difference = change.difference
    return [
        code(change.path),
        code(short_name(change.measure)),
        figures(change.before),
        figures(change.after),
        NO_VALUE if difference is None else signed(difference),
        verdict,
    ]


def _word(verdict: str) -> str:
    return "no limit" if verdict == NOT_REQUIRED else verdict.replace("_", " ")
