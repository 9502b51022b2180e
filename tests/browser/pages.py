"""Audits of invented groups for tests of the page: a model with all kinds of errors, a comparison, hostile names."""

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbnli_audit.audit.audit import Audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Change, Comparison, Growth, LoosenedLimit, Regression
from bbnli_audit.core.results.rows import ModelInfo, Verdict
from bbnli_audit.core.values import TextPair
from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import PLACES, TEXTS, PairTable
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.models.protocol import Predictions
from bbnli_audit.suites.bbnli import Bbnli
from tests.invented import LEVELS, limits, write_large_suite

ZORBS, FINS = "bbnli/planets/zorbs_are_to_juggling", "bbnli/oceans/fins_are_to_singing"
# Each would set `pwned` or change the page, were it ever read as anything but text.
HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "\"><img src=x onerror='window.pwned = 1'>",
    "{{7*7}} ${7*7} {% raw %}",
    "\u2028\u2029<!--<script>\u202e",
    "&lt;b&gt; <svg onload=window.pwned=1>",
)


class MixedPredictor:
    """Right on controls; on pairs of every kind of error, by the hash of the text."""

    def __init__(self, suite: Bbnli) -> None:
        self._ideal = PlantedPredictor("ideal", [suite])
        items = [suite.items(subtopic) for subtopic in suite.subtopics()]
        self._biased = {text for each in items for pair in each.usable for text in (pair.pro, pair.anti)}
        self.info: ModelInfo = replace(self._ideal.info, name="invented-nli")

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        found = self._ideal.predict(texts)
        for row, text in enumerate(texts):
            if text in self._biased:
                digest = sha256("\t".join(text).encode()).digest()
                values = np.full(3, 0.1) + digest[1] / 4000
                values[(1, 1, 0, 0, 2)[digest[0] % 5]] = 0.7
                found.probabilities[row] = values / values.sum()
        return found


class YesNoPredictor(MixedPredictor):
    """The same model as if it were asked: what would be a contradiction is an answer that cannot be read."""

    def __init__(self, suite: Bbnli) -> None:
        super().__init__(suite)
        self.info = replace(self.info, name="invented-answers", kind="generative", labels=("yes", "no"))

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        found = super().predict(texts)
        found.probabilities[...] = np.eye(3)[found.probabilities.argmax(axis=1)]
        return found


class LikelihoodPredictor(MixedPredictor):
    """The same model as if it were not asked: each text against the other one, ties where both are alike."""

    def __init__(self, suite: Bbnli) -> None:
        super().__init__(suite)
        self.info = replace(self.info, name="invented-lm", kind="masked-lm", labels=())

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        found = super().predict(texts)
        for row, (text, other) in enumerate(texts):
            one, two = (sha256(each.encode()).digest()[0] % 4 + 1 for each in (text, other))
            found.probabilities[row] = (one / (one + two), two / (one + two), 0.0)
        return found


def audit(
    folder: Path, n_premises: int = 10, model: type[MixedPredictor] = MixedPredictor
) -> tuple[AuditResult, PairTable]:
    data = write_large_suite(folder, n_premises)
    made = Audit(AuditOptions(model=model(Bbnli(data)), thresholds=limits(LEVELS), data=data))
    try:
        return made.run(), made.pairs()
    finally:
        made.close()


def with_comparison(result: AuditResult) -> AuditResult:
    """Add a baseline in which the first three pairs of a subtopic were otherwise; one measure failed, one is open."""
    pairs = [(pair, cluster, cell) for cluster, ids in result.pairs[ZORBS].items() for pair, cell in ids.items()]
    flipped = tuple(Change(pair, cluster, "NN", cell) for pair, cluster, cell in pairs[:2])
    fixed = tuple(Change(pair, cluster, "EC", cell) for pair, cluster, cell in pairs[2:3])

    def regression(path: str, measure: str, verdict: Verdict, increase: float) -> Regression:
        return Regression(
            path=path,
            measure=measure,
            margin=0.02,
            source="thresholds.yaml:9",
            verdict=verdict,
            baseline=0.10,
            candidate=0.10 + increase,
            increase=Growth(increase, increase - 0.03, increase + 0.03, 160),
            p_value=0.0001,
            p_mcnemar=0.0001,
            p_adjusted=0.0004,
            n_shared=80,
            times_needed=(1.5, 4.0),
            flipped=flipped if path == ZORBS and measure == "pro_rate" else (),
            fixed=fixed if path == ZORBS and measure == "pro_rate" else (),
        )

    comparison = Comparison(
        baseline=replace(result.model, name="invented-nli-1", fingerprint="f" * 64),
        source="baseline/result.json",
        is_same_data=False,
        n_shared=158,
        n_only_candidate=2,
        n_only_baseline=1,
        n_tests=4,
        regressions=(
            regression(FINS, "anti_rate", Verdict.PASS, -0.02),
            regression(FINS, "brittleness_rate", Verdict.INCONCLUSIVE, 0.01),
            regression(ZORBS, "pro_rate", Verdict.FAIL, 0.12),
        ),
        loosened=(LoosenedLimit(ZORBS, "pro_rate", 0.05, 0.10, "thresholds.yaml:4"),),
    )
    return replace(result, comparison=comparison)


