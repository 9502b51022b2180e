"""What drives a measure: the templates, the words and the single pairs to look at first."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pandas as pd

from bbnli_audit.measures.readings.table import SIDES, Floats, PairTable

MOST = 3  # clusters and pairs that a failing test shows
# Words and templates in fewer pairs than this are left out: their figures would describe those few pairs, not the word.
# In `bbnli@2` a hypothesis has 3 pairs, a premise 5 or more. So words that only one hypothesis has are left out (about
# 105 of 340 in a subtopic); words of a premise or of two hypotheses are kept. In `bbnli` no word is left out.
FEWEST_PAIRS = 5
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class Counting(Protocol):
    """The part of a measure that this module uses."""

    def count(self, table: PairTable) -> Floats:
        """Return what each pair adds: more is worse."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A stand-in for a measure: what each pair adds was computed elsewhere."""

    counts: Floats

    def count(self, _: PairTable) -> Floats:
        return self.counts


class DrivingCluster(NamedTuple):
    """A pair of templates (premise and hypothesis), and how many of its samples count towards a measure."""

    cluster: str
    n_counted: int
    n_samples: int


def driving_clusters(table: PairTable, measure: Counting, most: int = MOST) -> list[DrivingCluster]:
    """Return the clusters that add most to a measure, largest first; ties in the order of their names."""
    counted = pd.Series(measure.count(table), index=table.frame.index)
    return rank_clusters(table.frame["cluster"], counted, most)


def rank_clusters(clusters: "pd.Series[Any]", counted: "pd.Series[Any]", most: int = MOST) -> list[DrivingCluster]:
    """Rank clusters, given how many of the two samples of each pair count."""
    table = pd.DataFrame({"cluster": clusters, "counted": counted}).groupby("cluster")["counted"].agg(["sum", "size"])
    worst = table[table["sum"] > 0].sort_values("sum", ascending=False, kind="stable").head(most)
    return [DrivingCluster(str(cluster), int(n), 2 * int(n_pairs)) for cluster, n, n_pairs in worst.itertuples()]


@dataclass(frozen=True, slots=True)
class DrivingWord:
    """A word, with the samples that count towards a measure in pairs that have it on the pro side, and in others."""

    word: str
    n_counted: int
    n_samples: int
    n_counted_without: int
    n_samples_without: int

    @property
    def excess(self) -> float:
        """How many more samples count than the share of the whole subtopic predicts.

        Against the share of pairs without the word, very common words would win: too few pairs lack them.
        """
        n_counted, n_samples = self.n_counted + self.n_counted_without, self.n_samples + self.n_samples_without
        return (self.n_counted * n_samples - self.n_samples * n_counted) / n_samples


def driving_words(table: PairTable, measure: Counting, most: int = 5) -> list[DrivingWord]:
    """Return the words whose pairs add more to a measure than the other pairs of the subtopic, largest excess first.

    Words that occur in exactly the same pairs cannot be told apart: they are returned as one, joined by commas.
    """
    frame, counted = table.frame, measure.count(table)
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


def worst_pairs(table: PairTable, measure: Counting, most: int = MOST) -> pd.DataFrame:
    """Return the pairs that count towards a measure and on which the model was most confident in its wrong labels."""
    pro, anti = (1 - table.probabilities(side)[:, 1] for side in SIDES)  # any label but neutral
    order = table.frame[["pair_id"]].assign(counted=measure.count(table), wrong=pro + anti)
    order = order[order["counted"] > 0]
    best = order.sort_values(["counted", "wrong", "pair_id"], ascending=[False, False, True], kind="stable")
    return table.frame.loc[best.index[:most]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a failing test shows besides its numbers: clusters that drive the measure, and a line per worst pair."""

    clusters: Sequence[DrivingCluster] = ()
    pairs: Mapping[str, str] = field(default_factory=dict)  # by pair id
    notes: Sequence[str] = ()


def counted_evidence(measure: Counting, table: PairTable) -> Evidence:
    """Show the clusters that add most and the worst pairs, for measures that count samples."""
    return Evidence(driving_clusters(table, measure), valued_evidence(measure, table).pairs)


def valued_evidence(measure: Counting, table: PairTable) -> Evidence:
    """Show only the worst pairs, for measures that are means of probabilities."""
    lines = {}
    for pair in worst_pairs(table, measure).to_dict("records"):
        sides = "   ".join(f"{side}: {table.reading.tell(pair, side)}" for side in SIDES)
        lines[pair["pair_id"]] = f"worst pair {pair['pair_id']} ({pair['cluster']})   {sides}   (expected neutral)"
    return Evidence([], lines)
