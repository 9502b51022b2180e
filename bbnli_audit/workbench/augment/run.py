"""Writes training data with swapped copies, batch by batch, so that memory does not grow with the file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bbnli_audit.core.errors import AugmentError, OptionError
from bbnli_audit.core.files import refuse_existing, replacing
from bbnli_audit.core.reading import Source
from bbnli_audit.core.tables import open_table
from bbnli_audit.suites.occupations import Occupations
from bbnli_audit.workbench.augment.reading import Batch, TextColumns, Texts, find_suffix, read_batches
from bbnli_audit.workbench.augment.report import Tally
from bbnli_audit.workbench.augment.swap import Found, Left, Swapper
from bbnli_audit.workbench.augment.words import TERM, TERM_RULE, any_of, compile_words, lower, plural
from bbnli_audit.workbench.augment.writing import open_writer

Progress = Callable[[int, float], object]  # called with the number of rows read, and the share of the file read


class Example(NamedTuple):
    before: Texts
    after: tuple[str, str]


def read_names(path: Path | None) -> Sequence[str]:
    """Return the occupations in a text file with one per line. Without a path, return those of our suite."""
    if path is None:
        return [occupation.name for occupation in Occupations().occupations()]
    text = Source(path, AugmentError, f"--occupations {path}").read_text(encoding="utf-8-sig")
    names = []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.partition("#")[0].strip()
        if name and not TERM.fullmatch(name):
            raise AugmentError(f"{path}:{number}: is not an occupation. Write one per line: {TERM_RULE}.")
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


@dataclass(frozen=True, slots=True)
class Augmenter:
    """Copies the rows that contain a term, and swaps the terms in the copies.

    With `occupations`, only rows that name an occupation are copied. With `has_originals`, all rows are also written as
    they were.
    """

    swapper: Swapper
    occupations: OccupationFinder | None = None
    has_originals: bool = True

    def run(
        self, path: Path, out: Path, texts: TextColumns, n_examples: int = 0, progress: Progress = lambda *_: None
    ) -> tuple[Tally, list[Example]]:
        """Augment `path` into `out`, which appears only when it is complete. Return counts and the first copies."""
        check_paths(path, out)
        tally = Tally()
        examples: list[Example] = []
        with open_table(path, AugmentError, is_verbatim=True) as table:
            try:
                with (
                    replacing(out, "wb", must_be_new=True) as file,
                    open_writer(file, out, table, texts, self.has_originals) as writer,
                ):
                    for batch in read_batches(table, texts):
                        copies = self.copy(batch, tally)
                        writer.write(batch, copies)
                        progress(tally.n_read, table.share_read())
                        missing = islice(copies.items(), n_examples - len(examples))
                        examples += (Example(batch.texts[index], after) for index, after in missing)
            except OSError as exc:
                raise OptionError(f"OUT {out}: cannot be written: {exc.strerror}.") from exc
        return tally, examples

    def copy(self, batch: Batch, tally: Tally) -> dict[int, tuple[str, str]]:
        """Return the index of each copied row, with the texts of the copy. Count all rows in `tally`."""
        copies = {}
        counted = []
        swap, finder = self.swapper.swap, self.occupations
        tally.n_read += len(batch)
        for index, may_hold in enumerate(self.swapper.sift(batch.texts)):
            premise, hypothesis = batch.texts[index]
            if premise is None or hypothesis is None:
                tally.not_copied["missing_text"] += 1
                continue
            found: list[Found] = []
            left: list[Left] = []
            if may_hold:
                texts = swap(premise, found, left), swap(hypothesis, found, left)
            if not found:
                tally.not_copied["nothing_to_swap"] += 1
            elif finder is not None and not (finder.is_in(premise) or finder.is_in(hypothesis)):
                tally.not_copied["no_occupation"] += 1
            else:
                counted.append((found, left))
                copies[index] = texts
        tally.add_copies(counted)
        return copies


def check_paths(path: Path, out: Path) -> None:
    """Refuse paths that cannot be used, before anything is read."""
    find_suffix(path, "IN")
    find_suffix(out, "OUT")
    if out.is_dir():
        raise OptionError(f"OUT {out}: is a folder. Name a file.")
    if not out.parent.is_dir():
        raise OptionError(f"OUT {out}: there is no folder {out.parent}. Create it first.")
    if is_same_file(path, out):
        raise OptionError(f"OUT {out}: is the same file as IN. Use another name, so that the original data stays.")
    refuse_existing(out, f"OUT {out}")


def is_same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()
