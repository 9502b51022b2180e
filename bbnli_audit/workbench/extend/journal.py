"""What a long step has finished so far, line by line, so that a killed one goes on where it was."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import WorkbenchError


class Journal:
    """A file of JSON lines; the first names the work. Lines of other work, and a line cut off, are not taken."""

    def __init__(self, path: Path, work: Mapping[str, Any]) -> None:
        self._path = path
        self._work = json.dumps({"work": work}, sort_keys=True)

    def read(self) -> Iterator[Any]:
        """Give what was finished; a file of other work is begun anew."""
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").split("\n")
        except FileNotFoundError:
            lines = []
        except OSError as exc:
            raise WorkbenchError(f"{self._path}: cannot be read: {exc.strerror}. Remove it.") from exc
        if lines[:1] != [self._work]:
            self._start([])
            return
        whole = [line for line in lines[1:-1] if _is_json(line)]  # after the last newline a line is cut off
        if len(whole) != len(lines) - 2 or lines[-1]:
            self._start(whole)
        yield from map(json.loads, whole)

    def add(self, entry: Any) -> None:
        """Keep one entry: it is on the disk when this returns."""
        self._write(f"{json.dumps(entry, ensure_ascii=False)}\n", "a")

    def remove(self) -> None:
        with suppress(OSError):
            self._path.unlink()

    def _start(self, lines: list[str]) -> None:
        self._write("".join(f"{line}\n" for line in (self._work, *lines)), "w")

    def _write(self, text: str, mode: str) -> None:
        try:
            with self._path.open(mode, encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as exc:
            raise WorkbenchError(f"{self._path}: cannot be written: {exc.strerror}.") from exc


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
