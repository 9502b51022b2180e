"""The review steps of `bbnli-audit extend`: the review page, import and export of judgements, and decisions.

Sentences appear on the page and in files, but no command here prints one.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from inspect import getdoc
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.files import refuse_existing
from bbnli_audit.core.words import counted, figure
from bbnli_audit.frontends.cli.arguments import Run, add_command, add_documented, require_positive
from bbnli_audit.frontends.cli.projects import find_suite
from bbnli_audit.workbench.review import decide, exchange
from bbnli_audit.workbench.review.items import ReviewItem, read_items, suite_items, write_suite_items
from bbnli_audit.workbench.review.judgements import Judgements
from bbnli_audit.workbench.review.server import Breaks, check_packages, choose_items, serve
from bbnli_audit.workbench.review.states import States, check_annotator, finished
from bbnli_audit.workbench.workspace import Made, Manifest, Workspace, write_text

ITEMS, JUDGEMENTS, JUDGED = "items.csv", "review.sqlite", "judged.csv"
REVIEWED, DISAGREEMENTS = "reviewed.csv", "disagreements.csv"
FORMATS = ("csv", "label-studio")


def add_actions(actions: Any) -> None:
    """Declare `review`, `annotations` and `agree`."""
    add = _add(actions, run_review).add_argument
    add("--annotator", metavar="NAME", action="append", required=True, help="who judges; repeat for each annotator")
    add("--suite", metavar="NAME", help="judge the items of this suite, such as bbnli, not those of the workbench")
    add("--data", metavar="DIR", type=Path, help="with --suite: its data (default: our own)")
    add("--subtopics", metavar="PATHS", help="with --suite: only these, such as gender/*, with commas between")
    add("--sample", metavar="N", type=int, help="with --suite: at most N items a subtopic, drawn by their content")
    add("--disagreements", action="store_true", help="only items on which others disagree, for a third opinion")
    add("--port", type=int, default=0, help="port to listen on (default: the last one, or any)")
    add("--no-browser", action="store_true", help="do not open a browser (with one annotator, one is opened)")
    add("--break-minutes", metavar="N", type=float, default=20.0, help="minutes between breaks; 0: never (default: 20)")
    add("--break-judgements", metavar="N", type=int, default=0, help="judgements between breaks; 0: never (default: 0)")
    _add_annotations(actions)
    add = _add(actions, run_agree).add_argument
    policy = "if annotators disagree on an item: drop it, or let a third opinion decide (default: drop)"
    add("--policy", choices=list(map(str, decide.Policy)), default="drop", help=policy)
    add("--allow-unfinished", action="store_true", help=f"write {REVIEWED} in any case")
    add("--again", action="store_true", help=f"overwrite a {REVIEWED} that was edited by hand")
    add("--per-subtopic", action="store_true", help="print agreement also for each subtopic")


def _add_annotations(actions: Any) -> None:
    parser = add_command(
        actions,
        "annotations",
        None,
        what="export judgements to a file, or import them from one",
        description="Exchanges judgements with other machines and tools, as CSV or as Label Studio's JSON.",
        examples=(
            "bbnli-audit extend annotations export WORK judgements.csv",
            "bbnli-audit extend annotations import WORK export.json --format label-studio --name 3=ana",
        ),
    )
    ways = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    export, take = _add(ways, run_export), _add(ways, run_import)
    for each in (export, take):
        each.add_argument("file", metavar="FILE", type=Path, help="the file")
        each.add_argument("--format", choices=FORMATS, default="csv", help="(default: csv)")
    only = "with --format label-studio: "
    named = f"{only}the name used here for a user, given by number or e-mail address"
    export.add_argument("--items-only", action="store_true", help=f"{only}the items to judge, without judgements")
    export.add_argument("--config", metavar="FILE", type=Path, help=f"{only}write its labelling interface to this file")
    take.add_argument("--name", metavar="USER=NAME", action="append", default=[], help=named)


def _add(actions: Any, run: Run) -> argparse.ArgumentParser:
    """Declare an action. Its name comes from its function `run_...`, and its help from the function's docstring."""
    parser = add_documented(actions, run.__name__.removeprefix("run_"), run, getdoc(run))
    parser.add_argument("work", metavar="WORK", type=Path, help=f"the folder of the workbench, with {ITEMS}")
    return parser


