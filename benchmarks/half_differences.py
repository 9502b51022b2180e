"""How often do two halves of a subtopic's hypotheses differ, by intervals that should be wrong in 5 % of cases?

Both halves are about one stereotype and one model, so a difference between them is chance. For many splits of the
hypotheses of each subtopic, z is the difference of the two rates in standard errors. It is found twice: as if cells of
premise and hypothesis were independent (before), and with both factors and the spread of the run (now).

    python -m benchmarks.half_differences REPORT/pairs.csv ...
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.measures.reliability import split_templates
from bbnli_audit.measures.statistics.design import Design, hypotheses_of
from bbnli_audit.measures.statistics.intervals import Estimate, Spread, estimate_means, find_spreads

WIDTH = 1.959964  # of half an interval of 95 %, in standard errors
Values = NDArray[np.float64]
Names = NDArray[np.object_]


def read_values(path: Path) -> tuple[pd.DataFrame, Values]:
    """Read the pairs of a run, and what each of them adds to each cause of error."""
    pairs = pd.read_csv(path, usecols=["subtopic", "cluster", "pro_label", "anti_label"], dtype=str)
    cells = pairs["pro_label"].str[0].str.upper() + pairs["anti_label"].str[0].str.upper()
    return pairs, np.column_stack([cells.map(lambda cell, of=of: of.get(cell, 0) / 2) for of in CAUSES.values()])


def distance(halves: list[list[Estimate]]) -> list[float]:
    """Return z for each measure; nan where neither half has an error."""

    def error(estimate: Estimate) -> float:
        return (estimate.high - estimate.low) / 2 / WIDTH

    return [
        (one.value - two.value) / np.hypot(error(one), error(two)) if one.value or two.value else np.nan
        for one, two in zip(*halves, strict=True)
    ]


def distances_of(values: Values, clusters: Names, spreads: list[Spread]) -> tuple[list[list[float]], list[list[float]]]:
    """Return z of all splits of one subtopic, before and now."""
    names, codes = np.unique(hypotheses_of(clusters), return_inverse=True)
    _, cells = np.unique(clusters, return_inverse=True)
    before, now = [], []
    for is_second in split_templates(names)[codes].T:
        halves = [np.flatnonzero(is_second == side) for side in (False, True)]
        before.append(distance([estimate_means(values[rows], cells[rows]) for rows in halves]))
        now.append(distance([estimate_means(values[rows], clusters[rows], spreads=spreads) for rows in halves]))
    return before, now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="+", help="pairs.csv of a run")
    for path in parser.parse_args().pairs:
        pairs, values = read_values(path)
        clusters = pairs["cluster"].to_numpy(dtype=object)
        spreads = find_spreads(values, Design.of(clusters, pairs["subtopic"].to_numpy(dtype=object)))
        found = [distances_of(values[at], clusters[at], spreads) for at in pairs.groupby("subtopic").indices.values()]
        for number, when in enumerate(("before", "now")):
            z = np.array([split for both in found for split in both[number]])
            shares = ", ".join(
                f"{cause} {np.mean(np.abs(column[~np.isnan(column)]) > WIDTH):.3f}"
                for cause, column in zip(CAUSES, z.T, strict=True)
            )
            print(f"{path.parent.name} {when}: |z| > 1.96 in {shares}", flush=True)


if __name__ == "__main__":
    main()
