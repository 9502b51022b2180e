"""Show several results as a history: a page, a badge and a comment.

Writes history.html (every measure of every suite, domain and subtopic over releases, with intervals, limits and
verdicts; which pairs changed when; several models side by side), comment.md for a pull request, badge.svg, and
flips.csv with all pairs that changed. No model is needed, and results of earlier versions are read too.

The results are ordered by date if all have a date; otherwise they stay as given. If a name was given to two different
models, or with --separate, results with the same name are releases of one model. Otherwise all are of one model.

Examples:
    bbnli-audit history releases/*/result.json --output history
    bbnli-audit history main.json bias-report --output history
    bbnli-audit history bert.json roberta.json --separate --output side-by-side
"""

import argparse
from pathlib import Path
from typing import Any

from bbnli_audit.frontends.cli.arguments import add_documented


def add_parser(commands: Any) -> None:
    add = add_documented(commands, "history", run, __doc__).add_argument
    add("results", metavar="RESULT", type=Path, nargs="+", help="a result.json, or the report folder with it")
    add("--output", metavar="DIR", type=Path, required=True, help="where to write")
    add("--separate", action="store_true", help="results with different names are of different models")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.audit.gate.recheck import read_judged
    from bbnli_audit.core.results.file import NAME
    from bbnli_audit.reports.history.files import write_history
    from bbnli_audit.reports.history.releases import make_history

    paths = [path / NAME if path.is_dir() else path for path in arguments.results]
    found = [(path, read_judged(path)) for path in paths]
    written = write_history(make_history(found, is_separate=arguments.separate), arguments.output)
    print(f"Written: {', '.join(map(str, written))}")
    return 0
