"""Print the JSON Schema of thresholds.yaml or result.json.

Editors can check thresholds.yaml with the first schema. Programs that read result.json can use the second.

Examples:
    bbnli-audit schema > thresholds.schema.json
    bbnli-audit schema result > result.schema.json
"""

import argparse
from importlib import import_module
from typing import Any

from bbnli_audit.frontends.cli.arguments import add_documented, write_json

SCHEMAS = {"thresholds": "bbnli_audit.audit.gate.thresholds_schema", "result": "bbnli_audit.core.results.file"}


def add_parser(commands: Any) -> None:
    parser = add_documented(commands, "schema", run, __doc__)
    parser.add_argument("of", nargs="?", choices=list(SCHEMAS), default="thresholds", help="default: thresholds")


def run(arguments: argparse.Namespace) -> int:
    write_json(import_module(SCHEMAS[arguments.of]).json_schema())
    return 0
