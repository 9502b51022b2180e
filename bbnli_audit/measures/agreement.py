"""Do two models lean the same way on the same pairs? Counts, chance, kappa and ranks.

A model leans pro on a pair where it finds the pro side likelier (a likelihood) or more entailed (an answer), anti where
it is the other way round, and neither way on a tie, which is a category of its own.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.results.audit import LIKELIHOOD, Measure
from bbnli_audit.core.results.second import ENTAILMENT_PREFERENCE, LEANS, AgreementRow
from bbnli_audit.measures.likelihood import TOKEN_PREFERENCE
from bbnli_audit.measures.rates import cluster_codes
from bbnli_audit.measures.statistics.intervals import Estimate, estimate_means
from bbnli_audit.measures.winoqueer import r_squared

PLACES = ("suite", "domain", "subtopic", "pair_id", "cluster")
_LETTERS = "PTA"
_FEWEST_PAIRS = 3  # two points always lie on a line
_SMALLEST = np.nextafter(0.0, 1.0)


def preference_of(kind: str) -> str:
    """Name the mean lean of a kind of model."""
    return TOKEN_PREFERENCE if kind in LIKELIHOOD else ENTAILMENT_PREFERENCE


def join_strengths(first: pd.DataFrame, first_kind: str, second: pd.DataFrame, second_kind: str) -> pd.DataFrame:
    """Put beside each other how strongly two models lean on each pair that both could be measured on.

    Args:
        first: The pair table of one model for one subtopic.
        first_kind: Its kind, as `ModelInfo` says.
        second: The pair table of the other.
        second_kind: Its kind.
    """
    one = first[list(PLACES)].assign(first=_strengths(first, first_kind))
    other = second[["pair_id"]].assign(second=_strengths(second, second_kind))
    return one.merge(other, on="pair_id", validate="one_to_one")


def _strengths(frame: pd.DataFrame, kind: str) -> NDArray[np.float64]:
    """Give how much likelier, or more entailed, each pro side is: above 0 where the model leans pro.

    Likelihoods are compared by their logarithms: shares near 0 and 1 would be the same number.
    """
    pro, anti = (frame[f"{side}_entailment"].to_numpy(dtype=np.float64) for side in ("pro", "anti"))
    if kind in LIKELIHOOD:
        pro, anti = np.log(np.maximum(pro, _SMALLEST)), np.log(np.maximum(anti, _SMALLEST))
    return np.asarray(pro - anti, dtype=np.float64)


def measure_agreement(path: str, joined: pd.DataFrame, confidence: float) -> AgreementRow:
    """Compare two models on some pairs.

    Args:
        path: The subtopic, or what the pairs are called together.
        joined: What `join_strengths` gave, of one subtopic or of several.
        confidence: Of the intervals.
    """
    signs = np.sign(joined[["first", "second"]].to_numpy(dtype=np.float64))
    leans = _count_leans(signs)
    if joined.empty:
        nothing = Measure(None, None, None, 0)
        return AgreementRow(path, 0, 0, nothing, nothing, leans, nothing, None, None, None)
    clusters = cluster_codes(joined)
    is_same = (signs[:, 0] == signs[:, 1]).astype(np.float64)
    first, second, agreement = estimate_means(np.column_stack([(signs + 1) / 2, is_same]), clusters, confidence)
    by_chance, kappa = chance_and_kappa(leans)
    return AgreementRow(
        path=path,
        n_pairs=len(joined),
        n_clusters=int(clusters.max()) + 1,
        first=_measure(first),
        second=_measure(second),
        leans=leans,
        agreement=_measure(agreement),
        by_chance=by_chance,
        kappa=kappa,
        rank_correlation=rank_correlation(joined["first"], joined["second"]),
    )


def _count_leans(signs: NDArray[np.float64]) -> dict[str, int]:
    codes = (1 - signs).astype(np.intp)  # 0 pro, 1 tie, 2 anti
    tally = np.bincount(codes[:, 0] * len(_LETTERS) + codes[:, 1], minlength=len(LEANS))
    return {lean: int(n) for lean, n in zip(LEANS, tally, strict=True)}


def chance_and_kappa(leans: Mapping[str, int]) -> tuple[float | None, float | None]:
    """Give the agreement that two models with these margins have by chance, and Cohen's kappa.

    Kappa is None where chance alone agrees on every pair: both models always lean one and the same way.
    """
    n = sum(leans.values())
    if not n:
        return None, None
    of_first = [sum(leans[one + other] for other in _LETTERS) for one in _LETTERS]
    of_second = [sum(leans[one + other] for one in _LETTERS) for other in _LETTERS]
    expected = sum(one * other for one, other in zip(of_first, of_second, strict=True))  # times n squared
    n_same = sum(leans[letter * 2] for letter in _LETTERS)
    kappa = None if expected == n * n else (n * n_same - expected) / (n * n - expected)
    return expected / (n * n), kappa


def rank_correlation(first: "pd.Series[float]", second: "pd.Series[float]") -> float | None:
    """Give Spearman's rank correlation; None with fewer than three pairs, or where one of the models never varies."""
    one, other = first.rank().reset_index(drop=True), second.rank().reset_index(drop=True)
    if len(one) < _FEWEST_PAIRS or one.nunique() == 1 or other.nunique() == 1:
        return None
    return min(max(float(one.corr(other)), -1.0), 1.0)


def r_squared_over(rows: Sequence[AgreementRow]) -> float | None:
    """Say how much of one model's measure the other's explains, over subtopics; None where that is not defined."""
    table = pd.DataFrame(
        {"first": [row.first.value for row in rows], "second": [row.second.value for row in rows]}, dtype=np.float64
    )
    found = float(r_squared(table).loc["first", "second"])  # type: ignore[arg-type]  # a number
    return None if np.isnan(found) else min(found, 1.0)


def _measure(estimate: Estimate) -> Measure:
    return Measure(estimate.value, estimate.low, estimate.high, estimate.n)
