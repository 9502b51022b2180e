"""comment.md: what the newest release changed, for a pull request. Names are escaped and pairs are only counted."""

from collections.abc import Iterator
from dataclasses import dataclass

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import NO_DATA, Measured, SubtopicResult, Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import NO_VALUE, counted, signed_figure
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports.decision import decide
from bbnli_audit.reports.history.flips import KINDS, find_flips
from bbnli_audit.reports.history.releases import Entry, History, Series
from bbnli_audit.reports.markdown import code, figures, table
from bbnli_audit.reports.notes import grown
from bbnli_audit.reports.shown import NOT_REQUIRED, ROWS_WORST_FIRST, measure_verdict, short_name, shown_measures
from bbnli_audit.reports.templates import render

MOST_CHANGES = 40  # rows of a table; GitHub takes at most 65,536 characters in a comment
_TITLES = ("suite, domain, subtopic", "measure", "before", "now", "change", "verdict")


@dataclass(frozen=True, slots=True)
class Changed:
    """One measure of a suite, domain or subtopic in two releases. A release that lacks the measure has NO_DATA."""

    path: str
    measure: str
    before: Measured
    after: Measured
    verdict_before: str
    verdict_after: str

    @property
    def has_other_verdict(self) -> bool:
        return self.verdict_before != self.verdict_after

    @property
    def order(self) -> tuple[int, int, float, str]:
        """The sort key: the worst verdict first, then the widest level, then the largest change for the worse."""
        found = find_measure(self.measure)
        values = (self.before.value, self.after.value)
        before, after = (0.0 if value is None else found.excess(value, 0.0) for value in values)
        depth = min(self.path.count("/"), 2)
        return ROWS_WORST_FIRST.index(self.verdict_after), depth, before - after, f"{self.path} {self.measure}"

    def cells(self) -> list[str]:
        before, after = (_word(verdict) for verdict in (self.verdict_before, self.verdict_after))
        values = (self.before.value, self.after.value)
        return [
            code(self.path),
            code(short_name(self.measure)),
            figures(self.before),
            figures(self.after),
            NO_VALUE if values[0] is None or values[1] is None else signed_figure(values[1] - values[0]),
            f"{before} → **{after}**" if self.has_other_verdict else after,
        ]


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
        signed_figure=signed_figure,
        grown=[] if newest.comparison is None else grown(newest.comparison, Verdict.FAIL),
    )


def _part(series: Series) -> dict[str, object]:
    changes = find_changes(series)
    n_verdicts = sum(change.has_other_verdict for change in changes)
    return {
        "series": series,
        "n_verdicts": counted(n_verdicts, "verdict"),
        "table": table(_TITLES, [each.cells() for each in changes[:MOST_CHANGES]], n_left=2) if changes else "",
        "n_more": max(0, len(changes) - MOST_CHANGES),
        "flips": count_flips(series),
    }


def find_changes(series: Series) -> list[Changed]:
    """Return what a reader must see: every verdict that changed, and the figures of each suite as a whole."""
    if series.before is None:
        return []
    found = _compare(series.before.result, series.newest.result)
    shown = [change for change in found if change.has_other_verdict or level_of(change.path) == "suite"]
    return sorted(shown, key=lambda change: change.order)


def _compare(earlier: AuditResult, newest: AuditResult) -> Iterator[Changed]:
    rows = {row.path: row for row in earlier.all_rows}
    for row in newest.all_rows:
        before = rows.get(row.path)
        for name in shown_measures(newest, [row]):
            was = NO_DATA if before is None else before.measures.get(name, NO_DATA)
            verdicts = _verdict(earlier, before, name), _verdict(newest, row, name)
            yield Changed(row.path, name, was, row.measures.get(name, NO_DATA), *verdicts)


def _verdict(result: AuditResult, row: SubtopicResult | None, measure: str) -> str:
    return NOT_REQUIRED if row is None else measure_verdict(result, row, measure)


def count_flips(series: Series) -> dict[str, int]:
    """Count the pairs that changed in the newest release, by kind of change. A single release gives no counts."""
    if series.before is None:
        return {}
    found = [each.count(1) for each in find_flips(Series(series.name, (series.before, series.newest)))]
    return {kind: sum(each[kind] for each in found) for kind in KINDS}


def _name(entry: Entry) -> str:
    commit = entry.release.short_commit
    told = [code(commit)] if commit else []
    told += [code(entry.release.day)] if entry.release.day else []
    return f"{code(entry.label)} ({', '.join(told)})" if told else code(entry.label)


def _word(verdict: str) -> str:
    return "no limit" if verdict == NOT_REQUIRED else verdict.replace("_", " ")
