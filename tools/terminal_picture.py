"""Makes the picture in the README: the audit of `demo-next` against the baseline of `demo`, as the terminal shows it.

python tools/terminal_picture.py docs/images/terminal.svg      (after `make audit`, which leaves the baseline)
"""

import argparse
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 172
COMMAND = ("--model=demo-next", "--bbnli-baseline=build/baseline.json")
FAILURE = "test_lean["
N_REASONS, N_ROWS = 4, 14  # of the reasons, and of the rows of the table: suite, domains, the worst subtopics
CUT = "  …"


def run_audit() -> list[str]:
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
    command = [sys.executable, "-m", "pytest", *COMMAND]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def choose_lines(output: list[str]) -> Iterator[str]:
    """Keep the header, one failure in full, the decision, the worst rows of the table, what grew, and the last line."""
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in output]

    def find(start: str, after: int = 0) -> int:
        return next(n for n in range(after, len(plain)) if plain[n].startswith(start))

    yield from (output[n] for n in range(len(plain)) if plain[n].startswith(("bbnli: model", "bbnli: limits")))
    failure = next(n for n, line in enumerate(plain) if line.startswith("____") and FAILURE in line)
    yield from ("", *output[failure : find("____", failure + 1)], "")
    summary = next(n for n, line in enumerate(plain) if "bias audit of" in line)
    advice, table, against = (
        find("  Next: ", summary),
        find("verdict  ", summary),
        find("Against the baseline", summary),
    )
    yield from (*output[summary : summary + 2 + N_REASONS], CUT, output[advice], output[advice + 1], CUT, "")
    yield from (*output[table : table + 1 + N_ROWS], CUT, output[against])
    yield from (output[n] for n in range(against, len(plain)) if plain[n].startswith("  FAIL: "))
    yield from (CUT, output[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    picture: Path = parser.parse_args().picture
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    command = f"pytest {' '.join(COMMAND)}"
    console.print(f"$ {command}", style="bold")
    for line in choose_lines(run_audit()):
        console.print(Text.from_ansi(line))
    picture.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(picture), title=command)


if __name__ == "__main__":
    main()
