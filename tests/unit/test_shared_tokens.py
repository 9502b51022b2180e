"""Which tokens two sentences share."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbnli_audit.models.language_model.shared_tokens import Tokens, pair_up, shared_tokens


def places(first: str, second: str, special: str = "", *, left_to_right: bool = False) -> tuple[list[int], list[int]]:
    """Share letters as if each were a token."""
    found = shared_tokens(
        [ord(letter) for letter in first],
        [ord(letter) for letter in second],
        {ord(letter) for letter in special},
        left_to_right=left_to_right,
    )
    return list(found[0]), list(found[1])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("zjuggle", "qjuggle", ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6])),
        ("zzare", "qare", ([2, 3, 4], [1, 2, 3])),  # a group of two tokens against a group of one
        # Groups exchanged: a group is no word that the two share, though it is there in both.
        ("zbq.", "qbz.", ([1, 3], [1, 3])),
        ("the zor beat qui.", "the qui beat zor.", ([0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 16],) * 2),
        ("zorsbqu.", "qubzors.", ([4, 7], [2, 7])),
        ("zq", "qz", ([1], [0])),  # nothing between them: as difflib does
        ("abc", "xyz", ([], [])),
        ("", "abc", ([], [])),
    ],
)
def test_by_hand(first: str, second: str, expected: tuple[list[int], list[int]]) -> None:
    assert places(first, second) == expected
    assert places(second, first) == expected[::-1]


def test_special_tokens_are_never_shared() -> None:
    # [ and ] as a tokenizer adds them, ? as a word it does not know: the two may be different words.
    assert places("[z?a]", "[q?a]", special="[]?") == ([3], [3])


def test_left_to_right_leaves_out_beginnings_that_are_alike() -> None:
    assert places("[azbc", "[aqbc", special="[", left_to_right=True) == ([3, 4], [3, 4])
    # The group comes last: all that is shared is before it and as likely on both sides.
    assert places("[abz", "[abq", special="[", left_to_right=True) == ([], [])


def test_left_to_right_without_a_starting_token_leaves_out_a_first_token_on_both_sides() -> None:
    assert places("bcd", "xbcd", left_to_right=True) == ([1, 2], [2, 3])


def test_repeated_tokens_are_not_junk_in_long_sentences() -> None:
    long = "ab" * 150
    assert len(places("z" + long, "q" + long)[0]) == 300


letters = st.lists(st.integers(0, 5), max_size=12)


@given(letters, letters)
def test_what_is_shared_is_equal_in_order_and_mirrored(first: list[int], second: list[int]) -> None:
    for left_to_right in (False, True):
        found = shared_tokens(first, second, {0}, left_to_right=left_to_right)
        assert [first[place] for place in found[0]] == [second[place] for place in found[1]]
        assert 0 not in {first[place] for place in found[0]}
        assert all(list(side) == sorted(set(side)) for side in found)
        assert shared_tokens(second, first, {0}, left_to_right=left_to_right) == found[::-1]


def encode(sentences: Sequence[str]) -> list[Tokens]:
    """Read letters as tokens, in lower case, five at most."""
    return [Tokens(tuple(map(ord, text.lower()[:5])), len(text) > 5) for text in sentences]


def test_pairs_are_made_once_whoever_asks() -> None:
    pairs = pair_up([("zab", "qab"), ("qab", "zab"), ("qab", "rab")], encode, (), left_to_right=False)
    assert list(pairs) == [("qab", "zab"), ("qab", "rab")]
    first, second = pairs.values()
    assert first.first is second.first  # computed once for both
    assert first.shared == ((1, 2), (1, 2))


def test_sentences_of_equal_tokens_share_nothing_that_could_differ() -> None:
    pair = pair_up([("Zab", "zab")], encode, (), left_to_right=False)[("Zab", "zab")]
    assert pair.first is pair.second
    assert pair.shared == ((), ())


def test_one_cut_sentence_marks_the_pair() -> None:
    pairs = pair_up([("zab", "qabcde"), ("zab", "qab")], encode, (), left_to_right=False)
    assert [pair.is_truncated for pair in pairs.values()] == [True, False]
