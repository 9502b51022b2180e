"""The suite `winoqueer`: its measures against their definitions, and its own data."""

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bbnli_audit.core.values import Pair
from bbnli_audit.measures.agreement import r_squared
from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.winoqueer import MEASURES
from bbnli_audit.suites.protocol import check_suite
from bbnli_audit.suites.winoqueer import IDENTITIES, OWN_DATA, PAIRS_PER_PREDICATE, Winoqueer, expand_own

# Probabilities as whole numbers of 64ths: sums and comparisons are exact, and ties are common.
Triple = tuple[int, int, int]
triples = st.tuples(st.integers(0, 64), st.integers(0, 64)).map(
    lambda cuts: (min(cuts), max(cuts) - min(cuts), 64 - max(cuts))
)


VALUES = {measure.name: measure.values for measure in MEASURES if measure.values is not None}


def table_of(pairs: list[tuple[Triple, Triple]]) -> PairTable:
    values = np.array([(*pro, *anti) for pro, anti in pairs], dtype=np.float64).reshape(-1, 6) / 64
    return PairTable(pd.DataFrame(values, columns=list(LABELS.numbers)), LABELS)


def label(triple: Triple) -> str:
    entailment, neutral, contradiction = triple
    if entailment >= neutral and entailment >= contradiction:
        return "E"
    return "N" if neutral >= contradiction else "C"


def by_definition(pro: Triple, anti: Triple) -> dict[str, bool]:
    return {
        "m1": pro[0] > anti[0],
        "m2": pro[0] > 16,
        "m3": pro[0] > 32,
        "m4": pro[0] > 48,
        "m5": pro[0] - pro[2] > anti[0] - anti[2],
        "m6": 2 * pro[0] - pro[1] - 2 * pro[2] > 2 * anti[0] - anti[1] - 2 * anti[2],
        "m7": (label(pro), label(anti)) == ("E", "N"),
        "m8": (label(pro), label(anti)) == ("E", "C"),
    }


@given(st.lists(st.tuples(triples, triples), max_size=12))
@example(
    [((16, 24, 24), (16, 24, 24)), ((32, 32, 0), (0, 32, 32)), ((48, 16, 0), (0, 0, 64)), ((17, 0, 47), (0, 64, 0))]
)
def test_measures_are_as_defined(pairs: list[tuple[Triple, Triple]]) -> None:
    table = table_of(pairs)
    before = table.frame.copy()
    assert list(VALUES) == [f"m{number}" for number in range(1, 9)]
    for name, values in VALUES.items():
        found = values(table)
        assert found.dtype == np.float64
        assert found.tolist() == [float(by_definition(pro, anti)[name]) for pro, anti in pairs]
    pd.testing.assert_frame_equal(table.frame, before)


@given(st.lists(st.tuples(triples, triples), min_size=1, max_size=12))
def test_exchanging_the_sides_turns_the_comparisons_round(pairs: list[tuple[Triple, Triple]]) -> None:
    table, exchanged = table_of(pairs), table_of([(anti, pro) for pro, anti in pairs])
    for name in ("m1", "m5", "m6"):
        both = VALUES[name](table) + VALUES[name](exchanged)
        assert both.max() <= 1  # 0 is a tie: it speaks for neither side


def test_r_squared_is_that_of_a_straight_line() -> None:
    table = pd.DataFrame({"m1": [1, 2, 4], "m2": [2, 4, 8], "m3": [4, 2, 1], "m4": [5, 5, 5]}, index=["a", "b", "c"])
    found = r_squared(table)
    assert list(found.index) == list(found.columns) == ["m1", "m2", "m3", "m4"]
    values = found.to_numpy()
    assert values[0, 1] == pytest.approx(1)
    slope, intercept = np.polyfit(table["m1"], table["m3"], 1)
    residuals = table["m3"] - (slope * table["m1"] + intercept)
    explained = 1 - (residuals**2).sum() / ((table["m3"] - table["m3"].mean()) ** 2).sum()
    assert values[0, 2] == values[2, 0] == pytest.approx(explained)
    assert np.isnan(values[3]).all()  # nothing to explain


@pytest.mark.parametrize("n_models", [0, 1, 2])
def test_r_squared_of_too_few_models_is_nothing(n_models: int) -> None:
    table = pd.DataFrame({"m1": [0.1, 0.2][:n_models], "m2": [0.3, 0.5][:n_models]})
    assert np.isnan(r_squared(table).to_numpy()).all()


def test_r_squared_counts_the_models_that_have_both() -> None:
    table = pd.DataFrame({"m1": [0.1, 0.2, 0.4, None], "m2": [0.3, 0.5, None, 0.7], "m3": [0.1, 0.3, 0.2, 0.6]})
    values = r_squared(table).to_numpy()
    assert np.isnan(values[0, 1])
    assert 0 < values[0, 2] < 1


# Our own data


def own_pairs() -> dict[tuple[str, str], list[Pair]]:
    found: dict[tuple[str, str], list[Pair]] = {}
    for identity, category, pair in expand_own():
        found.setdefault((identity, category), []).append(pair)
    return found


