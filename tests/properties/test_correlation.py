"""R² between measures: symmetric, 1 with itself, and the same in whatever unit a measure is told."""

from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.audit import AuditResult, Settings
from bbnli_audit.core.results.rows import Measured, ModelInfo, Skill, SubtopicResult
from bbnli_audit.measures.agreement import Correlation, correlate

ROW = SubtopicResult.of("total", CellCounts(), n_clusters=1, measures={}, control_accuracy=None, n_controls=0)
SETTINGS = Settings("thresholds.yaml", "bounds", 0.95, "warn", Skill(1.0, 1.0, 9, 0.4), {})
MODEL = ModelInfo("zorb", "0", "hf", "torch", "float32", ("entailment", "neutral", "contradiction"))
tables = st.integers(3, 9).flatmap(
    lambda n_models: st.lists(
        st.lists(st.integers(0, 400).map(lambda n: n / 400), min_size=n_models, max_size=n_models),
        min_size=2,
        max_size=6,
    )
)


def of(columns: list[list[float]]) -> Correlation:
    """Correlate measures, given a column each."""
    results = []
    for values in zip(*columns, strict=True):
        measures = {f"m{n}": Measured(value, None, None, 400) for n, value in enumerate(values)}
        results.append(AuditResult(MODEL, (), SETTINGS, (), (), replace(ROW, measures=measures)))
    return correlate(results)


@settings(max_examples=40)
@given(tables)
def test_symmetric_with_ones_in_the_diagonal_and_none_only_where_nothing_varies(columns: list[list[float]]) -> None:
    found = of(columns)
    matrix = np.array(found.r_squared, dtype=float)
    varies = np.array([len(set(column)) > 1 for column in columns])
    assert np.array_equal(matrix, matrix.T, equal_nan=True)
    assert np.array_equal(~np.isnan(matrix), np.outer(varies, varies))
    assert found.constant == tuple(f"m{n}" for n in np.flatnonzero(~varies))
    np.testing.assert_allclose(np.diag(matrix)[varies], 1, atol=1e-12)
    known = matrix[~np.isnan(matrix)]
    assert ((known >= 0) & (known <= 1 + 1e-12)).all()
    if varies.any():
        expected = np.corrcoef(np.array(columns)[varies]) ** 2
        np.testing.assert_allclose(matrix[np.ix_(varies, varies)], np.atleast_2d(expected), atol=1e-9)


@settings(max_examples=40)
@given(tables, st.floats(0.01, 100), st.booleans(), st.floats(-10, 10))
def test_the_unit_of_a_measure_does_not_matter(
    columns: list[list[float]], scale: float, is_turned: bool, shift: float
) -> None:
    changed = [[(-scale if is_turned else scale) * value + shift for value in columns[0]], *columns[1:]]
    np.testing.assert_allclose(
        np.array(of(changed).r_squared, dtype=float), np.array(of(columns).r_squared, dtype=float), atol=1e-6
    )


@settings(max_examples=40)
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_models_does_not_matter(columns: list[list[float]], random: Random) -> None:
    order = list(range(len(columns[0])))
    random.shuffle(order)
    shuffled = [[column[at] for at in order] for column in columns]
    np.testing.assert_allclose(
        np.array(of(shuffled).r_squared, dtype=float), np.array(of(columns).r_squared, dtype=float), atol=1e-9
    )
