"""The items that people judge: distinct hypotheses of a subtopic, or texts of a suite with the expected verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.workbench.extend.table import read_lines
from bbnli_audit.workbench.workspace import item_id

COLUMNS = ("item", "domain", "subtopic", "hypothesis", "template", "word", "premise")
OF_SUITES = ("expected", "group1", "group2")  # further columns, for items of a suite
ALL_COLUMNS = (*COLUMNS, *OF_SUITES)
_SHOWN = ("id", "domain", "subtopic", "hypothesis", "template", "word", "premise")
_SHOWN_BLIND = ("id", "hypothesis", "premise", "group1", "group2")


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A hypothesis to judge, and its origin. Its repr shows no sentence."""

    id: str
    domain: str
    subtopic: str
    hypothesis: str = field(repr=False)
    template: str = field(default="", repr=False)
    word: str = field(default="", repr=False)
    premise: str = field(default="", repr=False)
    expected: str = field(default="", repr=False)  # for a suite's items: the right verdict, which readers do not see
    group1: str = field(default="", repr=False)
    group2: str = field(default="", repr=False)

    @property
    def path(self) -> str:
        return f"{self.domain}/{self.subtopic}"

    @property
    def is_of_suite(self) -> bool:
        return bool(self.expected)

    def as_row(self) -> tuple[str, ...]:
        """Return the values of all columns."""
        return tuple(getattr(self, "id" if name == "item" else name) for name in ALL_COLUMNS)

    def shown(self) -> dict[str, str]:
        """Return the fields for the page. For a suite's item, these are only what a blind reader may know."""
        if self.is_of_suite:
            return {"subtopic": "", "template": "", "word": "", **{name: getattr(self, name) for name in _SHOWN_BLIND}}
        return {**{name: getattr(self, name) for name in _SHOWN}, "subtopic": self.path}

    def make_id(self) -> str:
        """Compute the id from the texts."""
        text = f"{self.premise}\n{self.hypothesis}" if self.is_of_suite else self.hypothesis
        return item_id(self.domain, self.subtopic, text)


def items_hash(items: Sequence[ReviewItem]) -> str:
    """Return a hash of the items, whatever their order."""
    return sha256("\n".join(sorted(item.id for item in items)).encode()).hexdigest()


def read_items(path: Path) -> tuple[ReviewItem, ...]:
    """Read the items to judge, in the order of the file. Other columns are ignored."""
    items: dict[str, ReviewItem] = {}
    for line, row in read_lines(path, COLUMNS):
        item = ReviewItem(*(row[column] for column in COLUMNS), *(row.get(column) or "" for column in OF_SUITES))
        fault = None
        empty = next((column for column in COLUMNS[1:4] if not row[column].strip()), None)
        expected = item.make_id()
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
