"""The people's part of `bbnli-audit extend`: the review page, judgements from and for elsewhere, and what they come to.

Sentences are in the page and in files; nothing here prints one.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.frontends.cli.arguments import add_command

if TYPE_CHECKING:
    from bbnli_audit.workbench.review.agreement import Agreement
    from bbnli_audit.workbench.review.decide import Decision
    from bbnli_audit.workbench.review.items import ReviewItem
    from bbnli_audit.workbench.review.judgements import Judgements

ITEMS, JUDGEMENTS, REVIEWED, DISAGREEMENTS = "items.csv", "review.sqlite", "reviewed.csv", "disagreements.csv"
POLICIES = ("drop", "third")
FORMATS = ("csv", "label-studio")


def add_actions(actions: Any) -> None:
    """Declare `review`, `annotations` and `agree`."""
    _add_review(actions)
    _add_annotations(actions)
    _add_agree(actions)


def _add_review(actions: Any) -> None:
    parser = add_command(
        actions,
        "review",
        run_review,
        what="let people judge the hypotheses, in a page on this machine",
        description=(
            "Serves a page on this machine (127.0.0.1) where annotators judge each hypothesis: valid, invalid or\n"
            "incoherent, and pro or anti. Prints one address an annotator; nobody sees what others judge."
        ),
        examples=(
            "bbnli-audit extend review WORK --annotator ana",
            "bbnli-audit extend review WORK --annotator ana --annotator ben --no-browser",
            "bbnli-audit extend review WORK --annotator cem --disagreements",
        ),
    )
    _add_work(parser)
    parser.add_argument(
        "--annotator", metavar="NAME", action="append", required=True, help="who judges; once for each annotator"
    )
    parser.add_argument(
        "--disagreements", action="store_true", help="only items of which others disagree, for a third opinion"
    )
    parser.add_argument("--port", type=int, default=0, help="where to listen (default: as last time, or any)")
    parser.add_argument("--no-browser", action="store_true", help="open no browser (with one annotator, one is opened)")
    parser.add_argument(
        "--break-minutes",
        metavar="N",
        type=float,
        default=20.0,
        help="propose a break so often; 0 never (default: 20)",
    )
    parser.add_argument(
        "--break-judgements", metavar="N", type=int, default=0, help="and after so many; 0: never (default: 0)"
    )


def _add_annotations(actions: Any) -> None:
    parser = add_command(
        actions,
        "annotations",
        None,
        what="write judgements to a file, or take them from one",
        description="Judgements from and for other machines and tools, as CSV or as Label Studio's JSON.",
        examples=(
            "bbnli-audit extend annotations export WORK judgements.csv",
            "bbnli-audit extend annotations import WORK export.json --format label-studio --name 3=ana",
        ),
    )
    ways = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    export = add_command(
        ways,
        "export",
        run_export,
        what="write judgements to a file",
        description="Writes what annotators say. Label Studio's file holds a task for each item, judged or not.",
        examples=(
            "bbnli-audit extend annotations export WORK judgements.csv",
            "bbnli-audit extend annotations export WORK tasks.json --format label-studio --items-only",
        ),
    )
    take = add_command(
        ways,
        "import",
        run_import,
        what="take judgements from a file",
        description="Adds judgements. What is there already adds nothing; of two that differ, the newer counts.",
        examples=(
            "bbnli-audit extend annotations import WORK judgements.csv",
            "bbnli-audit extend annotations import WORK export.json --format label-studio --name 3=ana --name 4=ben",
        ),
    )
    for each in (export, take):
        _add_work(each)
        each.add_argument("file", metavar="FILE", type=Path, help="the file")
        each.add_argument("--format", choices=FORMATS, default="csv", help="(default: csv)")
    export.add_argument(
        "--items-only", action="store_true", help="with --format label-studio: no judgements, only what is to be judged"
    )
    export.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="with --format label-studio: write its labelling interface there",
    )
    take.add_argument(
        "--name",
        metavar="USER=NAME",
        action="append",
        default=[],
        help="with --format label-studio: what a user is called here, by number or e-mail address",
    )


def _add_agree(actions: Any) -> None:
    parser = add_command(
        actions,
        "agree",
        run_agree,
        what="say how far annotators agree, and decide each item",
        description=(
            f"Prints agreement and Cohen's kappa of each two annotators, and writes {DISAGREEMENTS} and {REVIEWED}\n"
            "into the folder. Ends with 1, without the latter, when items are not judged to the end."
        ),
        examples=(
            "bbnli-audit extend agree WORK",
            "bbnli-audit extend agree WORK --policy third",
        ),
    )
    _add_work(parser)
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default="drop",
        help="items of which annotators disagree: drop them, or let a third opinion decide (default: drop)",
    )
    parser.add_argument("--allow-unfinished", action="store_true", help=f"write {REVIEWED} all the same")
    parser.add_argument("--again", action="store_true", help=f"write over a {REVIEWED} that was changed by hand")
    parser.add_argument("--per-subtopic", action="store_true", help="print agreement for each subtopic, too")


def _add_work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("work", metavar="WORK", type=Path, help=f"the folder of the workbench, with {ITEMS}")


def run_review(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.review.items import read_items
    from bbnli_audit.workbench.review.server import Breaks
    from bbnli_audit.workbench.review.serving import check_packages, choose_items, serve
    from bbnli_audit.workbench.review.states import check_annotator

    names = [check_annotator(name) for name in arguments.annotator]
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise OptionError(f"--annotator {twice}: is there twice. Each annotator has a name of their own.")
    breaks = Breaks(arguments.break_minutes, arguments.break_judgements)
    if not math.isfinite(breaks.minutes) or breaks.minutes < 0 or breaks.judgements < 0:
        raise OptionError("--break-minutes and --break-judgements: give a number from 0, where 0 is never.")
    check_packages()
    items = read_items(arguments.work / ITEMS)
    with _open(arguments, items) as judgements:
        chosen = choose_items(names, items, judgements, arguments.disagreements)
        done = [name for name, of_annotator in chosen.items() if not of_annotator]
        if done:
            print(f"There is nothing for {', '.join(done)} to judge: others do not disagree on any item.")
            chosen = {name: of_annotator for name, of_annotator in chosen.items() if of_annotator}
        if chosen:
            print("Content warning: the page shows sentences that state stereotypes.")
            serve(
                arguments.work,
                judgements,
                chosen,
                port=arguments.port,
                breaks=breaks,
                opens_browser=not arguments.no_browser,
                say=lambda line: print(line, flush=True),
            )
    return 0


def run_export(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.review import exchange, label_studio
    from bbnli_audit.workbench.review.decide import write_text
    from bbnli_audit.workbench.review.items import read_items

    is_csv = arguments.format == "csv"
    if is_csv and (arguments.items_only or arguments.config is not None):
        raise OptionError("--items-only and --config go with --format label-studio.")
    items = read_items(arguments.work / ITEMS)
    with _open(arguments, items) as judgements:
        states = judgements.states()
    if is_csv:
        n = exchange.write_csv(arguments.file, states)
    else:
        n = label_studio.write_tasks(arguments.file, items, {} if arguments.items_only else states)
    print(f"{n} judgements{'' if is_csv else f' of {len(items)} items'} are in {arguments.file}.")
    if not is_csv and not arguments.items_only and (left_out := len(exchange.said(states)) - n):
        print(f"{left_out} judgements of items that are not in {ITEMS} were left out; --format csv has them.")
    if arguments.config is not None:
        write_text(arguments.config, label_studio.LABELLING_CONFIG)
        print(f"The labelling interface is in {arguments.config}: paste it under Settings, Labeling Interface, Code.")
    return 0


def run_import(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.review import exchange, label_studio
    from bbnli_audit.workbench.review.items import read_items

    if arguments.format == "csv":
        if arguments.name:
            raise OptionError("--name goes with --format label-studio.")
        given = exchange.read_csv(arguments.file)
    else:
        given = label_studio.read_tasks(arguments.file, dict(_as_name(each) for each in arguments.name))
    items = read_items(arguments.work / ITEMS)
    with _open(arguments, items) as judgements:
        done = exchange.take_into(judgements, arguments.file, given, (item.id for item in items))
    print(f"{done.n_added} judgements were added, {done.n_same} were there already.")
    if done.n_older:
        print(f"{done.n_older} differ from what is there and are not newer: what is there stays.")
    if done.n_unknown:
        print(f"{done.n_unknown} are of items that are not in {ITEMS}: they are kept, and not counted.")
    return 0


def run_agree(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend.workspace import Made, Workspace
    from bbnli_audit.workbench.review.agreement import OVERALL, agreements, disagreements
    from bbnli_audit.workbench.review.decide import Policy, count, decide, write_disagreements, write_reviewed
    from bbnli_audit.workbench.review.exchange import hash_said
    from bbnli_audit.workbench.review.items import read_items
    from bbnli_audit.workbench.review.states import finished

    items = read_items(arguments.work / ITEMS)
    with _open(arguments, items) as judgements:
        states = judgements.states()
    judged = finished(states, (item.id for item in items))
    print(f"{len(items)} items. " + "; ".join(f"{name}: {len(judged[name])} judged" for name in judged))
    agreed = list(agreements(items, judged))
    _print_agreements(agreed, arguments.per_subtopic)
    write_disagreements(arguments.work / DISAGREEMENTS, items, judged)
    print(f"Annotators disagree on {len(disagreements(items, judged))} items: {arguments.work / DISAGREEMENTS}")
    decisions = decide(items, judged, Policy(arguments.policy))
    unfinished = _print_decisions(decisions, arguments.policy)
    if unfinished and not arguments.allow_unfinished:
        print(f"{REVIEWED} was not written. {unfinished} To go on without them: --allow-unfinished")
        return 1

    def make() -> Made:
        write_reviewed(arguments.work / REVIEWED, decisions)
        notes = {
            "annotators": sorted(judged),
            "n_annotators": len(judged),
            "agreement": [asdict(each) for each in agreed if each.scope == OVERALL],
        }
        return Made(count(decisions), notes)

    settings = {"policy": arguments.policy, "allow_unfinished": arguments.allow_unfinished}
    inputs = {"judgements": hash_said(states)}
    manifest, _ = Workspace(arguments.work).run("agree", settings, make, inputs=inputs, is_again=arguments.again)
    for file in manifest.edited:
        print(f"{arguments.work / file} was changed by hand since it was written; the manifest says so.")
    print(f"Decisions: {arguments.work / REVIEWED}")
    return 0


def _open(arguments: argparse.Namespace, items: Sequence["ReviewItem"]) -> "Judgements":
    """Open the folder's judgements, and tell when they were made for other items."""
    from bbnli_audit.workbench.review.judgements import Judgements

    judgements = Judgements(arguments.work / JUDGEMENTS)
    is_other = judgements.note_items(items)
    there = {item.id for item in items}
    gone = {item for of_annotator in judgements.states().values() for item in of_annotator if item not in there}
    if is_other or gone:
        print(
            f"{ITEMS} has changed since judging began. Judgements of {len(gone)} items that are no longer there are "
            "kept, and not counted."
        )
    return judgements


