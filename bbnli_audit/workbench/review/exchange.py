"""Judgements as a CSV file, for other machines and tools: one row for what an annotator says about an item."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from bbnli_audit.core.errors import OptionError, WorkbenchError
from bbnli_audit.workbench.extend.table import read_lines
from bbnli_audit.workbench.review.decide import write_table
from bbnli_audit.workbench.review.judgements import Given, Judgements, Taken
from bbnli_audit.workbench.review.states import State, States, as_time, as_verdict, check_annotator, clean_note

COLUMNS = ("item", "annotator", "verdict", "stance", "note", "time")


def said(states: States) -> list[Given]:
    """List what annotators say: judgements, also unfinished ones, and notes. What was undone is left out."""
    return [
        Given(annotator, item, state)
        for annotator, of_annotator in sorted(states.items())
        for item, state in sorted(of_annotator.items())
        if state.says_something
    ]


def hash_said(states: States) -> str:
    """Return a hash of the judgements, whenever they were made."""
    rows = [(annotator, item, state.verdict, state.stance, state.note) for annotator, item, state in said(states)]
    return sha256(json.dumps(rows).encode()).hexdigest()


def write_csv(path: Path, states: States) -> int:
    """Write what annotators say, and return the number of rows."""
    rows = [
        (item, annotator, state.verdict or "", state.stance or "", state.note, state.time)
        for annotator, item, state in said(states)
    ]
    write_table(path, COLUMNS, rows)
    return len(rows)


def read_csv(path: Path) -> list[Given]:
    """Read judgements. A message names the line and what is wrong there."""
    return [make_given(row, f"{path}:{line}") for line, row in read_lines(path, COLUMNS)]


def make_given(row: Mapping[str, str], place: str) -> Given:
    """Check one row of the columns above; `place` says where it stands."""
    item, note = row["item"].strip(), clean_note(row["note"])
    try:
        if not item:
            raise ValueError("item is empty")
        verdict, stance = as_verdict(row["verdict"].strip(), row["stance"].strip())
        if verdict is None and not note:
            raise ValueError("verdict and note are both empty, so the row says nothing")
        annotator = check_annotator(row["annotator"])
        return Given(annotator, item, State(verdict, stance, note, as_time(row["time"].strip())))
    except (ValueError, OptionError) as exc:
        raise WorkbenchError(f"{place}: {str(exc).rstrip('.')}. Nothing was imported.") from exc


def take_into(judgements: Judgements, path: Path, given: Iterable[Given], known: Iterable[str]) -> Taken:
    """Add the judgements of a file, of which at least one must be about one of the `known` items."""
    given = list(given)
    there = set(known)
    n_unknown = sum(each.item not in there for each in given)
    if given and n_unknown == len(given):
        raise WorkbenchError(
            f"{path}: none of its {len(given)} judgements is about an item of this review. Import it into the folder "
            "it belongs to."
        )
    return judgements.take(given)._replace(n_unknown=n_unknown)
