"""The prediction store: one SQLite file, keyed by model and text. It returns only rows that pass their checksum.

The checksum covers a row's key and values. So a row with a flipped bit counts as missing, and never gives a wrong
number.

A faulty file does not stop a run, and the run says what happened. A read-only file is read, and nothing new is kept. A
damaged file is set aside, and a new one is started. If the file fails in another way (it is locked, or the disk is
full), the run goes on without it. Rows that the store returned before the fault are right. Texts that could not be
stored are predicted again in the next run.
"""

import os
import socket
import sqlite3
import struct
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.files import file_stamp, read_database_header
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.sqlite import DAMAGED, changing, connect, error_code

# Format 1 is the first. A store of another format is left alone.
FORMAT = 1
_UNFINISHED = 0  # an earlier version of the package left this number if it was killed while it made the file
_APPLICATION = 0x62626E6C  # "bbnl": this number in the header marks our files, even damaged ones
_SCHEMA = """
CREATE TABLE IF NOT EXISTS models (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS predictions (
    model INTEGER NOT NULL, text BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (model, text)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (
    model INTEGER NOT NULL, text BLOB NOT NULL, owner TEXT NOT NULL, until REAL NOT NULL,
    PRIMARY KEY (model, text)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS file_hashes (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, value BLOB NOT NULL);
"""
_VALUE = struct.Struct("<3d?")
_READ_VALUE = struct.Struct("<3d?Q")  # used for a row whose `remains` is known
_CHECKSUM = 8
# A claim holds for this many seconds, while a batch takes a few. It ends earlier if its process on this machine ends.
_LEASE_SECONDS = 600.0
# The hash of a file is not kept if the file changed less than this many seconds ago: it may change again without a new
# time stamp.
_RACY_SECONDS = 2.0
_AT_ONCE = 500  # keys in one query

Action = TypeVar("Action", bound=Callable[..., Any])


class Row(NamedTuple):
    entailment: float
    neutral: float
    contradiction: float
    is_truncated: bool
    remains: int = 0  # as in `Predictions`


def text_key(text: TextPair) -> bytes:
    premise = text.premise.encode()
    return blake2b(b"%d\n%s%s" % (len(premise), premise, text.hypothesis.encode()), digest_size=16).digest()


def _even_without_file(action: Action) -> Action:
    """If the file breaks, call the method again: with a new file, with the fallback, or in memory."""

    @wraps(action)
    def trying(store: "PredictionStore", *args: object) -> object:
        try:
            return action(store, *args)
        except (sqlite3.Error, OSError) as exc:
            if store.path is None or isinstance(exc, sqlite3.ProgrammingError):
                raise
            store._leave(exc)
            return trying(store, *args)

    return cast("Action", trying)


