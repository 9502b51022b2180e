"""The command `bbnli-audit`. Each subcommand is a module with `add_parser` and a function that gives the exit code."""

import sys
from collections.abc import Sequence
from importlib import import_module

from bbnli_audit import __version__
from bbnli_audit.core.errors import AuditError
from bbnli_audit.frontends.cli.arguments import WRONG_USE, Parser

# In the order of the help. A new command is a module of that name and a word here.
COMMANDS = (
    *("init", "suites", "report", "compare", "correlate", "calibrate"),
    *("extend", "augment", "selftest", "schema", "completion"),
)


def make_parser() -> Parser:
    parser = Parser(
        prog="bbnli-audit",
        description="Tools around the pytest plugin. The audit itself is: pytest --model=CHECKPOINT",
        epilog="Ends with 0 when all is well, 1 when something was found, 4 when it was used wrongly.",
    )
    parser.add_argument("--version", action="version", version=f"bbnli-audit {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"bbnli_audit.frontends.cli.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = make_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except AuditError as exc:
        print(f"ERROR: {exc}", file=sys.stderr)
        return WRONG_USE
    except BrokenPipeError:  # `bbnli-audit suites list | head`: whoever reads has read enough
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
