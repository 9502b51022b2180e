"""Is it worse than the last release? With --bbnli-baseline only: without one there is nothing to compare with."""

from bbnli_audit import RegressionHandle


def test_regression(bbnli_regression: RegressionHandle) -> None:
    bbnli_regression.require()
