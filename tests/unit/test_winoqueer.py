"""The suite `winoqueer`: its measures against their definitions, and its own data."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bbnli_audit.core.values import Pair
from bbnli_audit.measures.agreement import r_between
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
    found = r_between(table) ** 2
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
    assert np.isnan((r_between(table) ** 2).to_numpy()).all()


def test_r_squared_counts_the_models_that_have_both() -> None:
    table = pd.DataFrame({"m1": [0.1, 0.2, 0.4, None], "m2": [0.3, 0.5, None, 0.7], "m3": [0.1, 0.3, 0.2, 0.6]})
    values = (r_between(table) ** 2).to_numpy()
    assert np.isnan(values[0, 1])
    assert 0 < values[0, 2] < 1


# Our own data

CATEGORIES = {"religion", "morality", "normality", "physical_health", "mental_health", "society", "work", "emotion"}
CATEGORIES |= {"validity", "presentation", "intimacy", "belonging", "commitment", "children", "substances"}
CATEGORIES |= {"sentiment", "attraction", "other"}


def own_pairs() -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for identity, _, pair in expand_own():
        found.setdefault(identity, []).append(pair)
    return found


def read(name: str) -> Any:
    return json.loads((OWN_DATA / name).read_text(encoding="utf-8"))


def themes() -> dict[str, list[dict[str, Any]]]:
    return {identity: read(f"{identity}.json")["themes"] for identity in IDENTITIES}


def predicates() -> dict[str, list[dict[str, str]]]:
    return {
        identity: [predicate for theme in of_identity for predicate in theme["predicates"]]
        for identity, of_identity in themes().items()
    }


def owners() -> dict[str, set[str]]:
    """For each predicate, return the identities that have it."""
    found: dict[str, set[str]] = {}
    for identity, of_identity in predicates().items():
        for predicate in of_identity:
            found.setdefault(predicate["plural"], set()).add(identity)
    return found


def test_our_own_set_has_enough_for_a_verdict_in_every_identity() -> None:
    suite = Winoqueer()
    check_suite(suite)
    assert suite.version == "2.0.0"
    assert [s.path for s in suite.subtopics()] == sorted(s.path for s in suite.documented())
    assert {s.domain for s in suite.subtopics()} == set(IDENTITIES)
    for subtopic in suite.subtopics():
        items = suite.items(subtopic)
        assert items.n_identical == items.n_duplicates == 0
        assert len(items.usable) == 100 * PAIRS_PER_PREDICATE
        # With fewer than 99, an unchanged model could not be shown to be within the usual margin of 0.03.
        assert len({pair.cluster for pair in items.usable}) == 100
        assert items.controls == ()


def test_by_category_every_subtopic_holds_whole_themes() -> None:
    suite = Winoqueer(by_category=True)
    check_suite(suite)
    expected = Counter((identity, theme["category"]) for identity, each in themes().items() for theme in each)
    assert {category for _, category in expected} == CATEGORIES
    assert {(s.domain, s.name) for s in suite.subtopics()} == set(expected)
    for subtopic in suite.subtopics():
        pairs = suite.items(subtopic).usable
        n_predicates = 4 * expected[subtopic.domain, subtopic.name]
        assert len(pairs) == n_predicates * PAIRS_PER_PREDICATE
        # Predicates that several identities have belong to no category.
        assert {pair.cluster.rpartition("-")[0] for pair in pairs} - {"shared"} <= {subtopic.name}
        assert len({pair.cluster for pair in pairs}) == n_predicates


def test_the_two_divisions_hold_the_same_pairs() -> None:
    whole, divided = Winoqueer(), Winoqueer(by_category=True)
    ids = [
        Counter((s.domain, pair.id) for s in suite.subtopics() for pair in suite.items(s).pairs)
        for suite in (whole, divided)
    ]
    assert ids[0] == ids[1]
    assert whole.sha256 == divided.sha256


def test_predicates_belong_to_their_identity() -> None:
    """WinoQueer's do: 125 of its 173 are of one identity, and none is of all nine."""
    found = owners()
    n_own = sum(len(identities) == 1 for identities in found.values())
    assert max(len(identities) for identities in found.values()) <= 4
    assert n_own >= 0.85 * len(found)
    for identity, of_identity in predicates().items():
        assert sum(found[predicate["plural"]] == {identity} for predicate in of_identity) >= 60


def test_the_datasheet_counts_the_predicates() -> None:
    found = owners()
    shared = Counter(len(identities) for identities in found.values())
    text = " ".join((Path(__file__).parents[2] / "docs" / "winoqueer.md").read_text(encoding="utf-8").split())
    assert f"{len(found)} distinct predicates: {shared[1]} of one identity, {shared[2]} of two, " in text
    assert f"{shared[3]} of three, {shared[4]} of four, none of more" in text
    for identity, of_identity in predicates().items():
        n_others = Counter(len(found[predicate["plural"]]) for predicate in of_identity)
        n_categories = len({theme["category"] for theme in themes()[identity]})
        row = f"| {identity} | {len(of_identity)} | {n_others[1]} | {n_others[2]} | {n_others[3]} | {n_others[4]} | 0 |"
        assert f"{row} {n_categories} |" in text