def run_review(arguments: argparse.Namespace) -> int:
    """Let people judge the hypotheses, on a page served by this machine.

    On a page at 127.0.0.1, annotators say whether each hypothesis is valid, invalid or incoherent, and whether it is
    pro or anti. The command prints one address per annotator. Annotators do not see each other's judgements.

    With --suite, annotators judge the texts of a suite. They see only the premise, the hypothesis and the names of the
    groups. They say whether the hypothesis follows from the premise, whether the hypothesis is well-formed, and about
    which group it states a stereotype.

    Examples:
        bbnli-audit extend review WORK --annotator ana
        bbnli-audit extend review WORK --annotator ana --annotator ben --no-browser
        bbnli-audit extend review WORK --annotator cem --disagreements
        bbnli-audit extend review WORK --suite bbnli --subtopics gender/* --sample 50 --annotator ana --annotator ben
    """
    names = [check_annotator(name) for name in arguments.annotator]
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise OptionError(f"--annotator {twice}: is given twice. Each annotator needs their own name.")
    breaks = Breaks(arguments.break_minutes, arguments.break_judgements)
    if not math.isfinite(breaks.minutes) or breaks.minutes < 0 or breaks.judgements < 0:
        raise OptionError("--break-minutes and --break-judgements: expected a number from 0, where 0 means never.")
    check_packages()
    _take_suite(arguments)
    with _open(arguments) as (items, judgements):
        chosen = choose_items(names, items, judgements, arguments.disagreements)
        done = [name for name in chosen if not chosen[name]]
        if done:
            print(f"There is nothing for {', '.join(done)} to judge: the other annotators do not disagree on any item.")
            chosen = {name: of_annotator for name, of_annotator in chosen.items() if of_annotator}
        if chosen:
            print("Content warning: the page shows sentences that state stereotypes.")
            say = partial(print, flush=True)
            serve(judgements, chosen, breaks, port=arguments.port, opens_browser=not arguments.no_browser, say=say)
    return 0


def _take_suite(arguments: argparse.Namespace) -> None:
    """Write the items of the suite that --suite names. The same options give the same items: judging can be resumed."""
    if arguments.suite is None:
        given = [name for name in ("data", "subtopics", "sample") if getattr(arguments, name) is not None]
        if given:
            raise OptionError(f"--{given[0]} needs --suite NAME.")
        return
    require_positive(arguments, "sample")
    suite = find_suite(arguments.suite, arguments.data)
    items = suite_items(suite, arguments.subtopics, arguments.sample)
    write_suite_items(arguments.work / ITEMS, items)
    print(f"{len(items):,} items of {suite.name} {suite.version} are in {arguments.work / ITEMS}.")


def run_export(arguments: argparse.Namespace) -> int:
    """Write judgements to a file.

    A file for Label Studio has a task for each item, even for items that nobody has judged.

    Examples:
        bbnli-audit extend annotations export WORK judgements.csv
        bbnli-audit extend annotations export WORK tasks.json --format label-studio --items-only
    """
    is_csv = arguments.format == "csv"
    if is_csv and (arguments.items_only or arguments.config is not None):
        raise OptionError("--items-only and --config need --format label-studio.")
    for path in filter(None, (arguments.file, arguments.config)):
        refuse_existing(path, str(path))
    with _open(arguments) as (items, judgements):
        states = judgements.states()
    if is_csv:
        n = exchange.write_csv(arguments.file, states)
    else:
        n = exchange.write_tasks(arguments.file, items, {} if arguments.items_only else states)
    of_items = "" if is_csv else f" of {counted(len(items), 'item')}"
    print(f"Written to {arguments.file}: {counted(n, 'judgement')}{of_items}.")
    if not is_csv and not arguments.items_only and (left_out := len(exchange.said(states)) - n):
        told = f"Left out, because the items are not in {ITEMS}: {counted(left_out, 'judgement')}"
        print(f"{told}. --format csv includes all.")
    if arguments.config is not None:
        write_text(arguments.config, exchange.LABELLING_CONFIG.read_text(encoding="utf-8"))
        print(f"The labelling interface is in {arguments.config}: paste it under Settings, Labeling Interface, Code.")
    return 0


