"""Stores judgements in one SQLite file. Rows are only added, and each is on the disk before the page says "saved".

The file uses a rollback journal rather than WAL. So between two key presses, this one file holds everything, and a copy
of it is complete. Several processes may add rows at the same time. A file that is damaged or not ours is never changed.
"""

import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.files import read_database_header
from bbnli_audit.models.inference.sqlite import DAMAGED, changing, connect, error_code
from bbnli_audit.workbench.review.items import ReviewItem, items_hash
from bbnli_audit.workbench.review.states import Action, Row, State, as_verdict, fold, now
from bbnli_audit.workbench.workspace import telling

# History of the format: 1 is the first version.
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
_COLUMNS = "annotator, item, action, verdict, stance, note, undoes, time"
_LAST_UNDOABLE = """
    SELECT item, id FROM judgements WHERE annotator = ? AND action IN ('judge', 'skip') AND id NOT IN
    (SELECT undoes FROM judgements WHERE annotator = ? AND undoes IS NOT NULL) ORDER BY id DESC LIMIT 1"""


class Given(NamedTuple):
    """An annotator's judgement of an item, such as one from a file."""

    annotator: str
    item: str
    state: State


class Taken(NamedTuple):
    """What became of the judgements from a file."""

    n_added: int
    n_same: int  # judgements that were known already
    n_older: int  # judgements that differ from the known one but are not newer, so the known one stays
    n_unknown: int = 0  # judgements of items that are not in the table, also counted above; decisions ignore them


class Judgements:
    """The file of judgements. Several threads may use it."""

    def __init__(self, path: Path, busy_seconds: float = 30.0) -> None:
        """Open the file, or create it."""
        self.path = path
        self._lock = threading.Lock()
        _check_header(path)
        with _telling(path):
            self._connection = connect(path, busy_seconds, _set_up, one_thread=False)
        self._inode = path.stat().st_ino

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()

    @property
    def id(self) -> str:
        """A random name, drawn when the file was created."""
        with self._using() as connection:
            return str(connection.execute("SELECT value FROM facts WHERE name = 'id'").fetchone()[0])

    def note_items(self, items: Sequence[ReviewItem]) -> bool:
        """Record which items are judged. Return whether they differ from the items recorded last."""
        with self._changing() as connection:
            known = connection.execute("SELECT sha256 FROM items ORDER BY rowid DESC LIMIT 1").fetchone()
            new = items_hash(items)
            if known is None or known[0] != new:
                connection.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", (new, len(items), now()))
            return known is not None and known[0] != new

    def add(self, row: Row, key: str = "") -> None:
        """Add a row. If the annotator has a row with this key, do nothing: the row was sent twice."""
        with self._changing() as connection:
            _insert(connection, row, key)

    def undo(self, annotator: str, key: str = "") -> Given | None:
        """Undo the annotator's last judgement or skip. Return the item's new state, or None if nothing was undone."""
        with self._changing() as connection:
            query = "SELECT item FROM judgements WHERE annotator = ? AND key = ?"
            sent = connection.execute(query, (annotator, key)).fetchone()
            last = sent or connection.execute(_LAST_UNDOABLE, (annotator, annotator)).fetchone()
            if last is None:
                return None
            if sent is None:
                _insert(connection, Row(annotator, last[0], Action.UNDO, undoes=last[1]), key)
            rows = _rows(connection, "WHERE annotator = ? AND item = ?", (annotator, last[0]))
            return Given(annotator, last[0], fold(rows)[annotator][last[0]])

    def take(self, given: Iterable[Given]) -> Taken:
        """Add judgements from a file in one transaction.

        Skip a judgement that is known already. Skip a judgement also if the one that it would replace is not older.
        """
        n_added = n_same = n_older = 0
        with self._changing() as connection:
            states = fold(_rows(connection))
            for annotator, item, state in sorted(given, key=lambda each: each.state.time):
                there = states.setdefault(annotator, {}).get(item, State())
                if replace(there, skipped=None) == state:
                    n_same += 1
                elif state.time <= there.time:
                    n_older += 1
                else:
                    said = (state.verdict, state.stance, state.note)
                    _insert(connection, Row(annotator, item, Action.IMPORT, *said, time=state.time))
                    states[annotator][item] = state
                    n_added += 1
        return Taken(n_added, n_same, n_older)

    def rows(self) -> list[Row]:
        """Return everything that was ever entered, in order."""
        with self._using() as connection:
            return _rows(connection)

    def states(self) -> dict[str, dict[str, State]]:
        return fold(self.rows())

    def states_of(self, annotator: str) -> dict[str, State]:
        return self.states().get(annotator, {})

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread at a time."""
        with _telling(self.path), self._lock:
            yield self._connection

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._using() as connection:
            # SQLite keeps writing to a file that was removed or replaced. What it writes there would be lost.
            if not self.path.exists() or self.path.stat().st_ino != self._inode:
                raise WorkbenchError(f"{self.path}: was removed or replaced while in use. Restore it, or start again.")
            with changing(connection):
                yield connection


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into messages."""
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        problem = (getattr(exc, "strerror", None) or str(exc)).rstrip(".")
        if error_code(exc) in DAMAGED:
            advice = f"Copy it, then try `sqlite3 {path.name} .recover`; or move it away and import an earlier export."
            raise WorkbenchError(f"{path}: is damaged ({problem}). Nothing was written to it. {advice}") from exc
        raise WorkbenchError(f"{path}: cannot be used: {problem}.") from exc


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = DELETE")
    # EXTRA: a row that was shown as saved survives a loss of power.
    connection.execute("PRAGMA synchronous = EXTRA")
    if connection.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION:
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            error = sqlite3.DatabaseError(str(problem).replace("\n", " "))
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        return
    with changing(connection):
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:  # no other process has set it up
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO facts VALUES ('id', ?)", (secrets.token_hex(8),))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")


def _insert(connection: sqlite3.Connection, row: Row, key: str = "") -> None:
    connection.execute(
        f"INSERT INTO judgements (key, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
        "ON CONFLICT (annotator, key) DO NOTHING",
        (key or secrets.token_hex(8), *row.stored()),
    )


def _rows(connection: sqlite3.Connection, where: str = "", values: Sequence[str] = ()) -> list[Row]:
    found = connection.execute(f"SELECT {_COLUMNS}, id FROM judgements {where} ORDER BY id", values)  # noqa: S608
    return [
        Row(annotator, item, Action(action), *as_verdict(verdict, stance), *rest)
        for annotator, item, action, verdict, stance, *rest in found
    ]


def _check_header(path: Path) -> None:
    """Refuse a file that is not ours, before anything is written to it."""
    with telling(path, "read"):
        header = read_database_header(path)
    if header is not None and header.application != _APPLICATION:
        raise WorkbenchError(f"{path}: is not a file of judgements, so nothing is written to it. Move it away.")
    if header is not None and header.version != FORMAT:
        raise WorkbenchError(f"{path}: has format {header.version}; this version of bbnli-audit uses {FORMAT}.")
