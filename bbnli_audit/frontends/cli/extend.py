"""Make the next, harder version of a suite step by step, with people in the loop.

The steps are mask, expand, fill, filter, review, agree, counterfactual and release (docs/workbench.md). Each step reads
tables in the folder WORK and writes the next table there. A step that was interrupted can be run again. Sentences
appear in the tables and on the review page; no step prints them.
To audit the release: pytest --model=M --bbnli-data=WORK/release

Examples:
    bbnli-audit extend mask work
    bbnli-audit extend expand work
    bbnli-audit extend fill work --model MASKED-LM
    bbnli-audit extend filter work --model NLI-1 --model NLI-2 --held-out NLI-3
    bbnli-audit extend review work --annotator ana --annotator ben
    bbnli-audit extend agree work
    bbnli-audit extend counterfactual work
    bbnli-audit extend release work --version 1.0.0
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.words import figure
from bbnli_audit.frontends.cli import extend_review
from bbnli_audit.frontends.cli.arguments import add_command, add_documented, require_positive
from bbnli_audit.models.inference.progress import Progress, Shown
from bbnli_audit.workbench.extend.mask import STRATEGIES
from bbnli_audit.workbench.extend.release import DATASHEET, FOLDER, FORMATS, NEW_DATASHEET
from bbnli_audit.workbench.workspace import STEPS, STORE, Done, Workspace

_say = partial(print, flush=True)


def add_parser(commands: Any) -> None:
    parser = add_documented(commands, "extend", None, __doc__)
    actions = parser.add_subparsers(title="steps", metavar="STEP", required=True)
    what = "propose masked hypothesis templates, or check your own: masked.csv"
    mask = _add(actions, run_mask, what, "", "--data DIR --strategies slot,added", "--templates mine.csv")
    what = "the suite to extend, in the published format (default: the first benchmark, bbnli@1)"
    mask.add_argument("--data", metavar="DIR", type=Path, help=what)
    mask.add_argument("--strategies", default=",".join(STRATEGIES), help="any of verb,slot,added (default: all)")
    mask.add_argument("--templates", metavar="FILE", type=Path, help="check and use these instead of proposing")
    mask.add_argument("--subtopics", metavar="PATHS", help="extend only these, such as gender/*, with commas between")
    expand = _add(actions, run_expand, "put groups and words into the masked templates: expanded.csv")
    expand.add_argument("--premises", metavar="N", type=int, help="use N premises per subtopic (default: all)")
    what = "propose words for the masks with a masked language model: filled.csv"
    fill = _add(actions, run_fill, what, "--model bert-base-uncased-folder --top 20")
    fill.add_argument("--model", required=True, metavar="DIR", help="a masked language model")
    fill.add_argument("--top", metavar="K", type=int, default=20, help="words per mask (default: 20)")
    fill.add_argument("--device", default="auto", help="as for --bbnli-device")
    what = "keep the samples that at least one NLI model gets wrong: filtered.csv, items.csv"
    filter_ = _add(actions, run_filter, what, "--model NLI-1 --model NLI-2 --held-out NLI-3")
    filter_.add_argument("--model", action="append", required=True, help="an NLI model that decides; may be repeated")
    filter_.add_argument("--held-out", action="append", default=[], help="an NLI model kept for the transfer table")
    filter_.add_argument("--sample", metavar="N", type=int, help="give people at most N hypotheses a subtopic to judge")
    extend_review.add_actions(actions)
    _add(actions, run_counterfactual, "give every valid sample its counterfactual: pairs.csv")
    what = "write the next version with statistics, transfer table and datasheet: release/"
    release = _add(actions, run_release, what, "--version 1.0.0")
    release.add_argument("--version", required=True, help="version of the data set, such as 1.0.0")
    release.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="format of the table (default: csv)")
    for step in (filter_, release):
        for option in ("device", "engine", "ray-address"):
            step.add_argument(f"--{option}", help=f"as for --bbnli-{option}")
        step.add_argument("--store", metavar="FILE", type=Path, help="where predictions are stored (default: in WORK)")
    _add(actions, run_status, "show which steps are done, and their results", has_again=False)


def _add(actions: Any, run: Any, what: str, *examples: str, has_again: bool = True) -> argparse.ArgumentParser:
    """Declare a step. Its name comes from its function `run_...`."""
    name = run.__name__.removeprefix("run_")
    lines = [f"bbnli-audit extend {name} work {options}".rstrip() for options in examples or ("",)]
    parser = add_command(actions, name, run, what=what, description=f"{what[0].upper()}{what[1:]}.", examples=lines)
    parser.add_argument("work", metavar="WORK", type=Path, help="the folder of the workbench")
    if has_again:
        parser.add_argument("--again", action="store_true", help="repeat the step, and overwrite edits made by hand")
    return parser


def run_mask(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend import steps

    strategies = [name.strip() for name in arguments.strategies.split(",") if name.strip()]
    for name in strategies:
        if name not in STRATEGIES:
            raise OptionError(f"--strategies={arguments.strategies}: there is no {name!r}. {suggest(name, STRATEGIES)}")
    if not strategies:
        raise OptionError(f"--strategies={arguments.strategies!r}: names no strategy. Known: {', '.join(STRATEGIES)}.")
    data, templates, subtopics = arguments.data, arguments.templates, arguments.subtopics
    done = steps.do_mask(_workspace(arguments), data, strategies, templates, subtopics)
    return _tell(arguments, done, hypotheses="hypothesis templates", masked_templates="masked templates")


def run_expand(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend import steps

    require_positive(arguments, "premises")
    done = steps.do_expand(_workspace(arguments), arguments.premises)
    return _tell(arguments, done, masked_samples="masked samples", masked_hypotheses="distinct masked hypotheses")


def run_fill(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend import steps

    require_positive(arguments, "top")
    model, top, device = arguments.model, arguments.top, arguments.device
    done = steps.do_fill(_workspace(arguments), model, top, device, _progress(), _say)
    return _tell(arguments, done, filled_hypotheses="filled hypotheses", filled_samples="filled samples")


def run_filter(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend import steps

    require_positive(arguments, "sample")
    deciding, held_out, sample = arguments.model, arguments.held_out, arguments.sample
    done = steps.do_filter(_workspace(arguments), deciding, held_out, _options(arguments), _progress(), _say, sample)
    manifest = done[0]
    for name in manifest.settings["models"]:
        accuracy = manifest.notes["control_accuracy"][name]
        skill = "no controls" if accuracy is None else f"{figure(accuracy)} of the controls right"
        print(f"{name}: found {manifest.total(f'found_by {name}'):,}; {skill}")
    titles = {"candidates": "distinct samples", "kept_samples": "kept", "hypotheses_to_judge": "hypotheses to judge"}
    return _tell(arguments, done, **titles)


def run_counterfactual(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend import steps

    titles = {"valid_samples": "valid samples", "pairs": "pairs", "same_pair": "found from both sides"}
    titles["contradicting"] = "dropped because people's answers contradict each other"
    return _tell(arguments, steps.do_counterfactual(_workspace(arguments)), **titles)


def run_release(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend import steps

    if not arguments.version.strip():
        raise OptionError("--version: is empty. Use the version of the data set, such as 1.0.0.")
    version, file_format = arguments.version, arguments.format
    done = steps.do_release(_workspace(arguments), version, file_format, _options(arguments), _progress())
    _tell(arguments, done, pairs="pairs", samples="samples")
    new = arguments.work / FOLDER / NEW_DATASHEET
    if new.exists():
        print(f"{DATASHEET} was edited by people and stays; the new one is {new}.")
    print(f"To audit it: pytest --model=MODEL --bbnli-data={arguments.work / FOLDER}")
    return 0


def run_status(arguments: argparse.Namespace) -> int:
    workspace = Workspace(arguments.work)
    if not arguments.work.is_dir():
        told = "there is no such folder, so no step is done"
        raise OptionError(f"{arguments.work}: {told}. The first is: bbnli-audit extend mask {arguments.work}")
    for name in STEPS:
        manifest = workspace.manifest(name)
        if manifest is None:
            print(f"{name}: not done")
            continue
        totals = dict.fromkeys(key for found in manifest.counts.values() for key in found)
        shown = ", ".join(f"{key.replace('_', ' ')} {manifest.total(key):,}" for key in totals)
        print(f"{name}: {shown} ({manifest.seconds:g} s)")
    return 0


def _workspace(arguments: argparse.Namespace) -> Workspace:
    return Workspace(arguments.work, arguments.again)


def _options(arguments: argparse.Namespace) -> ModelOptions:
    given = {name: getattr(arguments, name) for name in ("device", "engine", "ray_address")}
    return ModelOptions(**given, store=arguments.store or arguments.work / STORE)


def _progress() -> Progress:
    def move(line: str) -> None:
        print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)

    write_line = partial(print, file=sys.stderr, flush=True)
    return Shown(write_line=write_line, move=move if sys.stderr.isatty() else None)


def _tell(arguments: argparse.Namespace, done: Done, **titles: str) -> int:
    """Print the totals of a step. `titles` maps the names of counts in the manifest to the words to print."""
    manifest, is_new = done
    counts = ", ".join(f"{manifest.total(name):,} {title}" for name, title in titles.items())
    note = "" if is_new else " (Already done with the same inputs, so the step was not repeated.)"
    print(f"{manifest.step}: {counts}.{note}")
    extend_review.tell_edited(arguments.work, manifest)
    return 0
