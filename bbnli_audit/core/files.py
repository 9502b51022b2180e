"""Writes files whole or not at all, hashes them, and reads headers of SQLite files. Standard library only."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE
from typing import IO, Any, NamedTuple

from bbnli_audit.core.errors import OptionError

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@contextmanager
def replacing(path: Path, mode: str = "w", *, must_be_new: bool = False) -> Iterator[IO[Any]]:
    """Write to a temporary file and rename it at the end: readers see the old file or the new one, never a part.

    With `must_be_new`, raise FileExistsError if the path exists at the end. The existing file stays as it is.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "errors": "replace", "newline": ""}
    try:
        with os.fdopen(handle, mode, **text) as file:
            yield file
        Path(name).chmod(_mode_of(path))
        (_rename_new if must_be_new else os.replace)(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode_of(path: Path) -> int:
    """Return the permissions of the file that is replaced. A new file gets the permissions that the umask leaves."""
    try:
        return S_IMODE(path.stat().st_mode)
    except OSError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask


def _rename_new(name: str, path: Path) -> None:
    try:
        os.link(name, path)  # unlike a rename, a link replaces no file
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from exc
        Path(name).replace(path)
    else:
        Path(name).unlink()


def refuse_existing(path: Path, name: str) -> None:
    """Refuse an output path that already exists, even as a link or a device. Messages call it `name`."""
    if os.path.lexists(path):
        raise OptionError(f"{name}: already exists, and no file is overwritten. Remove it, or choose another name.")


def hash_file(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def file_stamp(path: Path) -> str:
    """Return a text that changes whenever the file does. The text has the ctime, because an mtime can be set back.

    For a folder, the text has only the inode. For files and folders, the text also has the inode and the ctime of each
    symbolic link in the path, since a link may point elsewhere for a moment.
    """
    state = path.stat()
    links = [link.lstat() for link in (path, *path.absolute().parents) if link.is_symlink()]
    told = [state.st_ino] if path.is_dir() else [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
    return " ".join(map(str, [*told, *(value for link in links for value in (link.st_ino, link.st_ctime_ns))]))


class DatabaseHeader(NamedTuple):
    """The application id and the user version in an SQLite file. Both are None if the file is not SQLite."""

    application: int | None
    version: int | None


def read_database_header(path: Path) -> DatabaseHeader | None:
    """Read the header without opening the database. Return None if the file is missing or empty."""
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