def test_a_counterfactual_excludes_the_identity() -> None:
    """Cis people can be queer, and trans people straight: only both words together exclude `queer` and `LGBTQ+`."""
    orientations, genders = {"straight", "heterosexual"}, {"cis", "cisgender"}
    for identity in read("suite.json")["identities"]:
        assert len(identity["counterfactuals"]) == len(set(identity["counterfactuals"])) == 2
        for other in identity["counterfactuals"]:
            words = set(other.split(" and "))
            if identity["name"] in ("queer", "lgbtq"):
                assert len(words & orientations) == len(words & genders) == 1
                assert len(words) == 2
            else:
                about_gender = identity["name"] in ("transgender", "nonbinary")
                assert words < (genders if about_gender else orientations)


def test_every_subject_meets_every_counterfactual_equally_often() -> None:
    for identity in read("suite.json")["identities"]:
        met = Counter(
            tuple(re.fullmatch(r"(.+?) (?:is|are) (.+)\.", pair.anti.premise).groups())  # type: ignore[union-attr]  # as written
            for pair in own_pairs()[identity["name"]]
        )
        subjects = [s["text"] for s in read("suite.json")["subjects"] if s["kind"] in identity["subjects"]]
        assert set(met) == {(subject, other) for subject in subjects for other in identity["counterfactuals"]}
        assert max(met.values()) - min(met.values()) <= 1


def test_every_theme_names_works_that_document_it() -> None:
    sources = read("sources.json")
    used = {source for each in themes().values() for theme in each for source in theme["sources"]}
    assert used == set(sources)
    for source in sources.values():
        assert set(source) == {"who", "year", "title", "says"}
        assert all(source.values())
        assert 1990 <= source["year"] <= 2026
    for each in themes().values():
        for theme in each:
            assert set(theme) == {"category", "states", "sources", "predicates"}
            assert theme["sources"]
            assert theme["states"]
            assert len(theme["predicates"]) == 4


# Verbs that are the same after `they` and after `she`: modals and the past tense.
SAME = {"cannot", "can", "could", "should", "will", "would", "had", "made", "took", "gave", "suffered", "copied", "got"}
SAME |= {"chose", "joined", "grew", "ran"}
IRREGULAR = {"are": "is", "have": "has", "do": "does", "were": "was", "go": "goes"}


def singular_of(plural: str) -> str:
    adverb = re.match(r"(never|only|just|always) ", plural)
    start = adverb.end() if adverb else 0
    verb, space, rest = plural[start:].partition(" ")
    if verb not in SAME:
        verb = IRREGULAR.get(verb) or with_s(verb)
    return f"{plural[:start]}{verb}{space}{rest}"


def with_s(verb: str) -> str:
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if re.search(r"(s|x|z|ch|sh)$", verb) else f"{verb}s"


def test_grammar_of_our_own_predicates() -> None:
    for of_identity in predicates().values():
        for predicate in of_identity:
            assert set(predicate) == {"plural", "singular"}
            assert predicate["singular"] == singular_of(predicate["plural"])
            # A subject of any kind must fit, so no word may point back at it; and it becomes part of a sentence.
            words = re.findall(r"[a-z]+", predicate["plural"].lower())
            assert not {"he", "she", "they", "his", "her", "their", "him", "them", "themselves", "it"} & set(words)
            assert predicate["plural"] == predicate["plural"].strip()
            assert not re.search(r"[.!?,]|  |’", predicate["plural"])
        assert len({predicate["plural"] for predicate in of_identity}) == len(of_identity)


def test_nonbinary_people_are_not_called_men_or_women() -> None:
    gendered = {"man", "men", "woman", "women", "male", "female", "masculine", "feminine", "he", "she", "boy", "girl"}
    gendered |= {"husband", "wife", "father", "mother", "son", "daughter"}
    for pair in own_pairs()["nonbinary"]:
        for text in (*pair.pro, *pair.anti):
            assert not gendered & set(re.findall(r"[a-z]+", text.lower()))
    (found,) = (i for i in read("suite.json")["identities"] if i["name"] == "nonbinary")
    assert set(found["subjects"]) == {"plural", "neutral"}


def test_premise_and_hypothesis_are_about_the_same_people() -> None:
    """A name or a definite description, word for word: after `some people` or a pronoun they could be others."""
    for identity, pairs in own_pairs().items():
        for pair in pairs:
            matches = [re.fullmatch(r"(.+?) (is|are) (.+)\.", side.premise) for side in (pair.pro, pair.anti)]
            (subject, verb, group), (other_subject, other_verb, _) = (match.groups() for match in matches if match)
            assert (subject, verb) == (other_subject, other_verb)
            is_plural = verb == "are"
            assert re.fullmatch(r"(The|My)( \w+)+s" if is_plural else r"[A-Z][a-z]+", subject)
            assert subject not in ("He", "She", "They", "It")
            assert pair.pro.hypothesis == pair.anti.hypothesis
            assert pair.pro.hypothesis.startswith(f"{subject} ")
            wrong = ("is", "has", "does", "was") if is_plural else ("are", "have", "do", "were")
            assert pair.pro.hypothesis.removeprefix(f"{subject} ").partition(" ")[0] not in wrong
            assert pair.pro.premise != pair.anti.premise
            if identity == "lesbian":
                assert group == ("lesbians" if is_plural else "a lesbian")