class PredictionStore:
    """Keeps predictions between runs, and shares them between processes of one run."""

    def __init__(self, path: Path | None, fallback: Path | None = None, busy_seconds: float = 30.0) -> None:
        """Open nothing yet. Without a path, predictions are kept in memory.

        `fallback` is the file to use if the file at `path` breaks.
        """
        self.path = path
        self.trouble: str | None = None
        self._fallback = fallback
        self._busy_seconds = busy_seconds
        self._opened: sqlite3.Connection | None = None
        self._model_ids: dict[str, int] = {}
        self._is_read_only = False
        self._inode: int | None = None
        self._n_set_aside = 0
        self._owner = f"{socket.gethostname()}:{os.getpid()}"

    @_even_without_file
    def get(self, model: str, texts: Collection[bytes]) -> dict[bytes, Row]:
        """Return the rows of texts. Missing and damaged rows are left out."""
        return self._get(model, texts)

    @_even_without_file
    def put(self, model: str, rows: Mapping[bytes, Row]) -> None:
        """Store all rows, or none if that fails. Give up the claims on their texts."""
        if self._is_read_only:
            return
        with self._changing() as connection:
            model_id = self._model_id(connection, model)
            values = [(model_id, text, _pack(model, text, row)) for text, row in rows.items()]
            connection.executemany("INSERT OR REPLACE INTO predictions VALUES (?, ?, ?)", values)
            if self.path is not None:
                claims = [(model_id, text) for text in rows]
                connection.executemany("DELETE FROM claims WHERE model = ? AND text = ?", claims)

    @_even_without_file
    def claim(self, model: str, texts: Sequence[bytes]) -> set[bytes]:
        """Claim the texts that are not stored and that no other process is predicting. Return the claimed texts."""
        if self._is_read_only or self.path is None:  # processes cannot share predictions through this store
            return set(texts) - self._get(model, texts).keys()
        with self._changing() as connection:
            model_id = self._model_id(connection, model)
            ours = set(texts) - self._get(model, texts).keys()
            now = time.time()
            for text, owner, until in self._select("text, owner, until FROM claims", model_id, sorted(ours)):
                if owner != self._owner and until > now and _is_alive(owner):
                    ours.discard(text)
            claims = [(model_id, text, self._owner, now + _LEASE_SECONDS) for text in ours]
            connection.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", claims)
            return ours

    @_even_without_file
    def release(self, model: str, texts: Collection[bytes]) -> None:
        """Give up the claims on texts that were not predicted."""
        if self._is_read_only or self.path is None:
            return
        with self._changing() as connection:
            claims = [(self._model_id(connection, model), text, self._owner) for text in texts]
            connection.executemany("DELETE FROM claims WHERE model = ? AND text = ? AND owner = ?", claims)

    def file_hash(self, path: Path, compute: Callable[[Path], str]) -> str:
        """Return the hash of a file, computed again only when the file has changed."""
        state, stamp = path.stat(), file_stamp(path)
        name = str(path.resolve()).encode(errors="backslashreplace").decode()  # a name may hold any bytes
        kept = self._get_hash(name, stamp)
        if kept is not None:
            return kept
        found = compute(path)
        if time.time() - max(state.st_mtime, state.st_ctime) > _RACY_SECONDS:
            self._put_hash(name, stamp, found)
        return found

    @_even_without_file
    def _get_hash(self, name: str, stamp: str) -> str | None:
        connection = self._connection
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'file_hashes'").fetchone():
            return None  # a read-only store that an earlier version made, without this table
        found = connection.execute("SELECT value FROM file_hashes WHERE path = ? AND stamp = ?", (name, stamp))
        row = found.fetchone()
        return None if row is None else _unpack_hash(name, stamp, row[0])

    @_even_without_file
    def _put_hash(self, name: str, stamp: str, found: str) -> None:
        if not self._is_read_only:
            with self._changing() as connection:
                values = name, stamp, found.encode() + _hash_checksum(name, stamp, found.encode())
                connection.execute("INSERT OR REPLACE INTO file_hashes VALUES (?, ?, ?)", values)

    def close(self) -> None:
        if self._opened is not None:
            with suppress(sqlite3.Error):
                self._opened.close()
            self._opened = None
            self._model_ids = {}

    # Below: one connection, opened when it is first needed, and how the store handles its errors.

    def _get(self, model: str, texts: Iterable[bytes]) -> dict[bytes, Row]:
        model_row = self._connection.execute("SELECT id FROM models WHERE key = ?", (model,)).fetchone()
        if model_row is None:
            return {}
        kept = self._select("text, value FROM predictions", model_row[0], texts)
        rows = ((text, _unpack(model, text, value)) for text, value in kept)
        return {text: row for text, row in rows if row is not None}

    def _select(self, what: str, model_id: int, texts: Iterable[bytes]) -> Iterator[Any]:
        rest = iter(texts)
        while some := list(islice(rest, _AT_ONCE)):
            query = f"SELECT {what} WHERE model = ? AND text IN ({','.join('?' * len(some))})"
            yield from self._connection.execute(query, (model_id, *some))

    def _model_id(self, connection: sqlite3.Connection, model: str) -> int:
        if model not in self._model_ids:
            connection.execute("INSERT OR IGNORE INTO models (key) VALUES (?)", (model,))
            self._model_ids[model] = connection.execute("SELECT id FROM models WHERE key = ?", (model,)).fetchone()[0]
        return self._model_ids[model]

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            connection = sqlite3.connect(":memory:", isolation_level=None)
            connection.executescript(_SCHEMA)
            return connection
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
            # SQLite cannot write its side files here. It reads without them if it is told that the file is immutable.
            self._is_read_only = True
            self.trouble = f"the prediction store {self.path} is read-only: it is read, and nothing new is kept"
            address = f"{self.path.resolve().as_uri()}?mode=ro&immutable=1"
            return sqlite3.connect(address, uri=True, isolation_level=None)
        connection = connect(self.path, self._busy_seconds, _set_up)
        self._inode = self.path.stat().st_ino
        return connection

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        try:
            with changing(connection):
                yield connection
        except BaseException:
            self._model_ids = {}
            raise

    def _leave(self, exc: Exception) -> None:
        assert self.path is not None
        self.close()
        problem = str(exc).rstrip(".") or type(exc).__name__
        if error_code(exc) in DAMAGED and not self._is_read_only and self._n_set_aside == 0:
            self._n_set_aside += 1
            if self._inode is not None and self.path.exists() and self.path.stat().st_ino != self._inode:
                return  # another process has already set the damaged file aside
            aside = _set_aside(self.path)
            if aside is not None:
                done = f"it was set aside as {aside.name} and a new one started"
                self.trouble = f"the prediction store {self.path} is damaged ({problem}); {done}"
                return
        done = "the run goes on without it, and new predictions are not kept"
        self.trouble = f"the prediction store {self.path} cannot be used ({problem}); {done}"
        self._is_read_only = False
        self.path, self._fallback = self._fallback, None


