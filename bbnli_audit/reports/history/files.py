"""Writes the files of a history: a page, a comment, a badge, and all pairs that changed."""

from collections.abc import Callable, Mapping
from pathlib import Path

from bbnli_audit.core.files import replacing
from bbnli_audit.reports.folder import check_files, writing
from bbnli_audit.reports.history.badge import render_badge
from bbnli_audit.reports.history.comment import render_comment
from bbnli_audit.reports.history.flips import flips_csv
from bbnli_audit.reports.history.page import render_history
from bbnli_audit.reports.history.releases import History

FILES: Mapping[str, Callable[[History], str]] = {
    "history.html": render_history,
    "comment.md": render_comment,
    "badge.svg": render_badge,
    "flips.csv": lambda history: flips_csv(history.series),
}


def write_history(history: History, folder: Path) -> list[Path]:
    """Write all files of a history. Replace only files of earlier histories. The same results give the same bytes."""
    check_files(folder, FILES, "--output")
    rendered = {folder / name: render(history) for name, render in FILES.items()}
    with writing(folder, f"--output={folder}"):
        for path, text in rendered.items():
            with replacing(path, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
    return list(rendered)
