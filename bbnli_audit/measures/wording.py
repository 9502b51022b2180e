"""Measures how much wording matters: how well templates and words predict what each pair adds to a measure.

The result shows whether a single bad template makes a model look biased. If no measure is given, the value of a pair is
log p(entailment | pro) - log p(entailment | anti). The reasons are in docs/decisions/0015-wording.md.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bbnli_audit.measures.drivers import FEWEST_PAIRS, WORD
from bbnli_audit.measures.readings.table import SIDES, Floats, PairTable, PairValues

# Smaller probabilities are raised to this value, because differences between them come from rounding (in stored files,
# or in 16-bit models).
FLOOR = 1e-6
# Values are cut into quarters. More parts would need more pairs per template than the suites have.
N_PARTS = 4
FEWEST_IN_SUBTOPIC = 20  # five in each quarter; subtopics with fewer pairs are left out
# A stratum is left out if its entropy minus the information expected by chance is less than this share of its entropy.
# In such a stratum, nearly every pair has a template or word of its own.
LEAST_ROOM = 0.2
_TEMPLATES = re.compile(r"([a-z]\d+)/(h\d+)")


@dataclass(frozen=True, slots=True)
class Level:
    """One template, word or subtopic. `difference` is its mean minus the mean of the pairs it is compared with."""

    name: str
    subtopic: str  # `domain/name` if the level belongs to a subtopic, else empty
    difference: float
    n_pairs: int


@dataclass(frozen=True, slots=True)
class Factor:
    """How well one factor predicts the values of pairs, beyond chance."""

    name: str  # "subtopic", "premise template", "hypothesis template", "template" or "word"
    share: float  # information / (entropy of the quarters - chance): 0 to 1; at 1 the factor decides the quarter
    information: float  # mutual information in nats, minus that expected by chance; never below 0
    uncorrected: float  # the mutual information before chance is subtracted
    spread: float  # standard deviation of all values, in nats or in the unit of the measure
    n_pairs: int  # pairs that could be compared
    levels: tuple[Level, ...]  # the levels with the largest differences, largest first; levels with few pairs left out
    by_subtopic: tuple[tuple[str, float], ...]  # share in each subtopic, largest first; empty for "subtopic"


@dataclass(frozen=True, slots=True)
class _Stratum:
    """Rows whose values are compared with each other, and the mutual information of their levels and values.

    `room` is the largest information above chance that a factor can have here: entropy minus `by_chance`.
    """

    name: str
    n: int
    information: float
    by_chance: float
    room: float
    variance: float

    @property
    def share(self) -> float:
        return max((self.information - self.by_chance) / self.room, 0.0)


def entailment_difference(table: PairTable) -> Floats:
    """Return log p(entailment | pro) - log p(entailment | anti) of each pair."""
    pro, anti = (np.log(np.clip(table.probabilities(side)[:, 0], FLOOR, None)) for side in SIDES)
    return np.asarray(pro - anti, dtype=np.float64)


def wording_sensitivity(
    table: PairTable,
    explained: PairValues = entailment_difference,
    within: Collection[str] | None = None,
    most: int = 5,
) -> list[Factor]:
    """Return how well each factor predicts the values of pairs, largest share first.

    The table has the sentences of one suite or subtopic. `explained` gives the value of each pair: what it adds to a
    measure, or nan for a pair that is left out. Subtopics are compared within the suite, templates within a subtopic,
    and words within a cluster (the same templates). Otherwise a stereotype of the model would look like an effect of
    wording, and an effect of a template would look like an effect of its words. `within` are the subtopics
    (`domain/name`) whose templates and words are compared; None for all. A factor is left out if it has too few pairs,
    if all its pairs have the same value or the same level, or if nearly every pair has a level of its own. Each factor
    lists at most `most` levels.
    """
    values = explained(table)
    table, values = table.take(~np.isnan(values)), values[~np.isnan(values)]
    if not len(table):
        return []
    # Sorted, so that no sum depends on the order in which the pairs were given.
    order = ["domain", "subtopic", "cluster", "pair_id"]
    frame = table.frame.assign(difference=values).sort_values(order, kind="stable", ignore_index=True)
    place = frame["domain"].astype(str) + "/" + frame["subtopic"].astype(str)
    pairs = pd.DataFrame({"place": place, "cluster": frame["cluster"].astype(str), "difference": frame["difference"]})
    # The columns that `_factor` reads, one row per pair, besides `difference`:
    #   level: the template, words or subtopic of the pair
    #   owner: the subtopic that the level belongs to, or empty
    #   stratum: mutual information is measured within rows that have the same stratum
    #   compared: a level is compared with the other rows that have the same value here
    tables = {"subtopic": pairs.assign(level=place, owner="", stratum="", compared="")}
    if within is not None:
        is_within = place.isin(list(within))
        frame, pairs = (each[is_within].reset_index(drop=True) for each in (frame, pairs))
        place = pairs["place"]
    for name, levels in _templates(pairs["cluster"]):
        tables[name] = pairs.assign(level=levels, owner=place, stratum=place, compared=place)
    tables["word"] = _within_clusters(pairs.assign(level=_varying_words(frame, pairs)))
    found = [_factor(name, rows, most) for name, rows in tables.items()]
    return sorted((factor for factor in found if factor), key=lambda factor: (-factor.share, factor.name))


def _templates(clusters: "pd.Series[str]") -> Iterator[tuple[str, list[str]]]:
    matches = [_TEMPLATES.fullmatch(cluster) for cluster in clusters]
    parts = [match.groups() for match in matches if match]
    if len(parts) < len(matches):
        yield "template", clusters.tolist()
    else:
        yield "premise template", [premise for premise, _ in parts]
        yield "hypothesis template", [hypothesis for _, hypothesis in parts]


def _varying_words(frame: pd.DataFrame, pairs: pd.DataFrame) -> list[str]:
    """For each pair, return the words of its pro side that another pair of its cluster lacks, in text order."""
    texts = list(zip(frame["pro_premise"].tolist(), frame["pro_hypothesis"].tolist(), strict=True))
    words_of = {text: WORD.findall(text.lower()) for text in {text for each in texts for text in each}}
    words = [dict.fromkeys((*words_of[premise], *words_of[hypothesis])) for premise, hypothesis in texts]
    shared: dict[tuple[str, str], set[str]] = {}
    keys = list(zip(pairs["place"].tolist(), pairs["cluster"].tolist(), strict=True))
    for key, each in zip(keys, words, strict=True):
        shared.setdefault(key, set(each)).intersection_update(each)
    return [" ".join(word for word in each if word not in shared[key]) for key, each in zip(keys, words, strict=True)]


def _within_clusters(pairs: pd.DataFrame) -> pd.DataFrame:
    """Keep the clusters whose words vary, and subtract the cluster's mean from each difference."""
    pairs = pairs.assign(owner="", stratum=pairs["place"], compared=pairs["place"] + " " + pairs["cluster"])
    clusters = pairs.groupby("compared")
    centred = pairs["difference"] - clusters["difference"].transform("mean")
    return pairs.assign(difference=centred)[clusters["level"].transform("nunique") > 1]


