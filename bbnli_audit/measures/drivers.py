"""What drives a measure: the templates, the words and the single pairs to look at first.

The argument `counts` holds what each pair adds to the measure, in the measure's unit. More is worse (`Measure.count`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.measures.readings.table import SIDES, Floats, PairTable

MOST = 3  # clusters and pairs that a failing test shows
# Words and templates in fewer pairs than this are left out: their figures would describe only those few pairs.
# In a subtopic of `bbnli` a hypothesis has 3 pairs, a premise 5 or more. So words of a single hypothesis are left out
# (about 105 of 340); words of a premise or of two hypotheses are kept. In `bbnli@1` no word is left out.
FEWEST_PAIRS = 5
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class DrivingCluster(NamedTuple):
    """A cluster, and how many of its samples count towards a measure."""

    cluster: str
    n_counted: int
    n_samples: int


def driving_clusters(frame: pd.DataFrame, counts: NDArray[Any], most: int = MOST) -> list[DrivingCluster]:
    """Return the clusters that add most to a measure, largest first. Equal clusters are in the order of their names."""
    found = frame.assign(counted=counts).groupby("cluster")["counted"].agg(["sum", "size"])
    worst = found[found["sum"] > 0].sort_values("sum", ascending=False, kind="stable").head(most)
    return [DrivingCluster(str(cluster), int(n), 2 * int(n_pairs)) for cluster, n, n_pairs in worst.itertuples()]


@dataclass(frozen=True, slots=True)
class DrivingWord:
    """A word, and how many samples with the word and without it count towards a measure.

    A sample has the word if the word is on the pro side of its pair.
    """

    word: str
    n_counted: int
    n_samples: int
    n_counted_without: int
    n_samples_without: int

    @property
    def excess(self) -> float:
        """How many more of the samples with the word count than the share in the whole subtopic predicts.

        A comparison with the pairs that lack the word would favour very common words, because few pairs lack such a
        word.
        """
        n_counted, n_samples = self.n_counted + self.n_counted_without, self.n_samples + self.n_samples_without
        return (self.n_counted * n_samples - self.n_samples * n_counted) / n_samples


def driving_words(frame: pd.DataFrame, counts: Floats, most: int = 5) -> list[DrivingWord]:
    """Return the words whose pairs add more to a measure than the other pairs of the subtopic, largest excess first.

    Words that occur in exactly the same pairs cannot be told apart: they are returned as one, joined by commas.
    """
    rows_of: dict[str, list[int]] = {}
    for row, texts in enumerate(zip(frame["pro_premise"], frame["pro_hypothesis"], strict=True)):
        for word in set(WORD.findall(" ".join(texts).lower())):
            rows_of.setdefault(word, []).append(row)
    together: dict[tuple[int, ...], list[str]] = {}
    for word, rows in sorted(rows_of.items()):
        if FEWEST_PAIRS <= len(rows) < len(frame):
            together.setdefault(tuple(rows), []).append(word)
    total = int(counts.sum())
    found = []
    for same_rows, words in together.items():
        n_counted, n = int(counts[list(same_rows)].sum()), 2 * len(same_rows)
        found.append(DrivingWord(", ".join(words), n_counted, n, total - n_counted, 2 * len(frame) - n))
    driving = [word for word in found if word.excess > 0]
    return sorted(driving, key=lambda word: (-word.excess, word.word))[:most]


def worst_pairs(table: PairTable, counts: Floats, most: int = MOST) -> pd.DataFrame:
    """Return the pairs that add most to a measure. Pairs that add nothing are left out.

    Among pairs that add equally much, the most confident wrong labels come first.
    """
    pro, anti = (1 - table.probabilities(side)[:, 1] for side in SIDES)  # any label but neutral
    order = table.frame[["pair_id"]].assign(counted=counts, wrong=pro + anti)
    order = order[order["counted"] > 0]
    best = order.sort_values(["counted", "wrong", "pair_id"], ascending=[False, False, True], kind="stable")
    return table.frame.loc[best.index[:most]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a failing test shows besides its numbers: clusters that drive the measure, and a line per worst pair."""

    clusters: Sequence[DrivingCluster] = ()
    pairs: Mapping[str, str] = field(default_factory=dict)  # by pair id
    notes: Sequence[str] = ()


def show_clusters(table: PairTable, counts: Floats) -> Evidence:
    """Show the clusters that add most and the worst pairs."""
    return Evidence(driving_clusters(table.frame, counts), show_pairs(table, counts).pairs)


def show_pairs(table: PairTable, counts: Floats) -> Evidence:
    """Show only the worst pairs."""
    lines = {}
    for pair in worst_pairs(table, counts).to_dict("records"):
        sides = "   ".join(f"{side}: {table.reading.tell(pair, side)}" for side in SIDES)
        lines[pair["pair_id"]] = f"worst pair {pair['pair_id']} ({pair['cluster']})   {sides}   (expected neutral)"
    return Evidence([], lines)
