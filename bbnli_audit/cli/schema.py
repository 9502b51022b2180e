"""`bbnli-audit schema`: the JSON Schema of thresholds.yaml, for editors."""

import argparse
import json
from typing import Any


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("schema", help="print the JSON Schema of thresholds.yaml, for editors")
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    from bbnli_audit.thresholds_schema import json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0
