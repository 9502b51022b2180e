"""Items: their names, the file, and the order in which annotators meet them."""

from itertools import pairwise
from pathlib import Path

import pytest

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.workbench.review.items import COLUMNS, items_hash, order_items, read_items
from bbnli_audit.workbench.workspace import item_id
from tests.review_workspace import make_item, make_items, write_items

ITEM = make_items(1)[0]


def test_items_come_back_from_the_file_in_its_order(tmp_path: Path) -> None:
    items = make_items(7)
    assert read_items(write_items(tmp_path, items)) == items


def test_the_repr_of_an_item_shows_no_sentence() -> None:
    assert repr(ITEM) == f"ReviewItem(id='{ITEM.id}', domain='planets', subtopic='zorvians_are_to_juggling')"


def test_an_item_is_named_by_domain_subtopic_and_hypothesis_alone() -> None:
    again = make_item(ITEM.domain, ITEM.subtopic, ITEM.hypothesis, "another template", "another", "another premise")
    assert again.id == ITEM.id
    assert len({item_id(*parts) for parts in (("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("a", "b", "C"))}) == 4
    assert len(ITEM.id) == 12


def test_the_hash_of_items_does_not_depend_on_their_order() -> None:
    items = make_items(5)
    assert items_hash(items) == items_hash(items[::-1]) != items_hash(items[1:])


GOOD = f"{ITEM.id},planets,zorvians_are_to_juggling,{ITEM.hypothesis},t,w,p"
HEADER = ",".join(COLUMNS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("word", "wort") + "\n", r"items.csv:1: has no column 'word'. Columns found: 'item', 'domain'"),
        (f"{HEADER},word\n", r"items.csv:1: has the column 'word' twice"),
        ("", r"items.csv: holds no row. The columns are item, domain"),
        (f"{HEADER}\n", r"items.csv: has no items"),
        (f"{HEADER}\n{GOOD}\n{GOOD}\n", rf"items.csv:3: the item {ITEM.id} appears twice"),
        (f"{HEADER}\n{GOOD},more\n", r"items.csv:2: has 8 values for 7 columns"),
        (f"{HEADER}\n{ITEM.id},planets\n", r"items.csv:2: has 2 values for 7 columns"),
        (f"{HEADER}\n{GOOD.replace('nimble', 'slow')}\n", rf"items.csv:2: the item is called '{ITEM.id}', but the"),
        (f"{HEADER}\n{ITEM.id},planets,zorvians,,t,w,p\n", r"items.csv:2: hypothesis is empty"),
        (f'{HEADER}\n"{GOOD}\n', r"items.csv:2: is not valid CSV"),
    ],
)
def test_a_wrong_file_is_told_with_its_line_and_no_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "items.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(WorkbenchError, match=message) as told:
        read_items(path)
    assert "Zorvians in" not in str(told.value)


def test_a_file_that_is_not_there_or_not_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match=r"items.csv: there is no such file"):
        read_items(tmp_path / "items.csv")
    (tmp_path / "items.csv").write_bytes(HEADER.encode() + b"\n\xff\xfe")
    with pytest.raises(WorkbenchError, match=r"is not UTF-8"):
        read_items(tmp_path / "items.csv")


def test_annotators_have_orders_of_their_own_that_stay_and_keep_subtopics_together() -> None:
    items = make_items(40)
    ana, ben = order_items("ana", items), order_items("ben", items)
    assert ana == order_items("ana", items[::-1])
    assert ana != ben
    assert set(ana) == set(ben) == set(items)
    paths = [item.path for item in ana]
    assert sum(a != b for a, b in pairwise(paths)) == 1
    # New items find their places; the others stay in theirs.
    assert [item for item in ana if item in items[:30]] == order_items("ana", items[:30])
