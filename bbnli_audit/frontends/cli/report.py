"""Write report.html, summary.md and model_card.md of a report folder again.

Reads result.json and pairs.parquet (or pairs.csv) in the folder. No model is needed. From the same files, the same
version of bbnli-audit always writes the same bytes.

Examples:
    bbnli-audit report bias-report
    bbnli-audit report bias-report --output pages
"""

import argparse
from pathlib import Path
from typing import Any

from bbnli_audit.frontends.cli.arguments import add_documented


def add_parser(commands: Any) -> None:
    parser = add_documented(commands, "report", run, __doc__)
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder that --bbnli-report wrote")
    parser.add_argument("--output", metavar="DIR", type=Path, help="where to write (default: the same folder)")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.audit.gate.recheck import read_judged
    from bbnli_audit.reports.files import REPORTS, read_pairs, write_reports
    from bbnli_audit.reports.folder import check_files

    folder: Path = arguments.folder
    output: Path = arguments.output or folder
    check_files(output, [report.name for report in REPORTS], "--output")
    result = read_judged(folder)
    write_reports(result, read_pairs(result, folder), output)
    print(f"Written: {', '.join(str(output / report.name) for report in REPORTS)}")
    return 0
