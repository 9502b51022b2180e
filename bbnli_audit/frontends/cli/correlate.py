"""`bbnli-audit correlate`: do measures agree over models? From files alone, without running a model."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import OptionError, ResultError, suggest
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.frontends.cli.arguments import add_command, write_json

if TYPE_CHECKING:
    from bbnli_audit.measures.correlation import Correlation

TOTAL, SUBTOPIC = "total", "subtopic"
LEAST_MODELS = 3  # two points always lie on a line
MANY_MODELS = 10
WIDTH = 100
_NONE = "–"

# The files in the order given, each with what was read from it.
Results = Mapping[Path, AuditResult]


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "correlate",
        run,
        what="tell how far measures agree over models (R²)",
        description=(
            "Gives R² between each two measures that all results have, over models: three or more, audited on the\n"
            "same pairs. With few models R² is nearly always large, whatever the measures."
        ),
        examples=(
            "bbnli-audit correlate report-a report-b report-c report-d",
            "bbnli-audit correlate */result.json --measures m1,m2,m3,m4,m5,m6,m7,m8 --per subtopic",
        ),
    )
    parser.add_argument(
        "results",
        metavar="RESULT",
        type=Path,
        nargs="+",
        help="result.json, or the report folder that has it; one a model",
    )
    parser.add_argument(
        "--per",
        choices=(TOTAL, SUBTOPIC),
        default=TOTAL,
        help="what a point is: a model (total, default), or a subtopic of a model",
    )
    parser.add_argument("--measures", metavar="NAMES", help="only these, with commas between (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead (docs/commands.md)")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.measures.correlation import by_chance, correlate

    results = read_results(arguments.results)
    found = correlate(
        list(results.values()),
        by_subtopic=arguments.per == SUBTOPIC,
        wanted=_wanted(arguments.measures, results),
    )
    if len(found.measures) < 2:
        raise ResultError(
            f"These results have {len(found.measures)} measures with a value at every point in common "
            f"({', '.join(found.measures) or 'none'}), and R² needs two.\nCompare models that were audited in the same "
            "way: a likelihood is measured by other measures than an answer."
        )
    mean, one_in_twenty = by_chance(found.n_points)
    if arguments.json:
        write_json(
            {
                "per": arguments.per,
                "suites": [asdict(suite) for suite in next(iter(results.values())).suites],
                "models": [
                    {
                        "source": str(path),
                        "name": result.model.name,
                        "fingerprint": result.model.fingerprint,
                        "is_competent": result.is_competent,
                    }
                    for path, result in results.items()
                ],
                **asdict(found),
                "by_chance": {"mean": mean, "one_in_twenty": one_in_twenty},
            }
        )
    else:
        _print(results, found, arguments.per, mean, one_in_twenty)
    return 0


def read_results(paths: Sequence[Path]) -> Results:
    """Read results that can be compared: of different models, on the same pairs.

    Raises:
        ResultError: naming the file that does not fit.
    """
    from bbnli_audit.core.results.file import read_result

    results: dict[Path, AuditResult] = {}
    by_fingerprint: dict[str, Path] = {}
    for path in paths:
        result = read_result(path)
        same = by_fingerprint.setdefault(result.model.fingerprint, path)
        if path in results or same != path:
            raise ResultError(
                f"{path}: is of the same model as {same} (fingerprint {result.model.fingerprint[:12]}); counted twice, "
                "it would make R² look surer than it is. Give one result a model."
            )
        results[path] = result
    if len(results) < LEAST_MODELS:
        raise ResultError(
            f"R² over {len(results)} model{'s' if len(results) > 1 else ''} says nothing: two points always lie on a "
            f"line. Give the results of {LEAST_MODELS} models or more."
        )
    first, *others = results
    for path in others:
        _check_same_data(first, results[first], path, results[path])
    return results


def _check_same_data(first: Path, wanted: AuditResult, path: Path, found: AuditResult) -> None:
    if set(wanted.suites) != set(found.suites):
        told = (
            "; ".join(f"{s.name} {s.version}, pairing {s.pairing}, sha256 {s.sha256[:12]}" for s in result.suites)
            for result in (found, wanted)
        )
        raise ResultError(
            f"{path}: was not measured on the data of {first}: {' / '.join(told)}.\nMeasures are compared on the same "
            "pairs: audit all models with the same --bbnli-suite, --bbnli-data and --bbnli-pairing."
        )
    ours, theirs = ({row.path for row in result.subtopics} for result in (wanted, found))
    if ours != theirs:
        raise ResultError(
            f"{path}: has other subtopics than {first}: {len(theirs - ours)} more, {len(ours - theirs)} less, such as "
            f"{min(ours ^ theirs)}.\nMeasures are compared on the same pairs: audit all models with the same selection."
        )


def _wanted(given: str | None, results: Results) -> list[str] | None:
    if given is None:
        return None
    names = [name.strip() for name in given.split(",") if name.strip()]
    known = {name for result in results.values() for row in (result.total, *result.subtopics) for name in row.measures}
    for name in names:
        if name not in known:
            raise OptionError(f"--measures={name}: no result has this measure. {suggest(name, known)}")
    if len(set(names)) < 2:
        raise OptionError(f"--measures={given}: names fewer than two measures. Give two or more.")
    return names


def _print(results: Results, found: "Correlation", per: str, mean: float, one_in_twenty: float) -> None:
    suites = next(iter(results.values())).suites
    told = ", ".join(f"{suite.name} {suite.version}" for suite in suites)
    point = "a model" if per == TOTAL else "a subtopic of a model"
    print(f"R² between measures over {len(results)} models, {told}. A point is {point}: {found.n_points} points.\n")
    width = max(len(result.model.name) for result in results.values())
    for result in results.values():
        competent = "" if result.is_competent else "  not competent"
        print(f"  {result.model.name:<{width}}  {result.model.fingerprint[:12]}{competent}")
    for lines in _tables(found):
        print()
        print("\n".join(lines))
    print()
    if found.constant:
        print(f"{_NONE}: the same at every point, so there is nothing to tell: {', '.join(found.constant)}.")
    if found.left_out:
        print(f"Left out, without a value at every point: {', '.join(found.left_out)}.")
    if len(results) < MANY_MODELS:
        print("With so few models R² is nearly always large, whatever the measures.")
    print(
        f"Over {found.n_points} points, two measures that have nothing to do with each other reach {mean:.2f} on "
        f"average,\nand more than {one_in_twenty:.2f} one time in twenty."
    )
    if per == SUBTOPIC:
        print("Points of one model are alike, so in truth both are larger.")


def _tables(found: "Correlation") -> Iterator[list[str]]:
    """Cut the table into parts that a terminal has room for."""
    names = found.measures
    first = max(map(len, names))
    start = 0
    while start < len(names):
        stop, used = start, first
        while stop < len(names) and (stop == start or used + 2 + _column(names[stop]) <= WIDTH):
            used += 2 + _column(names[stop])
            stop += 1
        part = range(start, stop)
        yield [
            " " * first + "".join(f"  {names[at]:>{_column(names[at])}}" for at in part),
            *(
                f"{name:<{first}}" + "".join(f"  {_tell(row[at]):>{_column(names[at])}}" for at in part)
                for name, row in zip(names, found.r_squared, strict=True)
            ),
        ]
        start = stop


def _column(name: str) -> int:
    return max(len(name), len("0.00"))


def _tell(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f}"