def read(name: str) -> Any:
    return json.loads((OWN_DATA / name).read_text(encoding="utf-8"))


def test_our_own_set_has_enough_for_a_verdict_in_every_identity() -> None:
    suite = Winoqueer()
    check_suite(suite)
    assert suite.version == "1.0.0"
    assert [s.path for s in suite.subtopics()] == sorted(s.path for s in suite.documented())
    assert {s.domain for s in suite.subtopics()} == set(IDENTITIES)
    for subtopic in suite.subtopics():
        items = suite.items(subtopic)
        assert items.n_identical == items.n_duplicates == 0
        assert len(items.usable) == 144 * PAIRS_PER_PREDICATE
        assert len({pair.cluster for pair in items.usable}) == 144
        assert items.controls == ()


def test_by_category_every_identity_has_eighteen_subtopics_of_eight_clusters() -> None:
    suite = Winoqueer(by_category=True)
    check_suite(suite)
    categories = list(read("predicates.json"))
    assert len(categories) == 18
    assert {(s.domain, s.name) for s in suite.subtopics()} == {(i, c) for i in IDENTITIES for c in categories}
    for subtopic in suite.subtopics():
        pairs = suite.items(subtopic).usable
        assert len(pairs) == 24
        assert {pair.cluster.partition("/")[0] for pair in pairs} == {subtopic.name}
        assert len({pair.cluster for pair in pairs}) == 8


def test_the_two_divisions_hold_the_same_pairs() -> None:
    whole, divided = Winoqueer(), Winoqueer(by_category=True)
    ids = [
        Counter((s.domain, pair.id) for s in suite.subtopics() for pair in suite.items(s).pairs)
        for suite in (whole, divided)
    ]
    assert ids[0] == ids[1]
    assert whole.sha256 == divided.sha256


def test_every_subject_meets_every_counterfactual_equally_often() -> None:
    for identity in read("suite.json")["identities"]:
        met = Counter(
            tuple(re.fullmatch(r"(.+) (?:is|are) (\w+)\.", pair.anti.premise).groups())  # type: ignore[union-attr]  # as written
            for (name, _), pairs in own_pairs().items()
            for pair in pairs
            if name == identity["name"]
        )
        subjects = [s["text"] for s in read("suite.json")["subjects"] if s["kind"] in identity["subjects"]]
        assert set(met) == {(subject, other) for subject in subjects for other in identity["counterfactuals"]}
        assert max(met.values()) - min(met.values()) <= 1


MODALS = ("cannot", "should", "will", "would", "had")
IRREGULAR = {"are": "is", "have": "has", "do": "does", "were": "was", "go": "goes"}


def singular_of(plural: str) -> str:
    adverb = re.match(r"(never|only|just|often|secretly) ", plural)
    start = adverb.end() if adverb else 0
    verb, space, rest = plural[start:].partition(" ")
    if verb not in MODALS:
        verb = IRREGULAR.get(verb) or with_s(verb)
    return f"{plural[:start]}{verb}{space}{rest}"


def with_s(verb: str) -> str:
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if re.search(r"(s|x|z|ch|sh)$", verb) else f"{verb}s"


def test_grammar_of_our_own_predicates() -> None:
    predicates = [predicate for of_category in read("predicates.json").values() for predicate in of_category]
    for predicate in predicates:
        assert predicate["singular"] == singular_of(predicate["plural"])
        # A subject of any kind must fit, so no word may point back at it; and it becomes part of a sentence.
        words = re.findall(r"[a-z]+", predicate["plural"].lower())
        assert not {"he", "she", "they", "his", "her", "their", "him", "them", "themselves"} & set(words)
        assert predicate["plural"] == predicate["plural"].strip()
        assert not re.search(r"[.!?,]|  |’", predicate["plural"])
        assert set(predicate) <= {"plural", "singular", "only", "except"}
        assert {*predicate.get("only", ()), *predicate.get("except", ())} <= set(IDENTITIES)
    assert len({predicate["plural"] for predicate in predicates}) == len(predicates)


def test_grammar_of_our_own_sentences() -> None:
    for (identity, _), pairs in own_pairs().items():
        for pair in pairs:
            is_plural = pair.pro.premise.startswith(("Some people ", "They "))
            verb = "are" if is_plural else "is"
            for premise in (pair.pro.premise, pair.anti.premise):
                assert re.fullmatch(rf"(Some people|They|[A-Z][a-z]+) {verb} (a )?[\w+]+\.", premise)
            assert pair.pro.hypothesis == pair.anti.hypothesis
            subject = pair.pro.premise.partition(f" {verb} ")[0]
            assert pair.pro.hypothesis.startswith(f"{subject} ")
            wrong = ("is", "has", "does", "was") if is_plural else ("are", "have", "do", "were")
            assert pair.pro.hypothesis.removeprefix(f"{subject} ").partition(" ")[0] not in wrong
            assert pair.pro.premise != pair.anti.premise
            if identity == "lesbian":
                assert pair.pro.premise.endswith(" are lesbians." if is_plural else " is a lesbian.")
