"""Finds what changed between a model's two newest releases, for the comment on a pull request."""

from collections.abc import Iterator
from dataclasses import dataclass

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Measured, SubtopicResult
from bbnli_audit.core.values import level_of
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports.history.flips import find_flips
from bbnli_audit.reports.history.releases import Series
from bbnli_audit.reports.shown import NOT_REQUIRED, ROWS_WORST_FIRST, measure_verdict, shown_measures


@dataclass(frozen=True, slots=True)
class Changed:
    """One measure of one place in two releases; None for a release that lacks it."""

    path: str
    measure: str
    before: Measured | None
    after: Measured | None
    verdict_before: str
    verdict_after: str

    @property
    def has_other_verdict(self) -> bool:
        return self.verdict_before != self.verdict_after

    @property
    def difference(self) -> float | None:
        if self.before is None or self.after is None or self.before.value is None or self.after.value is None:
            return None
        return self.after.value - self.before.value

    @property
    def order(self) -> tuple[int, int, float, str]:
        """The sort key: the worst verdict first, then the widest level, then the largest change for the worse."""
        found = find_measure(self.measure)
        values = [None if each is None else each.value for each in (self.before, self.after)]
        before, after = (0.0 if value is None else found.excess(value, 0.0) for value in values)
        depth = min(self.path.count("/"), 2)
        return ROWS_WORST_FIRST.index(self.verdict_after), depth, before - after, f"{self.path} {self.measure}"


def find_changes(series: Series) -> list[Changed]:
    """Return what a reader must see: every verdict that changed, and the figures of each suite as a whole."""
    if len(series.entries) == 1:
        return []
    *_, earlier, newest = (entry.result for entry in series.entries)
    shown = [
        change for change in _compare(earlier, newest) if change.has_other_verdict or level_of(change.path) == "suite"
    ]
    return sorted(shown, key=lambda change: change.order)


def _compare(earlier: AuditResult, newest: AuditResult) -> Iterator[Changed]:
    before = {row.path: row for row in earlier.all_rows}
    for row in newest.all_rows:
        was = before.get(row.path)
        for name in shown_measures(newest, [row]):
            verdicts = (_verdict(earlier, was, name), _verdict(newest, row, name))
            yield Changed(
                row.path, name, None if was is None else was.measures.get(name), row.measures.get(name), *verdicts
            )


def _verdict(result: AuditResult, row: SubtopicResult | None, measure: str) -> str:
    return NOT_REQUIRED if row is None else measure_verdict(result, row, measure)


def count_flips(series: Series) -> dict[str, int]:
    """Count the pairs that changed in the newest release, by the kind of change."""
    tally = {"more": 0, "less": 0, "other": 0}
    for found in find_flips(Series(series.name, series.entries[-2:])):
        for kind, n in found.count(1).items():
            tally[kind] += n
    return tally
