"""The commands' standard output. Text from outside cannot control the terminal. A failed write gives a message."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

from bbnli_audit.core.errors import AuditError
from bbnli_audit.core.printable import printable_lines


class PrintableStream:
    """The stream for output that people read. `document` is the raw stream, for output that programs read."""

    def __init__(self, document: TextIO) -> None:
        self.document = document

    def write(self, text: str) -> int:
        encoding = self.document.encoding or "utf-8"
        shown = printable_lines(text).encode(encoding, "backslashreplace").decode(encoding)
        with telling_output():
            self.document.write(shown)
        return len(text)

    def flush(self) -> None:
        with telling_output():
            self.document.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.document, name)


def drop_output() -> None:
    """Discard all further standard output, including what Python flushes when it exits."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]


@contextmanager
def telling_output() -> Iterator[None]:
    """Turn a failed write, such as to a full device, into an AuditError. A closed pipe stays a BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as exc:
        drop_output()
        raise AuditError(f"The output cannot be written: {exc.strerror or exc}.") from exc


@contextmanager
def printable_output() -> Iterator[None]:
    if sys.stdout is None:  # the shell has closed standard output
        raise AuditError("The output cannot be written: standard output is closed.")
    stream = PrintableStream(sys.stdout)
    with redirect_stdout(cast("TextIO", stream)):
        try:
            yield
        finally:
            stream.flush()
