"""The command `bbnli-audit`. Each subcommand is a module with `add_parser`, which names the function to run."""

import sys
from collections.abc import Sequence
from importlib import import_module

from bbnli_audit.core.errors import AuditError
from bbnli_audit.core.versions import VERSION
from bbnli_audit.frontends.cli.arguments import WRONG_USE, Parser

# In the order of --help. A new command is a module of that name and a word here.
COMMANDS = (
    *("init", "suites", "report", "compare", "correlate", "calibrate", "inspect"),
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
    arguments = make_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except AuditError as exc:
        print(f"ERROR: {exc}", file=sys.stderr)
        return WRONG_USE
    except BrokenPipeError:  # `bbnli-audit suites list | head`: the reader has seen enough
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
