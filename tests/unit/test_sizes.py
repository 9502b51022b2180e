"""`--bbnli-size`: nested parts of a suite, balanced over templates."""

from collections import Counter

import pytest

from bbnli_audit.core.errors import OptionError
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.sizes import SIZES, read_size, take_size


def test_sizes_are_nested_and_as_large_as_they_say() -> None:
    suite = Bbnli()
    for subtopic in suite.subtopics()[:3]:
        items = suite.items(subtopic)
        taken = {size: take_size(items, size) for size in SIZES}
        ids = {size: {pair.id for pair in each.usable} for size, each in taken.items()}
        assert ids["small"] < ids["medium"] < ids["full"]
        for size, share in SIZES.items():
            assert len(ids[size]) == pytest.approx(share * len(ids["full"]), abs=2)
            assert taken[size].controls == items.controls


def test_a_small_part_has_nearly_all_premises_and_no_hypothesis_often() -> None:
    suite = Bbnli()
    items = take_size(suite.items(suite.subtopics()[0]), "small")
    premises = Counter(pair.cluster.partition("/")[0] for pair in items.usable)
    hypotheses = Counter(cell.partition("/")[2] for cell in {pair.cluster for pair in items.usable})
    assert len(premises) >= 36
    assert max(hypotheses.values()) == 1


def test_rows_of_a_quad_stay_together() -> None:
    suite = Bbnli()
    whole = Counter(pair.cluster for pair in suite.items(suite.subtopics()[0]).usable)
    part = Counter(pair.cluster for pair in take_size(suite.items(suite.subtopics()[0]), "medium").usable)
    assert all(whole[cell] == n for cell, n in part.items())


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(OptionError, match=r"--bbnli-size=smal: there is no such size\. Did you mean 'small'\?"):
        read_size("smal")
