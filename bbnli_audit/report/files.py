"""result.json and pairs.csv."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bbnli_audit.errors import OptionError
from bbnli_audit.results import AuditResult

if TYPE_CHECKING:
    import pandas as pd


def write_files(result: AuditResult, pairs: "pd.DataFrame", folder: Path) -> list[Path]:
    """Write the reports into a folder and give their paths.

    Raises:
        OptionError: when the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _replacing(folder / "result.json") as file:
            json.dump(result.to_dict(), file, indent=1, ensure_ascii=False, allow_nan=False)
            file.write("\n")
        with _replacing(folder / "pairs.csv") as file:
            pairs.to_csv(file, index=False, lineterminator="\n")
    except OSError as exc:
        raise OptionError(
            f"--bbnli-report={folder}: cannot be written: {exc.strerror or exc}. Give a folder that can."
        ) from exc
    return [folder / "result.json", folder / "pairs.csv"]


def remove_files(folder: Path) -> None:
    """Remove the reports of an earlier run, and nothing else."""
    for name in ("result.json", "pairs.csv"):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    """Write beside the file and exchange it at the end: a report is old or new, never half."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
