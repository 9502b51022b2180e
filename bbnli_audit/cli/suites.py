"""`bbnli-audit suites`: what there is to audit, and whether the data is sound."""

import argparse
from pathlib import Path
from typing import Any

from bbnli_audit.errors import OptionError, suggest
from bbnli_audit.suites.bbnli import OWN_DATA, Bbnli
from bbnli_audit.suites.check import check_files
from bbnli_audit.values import Label, Pairing

NAMES = ("bbnli",)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("suites", help="list the subtopics, or look for faults in the data")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run, what in (
        ("list", run_list, "list subtopics with their numbers of pairs, clusters and controls"),
        ("check", run_check, "look for faults in the templates; ends with 1 when there are any"),
    ):
        action = actions.add_parser(name, help=what, epilog=f"example: bbnli-audit suites {name} bbnli --data DIR")
        action.add_argument("suite", nargs="?", default="bbnli", help="the suite (default: bbnli)")
        action.add_argument("--data", metavar="DIR", type=Path, default=OWN_DATA, help="its data (default: our own)")
        action.set_defaults(run=run)


def run_list(arguments: argparse.Namespace) -> int:
    suites = {pairing: _open(arguments, pairing) for pairing in Pairing}
    suite = suites[Pairing.BOTH]
    print(f"{suite.name} {suite.version}, sha256 {suite.sha256}")
    print(f"{'subtopic':<44}{'pairs':>7}{'clusters':>10}{'pairs (hypothesis)':>20}{'controls E/N/C':>18}")
    for subtopic in suite.subtopics():
        items = suite.items(subtopic)
        counts = [sum(control.expected is label for control in items.controls) for label in Label]
        print(
            f"{subtopic.path:<44}{len(items.usable):>7}{len({pair.cluster for pair in items.usable}):>10}"
            f"{len(suites[Pairing.HYPOTHESIS].items(subtopic).usable):>20}{'/'.join(map(str, counts)):>18}"
        )
        for annotation in subtopic.annotations:
            print(f"    note: {annotation}")
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    suite = _open(arguments, Pairing.BOTH)
    findings = check_files(suite.files())
    for finding in findings:
        print(finding)
    n_files = len(suite.files())
    print(f"{len(findings)} findings in {n_files} files." if findings else f"{n_files} files, no finding.")
    return 1 if findings else 0


def _open(arguments: argparse.Namespace, pairing: Pairing) -> Bbnli:
    if arguments.suite not in NAMES:
        raise OptionError(f"There is no suite {arguments.suite!r}. {suggest(arguments.suite, NAMES)}")
    return Bbnli(arguments.data, pairing)
