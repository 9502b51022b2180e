"""What drives a measure: the templates and the single pairs a person should look at first."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bbnli_audit.metrics.outcomes import cell_indices
from bbnli_audit.results import ANTI_WEIGHTS, BRITTLE_WEIGHTS, CELLS, PRO_WEIGHTS

_WEIGHTS = {
    "pro_rate": PRO_WEIGHTS,
    "anti_rate": ANTI_WEIGHTS,
    "brittleness_rate": BRITTLE_WEIGHTS,
    "misprediction_rate": {cell: 2 - cell.count("N") for cell in CELLS},
}


@dataclass(frozen=True, slots=True)
class DrivingCluster:
    """A premise and hypothesis template with its share in a measure, in samples."""

    cluster: str
    n_counted: int
    n_samples: int


def driving_clusters(frame: pd.DataFrame, measure: str, most: int = 3) -> list[DrivingCluster]:
    """Give the clusters that add most to a measure, largest first; ties in the order of their names."""
    table = (
        pd.DataFrame({"cluster": frame["cluster"], "counted": _counted(frame, measure)})
        .groupby("cluster")["counted"]
        .agg(["sum", "size"])
        .query("sum > 0")
        .sort_index()
        .sort_values("sum", ascending=False, kind="stable")
        .head(most)
    )
    return [
        DrivingCluster(str(cluster), int(counted), 2 * int(n_pairs))
        for cluster, counted, n_pairs in zip(table.index, table["sum"], table["size"], strict=True)
    ]


def worst_pairs(frame: pd.DataFrame, measure: str, most: int = 3) -> pd.DataFrame:
    """Give the pairs that count towards a measure and were wrong with most confidence."""
    counted = _counted(frame, measure)
    wrong = (1 - frame["pro_neutral"]) + (1 - frame["anti_neutral"])
    order = pd.DataFrame({"counted": counted, "wrong": wrong, "pair_id": frame["pair_id"]})
    order = order[order["counted"] > 0]
    best = order.sort_values(["counted", "wrong", "pair_id"], ascending=[False, False, True], kind="stable")
    return frame.loc[best.index[:most]]


def _counted(frame: pd.DataFrame, measure: str) -> "pd.Series[int]":
    """Samples of each pair that count towards a measure: 0, 1 or 2."""
    weights = np.array([_WEIGHTS[measure].get(cell, 0) for cell in CELLS])
    return pd.Series(weights[cell_indices(frame)], index=frame.index)
