"""Writes into folders that users name, and recognizes our own files there: only these are removed or replaced."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.files import replacing
from bbnli_audit.core.results.file import NAME as RESULT

SCHEMA, CSV, PARQUET = "result.schema.json", "pairs.csv", "pairs.parquet"
PAGE, SUMMARY, CARD = "report.html", "summary.md", "model_card.md"
# This file is in the report folder from the start of a run until all is written. `bbnli-audit verify` looks for it.
UNFINISHED = "run-unfinished.txt"
UNFINISHED_MARK = "An audit began to write here and has not finished."
UNFINISHED_TEXT = f"{UNFINISHED_MARK} If none is running, it was broken off: run it again.\n"
# This file replaces run-unfinished.txt when all is written. It holds the time at which the run finished, because
# copying can change a file's own time.
FINISHED = "run-finished.txt"
FINISHED_MARK = "The audit whose files are here finished at "
COMPARISON_PAGE = "<title>Against the baseline: "
# Texts that every version of bbnli-audit has written near the beginning or the end of each file.
_MARKS: Mapping[str, tuple[str, ...]] = {
    RESULT: ('"format":', '"fingerprint":'),
    SCHEMA: ('"$schema":', '"AuditResult"'),
    CSV: ("suite,domain,subtopic,pair_id,cluster",),
    PARQUET: ("PAR1", "subtopic", "pair_id", "cluster"),
    PAGE: ("<title>Bias audit of ",),
    SUMMARY: ("Bias audit: ", "\n- Model: `"),
    CARD: ("\nAudited with bbnli-audit: ",),
}
_HISTORY_MARKS: Mapping[str, tuple[str, ...]] = {
    "history.html": ("<title>History: ",),
    "comment.md": ("<!-- bbnli-audit history -->",),
    "badge.svg": ("<title>bias audit: ",),
    "flips.csv": ("model,release,subtopic,cluster,pair_id",),
}
_NEAR = 1 << 16  # bytes


def has_marks(path: Path, marks: Collection[str]) -> bool:
    """Whether a file has these texts near its beginning or end. An empty file passes; a folder or a device does not."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        near = file.read(_NEAR)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(len(near), size - _NEAR))
        near += file.read()
    return not near or all(mark.encode() in near for mark in marks)


def check_files(folder: Path, names: Collection[str], option: str) -> None:
    """Refuse to write files of these names into a folder where one of them would replace someone else's file.

    Reports of other projects have no marks. They count as ours if the folder also has a file of an audit.
    """
    there = [name for name in names if os.path.lexists(folder / name)]
    marks = {**_MARKS, **_HISTORY_MARKS, UNFINISHED: (UNFINISHED_MARK,), FINISHED: (FINISHED_MARK,)}
    try:
        is_ours = {name: has_marks(folder / name, marks[name]) for name in there if name in marks}
        is_used = has_report(folder)
    except OSError as exc:
        raise OptionError(f"{option}={folder}: cannot be read: {exc.strerror}. Give another folder.") from exc
    for name in there:
        if not is_ours.get(name, is_used):
            fault = f"holds a {name} that no audit wrote, and a report would replace it"
            raise OptionError(f"{option}={folder}: {fault}. Give another folder, or move the file away.")


def check_page(path: Path, option: str) -> None:
    """Refuse to replace a file that is not the page of an earlier comparison."""
    if os.path.lexists(path) and not has_marks(path, (COMPARISON_PAGE,)):
        fault = "is there already, and is not the page of a comparison"
        raise OptionError(f"{option}={path}: {fault}. Remove it, or choose another name.")


def has_report(folder: Path) -> bool:
    """Whether a folder holds files of an audit."""
    return any(has_marks(folder / name, marks) for name, marks in _MARKS.items())


def mark_finished(folder: Path) -> None:
    """Write down that the files of an audit are complete, and the time."""
    with replacing(folder / FINISHED) as file:
        file.write(f"{FINISHED_MARK}{datetime.now(UTC).isoformat(timespec='seconds')}.\n")
    (folder / UNFINISHED).unlink(missing_ok=True)


@contextmanager
def writing(folder: Path, name: str | None = None) -> Iterator[None]:
    """Make a folder and write into it. If that fails, raise an OptionError that calls the folder `name`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as exc:
        fault = f"cannot be written: {exc.strerror or exc}"
        raise OptionError(f"{name or folder}: {fault}. Give a folder that can be written to.") from exc
