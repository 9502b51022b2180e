"""Sentences that begin alike as one row of tokens."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bbnli_audit.models.language_model.token_tree import cut_into_trees, grow

SENTENCE = st.lists(st.integers(0, 3), min_size=1, max_size=8).map(tuple)
SENTENCES = st.lists(SENTENCE, min_size=1, max_size=12, unique=True)


def beginnings(sentences: Sequence[Sequence[int]]) -> set[tuple[int, ...]]:
    return {tuple(each[:length]) for each in sentences for length in range(1, len(each) + 1)}


def test_by_hand() -> None:
    tree = grow([(5, 6, 7), (5, 6, 8, 9), (4, 6)])
    assert tree.ids == (5, 6, 7, 8, 9, 4, 6)
    assert tree.depths == (0, 1, 2, 2, 3, 0, 1)
    assert tree.paths == ((0, 1, 2), (0, 1, 3, 4), (5, 6))
    seen = [{at for at, is_seen in enumerate(row) if is_seen} for row in tree.visible().tolist()]
    assert seen == [{0}, {0, 1}, {0, 1, 2}, {0, 1, 3}, {0, 1, 3, 4}, {5}, {5, 6}]


@given(SENTENCES)
def test_every_beginning_is_there_once_and_sees_itself_alone(sentences: list[tuple[int, ...]]) -> None:
    tree = grow(sentences)
    spelled = [tuple(tree.ids[at] for at in path) for path in tree.paths]
    assert spelled == sentences
    assert len(tree.ids) == len(beginnings(sentences))
    seen = tree.visible()
    for path in tree.paths:
        for depth, at in enumerate(path):
            assert tree.depths[at] == depth
            assert set(seen[at].nonzero()[0].tolist()) == set(path[: depth + 1])


@given(SENTENCES, st.integers(1, 30))
def test_a_short_row_is_filled_with_tokens_that_nothing_sees(sentences: list[tuple[int, ...]], least: int) -> None:
    tree, plain = grow(sentences, least), grow(sentences)
    n_own = len(plain.ids)
    assert len(tree.ids) == max(least, n_own)
    assert tree.paths == plain.paths
    assert (tree.visible()[:n_own, :n_own] == plain.visible()).all()
    assert not tree.visible()[:n_own, n_own:].any()


@given(SENTENCES, st.integers(8, 20))
def test_trees_have_at_most_so_many_tokens_and_leave_nothing_out(sentences: list[tuple[int, ...]], most: int) -> None:
    ordered = sorted(sentences)
    trees = list(cut_into_trees(ordered, most))
    assert [at for tree in trees for at in tree] == list(range(len(ordered)))
    sizes = [len(beginnings([ordered[at] for at in tree])) for tree in trees]
    assert max(sizes) <= most
    # And no tree ends early: the first sentence of the next one would not have gone in.
    for tree, after in pairwise(trees):
        assert len(beginnings([ordered[at] for at in (*tree, after[0])])) > most
