"""What the commands share: how they are declared, and how they write to standard output."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

WRONG_USE = 4  # as pytest ends for a wrong option


class Parser(argparse.ArgumentParser):
    """A parser whose errors end as those of the rest of the program do."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(WRONG_USE, f"ERROR: {message}\nSee: {self.prog} --help\n")


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int] | None,
    *,
    what: str,
    description: str,
    examples: Sequence[str],
) -> argparse.ArgumentParser:
    """Declare a command, with a help text that has the same shape as all the others.

    Args:
        commands: What `add_subparsers` gave.
        name: The command.
        run: Gives the exit code; None when actions follow.
        what: One line, for the list of commands.
        description: For its own help.
        examples: Whole command lines.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=what,
        description=description,
        epilog="\n  ".join(("examples:", *examples)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def write_out(text: str) -> None:
    """Write what may become a file: the same bytes whatever the terminal and the system."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    sys.stdout.write(text)


def write_json(document: Any) -> None:
    write_out(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
