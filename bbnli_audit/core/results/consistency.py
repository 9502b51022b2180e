"""Checks that a result agrees with itself: a row's counts must follow from its pairs, and its rates from its counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isclose

from bbnli_audit.core.outcomes import CELLS, Cell, CellCounts
from bbnli_audit.core.results.audit import FACT_PREFERENCE, RECALL, AuditResult
from bbnli_audit.core.results.rows import NO_DATA, SubtopicResult, Verdict
from bbnli_audit.core.values import levels_above
from bbnli_audit.core.words import counted

_NO_COUNTS = CellCounts()
_ROUNDING = 1e-9


def find_contradiction(result: AuditResult) -> str | None:
    """Describe the first contradiction in a result. Return None for a result without contradictions."""
    return next(_contradictions(result), None)


def _contradictions(result: AuditResult) -> Iterator[str]:
    paths = [row.path for row in result.subtopics]
    if sorted(paths) != sorted(result.pairs):
        odd = sorted({*paths} ^ {*result.pairs})
        yield f"subtopics and pairs must name the same subtopics, each once{f' ({odd[0]})' if odd else ''}"
        return
    yield from _of_places(result)
    counts = {}
    for path, clusters in result.pairs.items():
        counts[path] = _count(clusters)
        if len({pair_id for ids in clusters.values() for pair_id in ids}) < counts[path].n_pairs:
            yield f"pairs of {path} hold a pair twice"
    for row in result.subtopics:
        yield from _of_row(row, counts[row.path])
        n_clusters = len(result.pairs[row.path])
        if row.n_clusters != n_clusters:
            yield f"{row.path}: n_clusters is {row.n_clusters}, but its pairs are in {counted(n_clusters, 'cluster')}"
    for row in (*result.domains, *result.suite_rows, result.total):
        below = [path for path in paths if row is result.total or path.startswith(f"{row.path}/")]
        yield from _of_row(row, sum((counts[path] for path in below), _NO_COUNTS))
    yield from _of_directions(result)
    yield from _of_facts(result)
    yield from _of_competence(result)


def _of_places(result: AuditResult) -> Iterator[str]:
    """Check that suites, domains, directions and facts fit the audited subtopics.

    `not_audited` must not name an audited subtopic, and must name every subtopic in `excluded`.
    """
    audited = {row.path for row in result.subtopics}
    above = [levels_above(path) for path in audited]
    suites, domains = {suite for suite, _ in above}, {domain for _, domain in above}
    for name, rows, expected in (("suite_rows", result.suite_rows, suites), ("domains", result.domains, domains)):
        found = [row.path for row in rows]
        if sorted(found) != sorted(expected) and not (name == "suite_rows" and not found):  # older results have none
            yield f"{name} are {', '.join(found) or 'none'}, and the subtopics are in {', '.join(sorted(expected))}"
    settings, names = result.settings, {suite.name for suite in result.suites}
    for name, strangers, fault in (
        ("suites lacks", suites - names, "to which audited subtopics belong"),
        ("directions names", result.directions.keys() - audited, "which was not audited"),
        ("facts names", result.facts.keys() - audited, "which was not audited"),
        ("not_audited names", audited & {*settings.not_audited}, "which was audited"),
        ("excluded names", {*settings.excluded} - {*settings.not_audited}, "which not_audited does not name"),
    ):
        if strangers:
            yield f"{name} {min(strangers)}, {fault}"


def _count(clusters: Mapping[str, Mapping[str, Cell]]) -> CellCounts:
    return CellCounts(Counter(cell for ids in clusters.values() for cell in ids.values()))


def _of_row(row: SubtopicResult, counts: CellCounts) -> Iterator[str]:
    """Compare a row with the counts of its pairs."""
    for cell in CELLS:
        found, expected = row.outcomes.get(cell, 0), counts.cells[cell]
        if found != expected:
            yield f"{row.path}: outcomes has {found} pairs {cell}, and pairs has {expected}"
    numbers = {"n_pairs": row.n_pairs, "n_samples": row.n_samples}
    numbers |= {name: getattr(row.counts, name) for name in ("n_pro", "n_anti", "n_brittle", "n_mispredicted")}
    for name, number in numbers.items():
        if number != getattr(counts, name):
            yield f"{row.path}: {name} is {number}, and its pairs give {getattr(counts, name)}"
    for name, value in _rates(counts).items():
        measured = row.measures.get(name)
        if measured is None or measured.value is None:
            continue
        if not isclose(measured.value, value, abs_tol=_ROUNDING):
            yield f"{row.path}: {name} is {measured.value}, and its pairs give {value:.6g}"
    if row.n_unseen > row.n_asked or 0 < row.n_asked < row.n_pairs:
        yield f"{row.path}: n_asked is {row.n_asked}, with n_pairs {row.n_pairs} and n_unseen {row.n_unseen}"
    judged = [judgement.measure for judgement in row.verdicts]
    if len(set(judged)) < len(judged):
        yield f"{row.path}: there are two verdicts on one measure"
    for name, measured in row.measures.items():
        low, middle, high = measured.low, measured.value, measured.high
        if low is None or middle is None or high is None:
            is_sound = low is middle is high
        else:
            is_sound = low <= middle + _ROUNDING and middle <= high + _ROUNDING
        if not is_sound:
            yield f"{row.path}: {name} is not within its own interval"


def _rates(counts: CellCounts) -> dict[str, float]:
    """Return the measures that follow from the counts alone. Without pairs, there are none."""
    if not counts.n_pairs:
        return {}
    numbers = {
        "pro_rate": counts.n_pro,
        "anti_rate": counts.n_anti,
        "brittleness_rate": counts.n_brittle,
        "misprediction_rate": counts.n_mispredicted,
        "lean": counts.n_pro - counts.n_anti,
    }
    return {name: number / counts.n_samples for name, number in numbers.items()}


def _of_directions(result: AuditResult) -> Iterator[str]:
    """Compare overreach with the labels of the pairs whose premises have a direction."""
    for row in result.subtopics:
        cells = {pair_id: cell for ids in result.pairs[row.path].values() for pair_id, cell in ids.items()}
        ways = result.directions.get(row.path, {})
        named = [pair_id for ids in ways.values() for pair_id in ids]
        if len(set(named)) < len(named) or not cells.keys() >= set(named):
            yield f"directions of {row.path} name a pair twice, or a pair that the subtopic does not have"
        elif len(ways) == 2 and result.has_task:  # a likelihood is no answer, so it has no overreach
            one, other = (_lean(cells[pair_id] for pair_id in ways[way]) for way in ("with", "against"))
            yield from _differs(row, "overreach", (one - other) / 2, "directions")
        elif result.directions and row.measures.get("overreach", NO_DATA).value is not None:
            yield f"{row.path}: overreach has a value, but directions does not have both with and against"


def _lean(cells: Iterable[Cell]) -> float:
    counts = CellCounts(Counter(cells))
    return (counts.n_pro - counts.n_anti) / counts.n_samples


def _of_facts(result: AuditResult) -> Iterator[str]:
    """Compare the fact gap with the facts."""
    for row in result.subtopics:
        gaps = [one - other for by_id in result.facts.get(row.path, {}).values() for one, other in by_id.values()]
        if gaps:
            yield from _differs(row, "fact_gap", sum(gaps) / len(gaps), "facts")
        elif result.facts and row.measures.get("fact_gap", NO_DATA).value is not None:
            yield f"{row.path}: fact_gap has a value, but facts has no entry for this subtopic"


def _differs(row: SubtopicResult, name: str, value: float, source: str) -> Iterator[str]:
    measured = row.measures.get(name)
    if measured is None or measured.value is None or not isclose(measured.value, value, abs_tol=_ROUNDING):
        told = "missing" if measured is None else measured.value
        yield f"{row.path}: {name} is {told}, and its {source} give {value:.6g}"


def _of_competence(result: AuditResult) -> Iterator[str]:
    """Check that total and skill give the same control accuracy, and that a competent model reached the limit."""
    judgement, skill = result.competence, result.settings.skill
    if result.total.control_accuracy != skill.control_accuracy:
        yield f"total: control_accuracy is {result.total.control_accuracy}, and skill says {skill.control_accuracy}"
    if judgement is None or judgement.verdict is not Verdict.PASS:
        return
    accuracy, facts = skill.control_accuracy, skill.facts
    if judgement.measure == FACT_PREFERENCE:
        is_shown = facts is not None and facts.low is not None and facts.low >= judgement.limit
    else:
        is_shown = accuracy is not None and accuracy >= judgement.limit and accuracy > skill.best_constant
    if judgement.measure == RECALL or not is_shown:
        yield f"total: competence is PASS by {judgement.measure}, but the figures in skill do not show it"
