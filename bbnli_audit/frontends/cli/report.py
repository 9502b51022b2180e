"""`bbnli-audit report`: makes the pages of a report folder again from its result and its pairs."""

import argparse
from pathlib import Path
from typing import Any

from bbnli_audit.frontends.cli.arguments import add_command


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "report",
        run,
        what="make report.html, summary.md and model_card.md again from a report folder",
        description=(
            "Reads result.json and pairs.parquet (or pairs.csv) of a report folder and writes report.html, summary.md\n"
            "and model_card.md. The same version makes the same bytes; no model is needed."
        ),
        examples=("bbnli-audit report bias-report", "bbnli-audit report bias-report --output pages"),
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder that --bbnli-report wrote")
    parser.add_argument("--output", metavar="DIR", type=Path, help="where to write (default: the same folder)")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.core.results.file import read_result
    from bbnli_audit.reports.files import REPORTS, read_pairs, write_reports

    folder: Path = arguments.folder
    output: Path = arguments.output or folder
    result = read_result(folder)
    write_reports(result, read_pairs(result, folder), output)
    print(f"Written: {', '.join(str(output / name) for name in REPORTS)}")
    return 0
