"""The file of judgements: nothing is lost, whoever writes, and foreign files are left alone."""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bbnli_audit.core.errors import OptionError, WorkbenchError
from bbnli_audit.workbench.review.judgements import Given, Judgements, Taken
from bbnli_audit.workbench.review.states import (
    Action,
    ReviewVerdict,
    Row,
    Stance,
    State,
    as_time,
    as_verdict,
    check_annotator,
    clean_note,
)
from tests.review_workspace import make_items, state

VALID, INVALID, INCOHERENT, *_ = ReviewVerdict
FIRST, SECOND = (item.id for item in make_items(2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "review.sqlite"


def judge(
    judgements: Judgements,
    annotator: str,
    item: str,
    verdict: ReviewVerdict,
    stance: Stance | None = None,
    key: str = "",
) -> None:
    judgements.add(Row(annotator, item, Action.JUDGE, verdict, stance), key)


def test_what_was_said_is_there_after_opening_again(path: Path) -> None:
    with Judgements(path) as judgements:
        name = judgements.id
        judge(judgements, "ana", FIRST, VALID)
        judge(judgements, "ana", FIRST, VALID, Stance.ANTI)
        judgements.add(Row("ana", FIRST, Action.NOTE, note="odd\r\nwording\x00 "))
        judge(judgements, "ben", FIRST, INCOHERENT)
    with Judgements(path) as judgements:
        assert judgements.id == name
        ana, ben = judgements.states_of("ana")[FIRST], judgements.states_of("ben")[FIRST]
        assert (ana.verdict, ana.stance, ana.note) == (VALID, Stance.ANTI, "odd\nwording")
        assert (ben.verdict, ben.stance, ben.note) == (INCOHERENT, None, "")
        assert judgements.states_of("cem") == {}
        assert len(judgements.rows()) == 4


def test_valid_is_finished_only_with_a_stance() -> None:
    assert not State().is_finished
    assert not State(VALID).is_finished
    assert State(VALID, Stance.PRO).is_finished
    assert State(INVALID).is_finished


def test_undo_takes_back_one_key_after_another_and_removes_no_row(path: Path) -> None:
    with Judgements(path) as judgements:
        judge(judgements, "ana", FIRST, INVALID)
        judge(judgements, "ana", FIRST, VALID)
        judge(judgements, "ana", FIRST, VALID, Stance.PRO)
        judgements.add(Row("ana", FIRST, Action.NOTE, note="kept"))
        judge(judgements, "ben", SECOND, INVALID)
        judgements.add(Row("ana", SECOND, Action.SKIP))
        seen = []
        while (undone := judgements.undo("ana")) is not None:
            seen.append((undone.item, undone.state.verdict, undone.state.stance, undone.state.note))
        assert seen == [
            (SECOND, None, None, ""),
            (FIRST, VALID, None, "kept"),
            (FIRST, INVALID, None, "kept"),
            (FIRST, None, None, "kept"),
        ]
        assert judgements.states_of("ben")[SECOND].verdict is INVALID
        assert [row.action for row in judgements.rows()].count(Action.UNDO) == 4
        assert len(judgements.rows()) == 10


def test_after_an_undo_the_next_judgement_is_what_undo_takes_back(path: Path) -> None:
    with Judgements(path) as judgements:
        judge(judgements, "ana", FIRST, INVALID)
        judgements.undo("ana")
        judge(judgements, "ana", SECOND, INCOHERENT)
        undone = judgements.undo("ana")
        assert undone is not None
        assert (undone.item, undone.state.verdict) == (SECOND, None)


def test_a_row_that_is_sent_twice_counts_once(path: Path) -> None:
    with Judgements(path) as judgements:
        for _ in range(2):
            judge(judgements, "ana", FIRST, INVALID, key="a" * 8)
            judge(judgements, "ana", SECOND, INVALID, key="b" * 8)
        undone = [judgements.undo("ana", key="c" * 8) for _ in range(2)]
        assert undone[0] == undone[1]
        assert judgements.states_of("ana")[FIRST].verdict is INVALID
        judge(judgements, "ben", FIRST, VALID, key="a" * 8)  # another annotator's page may draw the same key
        assert len(judgements.rows()) == 4


def test_a_skipped_item_is_not_finished_until_it_is_judged(path: Path) -> None:
    with Judgements(path) as judgements:
        judgements.add(Row("ana", SECOND, Action.SKIP))
        judgements.add(Row("ana", FIRST, Action.SKIP))
        states = judgements.states_of("ana")
        first, second = states[FIRST].skipped, states[SECOND].skipped
        assert first is not None
        assert second is not None
        assert second < first
        judge(judgements, "ana", SECOND, INVALID)
        assert judgements.states_of("ana")[SECOND].skipped is None


_WRITER = """
import sys
from pathlib import Path
from bbnli_audit.workbench.review.judgements import Judgements
from bbnli_audit.workbench.review.states import Action, ReviewVerdict, Row
with Judgements(Path(sys.argv[1])) as judgements:
    for n in range(8):
        judgements.add(Row(sys.argv[2], f"{n:012x}", Action.JUDGE, ReviewVerdict.INVALID))
"""


def test_several_processes_begin_and_fill_the_same_file(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name], stderr=subprocess.PIPE, text=True)
        for name in ("ana", "ben", "ana")
    ]
    for writer in writers:
        assert writer.communicate(timeout=60)[1] == ""
    with Judgements(path) as judgements:
        assert len(judgements.rows()) == 24
        assert {name: len(items) for name, items in judgements.states().items()} == {"ana": 8, "ben": 8}


