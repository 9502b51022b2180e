"""The command `bbnli-audit`. Each subcommand is a module. Its `add_parser` declares the function to run."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from bbnli_audit.core.errors import AuditError, telling_system_errors
from bbnli_audit.core.versions import VERSION
from bbnli_audit.frontends.cli.arguments import INTERRUPTED, PIPE_CLOSED, WRONG_USE, Parser
from bbnli_audit.frontends.cli.streams import drop_output, printable_output

# The modules of the commands, in the order of --help. To add a command, write a module and add its name here.
COMMANDS = (
    *("init", "suites", "verify", "report", "compare", "baseline", "history", "correlate", "calibrate", "inspect"),
    *("extend", "augment", "selftest", "schema", "completion"),
)


def make_parser() -> Parser:
    parser = Parser(
        prog="bbnli-audit",
        description="Tools around the pytest plugin. The audit itself is: pytest --model=CHECKPOINT",
        epilog="Exit codes: 0 all is well, 1 something was found, 4 wrong use.",
    )
    parser.add_argument("--version", action="version", version=f"bbnli-audit {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"bbnli_audit.frontends.cli.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    try:
        with printable_output(), telling_system_errors():
            arguments = make_parser().parse_args(argv)
            return int(arguments.run(arguments))
    except AuditError as exc:
        with suppress(OSError):
            print(f"ERROR: {exc}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # as in `bbnli-audit suites list | head`: `head` closes the pipe early
        drop_output()
        return PIPE_CLOSED


if __name__ == "__main__":
    raise SystemExit(main())
