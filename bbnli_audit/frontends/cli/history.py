"""Show several results as a history: a page, a badge and a comment.

Writes history.html, comment.md for a pull request, badge.svg, and flips.csv with all pairs that changed. history.html
shows every measure of every suite, domain and subtopic over releases, with intervals, limits and verdicts. The page
also shows which pairs changed when, and several models side by side. No model is needed. Results of earlier versions of
bbnli-audit can be read too.

The results are ordered by date if all have a date; otherwise they stay in the order given. All results count as
releases of one model, whatever their names. The exceptions are --separate, and two results with the same name but
different fingerprints. In both cases, each name stands for a model of its own, with one or more releases.

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