def _set_up(connection: sqlite3.Connection) -> None:
    # One transaction sets both fields of the header, so that no reader sees only one of them, and no killed process
    # leaves only one. The transaction comes before WAL is switched on, so that both fields are in the file itself and
    # not only in its log.
    with changing(connection):
        for name, value in (("application_id", _APPLICATION), ("user_version", FORMAT)):
            if connection.execute(f"PRAGMA {name}").fetchone()[0] != value:
                connection.execute(f"PRAGMA {name} = {value}")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def check_store(path: Path) -> None:
    """Refuse a folder, and a file that is not a prediction store of this format, before anything is written to it."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not a file"
        raise OptionError(f"--bbnli-store={path}: is {kind}. Give a file, as in {path / 'predictions.sqlite'}.")
    try:
        header = read_database_header(path)
    except OSError as exc:
        raise OptionError(f"--bbnli-store={path}: cannot be read: {exc.strerror}. Give another file.") from exc
    if header is None or (header.application == _APPLICATION and header.version in (FORMAT, _UNFINISHED)):
        return
    problem = f"has format {header.version}; this version of bbnli-audit uses {FORMAT}"
    if header.application != _APPLICATION:
        problem = "is not a prediction store, so nothing is written to it"
    raise OptionError(f"--bbnli-store={path}: {problem}. Give another file.")


def _pack(model: str, text: bytes, row: Row) -> bytes:
    value = _READ_VALUE.pack(*row) if row.remains else _VALUE.pack(*row[:4])
    return value + _checksum(model, text, value)


def _unpack(model: str, text: bytes, value: object) -> Row | None:
    if not isinstance(value, bytes) or len(value) <= _CHECKSUM:
        return None
    packed, checksum = value[:-_CHECKSUM], value[-_CHECKSUM:]
    if checksum != _checksum(model, text, packed):
        return None
    return Row(*(_READ_VALUE if len(packed) == _READ_VALUE.size else _VALUE).unpack(packed))


def _unpack_hash(name: str, stamp: str, value: object) -> str | None:
    if not isinstance(value, bytes) or len(value) <= _CHECKSUM:
        return None
    found, checksum = value[:-_CHECKSUM], value[-_CHECKSUM:]
    return found.decode() if checksum == _hash_checksum(name, stamp, found) else None


def _hash_checksum(name: str, stamp: str, found: bytes) -> bytes:
    return blake2b(f"{name}\0{stamp}\0".encode("utf-8", "surrogateescape") + found, digest_size=_CHECKSUM).digest()


def _checksum(model: str, text: bytes, value: bytes) -> bytes:
    return blake2b(model.encode() + text + value, digest_size=_CHECKSUM).digest()


def _is_alive(owner: str) -> bool:
    """Say whether a process may still be running. A process on another machine counts as running."""
    host, _, process = owner.rpartition(":")
    if host != socket.gethostname() or os.name != "posix":
        return True
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        pass
    return not _is_zombie(int(process))


def _is_zombie(process: int) -> bool:
    """Say whether a process has ended, but is still listed because its parent has not read its exit code."""
    try:
        state = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:  # a system without /proc
        return False
    return state.rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])


def _set_aside(path: Path) -> Path | None:
    """Rename a damaged store and its side files. Return the new path, or None if renaming fails."""
    aside = next(name for n in count(1) if not (name := path.with_name(f"{path.name}.damaged-{n}")).exists())
    try:
        path.rename(aside)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    except OSError:
        return None
    return aside
