"""Cohen's kappa: agreement beyond chance ("A coefficient of agreement for nominal scales", 1960)."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

Category = TypeVar("Category", bound=Hashable)


def cohens_kappa(counts: Mapping[tuple[Category, Category], int]) -> tuple[float | None, float | None]:
    """Return the agreement expected by chance, and kappa, from how often two raters gave each pair of categories.

    The agreement by chance is how often the raters would agree if each chose categories at random, but each category
    as often as in `counts`. Kappa is (observed - by chance) / (1 - by chance), computed in whole numbers up to the last
    division. Without items, both results are None. Kappa alone is None if both raters put all items into one category
    (0 / 0).
    """
    first: Counter[Category] = Counter()
    second: Counter[Category] = Counter()
    for (one, other), n in counts.items():
        first[one] += n
        second[other] += n
    total = first.total()
    if not total:
        return None, None
    n_alike = sum(n for (one, other), n in counts.items() if one == other)
    expected = sum(n * second[category] for category, n in first.items())  # multiplied by total squared
    kappa = (total * n_alike - expected) / (total**2 - expected) if expected != total**2 else None
    return expected / total**2, kappa
