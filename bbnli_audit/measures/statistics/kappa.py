"""Cohen's kappa: agreement beyond chance ("A coefficient of agreement for nominal scales", 1960)."""

from collections import Counter
from collections.abc import Mapping


def cohens_kappa(counts: Mapping[tuple[str, str], int]) -> tuple[float | None, float | None]:
    """Return the agreement expected by chance, and kappa, from how often two raters gave each pair of categories.

    By chance is how often two raters with these habits would agree if each judged at random; it is None without items.
    Kappa is (observed - by chance) / (1 - by chance). It is None without items, and if both raters gave every item one
    and the same category (0 / 0). It is computed in whole numbers up to the last division.
    """
    first: Counter[str] = Counter()
    second: Counter[str] = Counter()
    for (one, other), n in counts.items():
        first[one] += n
        second[other] += n
    total = first.total()
    if not total:
        return None, None
    n_alike = sum(n for (one, other), n in counts.items() if one == other)
    expected = sum(n * second[category] for category, n in first.items())  # times total squared
    kappa = (total * n_alike - expected) / (total**2 - expected) if expected != total**2 else None
    return expected / total**2, kappa
