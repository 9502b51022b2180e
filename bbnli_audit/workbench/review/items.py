"""What people judge: one item is one distinct hypothesis of a subtopic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.workbench.extend.table import read_lines
from bbnli_audit.workbench.workspace import item_id

COLUMNS = ("item", "domain", "subtopic", "hypothesis", "template", "word", "premise")


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A hypothesis to judge, and where it comes from. Its repr shows no sentence."""

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


def items_hash(items: Sequence[ReviewItem]) -> str:
    """Return a hash of the items, whatever their order."""
    return sha256("\n".join(sorted(item.id for item in items)).encode()).hexdigest()


def read_items(path: Path) -> tuple[ReviewItem, ...]:
    """Read the items to judge, in the order of the file. Other columns are ignored."""
    items: dict[str, ReviewItem] = {}
    for line, row in read_lines(path, COLUMNS):
        item = ReviewItem(*(row[column] for column in COLUMNS))
        fault = None
        empty = next((column for column in COLUMNS[1:4] if not row[column].strip()), None)
        expected = item_id(item.domain, item.subtopic, item.hypothesis)
        if empty is not None:
            fault = f"{empty} is empty."
        elif item.id != expected:
            fault = f"the item is called {item.id!r:.40}, but its row gives {expected!r}: somebody edited it."
        elif item.id in items:
            fault = f"the item {item.id} appears twice."
        if fault is not None:
            raise WorkbenchError(f"{path}:{line}: {fault} Make the table of items again.")
        items[item.id] = item
    if not items:
        raise WorkbenchError(f"{path}: has no items, so there is nothing to judge.")
    return tuple(items.values())


def order_items(annotator: str, items: Iterable[ReviewItem]) -> list[ReviewItem]:
    """Put the items in the order in which an annotator meets them.

    Subtopics stay together, because judging similar sentences one after another is faster and more consistent. Which
    subtopic comes first, and the order within it, differ between annotators, so that fatigue and habit do not affect
    the same items for everyone. Both come from hashes: the order survives a restart, and new items do not move others.
    """

    def draw(name: str) -> bytes:
        return sha256(f"{annotator}\0{name}".encode()).digest()

    return sorted(items, key=lambda item: (draw(item.path), item.path, draw(item.id)))
