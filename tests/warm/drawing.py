"""Charts of forked processes, drawn by one process for all.

Vega runs in a JavaScript engine. To start it takes longer than a small audit, and a process that has started it
cannot be forked.
"""

import json
import os
import socket
from collections.abc import Callable
from typing import Any

import vl_convert

Draw = Callable[..., str]


def serve(address: str) -> None:
    """Fork the process that draws. It ends soon after the one that started it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(_place(address))
    listener.listen()
    parent = os.getpid()
    if os.fork() != 0:
        listener.close()
        return
    listener.settimeout(1)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            connection.settimeout(None)
            _answer(connection, vl_convert.vegalite_to_svg)
    os._exit(0)


def ask(address: str) -> None:
    """Have vl_convert of this process ask the one that draws."""

    def draw(*args: Any, **options: Any) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(_place(address))
            connection.sendall(json.dumps([args, options]).encode())
            connection.shutdown(socket.SHUT_WR)
            drawn, fault = json.loads(_read(connection))
        if fault is not None:
            raise ValueError(fault)
        return str(drawn)

    vl_convert.vegalite_to_svg = draw


def _answer(connection: socket.socket, draw: Draw) -> None:
    args, options = json.loads(_read(connection) or "[[], {}]")
    answer: tuple[str | None, str | None]
    try:
        answer = draw(*args, **options), None
    except (TypeError, ValueError) as fault:
        answer = None, str(fault)
    connection.sendall(json.dumps(answer).encode())


def _read(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as stream:
        return stream.read()


def _place(address: str) -> str:
    return f"{address}-draws"
