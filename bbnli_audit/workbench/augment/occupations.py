"""Finds texts that name an occupation of our `occupations` suite, or of a list in a file."""

import re
from collections.abc import Sequence
from pathlib import Path

from bbnli_audit.core.errors import AugmentError
from bbnli_audit.suites.occupations import Occupations
from bbnli_audit.workbench.augment.words import any_of, compile_words, lower, plural

_NAME = re.compile(r"\w(?:[\w '’-]*\w)?")


def read_names(path: Path | None) -> Sequence[str]:
    """Return the occupations of the suite, or of a text file with one per line."""
    if path is None:
        return [occupation.name for occupation in Occupations().occupations()]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise AugmentError(f"--occupations {path}: cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise AugmentError(f"--occupations {path}: is not UTF-8. Save it as UTF-8.") from exc
    names = []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.partition("#")[0].strip()
        if name and not _NAME.fullmatch(name):
            raise AugmentError(
                f"{path}:{number}: is not an occupation. Write one per line, in letters; spaces, hyphens and "
                "apostrophes may stand between them."
            )
        if name:
            names.append(name)
    if not names:
        raise AugmentError(f"{path}: names no occupation. Write one per line.")
    return names


class OccupationFinder:
    """Finds the occupations in texts, in the singular or the plural."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        forms = {form for name in map(lower, names) for form in (name, plural(name), f"{name}s")}
        self._search = compile_words(any_of(forms)).search

    def is_in(self, text: str) -> bool:
        return self._search(lower(text)) is not None
