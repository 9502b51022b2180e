"""What goes wrong in a soak: processes that are killed, a disk that fills, a server that fails."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.loopback_server import Fault, Loopback

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

DISK = 3 * 2**20  # bytes
FILE_LIMIT = 96 * 2**10
FAULTS = (Fault(500), Fault(503), Fault(body=b"{"), Fault(body=b"[1]"), Fault(is_cut=True), Fault(429))


def processes_of(group: int) -> list[int]:
    """Return the processes of a session that are still there, as Linux lists them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == group and fields[0] != "Z":
                found.append(int(path.parent.name))
    return sorted(found)


def kill_one(process: subprocess.Popen[bytes], random: Random) -> bool:
    """Kill a random process of an audit, a worker if it has any; say whether there was one."""
    found = processes_of(process.pid)
    workers = [each for each in found if each != process.pid] or found
    if not workers:
        return False
    with suppress(ProcessLookupError):
        os.kill(random.choice(workers), signal.SIGKILL)
    return True


def end_all(process: subprocess.Popen[bytes]) -> None:
    """End what is left of an audit that we started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for each in processes_of(process.pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()


def limit_files() -> None:
    """Let this process write no file larger than a small store: a full disk for somebody who cannot mount one."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # else the process ends
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system at a folder; say whether it could be mounted."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0777", "soak", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


@contextmanager
def filling(folder: Path, random: Random) -> Iterator[None]:
    """Fill a disk and empty it again, at random, while an audit uses it."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(random.uniform(0.2, 3.0)):
            with suppress(OSError), (folder / "filler").open("wb") as file:
                while not stop.is_set():
                    file.write(bytes(2**16))
                    file.flush()
            stop.wait(random.uniform(0.2, 3.0))
            (folder / "filler").unlink(missing_ok=True)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        (folder / "filler").unlink(missing_ok=True)


@contextmanager
def failing(server: Loopback, random: Random, share: float = 0.05) -> Iterator[None]:
    """Let a server fail in a share of the requests that come next."""
    server.faults[:] = [random.choice(FAULTS) if random.random() < share else None for _ in range(20_000)]
    try:
        yield
    finally:
        server.faults.clear()
