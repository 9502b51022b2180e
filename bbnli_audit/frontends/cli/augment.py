"""Write group-swapped copies of NLI training data.

Writes the rows of IN to OUT. The lexicon lists terms of two groups. After each row with such a term, writes a copy in
which the terms of the two groups are exchanged. Labels and other columns stay as they are. A new column 'augmented'
marks the copies. The end of a file's name gives its format: .csv, .jsonl, .csv.gz, .jsonl.gz, .parquet.

Examples:
    bbnli-audit augment train.jsonl augmented.jsonl
    bbnli-audit augment train.parquet augmented.parquet --only-occupations --report augmented.report.json
    bbnli-audit augment snli.csv swapped.csv --swapped-only --premise-column sentence1 --hypothesis-column sentence2
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.files import hash_file, refuse_existing
from bbnli_audit.frontends.cli.arguments import add_documented, as_json, write_file, write_json

_SECONDS_BETWEEN_MOVES = 0.5


def add_parser(commands: Any) -> None:
    add = add_documented(commands, "augment", run, __doc__).add_argument
    add("input", metavar="IN", type=Path, help="the training data")
    add("output", metavar="OUT", type=Path, help="where to write; a file that is there already is refused")
    add("--only-occupations", action="store_true", help="copy only rows with an occupation of our suite")
    add("--occupations", metavar="FILE", type=Path, help="copy only rows with an occupation of this list")
    add("--swapped-only", action="store_true", help="write only the copies, not the rows themselves")
    add("--lexicon", metavar="FILE", type=Path, help="the terms to exchange (default: ours, for gender)")
    add("--premise-column", metavar="NAME", default="premise", help="default: premise")
    add("--hypothesis-column", metavar="NAME", default="hypothesis", help="default: hypothesis")
    add("--report", metavar="FILE", type=Path, help="write a report as JSON (docs/augment.md)")
    add("--show", metavar="N", type=int, default=0, help="print the texts of the first N copies")
    add("--json", action="store_true", help="print the report as JSON instead of a summary")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.workbench.augment.lexicon import read_lexicon
    from bbnli_audit.workbench.augment.reading import TextColumns
    from bbnli_audit.workbench.augment.report import make_report, tell
    from bbnli_audit.workbench.augment.run import Augmenter, OccupationFinder, read_names
    from bbnli_audit.workbench.augment.swap import Swapper

    _check(arguments)
    finder = None
    if arguments.only_occupations or arguments.occupations is not None:
        finder = OccupationFinder(read_names(arguments.occupations))
    lexicon = read_lexicon(arguments.lexicon)
    augmenter = Augmenter(Swapper(lexicon), finder, has_originals=not arguments.swapped_only)
    columns = TextColumns(arguments.premise_column, arguments.hypothesis_column)
    with _progress() as move:
        tally, examples = augmenter.run(arguments.input, arguments.output, columns, arguments.show, move)
    settings = {
        "swapped_only": arguments.swapped_only,
        "occupations": None if finder is None else list(finder.names),
        "premise_column": columns.premise,
        "hypothesis_column": columns.hypothesis,
        "input": {"name": arguments.input.name, "sha256": hash_file(arguments.input)},
        "output": {"name": arguments.output.name, "sha256": hash_file(arguments.output)},
    }
    report = make_report(tally, lexicon, settings)
    if arguments.report is not None:
        write_file(arguments.report, as_json(report), f"--report={arguments.report}", "OUT was written")
    if arguments.json:
        write_json({**report, **({"examples": [one._asdict() for one in examples]} if arguments.show else {})})
        return 0
    print(*tell(report), sep="\n")
    for number, example in enumerate(examples, 1):
        print(f"\ncopy {number}")
        for name, before, after in zip(("premise", "hypothesis"), example.before, example.after, strict=True):
            print(f"  {name:<11}{before}\n{'':<13}{after}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    from bbnli_audit.workbench.augment.run import check_paths, is_same_file

    if arguments.show < 0:
        raise OptionError(f"--show={arguments.show}: expected a number of copies, such as 5.")
    check_paths(arguments.input, arguments.output)
    report: Path | None = arguments.report
    if report is None:
        return
    if report.is_dir() or not report.parent.is_dir():
        raise OptionError(f"--report={report}: is a folder, or its folder does not exist. Name a file.")
    for other in (arguments.input, arguments.output, arguments.lexicon, arguments.occupations):
        if other is not None and is_same_file(report, other):
            raise OptionError(f"--report={report}: is the same file as {other}. Use another name.")
    refuse_existing(report, f"--report={report}")


@contextmanager
def _progress() -> Iterator[Callable[[int, float], None]]:
    """Show progress on one line that is overwritten, on a terminal only."""
    is_shown = sys.stderr.isatty()
    started = last = time.monotonic()

    def move(n_rows: int, share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if is_shown and now - last >= _SECONDS_BETWEEN_MOVES:
            last = now
            rate = n_rows / (now - started)
            print(f"\raugment: {share:4.0%}  {n_rows:,} rows, {rate:,.0f}/s ", end="", file=sys.stderr, flush=True)

    try:
        yield move
    finally:
        if last > started:
            print(file=sys.stderr)
