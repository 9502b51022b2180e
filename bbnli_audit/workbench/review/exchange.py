"""Judgements as a CSV file, for other machines and other tools: one row for what an annotator says of an item."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from bbnli_audit.core.errors import OptionError, WorkbenchError
from bbnli_audit.workbench.extend.table import read_lines
from bbnli_audit.workbench.review.decide import write_table
from bbnli_audit.workbench.review.judgements import Given, Judgements
from bbnli_audit.workbench.review.states import State, States, as_time, as_verdict, check_annotator, clean_note

COLUMNS = ("item", "annotator", "verdict", "stance", "note", "time")


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file."""

    n_added: int
    n_same: int  # there already
    n_older: int  # other than what is there, and no newer: what is there stays
    n_unknown: int  # added, and of items that are not in the table of items


def said(states: States) -> list[Given]:
    """List what annotators say: judgements, begun ones too, and notes. Undone ones leave no trace here."""
    return [
        Given(annotator, item, state)
        for annotator, of_annotator in sorted(states.items())
        for item, state in sorted(of_annotator.items())
        if state.verdict is not None or state.note
    ]


def hash_said(states: States) -> str:
    """Say which judgements these are, whenever they were made."""
    rows = [(annotator, item, state.verdict, state.stance, state.note) for annotator, item, state in said(states)]
    return sha256(json.dumps(rows).encode()).hexdigest()


def write_csv(path: Path, states: States) -> int:
    """Write what annotators say; give the number of rows."""
    rows = [
        (item, annotator, state.verdict or "", state.stance or "", state.note, state.time)
        for annotator, item, state in said(states)
    ]
    write_table(path, COLUMNS, rows)
    return len(rows)


def read_csv(path: Path) -> list[Given]:
    """Read judgements.

    Raises:
        WorkbenchError: with the file, the line, and what is wrong there.
    """
    given = []
    for line, row in read_lines(path, COLUMNS):
        try:
            given.append(
                make_given(row["annotator"], row["item"], row["verdict"], row["stance"], row["note"], row["time"])
            )
        except (ValueError, OptionError) as exc:
            raise WorkbenchError(f"{path}:{line}: {str(exc).rstrip('.')}. Nothing was imported.") from exc
    return given


def make_given(annotator: str, item: str, verdict: str, stance: str, note: str, time: str) -> Given:
    """Check what a file says.

    Raises:
        ValueError: with what is wrong, in words.
        OptionError: likewise, about the annotator's name.
    """
    if not item.strip():
        raise ValueError("item is empty")
    chosen = as_verdict(verdict.strip(), stance.strip())
    note = clean_note(note)
    if chosen[0] is None and not note:
        raise ValueError("verdict and note are both empty, so the row says nothing")
    return Given(check_annotator(annotator), item.strip(), State(*chosen, note, as_time(time.strip())))


def take_into(judgements: Judgements, path: Path, given: Iterable[Given], known: Iterable[str]) -> Imported:
    """Add judgements from a file to those that are there.

    Args:
        judgements: Where to.
        path: The file, for messages.
        given: What it holds.
        known: The items that are judged here.

    Raises:
        WorkbenchError: when no judgement is of an item that is judged here: the file belongs to another review.
    """
    given = list(given)
    there = set(known)
    unknown = [each for each in given if each.item not in there]
    if given and len(unknown) == len(given):
        raise WorkbenchError(
            f"{path}: none of its {len(given)} judgements is of an item of this review. Give the folder it belongs to."
        )
    taken = judgements.take(given)
    return Imported(*taken, n_unknown=len(unknown))