def run_import(arguments: argparse.Namespace) -> int:
    """Read judgements from a file.

    Judgements that are already known are skipped. If an annotator judged an item twice, the newer judgement counts.

    Examples:
        bbnli-audit extend annotations import WORK judgements.csv
        bbnli-audit extend annotations import WORK export.json --format label-studio --name 3=ana --name 4=ben
    """
    if arguments.format == "csv":
        if arguments.name:
            raise OptionError("--name needs --format label-studio.")
        given = exchange.read_csv(arguments.file)
    else:
        given = exchange.read_tasks(arguments.file, dict(_as_name(each) for each in arguments.name))
    with _open(arguments) as (items, judgements):
        done = exchange.take_into(judgements, arguments.file, given, (item.id for item in items))
    print(f"Added: {counted(done.n_added, 'judgement')}. There already: {done.n_same}.")
    if done.n_older:
        skipped = counted(done.n_older, "judgement")
        print(f"Skipped, because a known judgement of the item differs and is as new or newer: {skipped}.")
    if done.n_unknown:
        print(f"Kept, but not counted, because the items are not in {ITEMS}: {counted(done.n_unknown, 'judgement')}.")
    return 0


def run_agree(arguments: argparse.Namespace) -> int:
    """Measure how far annotators agree, and decide each item.

    Prints the agreement and Cohen's kappa of every two annotators, and writes disagreements.csv to the folder. For
    hypotheses of the workbench, writes reviewed.csv with the decisions. If some items still need a judgement, the exit
    code is 1, and reviewed.csv is written only with --allow-unfinished. For items of a suite, writes judged.csv. In
    this case the exit code is 0 only if two or more annotators have judged each item, and all as the suite expects.

    Examples:
        bbnli-audit extend agree WORK
        bbnli-audit extend agree WORK --policy third
    """
    with _open(arguments) as (items, judgements):
        states = judgements.states()
    judged = finished(states, (item.id for item in items))
    each = "; ".join(f"{name}: {len(judged[name])} judged" for name in judged)
    print(f"{len(items)} items. {each or 'Nobody has judged any: extend review, or extend annotations import'}")
    agreed = decide.agreements(items, judged)
    _print_agreements([each for each in agreed if arguments.per_subtopic or each.scope == decide.OVERALL])
    decide.write_disagreements(arguments.work / DISAGREEMENTS, items, judged)
    n_disagreed = counted(len(decide.disagreements(items, judged)), "item")
    print(f"Annotators disagree on {n_disagreed}: {arguments.work / DISAGREEMENTS}")
    if any(item.is_of_suite for item in items):
        return _print_kept(items, judged, arguments.work / JUDGED)
    decisions = decide.decide(items, judged, decide.Policy(arguments.policy))
    unfinished = _print_decisions(decisions, arguments.policy)
    if unfinished and not arguments.allow_unfinished:
        print(f"{REVIEWED} was not written. {unfinished} To go on without them: --allow-unfinished")
        return 1

    def make() -> Made:
        decide.write_reviewed(arguments.work / REVIEWED, decisions)
        notes = {
            "annotators": sorted(judged),
            "n_annotators": len(judged),
            "agreement": [asdict(each) for each in agreed if each.scope == decide.OVERALL],
        }
        return Made(decide.count(decisions), notes)

    settings = {"policy": arguments.policy, "allow_unfinished": arguments.allow_unfinished}
    inputs = {"judgements": exchange.hash_said(states)}
    manifest, _ = Workspace(arguments.work, arguments.again).run("agree", settings, make, inputs)
    tell_edited(arguments.work, manifest)
    print(f"Decisions: {arguments.work / REVIEWED}")
    return 0


