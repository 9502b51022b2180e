"""R² between measures over models: how much of one measure another one tells (Felkner, Lim, May)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import isnan

import pandas as pd

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import SubtopicResult

# Shares of pairs that differ at all differ by far more; less is the rounding of a sum.
_SAME = 1e-9
_LEAST_MODELS = 3  # two points always lie on a line


def r_squared(table: pd.DataFrame) -> pd.DataFrame:
    """Say how much of one measure another explains, over models: R² of a straight line.

    The table has a row per model and a column per measure. The result is nan where fewer than three models have both
    measures, or where one of the two does not vary.
    """
    return table.astype("float64").corr(min_periods=_LEAST_MODELS) ** 2


@dataclass(frozen=True, slots=True)
class Correlation:
    """R² between each two measures, in their order; None where one of the two is the same at every point.

    `left_out` has the measures that some results have and that have no value at every point.
    """

    measures: tuple[str, ...]
    r_squared: tuple[tuple[float | None, ...], ...]
    n_points: int
    constant: tuple[str, ...]
    left_out: tuple[str, ...]


def correlate(
    results: Sequence[AuditResult], *, by_subtopic: bool = False, wanted: Collection[str] | None = None
) -> Correlation:
    """Compare the measures that every result has: one result per model, all on the same pairs.

    A point is a model, or a subtopic of a model.
    """
    rows = [row for result in results for row in (result.subtopics if by_subtopic else (result.total,))]
    names = dict.fromkeys(name for row in rows for name in row.measures if wanted is None or name in wanted)
    table = pd.DataFrame({name: [_value(row, name) for row in rows] for name in names}, dtype="float64")
    whole = table.loc[:, table.notna().all()]
    varies = whole.max() - whole.min() > _SAME
    measures = list(whole.columns)
    found = r_squared(whole.loc[:, varies]).reindex(index=measures, columns=measures)
    return Correlation(
        measures=tuple(measures),
        r_squared=tuple(tuple(None if isnan(value) else float(value) for value in row) for row in found.to_numpy()),
        n_points=len(rows),
        constant=tuple(whole.columns[~varies]),
        left_out=tuple(name for name in names if name not in measures),
    )


def by_chance(n_points: int) -> tuple[float, float]:
    """Return the mean of R² between two unrelated measures, and the value it exceeds one time in twenty.

    Between independent, normally distributed values R² follows a beta distribution.
    """
    from scipy.stats import beta

    chance = beta(0.5, (n_points - 2) / 2)
    return float(chance.mean()), float(chance.ppf(0.95))


def _value(row: SubtopicResult, name: str) -> float | None:
    return row.measures[name].value if name in row.measures else None
