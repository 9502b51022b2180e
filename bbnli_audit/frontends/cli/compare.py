"""`bbnli-audit compare`: two results on the pairs that both have, without running a model."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import OptionError, ThresholdsError
from bbnli_audit.core.results.audit import AuditResult, Verdict
from bbnli_audit.frontends.cli.arguments import add_command, write_json

if TYPE_CHECKING:
    from bbnli_audit.audit.gate.baseline import Rule


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "compare",
        run,
        what="compare two results on the pairs that both have",
        description=(
            "Tests for every subtopic and cause whether CANDIDATE is worse than BASELINE by more than a margin, as\n"
            "`pytest --bbnli-baseline` does. Ends with 1 when one is."
        ),
        examples=(
            "bbnli-audit compare last-release/result.json bias-report/result.json",
            "bbnli-audit compare last-release bias-report --max-increase 0.02 --html comparison.html",
        ),
    )
    parser.add_argument("baseline", metavar="BASELINE", type=Path, help="result.json, or the report folder that has it")
    parser.add_argument("candidate", metavar="CANDIDATE", type=Path, help="the same of the newer model")
    parser.add_argument(
        "--thresholds",
        metavar="FILE",
        type=Path,
        default=Path("thresholds.yaml"),
        help="where the margin is written (default: thresholds.yaml)",
    )
    parser.add_argument("--max-increase", metavar="SHARE", help="the margin, instead of the one in the threshold file")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page too")
    parser.add_argument("--json", action="store_true", help="print the comparison as in result.json")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.core.results.file import read_result

    compared = compare(
        read_result(arguments.baseline), read_result(arguments.candidate), _rule(arguments), str(arguments.baseline)
    )
    assert compared.comparison is not None
    if arguments.html is not None:
        _write_page(compared, arguments.html)
    if arguments.json:
        write_json(compared.comparison.to_dict())
    else:
        _print(compared)
    return int(any(one.verdict is Verdict.FAIL for one in compared.comparison.regressions))


def compare(baseline: AuditResult, candidate: AuditResult, rule: "Rule", source: str) -> AuditResult:
    """Give the candidate's result with its comparison."""
    from bbnli_audit.audit.gate import baseline as comparing

    comparing.check_baseline(baseline, source)
    comparing.check_other_model(candidate.model, baseline.model, source)
    tests = [(row.path, measure) for row in candidate.subtopics for measure in comparing.MEASURES]
    found = comparing.compare_pairs(tests, candidate.pairs, baseline.pairs, rule, is_competent=candidate.is_competent)
    return replace(candidate, comparison=comparing.compare_results(candidate, baseline, source, found, len(tests)))


def _rule(arguments: argparse.Namespace) -> "Rule":
    from bbnli_audit.audit.gate.baseline import Rule, find_rule
    from bbnli_audit.audit.gate.thresholds import read_thresholds

    given = arguments.max_increase
    if given is None:
        if not arguments.thresholds.exists():
            raise ThresholdsError(
                f"{arguments.thresholds}: there is no such file, so no margin is known. Name the file with "
                "--thresholds, or give the margin: --max-increase 0.03"
            )
        return find_rule(read_thresholds(arguments.thresholds))
    try:
        margin = float(given)
    except ValueError:
        margin = -1.0
    if not 0 <= margin <= 1:
        raise OptionError(f"--max-increase={given}: expected a share from 0 to 1, such as 0.03.")
    return Rule(margin, "--max-increase")


def _write_page(compared: AuditResult, path: Path) -> None:
    from bbnli_audit.core.files import replacing
    from bbnli_audit.reports.html_page import render_comparison

    try:
        with replacing(path) as file:
            file.write(render_comparison(compared))
    except OSError as exc:
        raise OptionError(f"--html={path}: cannot be written: {exc.strerror}.") from exc


def _print(compared: AuditResult) -> None:
    from bbnli_audit.reports import notes

    comparison = compared.comparison
    assert comparison is not None
    rows = notes.grown(comparison, *Verdict)
    changed = [one for one in rows if one.flipped or one.fixed or one.verdict is Verdict.FAIL]
    width = max([len("subtopic"), *(len(one.path) for one in changed)])
    print(f"Candidate {compared.model.name}")
    print(
        f"{'verdict':<12}  {'subtopic':<{width}}  {'measure':<16}  {'before':>6}  {'after':>6}  {'increase':>8}"
        f"  {'bounds':>16}  {'p':>7}  {'flipped':>7}  {'fixed':>5}"
    )
    for one in changed:
        found = one.increase
        print(
            f"{one.verdict:<12}  {one.path:<{width}}  {one.measure:<16}  {one.baseline:>6.3f}  {one.candidate:>6.3f}"
            f"  {found.value:>+8.3f}  {f'{found.low:+.3f} {found.high:+.3f}':>16}  {one.p_adjusted:>7.4f}"
            f"  {len(one.flipped):>7}  {len(one.fixed):>5}"
        )
    if len(changed) < len(rows):
        print(f"{len(rows) - len(changed)} more measures without a changed pair.")
    for line in (*notes.against_baseline(comparison), *notes.loosened(comparison)):
        print(line)
