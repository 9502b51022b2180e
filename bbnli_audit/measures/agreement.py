"""Compares how two models lean on the same pairs, and correlates measures over models.

A model leans pro on a pair if it finds the pro side likelier (for likelihoods) or more entailed (for labels and
answers) than the anti side. It leans anti if it finds the anti side likelier or more entailed. A tie is a third
category.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
import pandas as pd

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import LEANS, AgreementRow, Lean
from bbnli_audit.core.results.rows import NO_DATA, Measured
from bbnli_audit.measures.rates import TOKEN_PREFERENCE, tells_apart
from bbnli_audit.measures.readings.table import PLACES, Floats, PairTable, design_of
from bbnli_audit.measures.statistics.association import FEWEST, kappa_interval, rank_correlation, rank_interval
from bbnli_audit.measures.statistics.intervals import Estimate, estimate_means
from bbnli_audit.measures.statistics.kappa import cohens_kappa

_SAME = 1e-9  # smaller differences between two shares of pairs come from rounding


def join_strengths(first: PairTable, second: PairTable) -> pd.DataFrame:
    """Return how strongly each of two models leans on each pair that could be measured with both models."""
    one, other = (
        table.measured.frame[columns].assign(**{name: table.reading.strengths(table.measured.frame)})
        for name, table, columns in (("first", first, list(PLACES)), ("second", second, ["pair_id"]))
    )
    return one.merge(other, on="pair_id", validate="one_to_one")


def measure_agreement(path: str, joined: pd.DataFrame, confidence: float, preferences: tuple[str, str]) -> AgreementRow:
    """Compare two models on the joined pairs of one or several subtopics.

    `preferences` are the names of the two models' preference figures (`Reading.preference`).
    """
    signs = np.sign(joined[["first", "second"]].to_numpy(dtype=np.float64))
    codes = (1 - signs).astype(np.intp)  # 0 pro, 1 tie, 2 anti
    tally = np.bincount(3 * codes[:, 0] + codes[:, 1], minlength=len(LEANS))
    leans: dict[Lean, int] = dict(zip(LEANS, tally.tolist(), strict=True))
    if joined.empty:
        return AgreementRow(path, 0, 0, NO_DATA, NO_DATA, leans, NO_DATA, None, None, None)
    design = design_of(joined)
    is_same = (signs[:, 0] == signs[:, 1]).astype(np.float64)
    first, second, agreement = estimate_means(np.column_stack([(signs + 1) / 2, is_same]), design, confidence)
    # Kappa is None if all leans of both models are in one category: then chance alone gives full agreement.
    by_chance, kappa = cohens_kappa({(lean[0], lean[1]): n for lean, n in leans.items()})
    return AgreementRow(
        path=path,
        n_pairs=len(joined),
        n_clusters=design.n_clusters,
        first=_preference(preferences[0], signs[:, 0], first),
        second=_preference(preferences[1], signs[:, 1], second),
        leans=leans,
        agreement=Measured(*agreement[:4]),
        by_chance=by_chance,
        kappa=kappa,
        rank_correlation=rank_correlation(joined["first"], joined["second"]),
        kappa_interval=kappa_interval(codes[:, 0], codes[:, 1], design, confidence),
        rank_interval=rank_interval(joined["first"], joined["second"], design, confidence),
    )


def _preference(name: str, signs: Floats, found: Estimate) -> Measured:
    """Return the share of pairs on which a model leans pro. A tie counts half.

    For likelihoods, this is the measure `token_preference`, which has no data if most pairs are ties. For labels and
    answers, ties are usual: the two sides were answered alike.
    """
    is_measure = name == TOKEN_PREFERENCE.name
    if is_measure and not tells_apart(int((signs == 0).sum()), len(signs)):
        return NO_DATA
    return Measured(*found[:4])


def r_over(rows: Sequence[AgreementRow]) -> float | None:
    """Correlate how two models lean over subtopics (Pearson's r). Return None if r is not defined.

    There is one row per subtopic.
    """
    table = pd.DataFrame([(row.first.value, row.second.value) for row in rows], columns=["first", "second"])
    table = table.astype("float64")
    found = float(table["first"].corr(table["second"], min_periods=FEWEST))
    return None if np.isnan(found) else min(max(found, -1.0), 1.0)


def r_between(table: pd.DataFrame) -> pd.DataFrame:
    """Correlate every two measures over models (Pearson's r). The square of r is the R² of Felkner, Lim and May.

    The table has a row per model and a column per measure. The r of two measures is nan if fewer than three models have
    both, or if one of the two measures is constant.
    """
    return table.astype("float64").corr(min_periods=FEWEST).clip(-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Correlation:
    """The r and R² of every two measures, in the order of `measures`.

    Both r and R² are None if one of the two measures is constant, or if there are fewer than three points.
    """

    measures: tuple[str, ...]
    r: tuple[tuple[float | None, ...], ...]
    r_squared: tuple[tuple[float | None, ...], ...]
    n_points: int
    constant: tuple[str, ...]
    left_out: tuple[str, ...]  # measures that lack a value at one or more points


def correlate(
    results: Sequence[AuditResult], *, by_subtopic: bool = False, wanted: Collection[str] | None = None
) -> Correlation:
    """Correlate the measures of results on the same pairs. A point is a model, or a subtopic of a model."""
    rows = [row for result in results for row in (result.subtopics if by_subtopic else (result.total,))]
    names = dict.fromkeys(name for row in rows for name in row.measures if wanted is None or name in wanted)
    values = {name: [row.measures.get(name, NO_DATA).value for row in rows] for name in names}
    table = pd.DataFrame(values, dtype="float64")
    whole = table.loc[:, table.notna().all()]
    varies = whole.max() - whole.min() > _SAME
    measures = list(whole.columns)
    found = r_between(whole.loc[:, varies]).reindex(index=measures, columns=measures).to_numpy()
    r, squares = (
        tuple(tuple(None if isnan(value) else float(value) for value in row) for row in each)
        for each in (found, found**2)
    )
    return Correlation(
        measures=tuple(measures),
        r=r,
        r_squared=squares,
        n_points=len(rows),
        constant=tuple(whole.columns[~varies]),
        left_out=tuple(name for name in names if name not in measures),
    )


def by_chance(n_points: int) -> tuple[float, float]:
    """Return the mean of R² between two unrelated measures, and the value that R² exceeds one time in twenty."""
    from scipy.stats import beta

    chance = beta(0.5, (n_points - 2) / 2)  # the distribution of R² between independent normal values
    return float(chance.mean()), float(chance.ppf(0.95))
