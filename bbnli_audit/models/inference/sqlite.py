"""Code for both of our SQLite files: the prediction store and the judgements of a review."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def error_code(exc: Exception) -> int:
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF  # without the extension bits


def connect(
    path: Path, busy_seconds: float, set_up: Callable[[sqlite3.Connection], None], *, one_thread: bool = True
) -> sqlite3.Connection:
    """Open a file and set it up.

    If another process has locked the file, wait and try again. SQLite alone may raise an error at once.
    """
    deadline = time.monotonic() + busy_seconds
    while True:
        connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=one_thread)
        try:
            set_up(connection)
        except sqlite3.Error as exc:
            connection.close()
            if error_code(exc) not in _BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return connection


@contextmanager
def changing(connection: sqlite3.Connection) -> Iterator[None]:
    """Make all changes of the `with` block, or none if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
