"""The prediction store, with real faults: what it cannot vouch for it does not give, and nothing stops the run."""

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.files import DatabaseHeader, hash_file, read_database_header
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference import store as store_module
from bbnli_audit.models.inference.store import PredictionStore, Row, check_store, text_key

MODEL, OTHER = "model one", "model two"
KEYS = [text_key(TextPair("the red moon", f"zorbs juggle {n}")) for n in range(40)]
ROWS = {key: Row(0.1 + n / 100, 0.7 - n / 100, 0.2, n % 2 == 0) for n, key in enumerate(KEYS)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "predictions.sqlite"


def fill(path: Path) -> None:
    store = PredictionStore(path)
    store.put(MODEL, ROWS)
    store.close()


def test_rows_come_back_to_the_last_bit_and_only_under_their_model(path: Path) -> None:
    fill(path)
    again = PredictionStore(path)
    assert again.get(MODEL, KEYS) == ROWS
    assert again.get(OTHER, KEYS) == {}
    assert again.trouble is None


probabilities = st.floats(min_value=0, max_value=1)


@given(st.tuples(probabilities, probabilities, probabilities, st.booleans()))
def test_any_row_survives(values: tuple[float, float, float, bool]) -> None:
    store = PredictionStore(None)
    store.put(MODEL, {KEYS[0]: Row(*values)})
    assert store.get(MODEL, KEYS[:1]) == {KEYS[0]: Row(*values)}


texts = st.builds(TextPair, st.text(), st.text())


@given(texts, texts)
def test_texts_have_one_key_each(one: TextPair, other: TextPair) -> None:
    assert (text_key(one) == text_key(other)) == (one == other)


def test_the_border_between_the_texts_counts() -> None:
    assert text_key(TextPair("ab", "c")) != text_key(TextPair("a", "bc"))
    assert text_key(TextPair("3\nab", "c")) != text_key(TextPair("3", "\nabc"))


def test_a_text_is_claimed_once_and_again_when_it_is_given_up(path: Path) -> None:
    ours, theirs = PredictionStore(path), PredictionStore(path)
    theirs._owner = "elsewhere:1"  # another machine, believed for as long as its claim holds
    assert theirs.claim(MODEL, KEYS[:10]) == set(KEYS[:10])
    assert ours.claim(MODEL, KEYS[:20]) == set(KEYS[10:20])
    theirs.put(MODEL, {KEYS[0]: ROWS[KEYS[0]]})
    theirs.release(MODEL, KEYS[1:10])
    assert ours.claim(MODEL, KEYS[:10]) == set(KEYS[1:10])


def test_what_a_dead_process_claimed_is_taken_over(path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    theirs = PredictionStore(path)
    theirs._owner = f"{theirs._owner.rpartition(':')[0]}:{dead.stdout.strip()}"
    theirs.claim(MODEL, KEYS)
    assert PredictionStore(path).claim(MODEL, KEYS) == set(KEYS)


@pytest.mark.parametrize("length", [100, 4096, 5000, 9000])
def test_a_truncated_file_never_gives_a_wrong_number(path: Path, length: int) -> None:
    fill(path)
    content = path.read_bytes()
    assert len(content) > length
    path.write_bytes(content[:length])
    store = PredictionStore(path)
    assert store.get(MODEL, KEYS).items() <= ROWS.items()
    store.put(MODEL, ROWS)
    assert store.get(MODEL, KEYS) == ROWS
    if store.trouble is not None:
        assert "is damaged" in store.trouble
        assert "was set aside as predictions.sqlite.damaged-1" in store.trouble
        assert (path.parent / "predictions.sqlite.damaged-1").read_bytes()[:length] == content[:length]
    store.close()
    assert PredictionStore(path).get(MODEL, KEYS) == ROWS


def with_flipped_bits(path: Path) -> Iterator[PredictionStore]:
    """Open the store again and again, each time with another bit of its file flipped."""
    content = path.read_bytes()
    for at in range(4096, len(content), 67):
        damaged = bytearray(content)
        damaged[at] ^= 0x10
        path.write_bytes(bytes(damaged))
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        store = PredictionStore(path)
        yield store
        store.close()


def test_a_flipped_bit_is_a_miss(path: Path) -> None:
    fill(path)
    for store in with_flipped_bits(path):
        assert store.get(MODEL, KEYS).items() <= ROWS.items()


def test_a_locked_store_is_left_after_a_while(path: Path, tmp_path: Path) -> None:
    fill(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    store = PredictionStore(path, fallback=tmp_path / "run.sqlite", busy_seconds=0.2)
    assert store.claim(MODEL, KEYS) == set(KEYS)
    store.put(MODEL, ROWS)
    assert store.get(MODEL, KEYS) == ROWS
    assert store.trouble == (
        f"the prediction store {path} cannot be used (database is locked); the run goes on without it, and new "
        "predictions are not kept"
    )
    holder.close()
    assert (tmp_path / "run.sqlite").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 256 KiB; needs to be root, as CI is."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True)
    if done.returncode != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("cannot mount a small file system")
        pytest.skip("cannot mount a small file system: needs to be root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_stops_nothing(small_disk: Path) -> None:
    store = PredictionStore(small_disk / "predictions.sqlite")
    everything: dict[bytes, Row] = {}
    for n in range(3000):
        rows = {text_key(TextPair(str(n), str(m))): Row(0.2, 0.3, 0.5, False) for m in range(20)}
        everything |= rows
        store.put(MODEL, rows)
        assert store.get(MODEL, rows) == rows
        if store.trouble is not None:
            break
    assert store.trouble is not None
    assert "cannot be used (database or disk is full)" in store.trouble
    store.close()
    # What was kept before is still right.
    (small_disk / "predictions.sqlite-shm").unlink(missing_ok=True)
    shutil.copytree(small_disk, small_disk.parent / "copy")
    kept = PredictionStore(small_disk.parent / "copy" / "predictions.sqlite").get(MODEL, everything)
    assert 0 < len(kept) < len(everything)
    assert kept.items() <= everything.items()


def test_a_read_only_store_is_read_and_nothing_is_kept(small_disk: Path) -> None:
    path = small_disk / "predictions.sqlite"
    some = dict(list(ROWS.items())[:10])
    store = PredictionStore(path)
    store.put(MODEL, some)
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    store = PredictionStore(path)
    assert store.get(MODEL, KEYS) == some
    assert store.claim(MODEL, KEYS) == set(KEYS[10:])
    store.put(MODEL, ROWS)
    assert store.trouble == f"the prediction store {path} is read-only: it is read, and nothing new is kept"


def test_a_read_only_folder_without_a_store(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    store = PredictionStore(small_disk / "deeper" / "predictions.sqlite")
    store.put(MODEL, ROWS)
    assert store.get(MODEL, KEYS) == ROWS
    assert store.trouble is not None
    assert "Read-only file system" in store.trouble


def _work(path: Path, barrier: object, results: "multiprocessing.Queue[int]") -> None:
    store = PredictionStore(path)
    barrier.wait()  # type: ignore[attr-defined]
    n_claimed = 0
    for start in range(0, len(KEYS), 4):
        ours = store.claim(MODEL, KEYS[start : start + 4])
        time.sleep(0.002)
        store.put(MODEL, {key: ROWS[key] for key in ours})
        n_claimed += len(ours)
    results.put(n_claimed)


def test_two_processes_at_once_share_the_work(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    processes = [context.Process(target=_work, args=(path, barrier, results)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sum(results.get() for _ in processes) == len(KEYS)
    assert PredictionStore(path).get(MODEL, KEYS) == ROWS


def count_calls(path: Path) -> str:
    with path.with_suffix(".calls").open("a") as calls:
        calls.write("x")
    return path.read_text()


@pytest.mark.slow
def test_a_file_is_hashed_again_only_when_it_changed(path: Path, tmp_path: Path) -> None:
    weights, calls = tmp_path / "weights", tmp_path / "weights.calls"
    weights.write_text("one")
    store = PredictionStore(path)
    # Just written: it may be written again within the same tick of the clock, so the hash is not kept.
    assert [store.file_hash(weights, count_calls) for _ in range(2)] == ["one", "one"]
    assert calls.read_text() == "xx"
    time.sleep(2.1)
    assert [store.file_hash(weights, count_calls) for _ in range(3)] == ["one", "one", "one"]
    assert calls.read_text() == "xxx"
    state = weights.stat()
    weights.write_text("two")
    os.utime(weights, ns=(state.st_atime_ns, state.st_mtime_ns))  # as if nothing had happened
    assert store.file_hash(weights, count_calls) == "two"


def test_a_flipped_bit_in_a_kept_hash_is_a_miss(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_RACY_SECONDS", -1.0)
    weights = tmp_path / "weights"
    weights.write_text("one")
    first = PredictionStore(path)
    assert first.file_hash(weights, hash_file) == hash_file(weights)
    first.close()
    assert PredictionStore(path).file_hash(weights, lambda _: "kept before") == hash_file(weights)
    for store in with_flipped_bits(path):
        assert store.file_hash(weights, hash_file) == hash_file(weights)


def test_a_hash_that_somebody_put_there_is_a_miss(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_RACY_SECONDS", -1.0)
    weights = tmp_path / "weights"
    weights.write_text("one")
    store = PredictionStore(path)
    store.file_hash(weights, hash_file)
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE file_hashes SET value = ?", (b"0" * 64,))
    assert PredictionStore(path).file_hash(weights, hash_file) == hash_file(weights)


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("not a database, and longer than nothing")
    with pytest.raises(OptionError, match=r"is not a prediction store, so nothing is written to it\. Give another"):
        check_store(note)
    theirs = tmp_path / "theirs.sqlite"
    with sqlite3.connect(theirs) as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")
    connection.close()
    with pytest.raises(OptionError, match="is not a prediction store"):
        check_store(theirs)
    with pytest.raises(OptionError, match=r"is a folder\. Give a file"):
        check_store(tmp_path)
    ours = tmp_path / "ours.sqlite"
    fill(ours)
    check_store(ours)
    later = sqlite3.connect(ours)
    later.execute("PRAGMA user_version = 7")
    later.close()
    with pytest.raises(OptionError, match="has format 7; this version of bbnli-audit uses 1"):
        check_store(ours)
    check_store(tmp_path / "not there yet.sqlite")


class WatchedConnection(sqlite3.Connection):
    """Reads the header of its file, as another process may at any time, after each statement."""

    path: Path
    headers: ClassVar[set[DatabaseHeader | None]] = set()

    def execute(self, *args: Any) -> sqlite3.Cursor:
        done = super().execute(*args)
        self.headers.add(read_database_header(self.path))
        return done


def test_no_moment_shows_a_store_without_its_format(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None, factory=WatchedConnection)
    connection.path = path
    store_module._set_up(connection)
    connection.close()
    assert WatchedConnection.headers == {None, DatabaseHeader(store_module._APPLICATION, store_module.FORMAT)}


def test_a_store_that_an_earlier_version_left_without_a_format_is_finished(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {store_module._APPLICATION}")
    check_store(path)
    fill(path)
    check_store(path)
    assert PredictionStore(path).get(MODEL, KEYS) == ROWS
    assert read_database_header(path) == DatabaseHeader(store_module._APPLICATION, store_module.FORMAT)
