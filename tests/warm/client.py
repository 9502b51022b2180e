"""Stands in for `python -u -c CODE`, as xdist starts its workers: has the warm server fork a process with these files.

Imports only what is small: it is started once for every worker. BBNLI_WARM is the server's address.
"""

import json
import os
import socket
import sys


def main() -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["BBNLI_WARM"])
    place = sys.argv.index("-c")
    code, args = sys.argv[place + 1], sys.argv[place + 2 :]
    job = {"code": code, "args": args, "cwd": os.getcwd(), "env": dict(os.environ)}  # noqa: PTH109 - without pathlib
    socket.send_fds(connection, [json.dumps(job).encode()], [0, 1, 2])
    for file in (0, 1):
        os.close(file)  # the other end must see it close when the process does
    answer = connection.makefile()
    answer.readline()
    sys.exit(int(answer.readline() or 1))


if __name__ == "__main__":
    main()