def test_other_items_are_told_and_judgements_of_items_that_are_gone_stay(path: Path) -> None:
    with Judgements(path) as judgements:
        assert not judgements.note_items(make_items(3))
        assert not judgements.note_items(make_items(3)[::-1])
        judge(judgements, "ana", FIRST, INVALID)
        assert judgements.note_items(make_items(3)[1:])
        assert not judgements.note_items(make_items(3)[1:])
        assert judgements.note_items(make_items(3))
        assert judgements.states_of("ana")[FIRST].verdict is INVALID


@pytest.mark.parametrize("content", [b"item,annotator\n", b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_not_ours_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(WorkbenchError, match=r"review.sqlite: is not a file of judgements"):
        Judgements(path)
    assert path.read_bytes() == content


def test_another_database_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(WorkbenchError, match=r"is not a file of judgements, so nothing is written to it"):
        Judgements(path)
    assert path.read_bytes() == content


def test_a_later_format_is_told(path: Path) -> None:
    Judgements(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(WorkbenchError, match=r"has format 9; this version of bbnli-audit uses 1"):
        Judgements(path)


def test_a_damaged_file_is_told_and_not_touched(path: Path) -> None:
    with Judgements(path) as judgements:
        judgements.take(Given("ana", f"{n:012x}", state("invalid")) for n in range(300))
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\x5a" * 8192
    path.write_bytes(content)
    with pytest.raises(WorkbenchError, match=r"is damaged \(.*\). Nothing was written to it. Copy it"):
        Judgements(path)
    assert path.read_bytes() == content


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match=r"review.sqlite: cannot be used: unable to open database file"):
        Judgements(tmp_path / "nowhere" / "review.sqlite")


def test_writing_to_a_file_that_was_removed_is_refused(path: Path) -> None:
    with Judgements(path) as judgements:
        path.unlink()
        with pytest.raises(WorkbenchError, match=r"was removed or replaced while in use"):
            judge(judgements, "ana", FIRST, INVALID)


def test_a_file_that_another_process_holds_is_told_and_nothing_is_half_written(path: Path) -> None:
    with Judgements(path, busy_seconds=0.05) as judgements:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(WorkbenchError, match=r"cannot be used: database is locked"):
            judge(judgements, "ana", FIRST, INVALID)
        other.execute("COMMIT")
        other.close()
        judge(judgements, "ana", FIRST, INVALID)
        assert len(judgements.rows()) == 1


def test_of_judgements_from_files_the_newest_counts_and_none_is_added_twice(path: Path) -> None:
    early, late = (state(label, when=when) for label, when in (("invalid", "2026-01-01"), ("valid-pro", "2026-02-01")))
    with Judgements(path) as judgements:
        given = [Given("ana", FIRST, late), Given("ana", FIRST, early), Given("ben", FIRST, early)]
        assert judgements.take(given) == Taken(3, 0, 0)
        assert judgements.take(given) == Taken(0, 2, 1)
        assert judgements.states_of("ana")[FIRST].label == "valid-pro"
        judge(judgements, "ana", FIRST, INCOHERENT)
        assert judgements.take([Given("ana", FIRST, late)]) == Taken(0, 0, 1)
        judgements.undo("ana")
        assert judgements.take([Given("ana", FIRST, late)]) == Taken(0, 0, 1)  # what was undone does not come back
        assert judgements.states_of("ana")[FIRST].label == "valid-pro"


def test_names_times_and_verdicts_are_read_or_refused_in_words() -> None:
    assert check_annotator("  Ana Ó ") == "Ana Ó"
    for name in ("", "  ", "a\nb", "x" * 65, "\ud800"):
        with pytest.raises(OptionError, match="a name has 1 to 64 printable characters"):
            check_annotator(name)
    assert as_time("2026-03-01T12:00:00+02:00") == "2026-03-01T10:00:00.000000Z" == as_time("2026-03-01 10:00")
    for time in ("", "yesterday", "2026-13-01", "0001-01-01T00:00:00+10:00"):
        with pytest.raises(ValueError, match=re.escape(f"time is {time!r}; write it like 2026-03-31T09:30:00Z")):
            as_time(time)
    assert as_verdict("", None) == (None, None)
    for given, message in (
        (("Valid", ""), "verdict is 'Valid'; it must be valid, invalid, incoherent, entailed, "),
        (("valid", "for"), "stance is 'for'; it must be pro, anti, first, second, both, none or empty"),
        (("invalid", "pro"), "stance is 'pro' and verdict 'invalid'; this verdict has no such stance"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            as_verdict(*given)


def test_a_clean_note_is_clean_already() -> None:
    text = " a\ttab\r\nline\u2028\ud800\x07" + "é" * 3000
    clean = clean_note(text)
    assert clean == clean_note(clean)
    assert len(clean) <= 2000
    assert clean.startswith("a\ttab\nline ?")
