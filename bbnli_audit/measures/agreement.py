"""Do two models lean the same way on the same pairs? Counts, chance, kappa and ranks.

A model leans pro on a pair where it finds the pro side likelier (a likelihood) or more entailed (an answer), anti where
it is the other way round, and neither way on a tie, which is a category of its own.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.results.rows import NO_DATA, Measured
from bbnli_audit.core.results.second import LEANS, AgreementRow, Lean
from bbnli_audit.measures.correlation import r_squared
from bbnli_audit.measures.readings.table import PLACES, PairTable, cluster_codes
from bbnli_audit.measures.statistics.intervals import Estimate, estimate_means
from bbnli_audit.measures.statistics.kappa import cohens_kappa

_LETTERS = "PTA"
_FEWEST_PAIRS = 3  # two points always lie on a line


def join_strengths(first: PairTable, second: PairTable) -> pd.DataFrame:
    """Put beside each other how strongly two models lean on each pair that both could be measured on."""
    one, other = (
        table.measured.frame[columns].assign(**{name: table.reading.strengths(table.measured.frame)})
        for name, table, columns in (("first", first, list(PLACES)), ("second", second, ["pair_id"]))
    )
    return one.merge(other, on="pair_id", validate="one_to_one")


def measure_agreement(path: str, joined: pd.DataFrame, confidence: float) -> AgreementRow:
    """Compare two models on the joined pairs of one subtopic, or of several."""
    signs = np.sign(joined[["first", "second"]].to_numpy(dtype=np.float64))
    leans = _count_leans(signs)
    if joined.empty:
        return AgreementRow(path, 0, 0, NO_DATA, NO_DATA, leans, NO_DATA, None, None, None)
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


def _count_leans(signs: NDArray[np.float64]) -> dict[Lean, int]:
    codes = (1 - signs).astype(np.intp)  # 0 pro, 1 tie, 2 anti
    tally = np.bincount(codes[:, 0] * len(_LETTERS) + codes[:, 1], minlength=len(LEANS))
    return {lean: int(n) for lean, n in zip(LEANS, tally, strict=True)}


def chance_and_kappa(leans: Mapping[Lean, int]) -> tuple[float | None, float | None]:
    """Give the agreement that two models with these margins have by chance, and Cohen's kappa.

    Kappa is None where chance alone agrees on every pair: both models always lean one and the same way.
    """
    return cohens_kappa({(lean[0], lean[1]): n for lean, n in leans.items()})


def rank_correlation(first: "pd.Series[float]", second: "pd.Series[float]") -> float | None:
    """Return Spearman's rank correlation; None with fewer than three pairs, or where one of the models never varies."""
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


def _measure(estimate: Estimate) -> Measured:
    return Measured(estimate.value, estimate.low, estimate.high, estimate.n)
