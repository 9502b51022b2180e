"""Run many audits on one store while things go wrong, and compare every result with that of a quiet run.

    python -m tools.soak --minutes 30 --seed 0

Each audit is of a random kind and meets a random trouble: a process that is killed, a disk that fills and empties, a
server that fails, or none. One that ends as the quiet run did (exit code and tally) must have the same result, byte for
byte. One that does not must say so by its exit code, must not end in a traceback, and the subtopics that it did measure
must have the outcomes of the quiet run. At the end every kind is audited once more on the store that has seen it all.

As root, every second audit runs as an ordinary user, and the disk is a small file system of its own. Without root the
size of files is limited instead.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.loopback_server import Loopback, loopback
from tools.soak.cases import CASES, NOBODY, RESULT, STORE, UNFINISHED, Case, Project
from tools.soak.troubles import end_all, failing, filling, kill_one, limit_files, small_disk

if TYPE_CHECKING:
    from collections.abc import Sequence

TROUBLES = ("none", "kill", "disk", "server")
LONGEST = 600.0  # seconds of one audit


class Soak:
    """The audits of a soak, and what became of them."""

    def __init__(self, project: Project, server: Loopback, disk: Path, random: Random, *, is_mounted: bool) -> None:
        self.project, self.server, self.disk, self.random = project, server, disk, random
        self.is_mounted = is_mounted
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []  # what must not happen
        self._quiet: dict[str, tuple[int, str, bytes]] = {}  # exit code, tally, result
        self._took: dict[str, float] = {}
        self._n = 0

    def keep_quiet_runs(self, kinds: Sequence[str]) -> list[Case]:
        """Audit each kind without trouble, on a store of its own; leave out kinds that cannot run here."""
        cases = [each for each in CASES if each.is_possible and each.name in kinds]
        for case in cases:
            start = time.monotonic()
            store = self.project.folder / f"quiet-{len(self._quiet)}.sqlite"
            code, result, log = self._audit(case, store, "none", None)
            if result is None:
                raise SystemExit(f"The quiet run of {case.name!r} left no result:\n{log[-2000:]}")
            self._quiet[case.name], self._took[case.name] = (code, _tally(log), result), time.monotonic() - start
            print(f"quiet: {case.name}, exit code {code}, {self._took[case.name]:.0f} s", flush=True)
        return cases

    def run_one(self, case: Case, trouble: str, user: int | None) -> None:
        """Audit once on the shared store, and note what became of it."""
        code, result, log = self._audit(case, self.disk / STORE, trouble, user)
        quiet_code, tally, quiet = self._quiet[case.name]
        name = f"{case.name}, {trouble}, {'root' if user is None and os.geteuid() == 0 else 'ordinary user'}"
        self.counts[f"audits: {name}"] += 1
        if (code, _tally(log)) == (quiet_code, tally):
            self.counts["ended as the quiet run"] += 1
            if result != quiet:
                self.faults.append(f"{name}: another result than the quiet run, with the same ending")
        else:
            self.counts["ended otherwise"] += 1
            if code == 0:
                self.faults.append(f"{name}: exit code 0, and another tally than the quiet run")
            if "Traceback (most recent call last)" in log and "INTERNALERROR" in log:
                self.faults.append(f"{name}: an internal error")
            if result is not None and not _is_part(result, quiet):
                self.faults.append(f"{name}: other outcomes than the quiet run")

    def _audit(self, case: Case, store: Path, trouble: str, user: int | None) -> tuple[int, bytes | None, str]:
        """Return exit code, result if one was left, and output."""
        self._n += 1
        report = self.project.folder / f"report-{self._n}"
        with ExitStack() as stack:
            if trouble == "server":
                stack.enter_context(failing(self.server, self.random))
            if trouble == "disk" and self.is_mounted:
                stack.enter_context(filling(self.disk, self.random))
            limit = limit_files if trouble == "disk" and not self.is_mounted else None
            process = self.project.start(case, store, report, user=user, limit=limit)
            try:
                if trouble == "kill":
                    self._kill(case, process)
                code = process.wait(LONGEST)
            except subprocess.TimeoutExpired:
                self.faults.append(f"{case.name}, {trouble}: no end after {LONGEST:.0f} s")
                code = -1
            finally:
                end_all(process)
        log = report.with_suffix(".log").read_text(errors="replace")
        path = report / RESULT
        is_whole = path.is_file() and not (report / UNFINISHED).exists()
        return code, path.read_bytes() if is_whole else None, log

    def _kill(self, case: Case, process: subprocess.Popen[bytes]) -> None:
        """Kill one or two processes of an audit at random times within the time that it takes."""
        for _ in range(self.random.choice((1, 2))):
            try:
                process.wait(self.random.uniform(0.1, 0.6) * self._took[case.name])
            except subprocess.TimeoutExpired:
                self.counts["processes killed"] += kill_one(process, self.random)


def _tally(log: str) -> str:
    """Return pytest's last line without the time: "6 passed"; empty if the run did not get there."""
    found = re.findall(r"^=*\s*(\d+ \w.*?) in [\d.]+s", log, re.MULTILINE)
    return str(found[-1]) if found else ""


def _is_part(result: bytes, quiet: bytes) -> bool:
    """Whether each subtopic of a result has the outcomes that it has in the quiet run."""
    found, expected = (
        {row["path"]: row["outcomes"] for row in json.loads(each)["subtopics"]} for each in (result, quiet)
    )
    return all(expected.get(path) == outcomes for path, outcomes in found.items())


def answer(prompt: str) -> str:
    """Answer by the text alone, so that every run gets the same."""
    return ("Yes.", "No.", "I cannot tell.")[sum(prompt.encode()) % 3]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(case.name for case in CASES), help="only these, with commas")
    parser.add_argument("--python", default=sys.executable, help="a Python that every user can run")
    arguments = parser.parse_args()
    random = Random(arguments.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the disk is unmounted
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True)))
        server = stack.enter_context(loopback(answer, models=[{"id": "served-model"}]))
        disk = folder / "disk"
        is_mounted = stack.enter_context(small_disk(disk))
        soak = Soak(Project.write(folder, server.url, arguments.python), server, disk, random, is_mounted=is_mounted)
        print(f"disk: {'a small file system' if is_mounted else 'a limit on the size of files'}", flush=True)
        users: list[int | None] = [None]
        if os.geteuid() == 0 and soak.project.can_run_as(NOBODY):
            users.append(NOBODY)
        print(f"users: {'root and an ordinary one' if len(users) > 1 else 'the one who started it'}", flush=True)
        cases = soak.keep_quiet_runs(arguments.kinds.split(","))
        start = time.monotonic()
        while time.monotonic() < start + 60 * arguments.minutes:
            case = random.choice(cases)
            possible = [each for each in TROUBLES if each != "server" or case.is_served]
            soak.run_one(case, random.choice(possible), random.choice(users))
        soak.counts["minutes"] = round((time.monotonic() - start) / 60)
        for case in cases:
            soak.run_one(case, "none", None)
    for name, n in sorted(soak.counts.items()):
        print(f"{n:>5}  {name}")
    print(f"server: {server.n_asked:,} requests, {server.answered.total():,} answered")
    print("\n".join([f"{len(soak.faults)} differences and other faults", *soak.faults]))
    return int(bool(soak.faults))


if __name__ == "__main__":
    raise SystemExit(main())
