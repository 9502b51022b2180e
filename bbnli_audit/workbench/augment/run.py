"""Reads training data, swaps, and writes, batch by batch: memory does not grow with the file."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.files import replacing
from bbnli_audit.workbench.augment.occupations import OccupationFinder
from bbnli_audit.workbench.augment.reading import Batch, TextColumns, Texts, find_suffix, open_source
from bbnli_audit.workbench.augment.report import Tally
from bbnli_audit.workbench.augment.swap import Found, Left, Swapper
from bbnli_audit.workbench.augment.writing import open_writer


class Example(NamedTuple):
    before: Texts
    after: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Augmenter:
    """How rows are copied. With `occupations`, only rows that name one; with `has_originals`, the rows stay, too."""

    swapper: Swapper
    occupations: OccupationFinder | None = None
    has_originals: bool = True

    def run(
        self,
        path: Path,
        out: Path,
        texts: TextColumns,
        n_examples: int = 0,
        progress: Callable[[int, float], object] = lambda _n, _share: None,
    ) -> tuple[Tally, list[Example]]:
        """Write `out` from `path`. It stays as it was until everything is written."""
        check_paths(path, out)
        tally = Tally()
        examples: list[Example] = []
        with open_source(path, texts) as source:
            try:
                with (
                    replacing(out.resolve(), "wb") as file,
                    open_writer(file, out, source, self.has_originals) as writer,
                ):
                    for batch in source.batches:
                        copies = self.copy(batch, tally)
                        writer.write(batch, copies)
                        progress(tally.n_read, source.share_read())
                        missing = islice(copies.items(), n_examples - len(examples))
                        examples += (Example(batch.texts[index], after) for index, after in missing)
            except OSError as exc:
                raise OptionError(f"OUT {out}: cannot be written: {exc.strerror}.") from exc
        return tally, examples

    def copy(self, batch: Batch, tally: Tally) -> dict[int, tuple[str, str]]:
        """Return the texts of the copies by row, and count."""
        copies = {}
        counted = []
        swap, finder = self.swapper.swap, self.occupations
        tally.n_read += len(batch)
        for index, may_hold in enumerate(self.swapper.sift(batch.texts)):
            premise, hypothesis = batch.texts[index]
            if premise is None or hypothesis is None:
                tally.n_missing_text += 1
                continue
            found: list[Found] = []
            left: list[Left] = []
            if may_hold:
                texts = swap(premise, found, left), swap(hypothesis, found, left)
            if not found:
                tally.n_nothing_found += 1
            elif finder is not None and not (finder.is_in(premise) or finder.is_in(hypothesis)):
                tally.n_no_occupation += 1
            else:
                counted.append((found, left))
                copies[index] = texts
        tally.add_copies(counted)
        return copies


def check_paths(path: Path, out: Path) -> None:
    """Refuse paths that would fail, before anything is read."""
    find_suffix(path, "IN")
    find_suffix(out, "OUT")
    if out.is_dir():
        raise OptionError(f"OUT {out}: is a folder. Name a file.")
    if not out.parent.is_dir():
        raise OptionError(f"OUT {out}: there is no folder {out.parent}. Create it first.")
    if is_same_file(path, out):
        raise OptionError(f"OUT {out}: is the same file as IN. Use another name, so that the original data stays.")


def is_same_file(one: Path, other: Path) -> bool:
    """Say whether two paths lead to one file, also through links."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()
