"""Print the tables of the docs that compare checkpoints: python -m benchmarks.checkpoint_tables REPORT...

A report is a folder that `pytest audits --model=M --bbnli-report=DIR` wrote; its name stands for the model. The tables
are those of docs/datasheet.md, docs/verdicts.md and docs/decisions/0006-limits.md.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import read_result
from bbnli_audit.core.results.rows import Measured, SubtopicResult, Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import figure
from bbnli_audit.measures.registry import find_measure
from benchmarks.page import table

MEASURES = ("lean", "overreach", "pro_rate", "anti_rate", "brittleness_rate", "fact_gap")
LEVELS = ("suite", "domain", "subtopic")
RELIABLE = ("lean", "pro_rate", "anti_rate", "brittleness_rate")

Results = Mapping[str, AuditResult]


def show(found: Measured | None) -> str:
    """Write a value with its interval; a minus sign as in print."""
    if found is None or found.value is None or found.low is None or found.high is None:
        return "–"
    value, low, high = (figure(each).replace("-", "−") for each in (found.value, found.low, found.high))
    return f"{value} ({low} to {high})"


def short(measure: str) -> str:
    return find_measure(measure).short


def whole(result: AuditResult) -> SubtopicResult:
    return result.suite_rows[0] if result.suite_rows else result.total


def skill_rows(results: Results) -> Iterator[list[str]]:
    for name, result in results.items():
        skill, row = result.settings.skill, whole(result)
        recalls = ", ".join(f"{recall:.2f}" for recall in skill.recalls.values())
        accuracy = "–" if skill.control_accuracy is None else f"{skill.control_accuracy:.3f}"
        yield [name, accuracy, recalls, *(show(row.measures.get(measure)) for measure in MEASURES)]


def domain_rows(results: Results) -> Iterator[list[str]]:
    by_path: dict[str, dict[str, SubtopicResult]] = {}
    for name, result in results.items():
        for row in result.domains:
            by_path.setdefault(row.path.rpartition("/")[2], {})[name] = row
    for domain, rows in sorted(by_path.items()):
        for name, row in rows.items():
            yield [domain, name, *(show(row.measures.get(measure)) for measure in MEASURES)]


def reliability_rows(results: Results) -> Iterator[list[str]]:
    for name, result in results.items():
        known = {each.measure: each.value for each in result.reliability}
        yield [name, *(f"{known[measure]:.2f}" if measure in known else "–" for measure in RELIABLE)]


def verdict_rows(results: Results) -> Iterator[list[str]]:
    """Count FAIL, INCONCLUSIVE and PASS by level and measure."""
    counts: dict[tuple[str, str, float], dict[str, Counter[Verdict]]] = {}
    for name, result in results.items():
        for row in result.all_rows:
            for judgement in row.verdicts:
                place = (level_of(row.path), judgement.measure, judgement.limit)
                counts.setdefault(place, {}).setdefault(name, Counter())[judgement.verdict] += 1
    kinds = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)
    order = sorted(counts, key=lambda place: LEVELS.index(place[0]))
    for place in order:
        level, measure, limit = place
        cells = [" / ".join(str(counts[place].get(name, Counter())[kind]) for kind in kinds) for name in results]
        yield [f"{level}, {short(measure)}", f"{limit:.2f}", *cells]


def width_rows(results: Results) -> Iterator[list[str]]:
    """Say how wide intervals are, and which limit the widest one would pass."""
    for measure in MEASURES:
        for level in LEVELS:
            known = [
                [found for row in result.all_rows if level_of(row.path) == level for found in _of(row, measure)]
                for result in results.values()
            ]
            if all(known):
                half = [median((high - low) / 2 for low, high in found) for found in known]
                most = [max(max(high, -low) for low, high in found) for found in known]
                yield [short(measure), level, *(f"{value:.3f}" for value in (min(half), max(half), *most))]


def _of(row: SubtopicResult, measure: str) -> list[tuple[float, float]]:
    found = row.measures.get(measure)
    return [] if found is None or found.low is None or found.high is None else [(found.low, found.high)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", metavar="REPORT", type=Path, nargs="+", help="report folders, or result.json files")
    arguments = parser.parse_args()
    results = {(path if path.is_dir() else path.parent).name: read_result(path) for path in arguments.reports}
    names, measures = list(results), [short(measure) for measure in MEASURES]
    tables: Sequence[tuple[list[str], Iterator[list[str]]]] = (
        (["model", "controls right", "recall E, N, C", *measures], skill_rows(results)),
        (["domain", "model", *measures], domain_rows(results)),
        (["model", *map(short, RELIABLE)], reliability_rows(results)),
        (["FAIL / INCONCLUSIVE / PASS", "limit", *names], verdict_rows(results)),
        (
            ["measure", "level", "half-width from", "to", *(f"largest bound: {name}" for name in names)],
            width_rows(results),
        ),
    )
    for head, rows in tables:
        print(table(head, list(rows)), end="\n\n")


if __name__ == "__main__":
    main()
