"""Cohen's kappa: by hand, at its edges, and against scikit-learn."""

import math
import warnings
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from bbnli_audit.measures.statistics.kappa import cohens_kappa

CATEGORIES = st.sampled_from(["zorbs", "quints", "fins", "gills"])
pairs = st.lists(st.tuples(CATEGORIES, CATEGORIES), max_size=60)


def kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    return cohens_kappa(Counter(zip(first, second, strict=True)))[1]


def test_a_table_worked_by_hand() -> None:
    # Fifty proposals: both yes 20, both no 15, first alone 5, second alone 10. Alike 0.7, by chance
    # 0.5 * 0.6 + 0.5 * 0.4 = 0.5, so kappa = 0.2 / 0.5.
    counts = {("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15}
    by_chance, found = cohens_kappa(counts)
    assert by_chance == 0.5
    assert found == pytest.approx(0.4, abs=1e-15)


@pytest.mark.parametrize(
    ("first", "second", "by_chance", "expected"),
    [
        ("", "", None, None),
        ("aa", "aa", 1.0, None),  # 0 / 0: they agree always, and would by chance
        ("aa", "bb", 0.0, 0.0),
        ("ab", "ba", 0.5, -1.0),
        ("abc", "abc", 1 / 3, 1.0),
    ],
)
def test_the_edges(first: str, second: str, by_chance: float | None, expected: float | None) -> None:
    assert cohens_kappa(Counter(zip(first, second, strict=True))) == (by_chance, expected)


def test_a_category_that_never_occurs_changes_nothing() -> None:
    assert cohens_kappa({("a", "a"): 2, ("a", "b"): 1, ("b", "b"): 0}) == cohens_kappa({("a", "a"): 2, ("a", "b"): 1})


@given(pairs)
@example([])
@example([("zorbs", "zorbs")] * 3)
@example([("zorbs", "quints")] * 3)
@settings(max_examples=200)
def test_kappa_is_that_of_scikit_learn(labels: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in labels], [b for _, b in labels]
    found = kappa(first, second)
    if not labels:
        assert found is None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where kappa is not defined
        expected = float(cohen_kappa_score(first, second))
    assert found is None if math.isnan(expected) else math.isclose(found or 0.0, expected, abs_tol=1e-12)


@given(pairs)
def test_kappa_does_not_depend_on_who_is_first_nor_on_the_order_of_items(labels: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in labels], [b for _, b in labels]
    assert kappa(first, second) == kappa(second, first) == kappa(first[::-1], second[::-1])
