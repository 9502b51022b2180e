"""Compare two results on the pairs that both have.

Tests lean and each cause of error for every suite, domain and subtopic: is CANDIDATE worse than BASELINE by more than a
margin? `pytest --bbnli-baseline` makes the same test. No model is needed. The exit code is 1 if a measure grew by more
than the margin and no waiver covers the growth.

Examples:
    bbnli-audit compare last-release/result.json bias-report/result.json
    bbnli-audit compare last-release bias-report --max-increase 0.02 --html comparison.html
"""

import argparse
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import ThresholdsError
from bbnli_audit.core.printable import printable
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import counted, figure, signed_figure
from bbnli_audit.frontends.cli.arguments import add_documented, add_thresholds, share, write_file, write_json

if TYPE_CHECKING:
    from bbnli_audit.audit.gate.growth import Rule
    from bbnli_audit.core.results.comparison import Comparison


def add_parser(commands: Any) -> None:
    add = add_documented(commands, "compare", run, __doc__).add_argument
    add("baseline", metavar="BASELINE", type=Path, help="a result.json, or the report folder with it")
    add("candidate", metavar="CANDIDATE", type=Path, help="the same for the newer model")
    add_thresholds(add, "the file with the margin")
    add("--max-increase", metavar="SHARE", type=share, help="the margin, instead of that of the file")
    add("--html", metavar="FILE", type=Path, help="write a page as well")
    add("--json", action="store_true", help="print the comparison as in result.json")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.audit.gate.baseline import compare
    from bbnli_audit.audit.gate.recheck import read_judged
    from bbnli_audit.core.results.file import dump
    from bbnli_audit.reports.folder import check_page
    from bbnli_audit.reports.html_page import render_comparison

    if arguments.html is not None:
        check_page(arguments.html, "--html")
    baseline, candidate = read_judged(arguments.baseline), read_judged(arguments.candidate)
    comparison = compare(candidate, baseline, _find_rule(arguments), str(arguments.baseline))
    if arguments.html is not None:
        page = render_comparison(replace(candidate, comparison=comparison))
        write_file(arguments.html, page, f"--html={arguments.html}")
    if arguments.json:
        write_json(dump(comparison))
    else:
        print(printable(f"Candidate {candidate.model.name}"))
        _print_table(comparison)
    return int(any(one.verdict is Verdict.FAIL and not one.is_waived for one in comparison.regressions))


def _find_rule(arguments: argparse.Namespace) -> "Rule":
    from bbnli_audit.audit.gate.growth import Rule, find_rule
    from bbnli_audit.audit.gate.thresholds import read_thresholds

    if arguments.max_increase is not None:
        return Rule.of(arguments.max_increase, "--max-increase")
    if not arguments.thresholds.exists():
        advice = "Name the file with --thresholds, or set the margin: --max-increase 0.03"
        raise ThresholdsError(f"{arguments.thresholds}: there is no such file, so the margin is not known. {advice}")
    return find_rule(read_thresholds(arguments.thresholds), date.today())


def _print_table(comparison: "Comparison") -> None:
    from bbnli_audit.reports import notes
    from bbnli_audit.reports.shown import ROWS_WORST_FIRST, growth_verdict, short_name

    rows = notes.grown(comparison, *ROWS_WORST_FIRST)
    changed = [one for one in rows if one.flipped or one.fixed or one.increase.value or one.verdict is Verdict.FAIL]
    title = "suite, domain, subtopic"
    width = max([len(title), *(len(one.path) for one in changed)])
    print(
        f"{'verdict':<12}  {title:<{width}}  {'measure':<11}  {'before':>6}  {'after':>6}  {'increase':>8}"
        f"  {'bounds':>16}  {'p':>7}  {'flipped':>7}  {'fixed':>5}"
    )
    for one in changed:
        found, is_leaf = one.increase, level_of(one.path) == "subtopic"
        value, *bounds = map(signed_figure, (found.value, found.low, found.high))
        name = short_name(one.measure)
        print(
            f"{growth_verdict(one):<12}  {printable(one.path):<{width}}  {printable(name):<11}"
            f"  {figure(one.baseline):>6}  {figure(one.candidate):>6}"
            f"  {value:>8}  {' '.join(bounds):>16}  {one.p_adjusted:>7.4f}"
            f"  {len(one.flipped) if is_leaf else '-':>7}  {len(one.fixed) if is_leaf else '-':>5}"
        )
    if len(changed) < len(rows):
        print(f"{counted(len(rows) - len(changed), 'more measure')} did not change.")
    for line in (*notes.against_baseline(comparison), *notes.loosened(comparison)):
        print(printable(line))
