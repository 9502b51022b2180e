"""Forks processes from one that has imported torch, transformers, pandas and this project already.

Importing them takes eight seconds of processor time, and the tests start a hundred processes. Each is a process of
its own all the same: it has its own folder, environment, output and end, and can be killed. Tests of what is imported
when, as a user's process does it, start a process without this server: `run_cold_pytest`, tests/unit/test_imports.py.
"""

import atexit
import gc
import importlib
import inspect
import json
import os
import runpy
import signal
import socket
import sys
import threading
from typing import Any

from tests.package_modules import LATE, MODULES
from tests.warm import drawing

AHEAD = (
    *("_pytest.config", "numpy", "safetensors.torch", "torch", "transformers", "xdist.remote"),
    # The plugins of other people that every pytest loads.
    *("_hypothesis_pytestplugin", "anyio.pytest_plugin", "hypothesis", "xdist.looponfail", "xdist.plugin"),
    *("transformers.models.auto.modeling_auto", "transformers.models.bert.modeling_bert"),
    *("transformers.models.gpt2.modeling_gpt2", *LATE, *MODULES),
)
LARGEST_JOB = 1 << 20


def serve(address: str) -> None:
    """Fork for each connection. It gets the number of the process, and at the end its exit code."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    for name in AHEAD:
        importlib.import_module(name)
    compile_reports()
    find_sources()
    drawing.serve(address)
    gc.freeze()  # a collection does not touch, and so does not copy, what all processes share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the supervisors
    listener.listen()
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            supervise(connection)
            os._exit(0)
        connection.close()


def compile_reports() -> None:
    """Compile the templates of the reports and the checks of results, which each process does once."""
    from bbnli_audit.core.results.file import json_schema
    from bbnli_audit.reports import templates

    json_schema()
    for path in templates.ASSETS.glob("*.jinja"):
        templates._environment().get_template(path.name)


def find_sources() -> None:
    """Look up the files of all modules, as the first traceback of each process would."""
    inspect.getmodule(compile("", "a file of no module", "exec"))


def supervise(connection: socket.socket) -> None:
    """Start what a job describes, and tell how it ended."""
    received, files, _, _ = socket.recv_fds(connection, LARGEST_JOB, 3)
    if not received:  # somebody only looked whether the server is there
        return
    job = json.loads(received)
    child = os.fork()
    if child == 0:
        connection.close()
        become(job, files)
        return
    for file in files:
        os.close(file)
    connection.sendall(f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def become(job: dict[str, Any], files: list[int]) -> None:
    """Turn into the process that a job describes, with its standard input, output and errors, and run it."""
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    drawing.ask(sys.argv[1])
    sys.executable = job["env"].get("BBNLI_PYTHON", sys.executable)
    sys.path[:0] = [job["cwd"], *filter(None, job["env"].get("PYTHONPATH", "").split(os.pathsep))]
    leave(run(job))


def run(job: dict[str, Any]) -> int | str | None:
    """Run what a job names, and return what it ends with, as `sys.exit` takes it."""
    try:
        if "code" in job:
            sys.argv = ["-c", *job["args"]]
            exec(compile(job["code"], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = [job["module"], *job["args"]]
            runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
    except SystemExit as exc:
        return exc.code
    return None


def leave(code: int | str | None) -> None:
    """End as Python does, but do not take all modules apart: that would copy the memory that processes share."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    serve(sys.argv[1])
