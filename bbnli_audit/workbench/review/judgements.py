"""The judgements: one SQLite file to which rows are only ever added, each on the disk before anyone is told "saved".

A rollback journal and not WAL: between two key presses the one file holds everything, so that copying it is enough.
Several processes may add to it at once. A file that is damaged or is not ours is never touched.
"""

import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.files import read_database_header
from bbnli_audit.workbench.review.items import ReviewItem, items_hash
from bbnli_audit.workbench.review.states import (
    UNDOABLE,
    Action,
    ReviewVerdict,
    Row,
    Stance,
    State,
    clean_note,
    fold,
    now,
)

# History of the format: 1 first version.
FORMAT = 1
_APPLICATION = 0x62627277  # "bbrw", in the file's header
_SCHEMA = (
    """CREATE TABLE judgements (
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, annotator TEXT NOT NULL, item TEXT NOT NULL,
        action TEXT NOT NULL, verdict TEXT, stance TEXT, note TEXT, undoes INTEGER, time TEXT NOT NULL,
        UNIQUE (annotator, key))""",
    "CREATE INDEX judgements_item ON judgements (annotator, item)",
    "CREATE TABLE items (sha256 TEXT PRIMARY KEY, n_items INTEGER NOT NULL, time TEXT NOT NULL)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
_COLUMNS = "id, annotator, item, action, verdict, stance, note, undoes, time"

T = TypeVar("T")


class Given(NamedTuple):
    """A judgement from a file."""

    annotator: str
    item: str
    state: State


class Taken(NamedTuple):
    """What became of judgements from a file."""

    n_added: int
    n_same: int
    n_older: int


class Undone(NamedTuple):
    """The item of a row that was taken back, and what is said of it now."""

    item: str
    state: State


class Judgements:
    """The file of judgements. May be used by several threads."""

    def __init__(self, path: Path, busy_seconds: float = 30.0) -> None:
        """Open the file, or begin it.

        Raises:
            WorkbenchError: when it cannot be used.
        """
        self.path = path
        self._busy_seconds = busy_seconds
        self._lock = threading.Lock()
        _check_header(path)
        self._connection = self._trying(self._open)
        self._inode = path.stat().st_ino

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()

    @property
    def id(self) -> str:
        """A name of this file that no other has."""
        found = self._trying(lambda: self._connection.execute("SELECT value FROM facts WHERE name = 'id'").fetchone())
        return str(found[0])

    def note_items(self, items: Sequence[ReviewItem]) -> bool:
        """Record which items are judged; say whether the file was made for others before."""

        def write() -> bool:
            with self._changing() as connection:
                known = connection.execute("SELECT sha256 FROM items ORDER BY rowid DESC LIMIT 1").fetchone()
                new = items_hash(items)
                if known is None or known[0] != new:
                    connection.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", (new, len(items), now()))
                return known is not None and known[0] != new

        return self._trying(write)

    def judge(
        self, annotator: str, item: str, verdict: ReviewVerdict | None, stance: Stance | None = None, key: str = ""
    ) -> None:
        """Add a judgement. With the key of a row that is there already, nothing happens: it was sent twice."""
        self._add(annotator, item, Action.JUDGE, verdict, stance, None, key)

    def skip(self, annotator: str, item: str, key: str = "") -> None:
        self._add(annotator, item, Action.SKIP, None, None, None, key)

    def write_note(self, annotator: str, item: str, note: str, key: str = "") -> None:
        self._add(annotator, item, Action.NOTE, None, None, clean_note(note), key)

    def undo(self, annotator: str, key: str = "") -> Undone | None:
        """Take back the annotator's last judgement or skip that was not yet taken back; None when there is none."""

        def write() -> Undone | None:
            with self._changing() as connection:
                sent = connection.execute(
                    "SELECT item FROM judgements WHERE annotator = ? AND key = ?", (annotator, key)
                ).fetchone()
                last = (
                    sent
                    or connection.execute(
                        "SELECT item, id FROM judgements WHERE annotator = ? AND action IN (?, ?) AND id NOT IN "
                        "(SELECT undoes FROM judgements WHERE annotator = ? AND undoes IS NOT NULL) "
                        "ORDER BY id DESC LIMIT 1",
                        (annotator, *UNDOABLE, annotator),
                    ).fetchone()
                )
                if last is None:
                    return None
                if sent is None:
                    _insert(connection, key, annotator, last[0], Action.UNDO, None, None, None, last[1], now())
                rows = _rows(connection, "WHERE annotator = ? AND item = ?", (annotator, last[0]))
                return Undone(last[0], fold(rows)[annotator][last[0]])

        return self._trying(write)

    def take(self, given: Iterable[Given]) -> Taken:
        """Add judgements from a file, all or none. What is there already, or older than what is there, is left out."""

        def write() -> Taken:
            n_added = n_same = n_older = 0
            with self._changing() as connection:
                states = fold(_rows(connection))
                for annotator, item, state in sorted(given, key=lambda each: each.state.time):
                    there = states.setdefault(annotator, {}).get(item, State())
                    if _is_same(there, state):
                        n_same += 1
                    elif state.time <= there.time:
                        n_older += 1
                    else:
                        said = (state.verdict, state.stance, state.note)
                        _insert(connection, "", annotator, item, Action.IMPORT, *said, None, state.time)
                        states[annotator][item] = state
                        n_added += 1
            return Taken(n_added, n_same, n_older)

        return self._trying(write)

    def rows(self) -> list[Row]:
        """Give everything that was ever pressed, in its order."""
        return self._trying(lambda: _rows(self._connection))

    def states(self) -> dict[str, dict[str, State]]:
        """Say what each annotator says of each item."""
        return fold(self.rows())

    def states_of(self, annotator: str) -> dict[str, State]:
        rows = self._trying(lambda: _rows(self._connection, "WHERE annotator = ?", (annotator,)))
        return fold(rows).get(annotator, {})

    # Below: one connection, used by one thread at a time.

    def _add(
        self,
        annotator: str,
        item: str,
        action: Action,
        verdict: ReviewVerdict | None,
        stance: Stance | None,
        note: str | None,
        key: str,
    ) -> None:
        def write() -> None:
            with self._changing() as connection:
                _insert(connection, key, annotator, item, action, verdict, stance, note, None, now())

        self._trying(write)

    def _open(self) -> sqlite3.Connection:
        deadline = time.monotonic() + self._busy_seconds
        while True:
            connection = sqlite3.connect(
                self.path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
            )
            try:
                _set_up(connection)
            except sqlite3.Error as exc:
                connection.close()
                if _code(exc) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return connection

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        # SQLite goes on writing to a file that was removed or replaced; nobody would ever find those rows.
        if not self.path.exists() or self.path.stat().st_ino != self._inode:
            raise WorkbenchError(
                f"{self.path}: was removed or replaced while it was in use. Put it back, or start again."
            )
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _trying(self, action: Callable[[], T]) -> T:
        try:
            with self._lock:
                return action()
        except (sqlite3.Error, OSError) as exc:
            problem = (getattr(exc, "strerror", None) or str(exc)).rstrip(".")
            if _code(exc) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise WorkbenchError(
                    f"{self.path}: is damaged ({problem}). Nothing was written to it. Copy it to a safe place, then "
                    f"try `sqlite3 {self.path.name} .recover`; or move it away and import an earlier export."
                ) from exc
            raise WorkbenchError(f"{self.path}: cannot be used: {problem}.") from exc


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = DELETE")
    # EXTRA: after a loss of power, too, a row that was shown as saved is there.
    connection.execute("PRAGMA synchronous = EXTRA")
    if connection.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION:
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            error = sqlite3.DatabaseError(str(problem).replace("\n", " "))
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        return
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:  # nobody else was quicker
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO facts VALUES ('id', ?)", (secrets.token_hex(8),))
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _insert(
    connection: sqlite3.Connection,
    key: str,
    annotator: str,
    item: str,
    action: Action,
    verdict: ReviewVerdict | None,
    stance: Stance | None,
    note: str | None,
    undoes: int | None,
    when: str,
) -> None:
    connection.execute(
        "INSERT INTO judgements (key, annotator, item, action, verdict, stance, note, undoes, time) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (annotator, key) DO NOTHING",
        (key or secrets.token_hex(8), annotator, item, action, verdict, stance, note, undoes, when),
    )


def _rows(connection: sqlite3.Connection, where: str = "", values: Sequence[str] = ()) -> list[Row]:
    found = connection.execute(f"SELECT {_COLUMNS} FROM judgements {where} ORDER BY id", values)  # noqa: S608
    return [
        Row(
            number,
            annotator,
            item,
            Action(action),
            ReviewVerdict(verdict) if verdict else None,
            Stance(stance) if stance else None,
            note,
            undoes,
            when,
        )
        for number, annotator, item, action, verdict, stance, note, undoes, when in found
    ]


def _is_same(there: State, given: State) -> bool:
    return (there.verdict, there.stance, there.note, there.time) == (
        given.verdict,
        given.stance,
        given.note,
        given.time,
    )


def _check_header(path: Path) -> None:
    """Refuse a file that is none of ours, before anything is written to it."""
    try:
        header = read_database_header(path)
    except OSError as exc:
        raise WorkbenchError(f"{path}: cannot be read: {exc.strerror}.") from exc
    if header is None:
        return
    if header.application != _APPLICATION:
        raise WorkbenchError(f"{path}: holds no judgements of a review, so nothing is written to it. Move it away.")
    if header.version != FORMAT:
        raise WorkbenchError(f"{path}: has format {header.version}; this version of bbnli-audit uses {FORMAT}.")


def _code(exc: Exception) -> int:
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF  # without the extension bits
