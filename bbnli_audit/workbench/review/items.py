"""What is judged: one item is one distinct hypothesis of a subtopic."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.workbench.extend.table import read_lines

COLUMNS = ("item", "domain", "subtopic", "hypothesis", "template", "word", "premise")
_MUST_BE_FILLED = ("domain", "subtopic", "hypothesis")


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A hypothesis to judge, with where it comes from. The repr shows no sentence."""

    id: str
    domain: str
    subtopic: str
    hypothesis: str = field(repr=False)
    template: str = field(default="", repr=False)
    word: str = field(default="", repr=False)
    premise: str = field(default="", repr=False)

    @property
    def path(self) -> str:
        return f"{self.domain}/{self.subtopic}"


def item_id(domain: str, subtopic: str, hypothesis: str) -> str:
    """Give the name of an item: the same for the same hypothesis, whatever template, word or model it came from."""
    parts = (part.encode() for part in (domain, subtopic, hypothesis))
    return sha256(b"".join(b"%d\n%s" % (len(part), part) for part in parts)).hexdigest()[:12]


def make_item(
    domain: str, subtopic: str, hypothesis: str, template: str = "", word: str = "", premise: str = ""
) -> ReviewItem:
    return ReviewItem(item_id(domain, subtopic, hypothesis), domain, subtopic, hypothesis, template, word, premise)


def items_hash(items: Sequence[ReviewItem]) -> str:
    """Say which items these are, in whatever order."""
    return sha256("\n".join(sorted(item.id for item in items)).encode()).hexdigest()


def read_items(path: Path) -> tuple[ReviewItem, ...]:
    """Read the items to judge, in the order of the file. Columns that are not ours are left alone.

    Raises:
        WorkbenchError: when the file is not there, is no such table, or names an item wrongly or twice.
    """
    items: dict[str, ReviewItem] = {}
    for line, row in read_lines(path, COLUMNS):
        values = [row[column] for column in COLUMNS]
        item = ReviewItem(*values)
        empty = next((column for column in _MUST_BE_FILLED if not row[column].strip()), None)
        if empty is not None:
            raise WorkbenchError(f"{path}:{line}: {empty} is empty. Make the table of items again.")
        expected = item_id(item.domain, item.subtopic, item.hypothesis)
        if item.id != expected:
            raise WorkbenchError(
                f"{path}:{line}: the item is named {item.id!r:.40}, and its domain, subtopic and hypothesis give "
                f"{expected!r}. The row was changed by hand: make the table of items again."
            )
        if item.id in items:
            raise WorkbenchError(f"{path}:{line}: the item {item.id} is there twice. Make the table of items again.")
        items[item.id] = item
    if not items:
        raise WorkbenchError(f"{path}: holds no item, so there is nothing to judge.")
    return tuple(items.values())