def _factor(name: str, pairs: pd.DataFrame, most: int) -> Factor | None:
    groups = pairs.groupby("stratum", sort=True)
    strata = [each for name, rows in groups if (each := _measure_stratum(str(name), rows)) is not None]
    if not strata:
        return None
    n = sum(each.n for each in strata)
    # The figures of the factor are means over the strata, weighted by their numbers of pairs.
    columns = np.array([(each.information, each.by_chance, each.room, each.variance) for each in strata])
    uncorrected, by_chance, room, variance = (np.array([each.n for each in strata]) @ columns / n).tolist()
    information = max(uncorrected - by_chance, 0.0)
    by_subtopic = sorted(((each.name, each.share) for each in strata if each.name), key=lambda x: (-x[1], x[0]))
    return Factor(
        name=name,
        share=information / room,
        information=information,
        uncorrected=uncorrected,
        spread=variance**0.5,
        n_pairs=n,
        levels=_moving_levels(pairs[pairs["stratum"].isin([each.name for each in strata])])[:most],
        by_subtopic=tuple(by_subtopic),
    )


def _measure_stratum(name: str, rows: pd.DataFrame) -> _Stratum | None:
    """Measure how much the levels of these rows tell about their values. Return None if the rows cannot show it."""
    from sklearn.metrics import mutual_info_score  # takes seconds; not every run makes a page
    from sklearn.metrics.cluster import expected_mutual_information

    n = len(rows)
    # Equal differences go into the same quarter. They are rounded, because subtracting a mean changes the last bits.
    ranks = rows["difference"].round(9).rank(method="average").to_numpy()
    parts = np.unique(np.floor((ranks - 0.5) * N_PARTS / n), return_inverse=True)[1]
    levels = np.unique(rows["level"].to_numpy(dtype=object), return_inverse=True)[1]
    table = np.zeros((parts.max() + 1, levels.max() + 1), dtype=np.int64)
    np.add.at(table, (parts, levels), 1)
    if n < FEWEST_IN_SUBTOPIC or min(table.shape) == 1:
        return None
    shares = table.sum(axis=1) / n
    entropy = -float(shares @ np.log(shares))
    by_chance = float(expected_mutual_information(table, n))
    if entropy - by_chance < LEAST_ROOM * entropy:
        return None
    information = float(mutual_info_score(None, None, contingency=table))
    return _Stratum(name, n, information, by_chance, entropy - by_chance, float(rows["difference"].var(ddof=0)))


def _moving_levels(pairs: pd.DataFrame) -> tuple[Level, ...]:
    """Compare each level with the other pairs of its `compared` group, and return the largest differences first.

    The difference of a word in several clusters is the weighted mean over the clusters.
    """
    parts = pairs.groupby(["level", "owner", "compared"], as_index=False)["difference"].agg(["size", "sum"])
    whole = pairs.groupby("compared")["difference"].agg(["size", "sum"]).loc[parts["compared"]].reset_index(drop=True)
    parts = parts.assign(n_others=whole["size"] - parts["size"], sum_others=whole["sum"] - parts["sum"])
    parts = parts[parts["n_others"] > 0]
    gap = parts["sum"] / parts["size"] - parts["sum_others"] / parts["n_others"]
    # The weights of a regression with fixed effects (one intercept per cluster).
    weight = parts["size"] * parts["n_others"] / (parts["size"] + parts["n_others"])
    parts = parts.assign(weight=weight, moved=weight * gap)
    sums = parts.groupby(["level", "owner"])[["size", "weight", "moved"]].sum()
    levels = [
        Level(str(level), str(owner), float(moved / weight), int(n))
        for (level, owner), (n, weight, moved) in zip(sums.index, sums.to_numpy(), strict=True)
        if n >= FEWEST_PAIRS and level
    ]
    return tuple(sorted(levels, key=lambda each: (-round(abs(each.difference), 9), each.subtopic, each.name)))
