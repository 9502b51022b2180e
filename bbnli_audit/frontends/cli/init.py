"""`bbnli-audit init`: limits, audits and a CI job into a repository, beside what is there."""

import argparse
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bbnli_audit.core.errors import AuditError, OptionError
from bbnli_audit.frontends.cli.arguments import add_command

TEMPLATES = Path(__file__).parent / "templates"
THRESHOLDS = "thresholds.yaml"

# Where a file goes -> the template it is made from.
FILES = {THRESHOLDS: "thresholds.yaml", "audits/test_bias.py": "test_bias.py.txt"}
CI_FILES = {
    "github": {".github/workflows/bias-audit.yml": "github.yml"},
    "gitlab": {".gitlab-ci.bias-audit.yml": "gitlab.yml"},
    "none": {},
}


@dataclass(frozen=True, slots=True)
class PlannedFile:
    name: str
    text: str
    is_there: bool


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "init",
        run,
        what="write limits, audits and a CI job into a repository",
        description="Writes thresholds.yaml, audits/test_bias.py and a CI job. A file that is there is kept as it is.",
        examples=("bbnli-audit init", "bbnli-audit init --dry-run", "bbnli-audit init path/to/repository --ci gitlab"),
    )
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="the root of the repository (default: .)"
    )
    parser.add_argument("--ci", choices=list(CI_FILES), default="github", help="which CI job (default: github)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")


def run(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    try:
        planned = plan_files(folder, arguments.ci)
    except OSError as exc:
        raise OptionError(f"{folder}: cannot be looked into: {exc.strerror}. Nothing was written.") from exc
    if not arguments.dry_run:
        write_files(folder, [file for file in planned if not file.is_there])
    done = "would write" if arguments.dry_run else "wrote"
    for file in planned:
        print(f"{'kept' if file.is_there else done:<12}{file.name}")
    for note in _notes(folder, planned):
        print(f"\nNote: {note}")
    if not arguments.dry_run:
        _print_next_steps(folder, arguments.ci)
    return 0


def plan_files(folder: Path, ci: str) -> list[PlannedFile]:
    """Look at every place before anything is written.

    Raises:
        OptionError: when something is in the way.
    """
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder}: is a file. Give the folder of a repository.")
    planned = []
    for name, template in {**FILES, **CI_FILES[ci]}.items():
        _check_place(folder, name)
        text = (TEMPLATES / template).read_text(encoding="utf-8")
        planned.append(PlannedFile(name, text, (folder / name).exists()))
    return planned


def write_files(folder: Path, files: list[PlannedFile]) -> None:
    """Write all of the files, or none."""
    made: list[Path] = []
    path = folder
    try:
        for file in files:
            path = folder / file.name
            _make_folders(path.parent, made)
            with path.open("x", encoding="utf-8", newline="\n") as out:
                made.append(path)
                out.write(file.text)
    except BaseException as exc:
        for done in reversed(made):
            with suppress(OSError):  # a folder that somebody else has used meanwhile stays
                done.rmdir() if done.is_dir() else done.unlink()
        if isinstance(exc, OSError):
            raise OptionError(f"{path}: cannot be written: {exc.strerror}. Nothing was written.") from exc
        raise


def _make_folders(folder: Path, made: list[Path]) -> None:
    if not folder.is_dir():
        _make_folders(folder.parent, made)
        folder.mkdir()
        made.append(folder)


def _check_place(folder: Path, name: str) -> None:
    for part in reversed(PurePosixPath(name).parents[:-1]):
        parent = folder / part
        if parent.is_symlink():
            target = parent.readlink()
            raise OptionError(
                f"{parent}: is a link to {target}, so {name} would be written there, outside of its place. Nothing was "
                "written. Replace the link by a folder, or run this where it leads to."
            )
        if parent.exists() and not parent.is_dir():
            raise OptionError(
                f"{parent}: is a file, and {name} needs a folder of that name. Nothing was written. Move the file away."
            )
    path = folder / name
    if path.is_dir():
        raise OptionError(f"{path}: is a folder, and a file of that name is needed. Nothing was written. Move it away.")
    if path.is_symlink() and not path.exists():
        raise OptionError(
            f"{path}: is a link to {path.readlink()}, which does not exist. Nothing was written. Mend or remove the "
            "link."
        )


def _notes(folder: Path, planned: list[PlannedFile]) -> list[str]:
    """Say what may surprise in the files that were there and in the place itself."""
    from bbnli_audit.audit.gate.thresholds import read_thresholds

    notes = []
    if any(file.name == THRESHOLDS and file.is_there for file in planned):
        try:
            read_thresholds(folder / THRESHOLDS)
        except AuditError as exc:
            notes.append(
                f"the {THRESHOLDS} that was there does not hold limits of an audit:\n{exc}\n"
                "Mend it, or write the limits into another file and name it with --bbnli-thresholds=FILE."
            )
    here = folder.resolve()
    if not (here / ".git").exists():
        root = next((parent for parent in here.parents if (parent / ".git").exists()), None)
        if root is not None:
            notes.append(
                f"{here} lies inside the repository {root}. CI looks for jobs at its root, and pytest may look for "
                f"{THRESHOLDS} there too: move these files there, unless this is what you want."
            )
    return notes


def _print_next_steps(folder: Path, ci: str) -> None:
    print("\nNext:")
    if folder.resolve() != Path.cwd():
        print(f"  cd {folder}")
    print("  pytest audits --model=demo         # the small checkpoint inside the package; it is meant to fail")
    print("  pytest audits --model=CHECKPOINT   # yours: a folder, or owner/name on the hub")
    if ci == "gitlab":
        print("In .gitlab-ci.yml, add {local: .gitlab-ci.bias-audit.yml} under include:.")
    if ci != "none":
        print(f"In {next(iter(CI_FILES[ci]))}, set MODEL to the model you release.")
