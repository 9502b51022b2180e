"""`bbnli-audit suites`: what there is to audit, whether the data is sound, and the texts for a model elsewhere."""

import argparse
import csv
import json
import sys
from collections.abc import Iterable
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

from bbnli_audit.errors import OptionError, suggest
from bbnli_audit.predictors.proof import probe_items
from bbnli_audit.suites.bbnli import OWN_DATA, Bbnli
from bbnli_audit.suites.check import check_files
from bbnli_audit.suites.protocol import Suite
from bbnli_audit.values import Label, Pairing, TextPair

NAMES = ("bbnli",)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("suites", help="list the subtopics, look for faults in the data, or write the texts")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run, what in (
        ("list", run_list, "list subtopics with their numbers of pairs, clusters and controls"),
        ("check", run_check, "look for faults in the templates; ends with 1 when there are any"),
        ("texts", run_texts, "write the texts that an audit needs, for --model=predictions:FILE"),
    ):
        action = actions.add_parser(name, help=what, epilog=f"example: bbnli-audit suites {name} bbnli --data DIR")
        action.add_argument("suite", nargs="?", default="bbnli", help="the suite (default: bbnli)")
        action.add_argument("--data", metavar="DIR", type=Path, default=OWN_DATA, help="its data (default: our own)")
        action.set_defaults(run=run)
        if run is run_texts:
            pairings = [pairing.value for pairing in Pairing]
            action.add_argument(
                "--pairing", choices=pairings, default=Pairing.BOTH.value, help="as for --bbnli-pairing"
            )
            action.add_argument("--output", metavar="FILE", type=Path, help=".csv or .jsonl (default: CSV on stdout)")


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


def run_texts(arguments: argparse.Namespace) -> int:
    path: Path | None = arguments.output
    suffix = ".csv" if path is None else path.suffix.lower()
    if suffix not in _WRITERS:
        raise OptionError(f"--output={path}: give a name that ends in {' or '.join(_WRITERS)}.")
    texts = needed_texts(_open(arguments, Pairing(arguments.pairing)))
    written = _WRITERS[suffix](texts)
    if path is None:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # it is a file's content, whatever the terminal
        sys.stdout.write(written)
        return 0
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(written)
    except FileExistsError as exc:
        raise OptionError(
            f"--output={path}: is there already, and may hold probabilities by now. Remove it, or give another name."
        ) from exc
    except OSError as exc:
        raise OptionError(f"--output={path}: cannot be written: {exc.strerror}.") from exc
    print(
        f"{len(texts)} texts are in {path}. Add the columns {', '.join(Label)}, then: pytest --model=predictions:{path}"
    )
    return 0


def needed_texts(suite: Suite) -> list[TextPair]:
    """Give the distinct texts an audit predicts. Sorted, so that no order tells sides or expected labels."""
    texts = {item.text for item in probe_items()}
    for subtopic in suite.subtopics():
        items = suite.items(subtopic)
        texts.update(control.text for control in items.controls)
        texts.update(text for pair in items.usable for text in (pair.pro, pair.anti))
    return sorted(texts)


def _as_csv(texts: Iterable[TextPair]) -> str:
    out = StringIO()
    # All in quotes: before Python 3.13, a carriage return alone does not make the writer quote a text.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(TextPair._fields)
    writer.writerows(texts)
    return out.getvalue()


def _as_jsonl(texts: Iterable[TextPair]) -> str:
    return "".join(f"{json.dumps(text._asdict(), ensure_ascii=False)}\n" for text in texts)


_WRITERS = {".csv": _as_csv, ".jsonl": _as_jsonl}


def _open(arguments: argparse.Namespace, pairing: Pairing) -> Bbnli:
    if arguments.suite not in NAMES:
        raise OptionError(f"There is no suite {arguments.suite!r}. {suggest(arguments.suite, NAMES)}")
    return Bbnli(arguments.data, pairing)
