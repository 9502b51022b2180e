"""What reports show of a row: its verdict, its place in the order, its measures and their names."""

from collections.abc import Callable, Iterable, Sequence

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.rows import NO_DATA, Measured, SubtopicResult, Verdict
from bbnli_audit.core.words import counted, figure
from bbnli_audit.measures import direction
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.registry import find_measure

WORST_FIRST = (Verdict.FAIL, Verdict.NO_DATA, Verdict.INCONCLUSIVE, Verdict.PASS)
WAIVED, NOT_REQUIRED = "WAIVED", "NOT_REQUIRED"
ROWS_WORST_FIRST = ("FAIL", "NO_DATA", WAIVED, "INCONCLUSIVE", "PASS", NOT_REQUIRED)
_GROWTH_WORST_FIRST = ("FAIL", WAIVED, "INCONCLUSIVE", "PASS", "NO_DATA")
_MARKS = {"FAIL": "FAIL", "NO_DATA": "none", WAIVED: "waived", "INCONCLUSIVE": "open", "PASS": "pass"}


def row_verdict(result: AuditResult, row: SubtopicResult) -> str:
    """Return the worst verdict on the limits that tests required of a row.

    It is WAIVED if some verdicts are waived and all other verdicts are PASS.
    """
    judgements = result.required_of(row)
    verdicts = [judgement.verdict for judgement in judgements if not judgement.is_waived]
    worst = min(verdicts, key=WORST_FIRST.index, default=Verdict.PASS)
    if worst is Verdict.PASS and any(judgement.is_waived for judgement in judgements):
        return WAIVED
    return worst.value if judgements else NOT_REQUIRED


def measure_verdict(result: AuditResult, row: SubtopicResult, measure: str) -> str:
    """Return the verdict on one measure, or NOT_REQUIRED if no test held the measure to a limit."""
    judgement = row.judgement(measure)
    if judgement is None or (row.path, measure) not in result.required:
        return NOT_REQUIRED
    return WAIVED if judgement.is_waived else judgement.verdict.value


def mark_of(result: AuditResult, row: SubtopicResult, measure: str) -> str:
    """Return a word for the verdict on one measure, or no text if no test held the measure to a limit.

    A star marks a verdict that would be FAIL without the correction for all limits (`notes.corrected`).
    """
    judgement = row.judgement(measure)
    is_starred = judgement is not None and judgement.is_corrected and not judgement.is_waived
    mark = _MARKS.get(measure_verdict(result, row, measure), "")
    return f"{mark}*" if mark and is_starred else mark


def growth_verdict(regression: Regression) -> str:
    """Return the verdict on the growth of one measure, or WAIVED if someone has accepted the growth."""
    return WAIVED if regression.is_waived else regression.verdict.value


def is_of_facts(regression: Regression) -> bool:
    """Whether growth was measured on facts. Then there are no pairs to list."""
    return find_measure(regression.measure).source == "facts"


def counted_shared(regression: Regression) -> str:
    """Say on how many pairs or facts growth was measured, such as "60 shared facts"."""
    return counted(regression.n_shared, "shared fact" if is_of_facts(regression) else "shared pair")


def row_growth(result: AuditResult, path: str, measure: str | None = None) -> str | None:
    """Return the worst verdict on the growth of a row, or of one measure of the row; None if nothing was compared.

    NO_DATA counts as the mildest verdict: a measure that the baseline lacks fails no test.
    """
    compared = result.comparison.of(path) if result.comparison else []
    found = [growth_verdict(each) for each in compared if measure in (None, each.measure)]
    return min(found, key=_GROWTH_WORST_FIRST.index, default=None)


def growth_mark(result: AuditResult, path: str) -> str:
    """Return a word for the worst verdict on the growth of a row, or a dash if no measure of the row was compared."""
    return _MARKS.get(row_growth(result, path) or "", "-")


def worst_first(result: AuditResult, rows: Iterable[SubtopicResult] | None = None) -> list[SubtopicResult]:
    """Return rows (by default the subtopics), the worst first."""

    def key(row: SubtopicResult) -> tuple[int, float, str]:
        return ROWS_WORST_FIRST.index(row_verdict(result, row)), -_largest_excess(row), row.path

    return sorted(result.subtopics if rows is None else rows, key=key)


