"""Writes files whole or not at all, hashes them, and recognises our own databases. Standard library only."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple


@contextmanager
def replacing(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Write to a temporary file and rename it at the end: readers see the old file or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "errors": "replace", "newline": ""}
    try:
        with os.fdopen(handle, mode, **text) as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def hash_file(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class DatabaseHeader(NamedTuple):
    """Which program an SQLite file belongs to, and its format, by its first bytes. None for files of other kinds."""

    application: int | None
    version: int | None


def read_database_header(path: Path) -> DatabaseHeader | None:
    """Read the header without opening the database; None when there is no file, or an empty one."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return None
    if not header.startswith(b"SQLite format 3\0"):
        return DatabaseHeader(None, None)
    application, version = (int.from_bytes(header[at : at + 4], "big") for at in (68, 60))
    return DatabaseHeader(application, version)
