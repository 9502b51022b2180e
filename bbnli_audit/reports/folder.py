"""Recognizes our own files in a report folder: other files are neither removed nor replaced."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.results.file import NAME as RESULT

SCHEMA, CSV, PARQUET = "result.schema.json", "pairs.csv", "pairs.parquet"
PAGE, SUMMARY, CARD = "report.html", "summary.md", "model_card.md"
COMPARISON_PAGE = "<title>Against the baseline: "
# Texts that every version of an audit writes near the beginning or the end of each file.
_MARKS: Mapping[str, tuple[str, ...]] = {
    RESULT: ('"format":', '"fingerprint":'),
    SCHEMA: ('"$schema":', '"AuditResult"'),
    CSV: ("suite,domain,subtopic,pair_id,cluster",),
    PARQUET: ("PAR1", "subtopic", "pair_id", "cluster"),
    PAGE: ("<title>Bias audit of ",),
    SUMMARY: ("Bias audit: ",),
    CARD: ("\nAudited with bbnli-audit: ",),
}
_NEAR = 1 << 16  # bytes


def has_marks(path: Path, marks: Collection[str]) -> bool:
    """Whether a file has these texts near its beginning or end. An empty file counts as having them, a device not."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        near = file.read(_NEAR)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(len(near), size - _NEAR))
        near += file.read()
    return not near or all(mark.encode() in near for mark in marks)


def check_files(folder: Path, names: Collection[str], option: str) -> None:
    """Refuse to write files into a folder if one of these names belongs to someone else's file.

    Reports of other projects have no mark. They count as ours if a file of an audit is in the same folder.
    """
    there = [name for name in names if os.path.lexists(folder / name)]
    try:
        is_ours = {name: has_marks(folder / name, _MARKS[name]) for name in there if name in _MARKS}
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
