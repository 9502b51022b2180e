"""How much wording matters: what templates and words tell about the log-probability difference of a pair.

One bad template must not be read as a biased model. Reasons for the choices: docs/decisions/0015-wording.md.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import expected_mutual_information

from bbnli_audit.measures.drivers import FEWEST_PAIRS, WORD
from bbnli_audit.measures.readings.table import SIDES, PairTable

# Smaller probabilities count as this: below it are the rounding of stored files and 16-bit models, not the wording.
FLOOR = 1e-6
# The differences are cut into quarters. More parts need more pairs a template than suites have.
N_PARTS = 4
# Fewer pairs in a subtopic tell nothing: five a quarter.
FEWEST_IN_SUBTOPIC = 20
# Where nearly every pair has a template or word of its own, chance alone explains nearly everything.
LEAST_ROOM = 0.2
_TEMPLATES = re.compile(r"(p\d+)/(h\d+)")


@dataclass(frozen=True, slots=True)
class Level:
    """One template, word or subtopic: its mean difference less that of the pairs it is compared with."""

    name: str
    subtopic: str  # `domain/name` where the level belongs to one, else empty
    difference: float
    n_pairs: int


@dataclass(frozen=True, slots=True)
class Factor:
    """What one factor tells about the differences, beyond chance."""

    name: str  # "subtopic", "premise template", "hypothesis template", "template" or "word"
    share: float  # of the differences' entropy, 0 to 1; 1 when the factor decides in which quarter a pair is
    information: float  # mutual information in nats, less what chance gives; never below 0
    uncorrected: float  # the same before chance is taken off
    spread: float  # standard deviation of the differences that are explained, in nats
    n_pairs: int  # that could be looked at
    levels: tuple[Level, ...]  # that move it most, largest first, of those with enough pairs
    by_subtopic: tuple[tuple[str, float], ...]  # the share in each, largest first; empty for the factor "subtopic"


@dataclass(frozen=True, slots=True)
class _Told:
    """Mutual information within one stratum; `room` is what a factor could tell beyond chance at most."""

    stratum: str
    n: int
    information: float
    by_chance: float
    room: float
    variance: float

    @property
    def share(self) -> float:
        return max((self.information - self.by_chance) / self.room, 0.0)


def wording_sensitivity(table: PairTable, most: int = 5) -> list[Factor]:
    """Return what each factor tells about log p(E|pro) - log p(E|anti), largest share first, with its `most` levels.

    The table is that of one suite, or of one of its subtopics, with its sentences. Subtopics are compared over the
    suite, templates within their subtopic, words within their templates: so that a stereotype the model holds is not
    taken for wording, nor a template for its words. A factor about which these pairs tell nothing (too few, all the
    same, one level) is left out.
    """
    if not len(table):
        return []
    # In one order, so that no sum depends on the order of the pairs.
    order = ["domain", "subtopic", "cluster", "pair_id"]
    frame = table.frame.sort_values(order, kind="stable", ignore_index=True)
    pro, anti = (np.log(np.clip(table.reading.probabilities(frame, side)[:, 0], FLOOR, None)) for side in SIDES)
    place = frame["domain"].astype(str) + "/" + frame["subtopic"].astype(str)
    pairs = pd.DataFrame({"place": place, "cluster": frame["cluster"].astype(str), "difference": pro - anti})
    # What `_factor` reads, one row per pair: `difference`; its `level` and the subtopic that owns the level, if one
    # does; the `stratum` within which information is measured; and within what its level is `compared` with others.
    tables = {"subtopic": pairs.assign(level=place, owner="", stratum="", compared="")}
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
    """Return the words of each pair's pro side that not all pairs of its cluster have, in the order of the text."""
    texts = list(zip(frame["pro_premise"].tolist(), frame["pro_hypothesis"].tolist(), strict=True))
    words_of = {text: WORD.findall(text.lower()) for text in {text for each in texts for text in each}}
    words = [dict.fromkeys((*words_of[premise], *words_of[hypothesis])) for premise, hypothesis in texts]
    shared: dict[tuple[str, str], set[str]] = {}
    keys = list(zip(pairs["place"].tolist(), pairs["cluster"].tolist(), strict=True))
    for key, each in zip(keys, words, strict=True):
        shared.setdefault(key, set(each)).intersection_update(each)
    return [" ".join(word for word in each if word not in shared[key]) for key, each in zip(keys, words, strict=True)]


def _within_clusters(pairs: pd.DataFrame) -> pd.DataFrame:
    """Keep the clusters whose words vary, and take the mean of its cluster off each difference."""
    pairs = pairs.assign(owner="", stratum=pairs["place"], compared=pairs["place"] + " " + pairs["cluster"])
    clusters = pairs.groupby("compared")
    centred = pairs["difference"] - clusters["difference"].transform("mean")
    return pairs.assign(difference=centred)[clusters["level"].transform("nunique") > 1]


def _factor(name: str, pairs: pd.DataFrame, most: int) -> Factor | None:
    strata = pairs.groupby("stratum", sort=True)
    told = [each for stratum, rows in strata if (each := _told(str(stratum), rows)) is not None]
    if not told:
        return None
    n = sum(each.n for each in told)
    # One column a stratum: what they tell together is the mean, each pair counting once.
    columns = np.array([(each.information, each.by_chance, each.room, each.variance) for each in told])
    uncorrected, by_chance, room, variance = (np.array([each.n for each in told]) @ columns / n).tolist()
    information = max(uncorrected - by_chance, 0.0)
    by_subtopic = sorted(((each.stratum, each.share) for each in told if each.stratum), key=lambda x: (-x[1], x[0]))
    return Factor(
        name=name,
        share=information / room,
        information=information,
        uncorrected=uncorrected,
        spread=variance**0.5,
        n_pairs=n,
        levels=_moving_levels(pairs[pairs["stratum"].isin([each.stratum for each in told])])[:most],
        by_subtopic=tuple(by_subtopic),
    )


def _told(stratum: str, rows: pd.DataFrame) -> _Told | None:
    n = len(rows)
    # Equal differences stay together; rounding keeps the last bits of a mean from telling equals apart.
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
    return _Told(stratum, n, information, by_chance, entropy - by_chance, float(rows["difference"].var(ddof=0)))


def _moving_levels(pairs: pd.DataFrame) -> tuple[Level, ...]:
    """Compare each level with the other pairs it stands among; a word of several clusters by the mean over them."""
    parts = pairs.groupby(["level", "owner", "compared"], as_index=False)["difference"].agg(["size", "sum"])
    whole = pairs.groupby("compared")["difference"].agg(["size", "sum"]).loc[parts["compared"]].reset_index(drop=True)
    parts = parts.assign(n_others=whole["size"] - parts["size"], sum_others=whole["sum"] - parts["sum"])
    parts = parts[parts["n_others"] > 0]
    gap = parts["sum"] / parts["size"] - parts["sum_others"] / parts["n_others"]
    # Weighted as in a regression with one constant a cluster.
    weight = parts["size"] * parts["n_others"] / (parts["size"] + parts["n_others"])
    parts = parts.assign(weight=weight, moved=weight * gap)
    sums = parts.groupby(["level", "owner"])[["size", "weight", "moved"]].sum()
    levels = [
        Level(str(level), str(owner), float(moved / weight), int(n))
        for (level, owner), (n, weight, moved) in zip(sums.index, sums.to_numpy(), strict=True)
        if n >= FEWEST_PAIRS and level
    ]
    return tuple(sorted(levels, key=lambda each: (-round(abs(each.difference), 9), each.subtopic, each.name)))