def levels(result: AuditResult) -> list[SubtopicResult]:
    """Return the suites, worst first, then the domains, worst first."""
    return [*worst_first(result, result.suite_rows), *worst_first(result, result.domains)]


def judged_levels(result: AuditResult) -> list[SubtopicResult]:
    """Return those rows of `levels` that a test held to a limit, in the same order."""
    return [row for row in levels(result) if result.required_of(row)]


def by_level(result: AuditResult) -> list[tuple[str, Sequence[SubtopicResult]]]:
    """Return the rows whose verdicts are counted, by level: the suites and domains with limits, and all subtopics."""
    suites, domains = ([row for row in rows if result.required_of(row)] for rows in (result.suite_rows, result.domains))
    return [("suite", suites), ("domain", domains), ("subtopic", result.subtopics)]


def _largest_excess(row: SubtopicResult) -> float:
    values = [row.measures.get(judgement.measure, NO_DATA).value for judgement in row.verdicts]
    found = [
        0.0 if value is None else find_measure(judgement.measure).excess(value, judgement.limit)
        for value, judgement in zip(values, row.verdicts, strict=True)
    ]
    return max(found, default=0.0)


def short_name(measure: str) -> str:
    """Return the short name that reports, waivers and test ids use: pro for pro_rate."""
    return find_measure(measure).short


def measure_name(measure: str) -> str:
    return short_name(measure).replace("_", " ")


def cause_names() -> list[str]:
    return [measure_name(cause) for cause in CAUSES]


def leading_measures(result: AuditResult) -> tuple[str, ...]:
    """Return the measures that charts show: the causes of error or, for models read by likelihoods, the preference."""
    return tuple(CAUSES) if result.has_task else (reading_of(result.model.kind).preference,)


def tabled_measures(result: AuditResult) -> list[str]:
    """Return the measures that every table shows: lean, the leading measures, then overreach and the fact gap."""
    directions = [measure.name for measure in direction.MEASURES if measure.name in result.total.measures]
    return [*directions[:1], *leading_measures(result), *directions[1:]]


def shown_measures(result: AuditResult, rows: Iterable[SubtopicResult]) -> list[str]:
    """Return `tabled_measures`, then the measures that have a limit in these rows or are always shown."""
    rows = list(rows)
    judged = [judgement.measure for row in rows for judgement in row.verdicts]
    more = [name for row in rows for name in row.measures if find_measure(name).is_shown]
    return list(dict.fromkeys((*tabled_measures(result), *judged, *more)))


def level_measures(result: AuditResult) -> list[str]:
    """Return `tabled_measures`, then the measures that a test held to a limit in suites or domains."""
    judged = [judgement.measure for row in levels(result) for judgement in result.required_of(row)]
    return list(dict.fromkeys((*tabled_measures(result), *judged)))


def short_path(result: AuditResult, path: str) -> str:
    """Return a path without its suite, if the result has only one suite."""
    return path.partition("/")[2] or path if len(result.suites) == 1 else path


def interval(measured: Measured) -> str:
    """Show both bounds of a measure. If the lower is negative, "to" joins them: a dash would look like a sign."""
    low, high = figure(measured.low), figure(measured.high)
    return f"{low} to {high}" if low.startswith("-") else f"{low}-{high}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out a table as lines of plain text: the first column has words, the others figures."""
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([name.ljust(first), *map(str.rjust, cells, widths)]) for name, *cells in rows]


def shortened(lines: Sequence[str], most: int, rest: Callable[[int], str]) -> list[str]:
    """Return the first `most` lines. If there are more, add a line that `rest` makes from the number left out."""
    n_more = len(lines) - most
    return [*lines[:most], rest(n_more)] if n_more > 0 else list(lines)


def joined(parts: Sequence[str]) -> str:
    """Join words as in a sentence: a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def tell_unseen(row: SubtopicResult) -> str:
    """Say how many pairs of a row the model did not see whole, or did not answer."""
    of = f"{row.n_unseen:,} of {counted(row.n_asked, 'pair')}"
    if row.n_unseen == 1:
        return f"{of} was cut off, looks the same on both sides to the model, or has no readable answer"
    return f"{of} were cut off, look the same on both sides to the model, or have no readable answer"
