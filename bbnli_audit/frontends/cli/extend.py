"""`bbnli-audit extend`: the harder next version of a suite, one resumable step a command (docs/workbench.md)."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.frontends.cli.arguments import add_command
from bbnli_audit.frontends.cli.extend_review import add_actions as add_review_actions
from bbnli_audit.workbench.extend.mask import STRATEGIES
from bbnli_audit.workbench.extend.release import DATASHEET, FOLDER, FORMATS, NEW_DATASHEET

if TYPE_CHECKING:
    from bbnli_audit.models.inference.opening import Inference
    from bbnli_audit.models.inference.progress import Progress
    from bbnli_audit.workbench.extend.workspace import Manifest, Workspace


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "extend",
        None,
        what="make the harder next version of a suite, step by step, with people in the loop",
        description=(
            "Grows a benchmark: mask, expand, fill, filter, review, agree, counterfactual, release.\n"
            "Each step reads tables of the folder WORK and writes the next one; none prints a sentence.\n"
            "The release is audited with: pytest --model=M --bbnli-data=WORK/release"
        ),
        examples=(
            "bbnli-audit extend mask work",
            "bbnli-audit extend expand work",
            "bbnli-audit extend fill work --model MASKED-LM",
            "bbnli-audit extend filter work --model NLI-1 --model NLI-2 --held-out NLI-3",
            "bbnli-audit extend review work --annotator ana --annotator ben",
            "bbnli-audit extend agree work",
            "bbnli-audit extend counterfactual work",
            "bbnli-audit extend release work --version 1.0.0",
        ),
    )
    actions = parser.add_subparsers(title="steps", metavar="STEP", required=True)
    _add_mask(actions)
    _add_expand(actions)
    _add_fill(actions)
    _add_filter(actions)
    add_review_actions(actions)
    _add(actions, "counterfactual", run_counterfactual, "give every valid sample its counterfactual: pairs.csv")
    _add_release(actions)
    _add(actions, "status", run_status, "say which steps are done, and what they left", has_again=False)


def _add(actions: Any, name: str, run: Any, what: str, *examples: str, has_again: bool = True) -> Any:
    parser = add_command(
        actions,
        name,
        run,
        what=what,
        description=f"{what[0].upper()}{what[1:]}.",
        examples=examples or (f"bbnli-audit extend {name} work",),
    )
    parser.add_argument("work", metavar="WORK", type=Path, help="the folder of the workbench")
    if has_again:
        parser.add_argument("--again", action="store_true", help="do it even if nothing has changed; lose hand edits")
    return parser


def _add_mask(actions: Any) -> None:
    parser = _add(
        actions,
        "mask",
        run_mask,
        "propose masked hypothesis templates, or check your own: masked.csv",
        "bbnli-audit extend mask work",
        "bbnli-audit extend mask work --data DIR --strategies slot,added",
        "bbnli-audit extend mask work --templates mine.csv",
    )
    parser.add_argument("--data", metavar="DIR", type=Path, help="the suite to extend (default: our own)")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="which of verb,slot,added (default: all)")
    parser.add_argument("--templates", metavar="FILE", type=Path, help="check and take these instead of proposing")


def _add_expand(actions: Any) -> None:
    parser = _add(actions, "expand", run_expand, "put groups and words into the masked templates: expanded.csv")
    parser.add_argument("--premises", metavar="N", type=int, help="use N premises of a subtopic (default: all)")


def _add_fill(actions: Any) -> None:
    parser = _add(
        actions,
        "fill",
        run_fill,
        "propose words for the masks with a masked language model: filled.csv",
        "bbnli-audit extend fill work --model bert-base-uncased-folder --top 20",
    )
    parser.add_argument("--model", required=True, metavar="DIR", help="a masked language model")
    parser.add_argument("--top", metavar="K", type=int, default=20, help="words for each mask (default: 20)")
    parser.add_argument("--device", help="as for --bbnli-device")


def _add_filter(actions: Any) -> None:
    parser = _add(
        actions,
        "filter",
        run_filter,
        "keep the samples that at least one NLI model gets wrong: filtered.csv, items.csv",
        "bbnli-audit extend filter work --model NLI-1 --model NLI-2 --held-out NLI-3",
    )
    parser.add_argument("--model", action="append", required=True, help="an NLI model that decides; again for more")
    parser.add_argument("--held-out", action="append", default=[], help="an NLI model kept for the transfer table")
    _add_inference(parser)


def _add_release(actions: Any) -> None:
    parser = _add(
        actions,
        "release",
        run_release,
        "write the next version with statistics, transfer table and datasheet: release/",
        "bbnli-audit extend release work --version 1.0.0",
    )
    parser.add_argument("--version", required=True, help="of the data set, such as 1.0.0")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="of the table (default: csv)")
    _add_inference(parser)


def _add_inference(parser: argparse.ArgumentParser) -> None:
    for option in ("device", "engine", "ray-address"):
        parser.add_argument(f"--{option}", help=f"as for --bbnli-{option}")
    parser.add_argument("--store", metavar="FILE", type=Path, help="keeps predictions (default: in WORK)")


def run_mask(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend.steps import do_mask

    strategies = [name.strip() for name in arguments.strategies.split(",") if name.strip()]
    for name in strategies:
        if name not in STRATEGIES:
            raise OptionError(f"--strategies={arguments.strategies}: there is no {name!r}. {suggest(name, STRATEGIES)}")
    if not strategies:
        raise OptionError(f"--strategies={arguments.strategies!r}: names none. Known: {', '.join(STRATEGIES)}.")
    done = do_mask(_workspace(arguments), arguments.data, strategies, arguments.templates, is_again=arguments.again)
    return _tell(arguments, *done, ("hypotheses", "hypothesis templates"), ("masked_templates", "masked templates"))


def run_expand(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend.steps import do_expand

    n_premises: int | None = arguments.premises
    if n_premises is not None and n_premises < 1:
        raise OptionError(f"--premises={n_premises}: expected a number from 1.")
    done = do_expand(_workspace(arguments), n_premises, is_again=arguments.again)
    named = ("masked_samples", "masked samples"), ("masked_hypotheses", "distinct masked hypotheses")
    return _tell(arguments, *done, *named)


def run_fill(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend.steps import do_fill

    if arguments.top < 1:
        raise OptionError(f"--top={arguments.top}: expected a number from 1.")
    done = do_fill(
        _workspace(arguments),
        arguments.model,
        arguments.top,
        device=arguments.device or "auto",
        progress=_progress(),
        say=lambda line: print(line, flush=True),
        is_again=arguments.again,
    )
    named = ("filled_hypotheses", "filled hypotheses"), ("filled_samples", "filled samples")
    return _tell(arguments, *done, *named)


def run_filter(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend.steps import do_filter

    workspace = _workspace(arguments)
    manifest, is_new = do_filter(
        workspace,
        arguments.model,
        arguments.held_out,
        _inference(arguments, workspace),
        progress=_progress(),
        say=lambda line: print(line, flush=True),
        is_again=arguments.again,
    )
    for name in manifest.settings["models"]:
        accuracy = manifest.notes["control_accuracy"][name]
        skill = "no controls" if accuracy is None else f"{accuracy:.3f} of the controls right"
        print(f"{name}: found {manifest.total(f'found_by {name}'):,}; {skill}")
    named = ("candidates", "distinct samples"), ("kept_samples", "kept"), ("kept_hypotheses", "hypotheses to judge")
    return _tell(arguments, manifest, is_new, *named)


def run_counterfactual(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend.steps import do_counterfactual

    done = do_counterfactual(_workspace(arguments), is_again=arguments.again)
    named = ("valid_samples", "valid samples"), ("pairs", "pairs"), ("same_pair", "found from both sides")
    return _tell(arguments, *done, *named, ("contradicting", "dropped: people's answers contradict each other"))


def run_release(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend.steps import do_release

    if not arguments.version.strip():
        raise OptionError("--version: is empty. Give the version of the data set, such as 1.0.0.")
    workspace = _workspace(arguments)
    done = do_release(
        workspace,
        arguments.version,
        arguments.format,
        _inference(arguments, workspace),
        progress=_progress(),
        is_again=arguments.again,
    )
    code = _tell(arguments, *done, ("pairs", "pairs"), ("samples", "samples"))
    new = arguments.work / FOLDER / NEW_DATASHEET
    if new.exists():
        print(f"{DATASHEET} was changed by people and stays; what is new is in {new}.")
    print(f"Audit it: pytest --model=MODEL --bbnli-data={arguments.work / FOLDER}")
    return code


def run_status(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.extend.workspace import STEPS

    workspace = _workspace(arguments)
    for name in STEPS:
        manifest = workspace.manifest(name)
        if manifest is None:
            print(f"{name}: not done")
            continue
        totals = dict.fromkeys(key for found in manifest.counts.values() for key in found)
        shown = ", ".join(f"{key.replace('_', ' ')} {manifest.total(key):,}" for key in totals)
        print(f"{name}: {shown} ({manifest.seconds:g} s)")
    return 0


def _workspace(arguments: argparse.Namespace) -> "Workspace":
    from bbnli_audit.workbench.extend.workspace import Workspace

    return Workspace(arguments.work)


def _inference(arguments: argparse.Namespace, workspace: "Workspace") -> "Inference":
    from bbnli_audit.models.inference.opening import read_inference

    return read_inference(
        device=arguments.device,
        engine=arguments.engine,
        ray_address=arguments.ray_address,
        store=arguments.store or workspace.store,
    )


def _progress() -> "Progress":
    from bbnli_audit.models.inference.progress import Shown

    def write_line(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def move(line: str) -> None:
        print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)

    return Shown(write_line=write_line, move=move if sys.stderr.isatty() else None)


def _tell(arguments: argparse.Namespace, manifest: "Manifest", is_new: bool, *named: Sequence[str]) -> int:
    counts = ", ".join(f"{manifest.total(name):,} {title}" for name, title in named)
    print(f"{manifest.step}: {counts}.{'' if is_new else ' (Done before with the same inputs; nothing was done.)'}")
    for file in manifest.edited:
        print(f"{arguments.work / file} was changed by hand since it was written; the manifest says so.")
    return 0
