"""`--bbnli-size`: nested parts of a suite, balanced over templates."""

from collections import Counter
from dataclasses import replace

import pytest

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.values import Pair, SubtopicItems, TextPair
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


def test_pairs_that_are_left_out_of_the_audited_clusters_are_counted_in_every_size() -> None:
    def text(hypothesis: str, side: str = "") -> TextPair:
        return TextPair("The moon is red.", f"{hypothesis} {side}")

    clusters = [f"p{n}/h{n}" for n in range(10)]
    own = [Pair(name, text(name, "zorbs"), text(name, "quints")) for name in clusters]
    identical = [Pair(name, text(name), text(name)) for name in clusters]
    elsewhere = [replace(pair, cluster="p9/h0") for pair in own[:5]]  # repeats of a pair in another cluster
    items = SubtopicItems((*own, *identical, *own, *elsewhere))
    assert (len(items.usable), items.n_identical, items.n_duplicates) == (10, 10, 15)
    for size, n in (("small", 2), ("medium", 5)):
        taken = take_size(items, size)
        assert (len(taken.usable), taken.n_identical, taken.n_duplicates) == (n, n, n)
        assert set(taken.usable) <= set(items.usable)


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(OptionError, match=r"--bbnli-size=smal: there is no such size\. Did you mean 'small'\?"):
        read_size("smal")