def _as_name(given: str) -> tuple[str, str]:
    user, mark, name = given.partition("=")
    if not (user and mark and name):
        raise OptionError(f"--name {given}: expected USER=NAME, as in --name 3=ana.")
    return user, name


def _print_agreements(found: Iterable["Agreement"], per_subtopic: bool) -> None:
    from bbnli_audit.workbench.review.agreement import OVERALL

    rows = [each for each in found if per_subtopic or each.scope == OVERALL]
    if not rows:
        print("Agreement needs two annotators who have judged something.")
        return
    table = [("annotators", "items of", "over", "both", "alike", "kappa")]
    for each in rows:
        share = "–" if each.share is None else f"{each.share:.1%}"
        kappa = "–" if each.kappa is None else f"{each.kappa:.3f}"
        table.append((f"{each.first} / {each.second}", each.scope, each.over, str(each.n_items), share, kappa))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        names = (cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True))
        numbers = (cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True))
        print("  ".join((*names, *numbers)))


def _print_decisions(decisions: Sequence["Decision"], policy: str) -> str:
    """Print what became of the items; give what is to be done about those that are not finished, if any."""
    from bbnli_audit.workbench.review.decide import DecidedBy

    by = Counter(each.decided_by for each in decisions)
    verdicts = Counter(
        each.verdict.value + (f" ({each.stance.value})" if each.stance else "")
        for each in decisions
        if each.verdict is not None
    )
    print(f"Decided (policy {policy}): " + (", ".join(f"{n} {name}" for name, n in sorted(verdicts.items())) or "none"))
    names = {
        DecidedBy.MAJORITY: "by majority",
        DecidedBy.DROPPED: "dropped for disagreement",
        DecidedBy.OPEN: "open for a third opinion",
        DecidedBy.UNJUDGED: "judged by fewer than two",
    }
    print("; ".join(f"{name}: {by[kind]}" for kind, name in names.items()))
    asked = []
    if by[DecidedBy.UNJUDGED]:
        asked.append(f"{by[DecidedBy.UNJUDGED]} items need two judgements (extend review).")
    if by[DecidedBy.OPEN]:
        asked.append(f"{by[DecidedBy.OPEN]} items need a third opinion (extend review --disagreements).")
    return " ".join(asked)
