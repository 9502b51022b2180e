"""Code for all commands: how they are declared, and how they write to files and to standard output."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.files import replacing
from bbnli_audit.core.values import TEMPLATE_PAIRINGS, Pairing
from bbnli_audit.frontends.cli.streams import PrintableStream, telling_output

if TYPE_CHECKING:
    from bbnli_audit.core.results.rows import ModelInfo

WRONG_USE = 4  # the exit code of pytest for a wrong option
INTERRUPTED = 130  # what shells expect after Ctrl-C
PIPE_CLOSED = 141  # what shells expect if the reader of the output ends early; not 0, because output was lost
Run = Callable[[argparse.Namespace], int]  # returns the exit code


class Parser(argparse.ArgumentParser):
    """A parser that reports errors as the rest of the program does."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(WRONG_USE, f"ERROR: {message}\nSee: {self.prog} --help\n")


def add_command(
    commands: Any, name: str, run: Run | None, *, what: str, description: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """Declare a command. `what` is its line in the list of commands. `run` is None if the command has subcommands."""
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


def add_documented(commands: Any, name: str, run: Run | None, doc: str | None) -> argparse.ArgumentParser:
    """Declare a command whose help is `doc`, the docstring of its module or function."""
    description, _, examples = (doc or "").partition("\nExamples:\n")
    what = description.partition("\n")[0].rstrip(".")
    lines = [line.strip() for line in examples.strip().splitlines()]
    return add_command(commands, name, run, what=what[:1].lower() + what[1:], description=description, examples=lines)


def add_thresholds(add: Callable[..., object], what: str) -> None:
    path = Path("thresholds.yaml")
    add("--thresholds", metavar="FILE", type=Path, default=path, help=f"{what} (default: {path})")


def add_data(add: Callable[..., object]) -> None:
    add("--data", metavar="DIR", type=Path, help="BBNLI data, for other names (default: our own)")


def add_pairing(add: Callable[..., object]) -> None:
    add("--pairing", choices=[pairing.value for pairing in TEMPLATE_PAIRINGS], help="as for --bbnli-pairing")


def read_pairing(arguments: argparse.Namespace) -> Pairing | None:
    return None if arguments.pairing is None else Pairing(arguments.pairing)


def share(text: str) -> float:
    """Parse a share: a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1, such as 0.03.")
    return value


def require_positive(arguments: argparse.Namespace, option: str) -> None:
    """Refuse a value below 1 for the named option."""
    value = getattr(arguments, option)
    if value is not None and value < 1:
        raise OptionError(f"--{option}={value}: expected a number from 1.")


def tell_model(model: "ModelInfo") -> str:
    """Return the name of a model with the beginning of its fingerprint."""
    return f"{model.name} (fingerprint {model.fingerprint[:12]})"


def write_file(path: Path, text: str, name: str, state: str = "Nothing was changed") -> None:
    """Write a file whole or not at all. If writing fails, the message calls the file `name` and ends with `state`."""
    try:
        with replacing(path) as out:
            out.write(text)
    except OSError as exc:
        raise OptionError(f"{name}: cannot be written: {exc.strerror}. {state}.") from exc


def write_out(text: str) -> None:
    """Write output that may be redirected to a file. Its bytes are the same on every terminal and system."""
    stream: Any = sys.stdout
    if isinstance(stream, PrintableStream):
        stream = stream.document
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    with telling_output():
        stream.write(text)


def as_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_json(document: Any) -> None:
    write_out(as_json(document))
