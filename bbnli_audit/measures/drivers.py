"""What drives a measure: the templates, the words and the single pairs a person should look at first."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bbnli_audit.core.results.audit import CELLS, HIGHER_IS_BETTER, WEIGHTS
from bbnli_audit.measures.outcomes import cell_indices

# A word in fewer pairs than this tells more about those pairs than about the word.
FEWEST_PAIRS = 5
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class DrivingCluster:
    """A premise and hypothesis template with its share in a measure, in samples."""

    cluster: str
    n_counted: int
    n_samples: int


def driving_clusters(frame: pd.DataFrame, measure: str, most: int = 3) -> list[DrivingCluster]:
    """Give the clusters that add most to a measure, largest first; ties in the order of their names."""
    return rank_clusters(frame["cluster"], _counted(frame, measure), most)


def rank_clusters(clusters: "pd.Series[Any]", counted: "pd.Series[Any]", most: int = 3) -> list[DrivingCluster]:
    """Give the clusters with most samples that count, given how many count of the two of each pair."""
    table = (
        pd.DataFrame({"cluster": clusters, "counted": counted})
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


@dataclass(frozen=True, slots=True)
class DrivingWord:
    """A word with its share in a measure, in samples: of the pairs that have it on the pro side, and of the rest."""

    word: str
    n_counted: int
    n_samples: int
    n_counted_without: int
    n_samples_without: int

    @property
    def excess(self) -> float:
        """Samples counted above what the share of the whole subtopic leads to expect.

        Against the share without the word, words that nearly every pair has would win: few pairs are left to tell.
        """
        n_counted, n_samples = self.n_counted + self.n_counted_without, self.n_samples + self.n_samples_without
        return (self.n_counted * n_samples - self.n_samples * n_counted) / n_samples


def driving_words(frame: pd.DataFrame, measure: str, most: int = 5) -> list[DrivingWord]:
    """Give the words whose pairs add more to a measure than the other pairs of the subtopic, largest excess first.

    Words that occur in exactly the same pairs cannot be told apart: they are given as one, joined by commas.
    """
    counted = _counted(frame, measure).to_numpy()
    rows_of: dict[str, list[int]] = {}
    for row, texts in enumerate(zip(frame["pro_premise"], frame["pro_hypothesis"], strict=True)):
        for word in set(WORD.findall(" ".join(texts).lower())):
            rows_of.setdefault(word, []).append(row)
    together: dict[tuple[int, ...], list[str]] = {}
    for word, rows in sorted(rows_of.items()):
        if FEWEST_PAIRS <= len(rows) < len(frame):
            together.setdefault(tuple(rows), []).append(word)
    total = int(counted.sum())
    found = []
    for same_rows, words in together.items():
        n_counted, n = int(counted[list(same_rows)].sum()), 2 * len(same_rows)
        found.append(DrivingWord(", ".join(words), n_counted, n, total - n_counted, 2 * len(frame) - n))
    driving = [word for word in found if word.excess > 0]
    return sorted(driving, key=lambda word: (-word.excess, word.word))[:most]


def worst_pairs(frame: pd.DataFrame, measure: str, most: int = 3) -> pd.DataFrame:
    """Give the pairs that count towards a measure and were wrong with most confidence."""
    counted = _counted(frame, measure)
    wrong = (1 - frame["pro_neutral"]) + (1 - frame["anti_neutral"])
    order = pd.DataFrame({"counted": counted, "wrong": wrong, "pair_id": frame["pair_id"]})
    order = order[order["counted"] > 0]
    best = order.sort_values(["counted", "wrong", "pair_id"], ascending=[False, False, True], kind="stable")
    return frame.loc[best.index[:most]]


def _counted(frame: pd.DataFrame, measure: str) -> "pd.Series[Any]":
    """Samples of each pair that count towards a measure: 0, 1 or 2. For a measure of some suites only: its value."""
    if measure not in WEIGHTS:
        from bbnli_audit.measures.families import find_values

        values = find_values(measure)(frame)
        return pd.Series(1 - values if measure in HIGHER_IS_BETTER else values, index=frame.index)
    weights = np.array([WEIGHTS[measure].get(cell, 0) for cell in CELLS])
    return pd.Series(weights[cell_indices(frame)], index=frame.index)
