"""The items that people judge: hypotheses of the workbench, or the texts of a suite.

A suite has an item for each combination of a premise template with the template of a hypothesis or a control. Each
combination appears in one wording only. Of a suite's item, annotators see only the two sentences and the names of the
groups.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field
from hashlib import sha256
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.values import Label, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.protocol import Suite, get_items
from bbnli_audit.workbench.review.states import ReviewVerdict
from bbnli_audit.workbench.workspace import choose_paths, draw_by_content, item_id, read_lines, write_rows

COLUMNS = ("item", "domain", "subtopic", "hypothesis", "template", "word", "premise")
OF_SUITES = ("expected", "group1", "group2")  # further columns, for items of a suite
VERDICT_OF = {
    Label.ENTAILMENT: ReviewVerdict.ENTAILED,
    Label.NEUTRAL: ReviewVerdict.NEITHER,
    Label.CONTRADICTION: ReviewVerdict.CONTRADICTED,
}
_SHOWN_BLIND = ("id", "hypothesis", "premise", "group1", "group2")


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A hypothesis to judge, and its origin. Fields are in the order of the table. The repr shows no sentence."""

    id: str = field(init=False)
    domain: str
    subtopic: str
    hypothesis: str = field(repr=False)
    template: str = field(default="", repr=False)
    word: str = field(default="", repr=False)
    premise: str = field(default="", repr=False)
    expected: str = field(default="", repr=False)  # for a suite's items: the right verdict, which annotators do not see
    group1: str = field(default="", repr=False)
    group2: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        text = f"{self.premise}\n{self.hypothesis}" if self.is_of_suite else self.hypothesis
        object.__setattr__(self, "id", item_id(self.domain, self.subtopic, text))

    @property
    def path(self) -> str:
        return f"{self.domain}/{self.subtopic}"

    @property
    def is_of_suite(self) -> bool:
        return bool(self.expected)

    def shown(self) -> dict[str, str]:
        """Return the fields for the page. Of a suite's item, annotators see only the sentences and the groups."""
        fields = {**asdict(self), "subtopic": self.path}
        del fields["expected"]
        return {name: "" if self.is_of_suite and name not in _SHOWN_BLIND else fields[name] for name in fields}


def items_hash(items: Sequence[ReviewItem]) -> str:
    """Return a hash of the items, whatever their order."""
    return sha256("\n".join(sorted(item.id for item in items)).encode()).hexdigest()


def read_items(path: Path) -> tuple[ReviewItem, ...]:
    """Read the items to judge, in the order of the file. Unknown columns are ignored."""
    items: dict[str, ReviewItem] = {}
    for line, row in read_lines(path, COLUMNS):
        item = ReviewItem(*(row[column] for column in COLUMNS[1:]), *(row.get(column) or "" for column in OF_SUITES))
        empty = next((column for column in COLUMNS[1:4] if not row[column].strip()), None)
        fault = None
        if empty is not None:
            fault = f"{empty} is empty."
        elif row["item"] != item.id:
            told = f"the item is called {row['item']!r:.40}, but the id of its texts is {item.id!r}"
            fault = f"{told}: the row was edited."
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

    Subtopics stay together, because judging similar sentences one after another is faster and more consistent. Each
    annotator gets a different order of subtopics and items, so that fatigue and habit affect different items. The
    order comes from hashes, so it survives a restart, and new items do not change the order of the old items.
    """

    def draw(name: str) -> bytes:
        return sha256(f"{annotator}\0{name}".encode()).digest()

    return sorted(items, key=lambda item: (draw(item.path), item.path, draw(item.id)))


def suite_items(suite: Suite, subtopics: str | None = None, sample: int | None = None) -> list[ReviewItem]:
    """Return the items of a suite's subtopics: at most `sample` items of each subtopic, drawn by content."""
    found = {subtopic.local_path: subtopic for subtopic in suite.subtopics()}
    items = []
    for path in choose_paths(subtopics, found):
        of_subtopic = list(_items(found[path], get_items(suite, found[path]), _groups(suite, found[path])))
        drawn = draw_by_content((item.id for item in of_subtopic), sample)
        items += [item for item in of_subtopic if item.id in drawn]
    return items


def _items(subtopic: Subtopic, items: SubtopicItems, groups: tuple[str, str]) -> Iterator[ReviewItem]:
    """Yield each combination of templates once, for pairs and for controls.

    A combination of a pair appears as its pro side only, because people would judge the anti side in the same way.
    """
    texts: dict[tuple[str, Label], TextPair] = {}
    for pair in items.usable:
        texts.setdefault((pair.cluster, Label.NEUTRAL), pair.pro)
    for control in items.controls:
        texts.setdefault((f"{control.cluster}/control", control.expected), control.text)
    for (cluster, label), (premise, hypothesis) in texts.items():
        source = (subtopic.domain, subtopic.name, hypothesis, cluster, "", premise)
        yield ReviewItem(*source, VERDICT_OF[label].value, *groups)


def _groups(suite: Suite, subtopic: Subtopic) -> tuple[str, str]:
    """Return the names of the two groups, in an order that does not show which one is stereotyped."""
    names: Sequence[str] = ("the group it names", "another group")
    if isinstance(suite, Bbnli):
        names = sorted(suite.file(subtopic)[1].group_names)
    return names[0], names[1]


def write_suite_items(path: Path, items: Sequence[ReviewItem]) -> None:
    """Write the table of items. Refuse to replace the table of items that `filter` wrote."""
    if (path.parent / "filter.manifest.json").exists():
        raise WorkbenchError(f"{path.parent}: is the folder of a workbench. Judge a suite in a folder of its own.")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, (*COLUMNS, *OF_SUITES), map(astuple, items))