def _print_kept(items: Sequence[ReviewItem], judged: States, path: Path) -> int:
    """Print how many items two or more annotators judged, and on how many of these all judged as the suite expects.

    Return the exit code: 0 if the second number is that of all items, else 1.
    """
    counts = decide.write_judged(path, items, judged)
    for name, (n_judged, n_kept) in counts.items():
        print(f"{name}: {n_judged} judged by two or more, {n_kept} as the suite expects, {n_judged - n_kept} not")
    n_judged, n_kept = (sum(each[at] for each in counts.values()) for at in (0, 1))
    in_all = f"In all, two or more annotators judged {n_judged} of {counted(len(items), 'item')}"
    print(f"{in_all}; {n_judged - n_kept} of these must be rewritten or dropped: {path}")
    return 0 if n_kept == len(items) else 1


def tell_edited(work: Path, manifest: Manifest) -> None:
    for file in manifest.edited:
        print(f"{work / file} was edited by hand after it was written; the manifest records this.")


@contextmanager
def _open(arguments: argparse.Namespace) -> Iterator[tuple[Sequence[ReviewItem], Judgements]]:
    """Open the folder's items and judgements. Print a note if the items have changed since judging began."""
    items = read_items(arguments.work / ITEMS)
    with Judgements(arguments.work / JUDGEMENTS) as judgements:
        is_other = judgements.note_items(items)
        there = {item.id for item in items}
        gone = {item for of_annotator in judgements.states().values() for item in of_annotator if item not in there}
        if is_other or gone:
            kept = f"Judgements of {counted(len(gone), 'item')} no longer there are kept, but not counted."
            print(f"{ITEMS} has changed since judging began. {kept}")
        yield items, judgements


def _as_name(given: str) -> tuple[str, str]:
    user, mark, name = given.partition("=")
    if not (user and mark and name):
        raise OptionError(f"--name {given}: expected USER=NAME, as in --name 3=ana.")
    return user, name


def _print_agreements(found: Iterable[decide.Agreement]) -> None:
    table = [("annotators", "items of", "over", "both", "alike", "kappa", f"{decide.CONFIDENCE:.0%} interval")]
    for each in found:
        share = "–" if each.share is None else f"{each.share:.1%}"
        kappa = "–" if each.kappa is None else figure(each.kappa)
        bounds = "–" if each.kappa_interval is None else " to ".join(map(figure, each.kappa_interval))
        names = f"{each.first} / {each.second}"
        table.append((names, each.scope, each.over, str(each.n_items), share, kappa, bounds))
    if len(table) == 1:
        print("Agreement needs two annotators who have judged something.")
        return
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = zip("<<<>>>>", widths, row, strict=True)
        print("  ".join(f"{cell:{side}{width}}" for side, width, cell in cells))


def _print_decisions(decisions: Sequence[decide.Decision], policy: str) -> str:
    """Print how the items were decided. Return advice about unfinished items, or an empty text if there are none."""
    by = Counter(each.decided_by for each in decisions)
    verdicts = Counter(
        f"{each.verdict}{f' ({each.stance})' if each.stance else ''}" for each in decisions if each.verdict is not None
    )
    print(f"Decided (policy {policy}): " + (", ".join(f"{n} {name}" for name, n in sorted(verdicts.items())) or "none"))
    names = {
        decide.DecidedBy.MAJORITY: "by majority",
        decide.DecidedBy.DROPPED: "dropped for disagreement",
        decide.DecidedBy.OPEN: "open for a third opinion",
        decide.DecidedBy.UNJUDGED: "judged by fewer than two",
    }
    print("; ".join(f"{name}: {by[kind]}" for kind, name in names.items()))
    needs = {
        decide.DecidedBy.UNJUDGED: "two judgements (extend review)",
        decide.DecidedBy.OPEN: "a third opinion (extend review --disagreements)",
    }
    return " ".join(f"{by[kind]} items need {what}." for kind, what in needs.items() if by[kind])
