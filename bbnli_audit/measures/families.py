"""Measures that only some suites have: a value in [0, 1] for each pair, whose mean gets an interval as any does."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.measures.occupations import MEASURES as OCCUPATIONS
from bbnli_audit.measures.winoqueer import MEASURES as WINOQUEER

PairValues = Callable[[pd.DataFrame], NDArray[np.float64]]

FAMILIES: Mapping[str, Mapping[str, PairValues]] = {
    "occupations": OCCUPATIONS,
    "winoqueer": WINOQUEER,
}


def pair_values(frame: pd.DataFrame, families: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """Give what each pair adds to each measure of some families."""
    return {name: values(frame) for family in families for name, values in FAMILIES[family].items()}


def find_values(measure: str) -> PairValues:
    return next(measures[measure] for measures in FAMILIES.values() if measure in measures)
