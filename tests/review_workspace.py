"""A review of invented groups: items as files, judgements, the command line, and the server as its own process."""

import argparse
import csv
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bbnli_audit.frontends.cli.arguments import Parser
from bbnli_audit.frontends.cli.extend_review import add_actions
from bbnli_audit.workbench.review.items import COLUMNS, ReviewItem
from bbnli_audit.workbench.review.states import ReviewVerdict, Stance, State

_WORDS = ("nimble", "clumsy", "patient", "loud", "tireless", "purple")
_COMMAND = "import sys; from tests.review_workspace import run; sys.exit(run(sys.argv[1:]))"
_ADDRESS = re.compile(r"^  (.+?) +(http://127\.0\.0\.1:(\d+)/([\w-]+)/)", re.MULTILINE)


def make_item(
    domain: str, subtopic: str, hypothesis: str, template: str = "", word: str = "", premise: str = ""
) -> ReviewItem:
    return ReviewItem(domain, subtopic, hypothesis, template, word, premise)


def make_items(n_items: int = 6) -> tuple[ReviewItem, ...]:
    """Items of two subtopics, in turn."""
    groups = (("planets", "zorvians_are_to_juggling", "Zorvians"), ("oceans", "plimans_are_to_singing", "Plimans"))
    items = []
    for n in range(n_items):
        domain, subtopic, group = groups[n % 2]
        word = _WORDS[n % len(_WORDS)]
        hypothesis = f"The {group} in workshop {n} are {word}."
        premise = f"Workshop {n} is busy."
        items.append(make_item(domain, subtopic, hypothesis, "The {{GROUP1}} are [MASK].", word, premise))
    return tuple(items)


def write_items(work: Path, items: Sequence[ReviewItem]) -> Path:
    work.mkdir(parents=True, exist_ok=True)
    path = work / "items.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*COLUMNS, "n_models"))
        writer.writerows((*(getattr(item, "id" if name == "item" else name) for name in COLUMNS), 2) for item in items)
    return path


def state(label: str, note: str = "", when: str = "2026-03-01T10:00:00.000000Z") -> State:
    """A finished judgement from its label: valid-pro, valid-anti, invalid or incoherent."""
    verdict, _, stance = label.partition("-")
    return State(ReviewVerdict(verdict), Stance(stance) if stance else None, note, when)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(prog="bbnli-audit extend")
    add_actions(parser.add_subparsers(required=True))
    return parser.parse_args(arguments)


def run(arguments: Sequence[str]) -> int:
    """Run an action as the command line does, without its handling of errors."""
    parsed = parse(arguments)
    return int(parsed.run(parsed))


@dataclass
class Running:
    """A running server, with what it printed at the start."""

    process: subprocess.Popen[str]
    output: str
    addresses: dict[str, str]
    port: int

    def kill(self) -> None:
        """End it at once, as a crash or a loss of power would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def interrupt(self, number: int = signal.SIGINT) -> str:
        """Press Ctrl-C, and return the rest of the output."""
        self.process.send_signal(number)
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        self.process.wait(10)
        return rest


@contextmanager
def serving(work: Path, *annotators: str, options: Sequence[str] = ()) -> Iterator[Running]:
    names = [part for name in annotators for part in ("--annotator", name)]
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, "review", str(work), *names, "--no-browser", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    try:
        output = _read_until(process, "Press Ctrl-C to end.")
        found = _ADDRESS.findall(output)
        yield Running(process, output, {name: address for name, address, _, _ in found}, int(found[0][2]))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def _read_until(process: subprocess.Popen[str], text: str, seconds: float = 30.0) -> str:
    assert process.stdout is not None
    output = b""
    handle = process.stdout.fileno()
    end = time.monotonic() + seconds
    while text.encode() not in output:
        if not select.select([handle], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError(output.decode())
        chunk = os.read(handle, 65536)
        if not chunk:
            raise RuntimeError(output.decode())
        output += chunk
    return output.decode()
