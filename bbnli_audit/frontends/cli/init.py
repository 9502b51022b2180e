"""Write limits, audits and a CI job into a repository.

Writes thresholds.yaml, audits/test_bias.py and a CI job, with the limits and tests that the chosen suites need.
Existing files stay as they are.

Examples:
    bbnli-audit init
    bbnli-audit init --suite bbnli,occupations,winoqueer
    bbnli-audit init --dry-run
    bbnli-audit init path/to/repository --ci gitlab
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from bbnli_audit.audit.extensions import Extensions, using
from bbnli_audit.core.errors import AuditError, OptionError
from bbnli_audit.frontends.cli.arguments import add_documented
from bbnli_audit.frontends.cli.init_files import AUDITS, CI_FILES, THRESHOLDS, Chosen, is_ours
from bbnli_audit.frontends.cli.projects import find_extensions


def add_parser(commands: Any) -> None:
    add = add_documented(commands, "init", run, __doc__).add_argument
    add("folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="the root of the repository (default: .)")
    add("--suite", metavar="NAMES", help="what to audit, as for --bbnli-suite (default: bbnli)")
    add("--ci", choices=list(CI_FILES), default="github", help="which CI job (default: github)")
    add("--dry-run", action="store_true", help="say what would be written, and write nothing")


def run(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    extensions = Extensions() if is_ours(arguments.suite) else find_extensions()
    chosen = Chosen(arguments.suite, extensions.suites)
    try:
        planned = plan_files(folder, arguments.ci)
    except OSError as exc:
        raise OptionError(f"{folder}: cannot be read: {exc.strerror}. Nothing was written.") from exc
    if not arguments.dry_run:
        with using(extensions):
            write_files(folder, {name: chosen.fill(name) for name, is_there in planned.items() if not is_there})
    done = "would write" if arguments.dry_run else "wrote"
    for name, is_there in planned.items():
        print(f"{'kept' if is_there else done:<12}{name}")
    for note in _notes(folder, has_thresholds=planned[THRESHOLDS]):
        print(f"\nNote: {note}")
    if not arguments.dry_run:
        _print_next_steps(folder, arguments.ci, chosen)
    return 0


def plan_files(folder: Path, ci: str) -> dict[str, bool]:
    """Return the files to write, and whether each already exists. Check all paths before anything is written."""
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder}: is a file. Name the folder of a repository.")
    names = (THRESHOLDS, AUDITS, *CI_FILES[ci])
    for name in names:
        _check_place(folder, name)
    return {name: (folder / name).exists() for name in names}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write all of the files, or none."""
    made: list[Path] = []
    path = folder
    try:
        for name, text in files.items():
            path = folder / name
            for parent in reversed(path.parents):
                if not parent.is_dir():
                    parent.mkdir()
                    made.append(parent)
            with path.open("x", encoding="utf-8", newline="\n") as out:
                made.append(path)
                out.write(text)
    except BaseException as exc:
        for done in reversed(made):
            with suppress(OSError):  # a folder stays if somebody else has put a file there meanwhile
                done.rmdir() if done.is_dir() else done.unlink()
        if isinstance(exc, OSError):
            raise OptionError(f"{path}: cannot be written: {exc.strerror}. Nothing was written.") from exc
        raise


def _check_place(folder: Path, name: str) -> None:
    for part in reversed(PurePosixPath(name).parents[:-1]):
        parent = folder / part
        if parent.is_symlink():
            problem = f"is a link to {parent.readlink()}, so {name} would be written into another folder"
            advice = "Replace the link with a folder, or run this command in the folder that it leads to."
            raise OptionError(f"{parent}: {problem}. Nothing was written. {advice}")
        if parent.exists() and not parent.is_dir():
            problem = f"is a file, and {name} needs a folder of that name"
            raise OptionError(f"{parent}: {problem}. Nothing was written. Move the file away.")
    path = folder / name
    if path.is_dir():
        raise OptionError(f"{path}: is a folder, and a file of that name is needed. Nothing was written. Move it away.")
    if path.is_symlink() and not path.exists():
        problem = f"is a link to {path.readlink()}, which does not exist"
        raise OptionError(f"{path}: {problem}. Nothing was written. Fix or remove the link.")


def _notes(folder: Path, *, has_thresholds: bool) -> Iterator[str]:
    """Warn if a threshold file was there but cannot be used. Also warn if the folder is not a repository's root."""
    from bbnli_audit.audit.gate.thresholds import read_thresholds

    if has_thresholds:
        try:
            read_thresholds(folder / THRESHOLDS)
        except AuditError as exc:
            yield (
                f"the {THRESHOLDS} that was there does not hold limits of an audit:\n{exc}\n"
                "Fix it, or write the limits into another file and name it with --bbnli-thresholds=FILE."
            )
    here = folder.resolve()
    root = next((parent for parent in (here, *here.parents) if (parent / ".git").exists()), here)
    if root != here:
        yield (
            f"{here} lies inside the repository {root}. CI looks for jobs at its root, and pytest may look for "
            f"{THRESHOLDS} there too: move these files there, unless this is what you want."
        )


def _print_next_steps(folder: Path, ci: str, chosen: Chosen) -> None:
    print("\nNext:")
    if folder.resolve() != Path.cwd():
        print(f"  cd {folder}")
    more = "".join(f" {option}" for option in chosen.options)
    print(f"  pytest audits --model=demo{more}         # the small checkpoint inside the package")
    print(f"  pytest audits --model=CHECKPOINT{more}   # yours: a folder, or owner/name on the hub")
    if ci == "gitlab":
        print("In .gitlab-ci.yml, add {local: .gitlab-ci.bias-audit.yml} under include:.")
    for name in CI_FILES[ci]:
        told = "MODEL to the model you release" + (", and DATA to the data of the suite" if chosen.needs_data else "")
        print(f"In {name}, set {told}.")
