"""Print a script that completes commands, options and files in a shell.

The command installs nothing: load the script in a file that your shell reads when it starts.

Examples:
    eval "$(bbnli-audit completion bash)"        # in ~/.bashrc
    bbnli-audit completion zsh > ~/.zsh/_bbnli-audit   # a folder of $fpath
    bbnli-audit completion tcsh >> ~/.tcshrc
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bbnli_audit.frontends.cli.arguments import add_documented, write_out

SHELLS = ("bash", "zsh", "tcsh")


def add_parser(commands: Any) -> None:
    add_documented(commands, "completion", run, __doc__).add_argument("shell", choices=SHELLS, help="the shell")


def run(arguments: argparse.Namespace) -> int:
    import shtab

    from bbnli_audit.frontends.cli.main import make_parser

    parser = make_parser()
    for action in _actions(parser):
        if action.type is Path:
            is_folder = action.metavar == "DIR"
            action.complete = shtab.DIRECTORY if is_folder else shtab.FILE  # type: ignore[attr-defined]  # for shtab
    write_out(shtab.complete(parser, arguments.shell).rstrip("\n") + "\n")
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of all commands below it."""
    for action in parser._actions:  # argparse has no public way to list them; shtab also reads this attribute
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
