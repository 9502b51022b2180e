"""Makes the items of a suite for people to judge blind: each hypothesis with each of its premises, and each control.

Readers see only the two sentences. Unless all readers give the verdict that the suite expects, an item should be
rewritten or dropped.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.tables import write_csv
from bbnli_audit.core.values import Label, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.bbnli import Bbnli, names_of
from bbnli_audit.suites.protocol import Suite, get_items
from bbnli_audit.suites.quad_file import QuadFile
from bbnli_audit.workbench.review.items import ALL_COLUMNS, ReviewItem
from bbnli_audit.workbench.review.states import ReviewVerdict, States
from bbnli_audit.workbench.workspace import choose_paths, draw_by_content, item_id, writing

VERDICT_OF = {
    Label.ENTAILMENT: ReviewVerdict.ENTAILED,
    Label.NEUTRAL: ReviewVerdict.NEITHER,
    Label.CONTRADICTION: ReviewVerdict.CONTRADICTED,
}
JUDGED = "judged.csv"
_COLUMNS = (
    "item",
    "domain",
    "subtopic",
    "template",
    "expected",
    "n_annotators",
    "verdicts",
    "stereotype_of",
    "is_kept",
)


def suite_items(suite: Suite, subtopics: str | None = None, sample: int | None = None) -> list[ReviewItem]:
    """Return the items of a suite's subtopics: of each subtopic at most `sample`, drawn by content."""
    found = {subtopic.local_path: subtopic for subtopic in suite.subtopics()}
    items = []
    for path in choose_paths(subtopics, found):
        of_subtopic = list(_items(found[path], get_items(suite, found[path]), _groups(suite, found[path])))
        drawn = draw_by_content((item.id for item in of_subtopic), sample)
        items += [item for item in of_subtopic if item.id in drawn]
    return items


def _items(subtopic: Subtopic, items: SubtopicItems, groups: tuple[str, str]) -> Iterator[ReviewItem]:
    """Yield each combination of templates once, as written. Exchanged, it would say the same about the other group."""
    texts: dict[tuple[str, Label], TextPair] = {}
    for pair in items.usable:
        texts.setdefault((pair.cluster, Label.NEUTRAL), pair.pro)
    for control in items.controls:
        texts.setdefault((f"{control.cluster}/control", control.expected), control.text)
    for (cluster, label), (premise, hypothesis) in texts.items():
        name = item_id(subtopic.domain, subtopic.name, f"{premise}\n{hypothesis}")
        place = (subtopic.domain, subtopic.name)
        yield ReviewItem(name, *place, hypothesis, cluster, "", premise, VERDICT_OF[label].value, *groups)


def _groups(suite: Suite, subtopic: Subtopic) -> tuple[str, str]:
    """Return the names of the groups in alphabetical order, so that it does not show which one is stereotyped."""
    names: Sequence[str] = ("the group it names", "another group")
    if isinstance(suite, Bbnli):
        file = next(each for each in suite.files().values() if names_of(each) == (subtopic.domain, subtopic.name))
        names = sorted([forms.many for forms in file.groups.values()] if isinstance(file, QuadFile) else file.groups)
    return names[0], names[1]


def write_suite_items(path: Path, items: Sequence[ReviewItem]) -> None:
    """Write the table of items. Refuse to replace a table of the workbench."""
    if (path.parent / "filter.manifest.json").exists():
        raise WorkbenchError(f"{path.parent}: is the folder of a workbench. Judge a suite in a folder of its own.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as file:
        write_csv(file, ALL_COLUMNS, ([str(value) for value in item.as_row()] for item in items))


def write_judged(path: Path, items: Iterable[ReviewItem], judged: States) -> dict[str, list[int]]:
    """Write each item's judgements and whether it can stay; count by subtopic how many were judged twice, and kept."""
    counts: dict[str, list[int]] = {}
    rows = []
    for item in items:
        said = [of_annotator[item.id] for of_annotator in judged.values() if item.id in of_annotator]
        verdicts = [str(state.verdict) for state in said]
        is_kept = len(said) >= 2 and set(verdicts) == {item.expected}
        counted = counts.setdefault(item.path, [0, 0])
        counted[0] += len(said) >= 2
        counted[1] += is_kept
        stances = ";".join(_name_group(item, str(state.stance or "")) for state in said)
        known = (item.id, item.domain, item.subtopic, item.template, item.expected)
        rows.append((*known, len(said), ";".join(verdicts), stances, "yes" if is_kept else "no"))
    with writing(path) as file:
        write_csv(file, _COLUMNS, ([str(value) for value in row] for row in rows))
    return counts


def _name_group(item: ReviewItem, stance: str) -> str:
    return {"first": item.group1, "second": item.group2}.get(stance, stance)
