"""Accept growth since the baseline, and record who accepts it, why and until when.

For each measure in RESULT whose growth stops the release, `accept` writes a waiver into thresholds.yaml. The waiver
names the suite, domain or subtopic, the measure, the accepted amount of growth, the reason, the owner and the last day.
Growth beyond the accepted amount still fails. After the last day, the test of the measure fails, even without growth.

Examples:
    bbnli-audit baseline accept bias-report --owner Ada --reason "mended in r4" --expires 2027-01-31
    bbnli-audit baseline accept bias-report --only "bbnli/race/*" --owner Ada --reason known --expires 2027-01-31
"""

import argparse
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.values import Subtopic, level_of
from bbnli_audit.core.words import counted, figure
from bbnli_audit.frontends.cli.arguments import (
    add_command,
    add_data,
    add_documented,
    add_thresholds,
    tell_model,
    write_file,
)
from bbnli_audit.frontends.cli.changes import make_diff, name_subtopics, read_text_and_limits, unknown_subtopic

if TYPE_CHECKING:
    from bbnli_audit.audit.gate.thresholds import Thresholds
    from bbnli_audit.core.results.audit import AuditResult


def add_parser(commands: Any) -> None:
    parser = add_documented(commands, "baseline", None, __doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    accept = add_command(
        actions,
        "accept",
        run_accept,
        what="write waivers for growth that stops a release",
        description="Writes a waiver into thresholds.yaml for each measure that grew by more than its margin.",
        examples=['bbnli-audit baseline accept bias-report --owner Ada --reason "mended in r4" --expires 2027-01-31'],
    )
    add = accept.add_argument
    add("result", metavar="RESULT", type=Path, help="a result.json, or the report folder with it")
    add("--owner", metavar="WHO", type=_text, required=True, help="who answers for it")
    add("--reason", metavar="WHY", type=_text, required=True, help="why it is accepted")
    add("--expires", metavar="DATE", type=_day, required=True, help="the last day it holds, such as 2027-01-31")
    add("--only", metavar="NAMES", default="", help="accept these alone: paths, tests or patterns, with commas")
    add_thresholds(add, "the file to write")
    add_data(add)
    add("--dry-run", action="store_true", help="show the change and write nothing")


def _text(given: str) -> str:
    if not given.strip():
        raise argparse.ArgumentTypeError("is empty. Say it in a few words.")
    return given.strip()


def _day(given: str) -> date:
    try:
        day = date.fromisoformat(given)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{given!r} is not a date such as 2027-01-31.") from None
    if day < date.today():
        raise argparse.ArgumentTypeError(f"{given} is in the past, so the waiver would never hold.")
    return day


def run_accept(arguments: argparse.Namespace) -> int:
    from bbnli_audit.audit.gate.acceptance import Terms, find_growth, make_waiver, write_waivers
    from bbnli_audit.audit.gate.recheck import read_judged
    from bbnli_audit.reports.shown import short_name

    result = read_judged(arguments.result)
    path: Path = arguments.thresholds
    text, thresholds = read_text_and_limits(path)
    name = thresholds.name
    only = [each.strip() for each in arguments.only.split(",") if each.strip()]
    found = find_growth(result, only)
    if not found:
        print(f"Nothing to accept: no growth since the baseline stops {result.model.name}.")
        return 0
    terms = Terms(arguments.owner, arguments.reason, arguments.expires)
    waivers = [make_waiver(each, terms, tell_model(result.model)) for each in found]
    changed = write_waivers(text, waivers, thresholds, _find_subtopics(result, thresholds, arguments.data))
    if not arguments.dry_run:
        write_file(path.resolve(), changed, name)
    print(make_diff(text, changed, name), end="")
    for each in found:
        grew = f"{figure(each.baseline)} to {figure(each.candidate)}"
        print(f"accepted: {each.path} {short_name(each.measure)} from {grew}, until {terms.expires}")
    done = "Nothing was written (--dry-run)" if arguments.dry_run else f"Written: {name}. Commit it"
    print(f"{done}. Growth of {counted(len(found), 'measure')} then passes until {terms.expires}, and fails after it.")
    return 0


def _find_subtopics(result: "AuditResult", thresholds: "Thresholds", data: Path | None) -> list[Subtopic]:
    """Return the subtopics that a waiver may name. Refuse a waiver for growth in a subtopic that is not known."""
    named = name_subtopics(result, data)
    suites = {suite.name for suite in result.suites}
    for (path, _), waiver in thresholds.growth_waivers(named.values()).items():
        is_of_suite = path.partition("/")[0] in suites and level_of(path) == "subtopic"
        if is_of_suite and path not in named:
            raise unknown_subtopic(waiver.source, waiver.subtopic)
    return list(named.values())
