"""`bbnli-audit schema`: the JSON Schemas of the files people write and read."""

import argparse
from importlib import import_module
from typing import Any

from bbnli_audit.frontends.cli.arguments import add_command, write_json

SCHEMAS = {"thresholds": "bbnli_audit.audit.gate.thresholds_schema", "result": "bbnli_audit.core.results.schema"}


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "schema",
        run,
        what="print the JSON Schema of thresholds.yaml or result.json",
        description="Prints a JSON Schema: of thresholds.yaml for editors, of result.json for programs that read it.",
        examples=("bbnli-audit schema > thresholds.schema.json", "bbnli-audit schema result > result.schema.json"),
    )
    parser.add_argument("of", nargs="?", choices=list(SCHEMAS), default="thresholds", help="default: thresholds")


def run(arguments: argparse.Namespace) -> int:
    write_json(import_module(SCHEMAS[arguments.of]).json_schema())
    return 0
