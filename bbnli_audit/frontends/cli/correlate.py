"""Say how far measures agree across models (r and R²).

Computes r and R² between every two measures that all results have. Takes the results of three or more models that were
audited on the same pairs; no model is loaded. With few models R² is nearly always large, whatever the measures.

Examples:
    bbnli-audit correlate report-a report-b report-c report-d
    bbnli-audit correlate */result.json --measures m1,m2,m3,m4,m5,m6,m7,m8 --per subtopic
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import OptionError, ResultError, suggest
from bbnli_audit.core.printable import printable
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.words import counted, figure, signed_figure
from bbnli_audit.frontends.cli.arguments import add_documented, write_json

if TYPE_CHECKING:
    from bbnli_audit.measures.agreement import Correlation

TOTAL, SUBTOPIC = "total", "subtopic"
LEAST_MODELS = 3  # two points always lie on a line
MANY_MODELS = 10
WIDTH = 100
_NONE = "–"

Results = Mapping[Path, AuditResult]  # results by file, in the order given


def add_parser(commands: Any) -> None:
    add = add_documented(commands, "correlate", run, __doc__).add_argument
    results, point = "a result.json, or the report folder with it; one per model", "a model (total, default)"
    add("results", metavar="RESULT", type=Path, nargs="+", help=results)
    add("--per", choices=(TOTAL, SUBTOPIC), default=TOTAL, help=f"what a point is: {point}, or a subtopic of a model")
    add("--measures", metavar="NAMES", help="only these, separated by commas (default: all)")
    add("--json", action="store_true", help="print one JSON document instead (docs/commands.md)")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.measures.agreement import by_chance, correlate
    from bbnli_audit.reports.shown import short_name

    results = read_results(arguments.results)
    wanted = _read_measures(arguments.measures, results)
    found = correlate(list(results.values()), by_subtopic=arguments.per == SUBTOPIC, wanted=wanted)
    if len(found.measures) < 2:
        had = f"{counted(len(found.measures), 'measure')} with a value at every point in common"
        advice = "Compare models that were audited alike: a likelihood has other measures than an answer."
        names = ", ".join(map(short_name, found.measures)) or "none"
        raise ResultError(f"These results have {had} ({names}), and R² needs two.\n{advice}")
    show = _print_document if arguments.json else _print
    show(results, found, arguments.per, by_chance(found.n_points))
    return 0


def read_results(paths: Sequence[Path]) -> Results:
    """Read results of three or more models. Refuse two results of the same model, and results on different data."""
    from bbnli_audit.core.results.file import read_result

    results: dict[Path, AuditResult] = {}
    by_fingerprint: dict[str, Path] = {}
    for path in paths:
        result = read_result(path)
        same = by_fingerprint.setdefault(result.model.fingerprint, path)
        if path in results or same != path:
            raise ResultError(
                f"{path}: is a result of the same model as {same} (fingerprint {result.model.fingerprint[:12]}). "
                "Counted twice, it would make R² look more certain than it is. Pass one result per model."
            )
        results[path] = result
    if len(results) < LEAST_MODELS:
        told = f"R² needs {LEAST_MODELS} models or more, and this is {len(results)}"
        raise ResultError(f"{told}. Two points always lie on a line, so R² over them says nothing.")
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
        advice = "Audit all models with the same --bbnli-suite, --bbnli-data and --bbnli-pairing."
        raise ResultError(f"{path}: was not measured on the data of {first}: {' / '.join(told)}.\n{advice}")
    ours, theirs = ({row.path for row in result.subtopics} for result in (wanted, found))
    if ours != theirs:
        difference = f"{len(theirs - ours)} more, {len(ours - theirs)} fewer, such as {min(ours ^ theirs)}"
        advice = "Audit all models with the same selection."
        raise ResultError(f"{path}: has other subtopics than {first}: {difference}.\n{advice}")


def _read_measures(given: str | None, results: Results) -> list[str] | None:
    from bbnli_audit.reports.shown import short_name

    if given is None:
        return None
    written = [name.strip() for name in given.split(",") if name.strip()]
    known = {name for result in results.values() for row in (result.total, *result.subtopics) for name in row.measures}
    names = {**{short_name(name): name for name in known}, **{name: name for name in known}}
    for name in written:
        if name not in names:
            shown = suggest(name, map(short_name, known))
            raise OptionError(f"--measures={name}: no result has this measure. {shown}")
    found = list(dict.fromkeys(names[name] for name in written))
    if len(found) < 2:
        raise OptionError(f"--measures={given}: names fewer than two measures. Name two or more.")
    return found


def _print_document(results: Results, found: "Correlation", per: str, chance: tuple[float, float]) -> None:
    keys = ("source", "name", "fingerprint", "is_competent")
    rows = ((str(path), one.model.name, one.model.fingerprint, one.is_competent) for path, one in results.items())
    models = [dict(zip(keys, row, strict=True)) for row in rows]
    suites = [asdict(suite) for suite in next(iter(results.values())).suites]
    by_chance = dict(zip(("mean", "one_in_twenty"), chance, strict=True))
    write_json({"per": per, "suites": suites, "models": models, **asdict(found), "by_chance": by_chance})


def _print(results: Results, found: "Correlation", per: str, chance: tuple[float, float]) -> None:
    from bbnli_audit.reports.shown import short_name

    models = list(results.values())
    suites = ", ".join(printable(f"{suite.name} {suite.version}") for suite in models[0].suites)
    point = "a model" if per == TOTAL else "a subtopic of a model"
    points = counted(found.n_points, "point")
    print(f"r and R² between measures over {len(models)} models, {suites}. A point is {point}: {points}.")
    print("Above the diagonal R², below it r: r is negative where one measure falls as the other rises.\n")
    width = max(len(result.model.name) for result in models)
    for result in models:
        competent = "" if result.is_competent else "  not competent"
        print(f"  {printable(result.model.name):<{width}}  {printable(result.model.fingerprint[:12])}{competent}")
    print()
    _print_table(found)
    if found.constant:
        constant = ", ".join(map(short_name, found.constant))
        print(f"{_NONE}: the same at every point, so there is nothing to compare: {constant}.")
    if found.left_out:
        print(f"Left out, because some points have no value: {', '.join(map(short_name, found.left_out))}.")
    if len(models) < MANY_MODELS:
        print("With so few models R² is nearly always large, whatever the measures.")
    told = f"reach {chance[0]:.2f} on average, and more than {chance[1]:.2f} one time in twenty"
    print(f"Over {found.n_points} points, two unrelated measures {told}.")
    if per == SUBTOPIC:
        print("Points of one model are alike, so the true figures are larger.")


def _print_table(found: "Correlation") -> None:
    """Print the table in parts that are at most WIDTH characters wide."""
    from bbnli_audit.reports.shown import short_name

    names, start = list(map(short_name, found.measures)), 0
    told = [[_tell(found, row, column) for column in range(len(names))] for row in range(len(names))]
    rows = [("", names), *zip(names, told, strict=True)]
    first = max(map(len, names))
    widths = [2 + max(len(name), len("-0.00")) for name in names]
    while start < len(names):
        stop = start + 1
        while stop < len(names) and first + sum(widths[start : stop + 1]) <= WIDTH:
            stop += 1
        for name, cells in rows:
            print(f"{name:<{first}}" + "".join(f"{cells[at]:>{widths[at]}}" for at in range(start, stop)))
        print()
        start = stop


def _tell(found: "Correlation", row: int, column: int) -> str:
    """Show R² on and above the diagonal, and r with its sign below the diagonal."""
    value = found.r[row][column] if row > column else found.r_squared[row][column]
    if value is None:
        return _NONE
    return signed_figure(value, 2) if row > column else figure(value, 2)
