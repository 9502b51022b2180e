"""Names and orders the results of a history, and finds which of them belong to one model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, takewhile
from pathlib import Path

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.file import NAME
from bbnli_audit.core.results.release import Release
from bbnli_audit.core.results.rows import SubtopicResult, Verdict
from bbnli_audit.reports.shown import NOT_REQUIRED, WAIVED, growth_verdict, row_verdict


@dataclass(frozen=True, slots=True)
class Entry:
    """One result of a history, and the name that the history gives it."""

    label: str
    result: AuditResult

    @property
    def release(self) -> Release:
        return self.result.release or Release()

    @property
    def verdict(self) -> str:
        return worst_verdict(self.result)

    def row(self, path: str) -> SubtopicResult | None:
        return next((row for row in self.result.all_rows if row.path == path), None)


@dataclass(frozen=True, slots=True)
class Series:
    """One model over its releases, the earliest first."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def newest(self) -> Entry:
        return self.entries[-1]

    @property
    def before(self) -> Entry | None:
        """The release to compare the newest with: its baseline if that is in the series, else the release before it."""
        *earlier, newest = self.entries
        comparison = newest.result.comparison
        baseline = None if comparison is None else comparison.baseline.fingerprint
        found = [each for each in earlier if each.result.model.fingerprint == baseline]
        return next(reversed(found or earlier), None)


@dataclass(frozen=True, slots=True)
class History:
    """All series. The newest result comes last in the last series."""

    series: tuple[Series, ...]
    is_dated: bool  # whether results are ordered by date; otherwise they are in the order given

    @property
    def entries(self) -> list[Entry]:
        return [entry for series in self.series for entry in series.entries]

    @property
    def newest(self) -> Entry:
        return self.series[-1].newest

    @property
    def models(self) -> list[Entry]:
        """The newest release of each model."""
        return [series.newest for series in self.series]


def make_history(found: Sequence[tuple[Path, AuditResult]], *, is_separate: bool = False) -> History:
    """Name the results, order them, and find out which are releases of one model.

    Results are ordered by date if all have a date. With `is_separate`, or if two different models (fingerprints) have
    the same name, each name has a series of its own. Otherwise all results are taken for releases of one model,
    whatever their names.
    """
    entries = [Entry(label, result) for label, (_, result) in zip(_labels(found), found, strict=True)]
    dates = [entry.release.date for entry in entries]
    is_dated = all(dates)
    if is_dated:
        entries.sort(key=lambda entry: entry.release.date or "")
    if not is_separate and not _has_releases_of_one_name(entries):
        return History((Series(entries[-1].result.model.name, tuple(entries)),), is_dated)
    # The series with the newest result comes last.
    in_order = dict.fromkeys(entry.result.model.name for entry in reversed(entries))
    series = [
        Series(name, tuple(entry for entry in entries if entry.result.model.name == name))
        for name in reversed(in_order)
    ]
    return History(tuple(series), is_dated)


def _has_releases_of_one_name(entries: Sequence[Entry]) -> bool:
    """Whether different models have the same name. Two audits of one model do not make two releases."""
    models = {(entry.result.model.name, entry.result.model.fingerprint) for entry in entries}
    return len({name for name, _ in models}) < len(models)


def worst_verdict(result: AuditResult) -> str:
    """Return the worst verdict on limits and growth, or NOT_REQUIRED if there are no verdicts.

    For a model that is not competent, this is FAIL or NO_DATA, because such a model has not passed.
    """
    verdicts = {row_verdict(result, row) for row in result.all_rows}
    verdicts |= {growth_verdict(one) for one in measured_growth(result)}
    if "FAIL" in verdicts or not result.is_competent:
        return "FAIL" if "FAIL" in verdicts else "NO_DATA"
    return next((each for each in ("NO_DATA", "INCONCLUSIVE", WAIVED, "PASS") if each in verdicts), NOT_REQUIRED)


def measured_growth(result: AuditResult) -> list[Regression]:
    """Return the growth of each measure since the baseline. Leave out measures that could not be compared."""
    regressions = () if result.comparison is None else result.comparison.regressions
    return [one for one in regressions if one.verdict is not Verdict.NO_DATA]


def _labels(found: Sequence[tuple[Path, AuditResult]]) -> Iterator[str]:
    """Name each result by its release or, if the release has no name, by its shortened path. All names differ."""
    paths = _short_paths([path for path, _ in found])
    names = [(result.release or Release()).name or path for path, (_, result) in zip(paths, found, strict=True)]
    taken: set[str] = set()
    for name in names:
        candidates = chain([name], (f"{name} ({n})" for n in count(2)))
        taken.add(label := next(each for each in candidates if each not in taken))
        yield label


def _short_paths(paths: Sequence[Path]) -> list[str]:
    """Leave out the first and the last parts of the paths, as far as all paths share them."""
    parts = [path.parts[:-1] if path.name == NAME else (*path.parts[:-1], path.stem) for path in paths]
    n_first, n_last = _n_common(parts), _n_common([each[::-1] for each in parts])
    shown = [each[n_first : len(each) - n_last] or each[-1:] for each in parts]
    return ["/".join(each) or "result" for each in shown]


def _n_common(parts: Sequence[Sequence[str]]) -> int:
    """Count the leading parts that all sequences share."""
    return sum(1 for _ in takewhile(lambda together: len(set(together)) == 1, zip(*parts, strict=False)))
