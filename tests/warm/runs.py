"""Processes for tests, forked from one that has imported what takes long."""

import atexit
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
# pytest warns of plugins that were imported before it could see them, as some are here.
AHEAD = ("-W", "ignore::pytest.PytestAssertRewriteWarning")


class Run:
    """`python -m MODULE ARGS` in a process of its own."""

    def __init__(self, module: str, args: Sequence[str], environment: Mapping[str, str], folder: Path = ROOT) -> None:
        self._output = _new_file(), _new_file()  # standard output, and errors
        job = {"module": module, "args": list(args), "cwd": str(folder), "env": dict(environment)}
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(server_address())
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
            files = [nothing.fileno(), *(file.fileno() for file in self._output)]
            socket.send_fds(connection, [json.dumps(job).encode()], files)
        self._answer = connection.makefile()
        connection.close()
        self._number = int(self._answer.readline())

    def is_over(self) -> bool:
        return bool(select.select([self._answer], [], [], 0)[0])

    def kill(self) -> None:
        os.kill(self._number, signal.SIGKILL)

    def finish(self) -> subprocess.CompletedProcess[str]:
        """Wait for the end."""
        with self._answer:
            code = int(self._answer.readline())
        output, errors = (self._read(file) for file in self._output)
        return subprocess.CompletedProcess((), code, output, errors)

    def _read(self, file: IO[bytes]) -> str:
        with file:
            file.seek(0)
            return file.read().decode(errors="replace")


def _new_file() -> IO[bytes]:
    return tempfile.TemporaryFile()


@cache
def server_address() -> str:
    """Start a server for this process of the tests, and wait until it can fork."""
    folder = tempfile.TemporaryDirectory()
    address = f"{folder.name}/warm"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.warm.server", address]
    server = subprocess.Popen(command, cwd=ROOT, env=environment)

    def stop() -> None:
        server.terminate()
        server.wait()
        folder.cleanup()

    atexit.register(stop)
    for _ in range(2400):
        with socket.socket(socket.AF_UNIX) as attempt:
            if Path(address).exists() and attempt.connect_ex(address) == 0:
                attempt.shutdown(socket.SHUT_WR)
                return address
        assert server.poll() is None, "the warm server has ended"
        time.sleep(0.05)
    raise TimeoutError("the warm server did not start")


@cache
def warm_python() -> str:
    """Return a program that takes the place of Python where xdist starts its workers."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    program = Path(folder.name) / "python"
    client = Path(__file__).with_name("client.py")
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-IS", str(client)])} "$@"\n')
    program.chmod(0o755)
    return str(program)
