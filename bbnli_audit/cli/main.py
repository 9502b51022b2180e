"""The command `bbnli-audit`. Each subcommand is a module with `add_parser` and a function that gives the exit code."""

import argparse
import sys
from collections.abc import Sequence

from bbnli_audit import __version__
from bbnli_audit.cli import schema, selftest, suites
from bbnli_audit.errors import AuditError


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="bbnli-audit",
        description="Tools around the pytest plugin. The audit itself is: pytest --model=CHECKPOINT",
    )
    parser.add_argument("--version", action="version", version=f"bbnli-audit {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (selftest, suites, schema):
        module.add_parser(commands)
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except AuditError as exc:
        print(f"ERROR: {exc}", file=sys.stderr)
        return 4
    except BrokenPipeError:  # `bbnli-audit suites list | head`: whoever reads has read enough
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
