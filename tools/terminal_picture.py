"""Makes the picture in the README: audits a model with a planted fault and draws what the terminal shows.

python tools/terminal_picture.py docs/images/terminal.svg
"""

import argparse
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 172
MODEL = "planted:pro-20-of-hypotheses"


def run_audit() -> str:
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
    command = [sys.executable, "-m", "pytest", f"--model={MODEL}", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout


def choose_lines(output: str) -> list[str]:
    """Keep the header, the first failure in full, the table and the last line."""
    lines = output.splitlines()
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
    failures = [n for n, line in enumerate(plain) if line.startswith("____")]
    table = next(n for n, line in enumerate(plain) if "bias audit of" in line)
    end = next(n for n, line in enumerate(plain) if "short test summary" in line)
    start = list(zip(lines, plain, strict=True))[: failures[0]]
    header = [line for line, text in start if text.startswith(("bbnli:", "collected"))]
    first = lines[failures[0] : failures[1]] if len(failures) > 1 else lines[failures[0] : table]
    return [*header, "", *first, "", *lines[table:end], lines[-1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    picture: Path = parser.parse_args().picture
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(f"$ pytest --model={MODEL}", style="bold")
    for line in choose_lines(run_audit()):
        console.print(Text.from_ansi(line))
    picture.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(picture), title=f"pytest --model={MODEL}")


if __name__ == "__main__":
    main()
