"""The judgements as values: the rows that were entered, and the state of each item, which results from its rows.

Rows are never changed or removed. An undo is a row that names the row it undoes. Of an annotator's judgements and skips
of an item, the last one that was not undone counts. Notes are separate: an undo keeps the note.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from bbnli_audit.core.errors import OptionError

MAX_NOTE = 2000
MAX_NAME = 64
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class ReviewVerdict(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    INCOHERENT = "incoherent"
    # For a suite's item: does the hypothesis follow from the premise?
    ENTAILED = "entailed"
    CONTRADICTED = "contradicted"
    NEITHER = "neither"
    MALFORMED = "malformed"


class Stance(StrEnum):
    PRO = "pro"
    ANTI = "anti"
    # For a suite's item: about which group does the hypothesis state a stereotype?
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"
    NONE = "none"


_WAYS, _GROUPS = (Stance.PRO, Stance.ANTI), (Stance.FIRST, Stance.SECOND, Stance.BOTH, Stance.NONE)
# The verdicts that need a stance, and the stances that each can have.
STANCES_OF: Mapping[ReviewVerdict, tuple[Stance, ...]] = {
    ReviewVerdict.VALID: _WAYS,
    ReviewVerdict.ENTAILED: _GROUPS,
    ReviewVerdict.CONTRADICTED: _GROUPS,
    ReviewVerdict.NEITHER: _GROUPS,
}


class Action(StrEnum):
    JUDGE = "judge"
    SKIP = "skip"
    NOTE = "note"
    UNDO = "undo"
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class Row:
    """One key press or imported judgement. If `note` is None, the item keeps its note.

    The id is 0 until the row is stored. If the row has no time, the present time is stored.
    """

    annotator: str
    item: str
    action: Action
    verdict: ReviewVerdict | None = None
    stance: Stance | None = None
    note: str | None = field(default=None, repr=False)
    undoes: int | None = None
    time: str = ""
    id: int = 0

    def stored(self) -> tuple[str | int | None, ...]:
        """Return the values to store, in the order of the fields."""
        note = None if self.note is None else clean_note(self.note)
        return self.annotator, self.item, self.action, self.verdict, self.stance, note, self.undoes, self.time or now()


@dataclass(frozen=True, slots=True)
class State:
    """An annotator's judgement of an item. `time` is the time of the item's newest row, which may be an undo."""

    verdict: ReviewVerdict | None = None
    stance: Stance | None = None
    note: str = field(default="", repr=False)
    time: str = ""
    skipped: int | None = None  # the id of the row that skipped the item, if the item is skipped now

    @property
    def is_finished(self) -> bool:
        return self.verdict is not None and (self.verdict not in STANCES_OF or self.stance is not None)

    @property
    def label(self) -> str:
        """The judgement in one word, such as valid-pro, valid-anti or incoherent."""
        assert self.verdict is not None
        return self.verdict.value if self.stance is None else f"{self.verdict.value}-{self.stance.value}"


States = Mapping[str, Mapping[str, State]]  # annotator → item → state


def fold(rows: Iterable[Row]) -> dict[str, dict[str, State]]:
    """Return the states that result from the rows, which are applied in order."""
    rows = list(rows)
    undone = {row.undoes for row in rows if row.undoes is not None}
    states: dict[str, dict[str, State]] = {}
    for row in rows:
        of_annotator = states.setdefault(row.annotator, {})
        state = of_annotator.get(row.item, State())
        if row.action not in (Action.UNDO, Action.NOTE) and row.id not in undone:
            skipped = row.id if row.action is Action.SKIP else None
            state = replace(state, verdict=row.verdict, stance=row.stance, skipped=skipped)
        note = state.note if row.note is None else row.note
        of_annotator[row.item] = replace(state, note=note, time=max(state.time, row.time))
    return states


def finished(states: States, items: Iterable[str]) -> dict[str, dict[str, State]]:
    """Return the finished judgements of these items. Annotators without a finished judgement are left out."""
    there = set(items)
    kept = {
        annotator: {item: state for item, state in of_annotator.items() if item in there and state.is_finished}
        for annotator, of_annotator in sorted(states.items())
    }
    return {annotator: of_annotator for annotator, of_annotator in kept.items() if of_annotator}


def as_verdict(value: str | None, stance: str | None) -> tuple[ReviewVerdict | None, Stance | None]:
    """Read a judgement from a file or a request. A ValueError says what is wrong."""
    if value and value not in set(ReviewVerdict):
        raise ValueError(f"verdict is {value!r:.40}; it must be {', '.join(ReviewVerdict)} or empty")
    if stance and stance not in set(Stance):
        raise ValueError(f"stance is {stance!r:.40}; it must be {', '.join(Stance)} or empty")
    verdict = ReviewVerdict(value) if value else None
    if stance and (verdict is None or stance not in STANCES_OF.get(verdict, ())):
        raise ValueError(f"stance is {stance!r} and verdict {value or ''!r}; this verdict has no such stance")
    return verdict, Stance(stance) if stance else None


def clean_note(text: str) -> str:
    """Return a note as it is stored: valid Unicode, plain line ends, no control characters, cut to `MAX_NOTE`."""
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub(" ", text)[:MAX_NOTE].strip()


def check_annotator(name: str) -> str:
    """Return an annotator's name as it is stored."""
    clean = unicodedata.normalize("NFC", name).strip()
    if not clean or len(clean) > MAX_NAME or not clean.isprintable():
        raise OptionError(f"The annotator {name!r:.80}: a name has 1 to {MAX_NAME} printable characters, such as ana.")
    return clean


def as_time(value: str) -> str:
    """Return a time as it is stored: UTC, with microseconds. A time without a zone is taken as UTC."""
    try:
        time = datetime.fromisoformat(value)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise ValueError(f"time is {value!r:.40}; write it like 2026-03-31T09:30:00Z") from exc
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def now() -> str:
    return as_time(datetime.now(UTC).isoformat())