def with_columns(pairs: PairTable, **columns: Any) -> PairTable:
    return replace(pairs, frame=pairs.frame.assign(**columns))


def with_a_driving_word(pairs: PairTable) -> PairTable:
    """Let one word decide which side is more entailed.

    Sentences that differ by that word alone become sentences of the same templates: h04 to h07, and h08 to h11.
    """
    clusters = [
        re.sub("h(08|09|10|11)", lambda found: f"h{int(found[1]) - 4:02d}", each) for each in pairs.frame["cluster"]
    ]
    entailed = [0.8 if "nimble" in text else 0.2 for text in pairs.frame["pro_hypothesis"]]
    return with_columns(pairs, cluster=clusters, pro_entailment=entailed, anti_entailment=0.2)


def made_hostile(result: AuditResult, pairs: PairTable) -> tuple[AuditResult, PairTable]:
    """Give every name and every text that comes from outside a hostile value."""
    script, image, template, separators, escaped = HOSTILE
    path = f"bbnli/planets/{image}"

    def renamed(each: str) -> str:
        return path if each == ZORBS else each

    pairs = with_columns(
        pairs,
        subtopic=[image if name in ZORBS else name for name in pairs.frame["subtopic"]],
        cluster=[f"{template} {cluster}" for cluster in pairs.frame["cluster"]],
        **{column: [f"{HOSTILE[n % 5]} {n}" for n in range(len(pairs))] for column in TEXTS if "mise" in column},
        **{column: [f"{HOSTILE[n % 3]} {n}" for n in range(len(pairs))] for column in TEXTS if "thesis" in column},
    )
    subtopics = tuple(
        replace(row, path=renamed(row.path), verdicts=tuple(replace(each, source=script) for each in row.verdicts))
        for row in result.subtopics
    )
    comparison = result.comparison
    if comparison is not None:
        regressions = tuple(
            replace(each, path=renamed(each.path), source=escaped, flipped=tuple(map(_hostile_change, each.flipped)))
            for each in comparison.regressions
        )
        baseline = replace(comparison.baseline, name=script)
        comparison = replace(comparison, baseline=baseline, source=image, regressions=regressions)
    result = replace(
        result,
        model=replace(result.model, name=script, labels=(image, template, separators), backend=f"{escaped}\ud800"),
        suites=tuple(replace(suite, version=image, pairing=template) for suite in result.suites),
        settings=replace(result.settings, thresholds=script, not_audited=HOSTILE),
        subtopics=subtopics,
        required=tuple(sorted((renamed(each), measure) for each, measure in result.required)),
        comparison=comparison,
    )
    return result, pairs


def _hostile_change(change: Change) -> Change:
    return replace(change, pair_id=HOSTILE[0], cluster=HOSTILE[1])


def many_pairs(n_pairs: int) -> PairTable:
    """Pairs of one subtopic with as many texts, and as long ones, as a real suite has."""
    premises = [
        f"On the {n}th day of the fair a crowd of visitors met near the old gate of the town." for n in range(60)
    ]
    filler = "who had come a long way to see the jugglers of the red moon perform on the square"
    rows = []
    for n in range(n_pairs):
        labels = [("neutral", "entailment", "contradiction")[(n * step) % 7 % 3] for step in (1, 3)]
        shares = [round(((n * 7919 + step) % 10007) / 10007, 12) for step in range(6)]
        hypothesis = f"The {{}} {filler}, number {n}, were nimble."
        premise = premises[n % 60]
        texts = (premise + " Zorbs.", hypothesis.format("Zorbs"), premise + " Quints.", hypothesis.format("Quints"))
        cell = f"p{n % 60:02d}/h{n % 25:02d}"
        identity = ("bbnli", "planets", "zorbs_are_to_juggling", f"{n:012x}", cell, ("with", "against", "")[n % 3])
        rows.append((*identity, *texts, *labels, "correct", *shares))
    return PairTable(pd.DataFrame(rows, columns=[*PLACES, *TEXTS, *LABELS.columns]), LABELS)
