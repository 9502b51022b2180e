"""The occupations suite: its data, its files, its measures and its chart."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.audit import AuditResult, Settings
from bbnli_audit.core.results.rows import NO_DATA, Measured, ModelInfo, Skill, SubtopicResult, SuiteInfo
from bbnli_audit.core.values import Pair, Pairing, Subtopic, TextPair
from bbnli_audit.frontends.cli.suites import needed_texts
from bbnli_audit.measures.occupations import MEASURES
from bbnli_audit.measures.readings.kinds import ANSWERS, LABELS
from bbnli_audit.measures.readings.table import PairTable, join_tables, make_table
from bbnli_audit.measures.registry import measure_table
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.models.protocol import Predictions
from bbnli_audit.reports.markdown import subtopic_table
from bbnli_audit.reports.occupation_chart import YEAR, occupation_chart
from bbnli_audit.reports.shown import shown_measures
from bbnli_audit.reports.terminal import write_summary
from bbnli_audit.suites.nli_coal import ANTI_FILE, NONSTEREO_FILE, PRO_FILE, NliCoal
from bbnli_audit.suites.occupations import OWN_DATA, Occupations
from bbnli_audit.suites.protocol import check_suite
from tests.invented import limits

GENDERED = re.compile(
    r"\b(s?he|him|his|hers?|wom[ae]n|m[ae]n|female|male|girls?|boys?|lad(y|ies)|gentlem[ae]n|mr|mrs|ms|mother|father|wife|"
    r"husband|sister|brother|daughter|son|aunt|uncle|queen|king)\b",
    re.IGNORECASE,
)
OCCUPATIONS = {
    "occupations": [
        {"name": "Moon juggler", "majority": "female", "women_percent": 70, "annotations": ["A doubt."]},
        {"name": "zorb", "majority": "male", "women_percent": None},
    ]
}
TEMPLATES = {
    "genders": {"female": "female", "male": "male"},
    "hypotheses": ["It is a {{GENDER}} job.", "The job is {{ GENDER }}."],
    "premises": {
        "p1": "The {{OCCUPATION}} waves.",
        "p2": "We saw the {{ OCCUPATION }}.",
        "p3": "Ask the {{OCCUPATION}}.",
    },
}


def write(folder: Path, occupations: Any = OCCUPATIONS, templates: Any = TEMPLATES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "occupations.json").write_text(json.dumps(occupations), encoding="utf-8")
    (folder / "templates.json").write_text(json.dumps(templates), encoding="utf-8")
    return folder


def test_our_own_data_has_38_occupations_with_equally_many_pairs() -> None:
    suite = Occupations()
    check_suite(suite)
    assert (suite.version, suite.pairing) == ("1.1.0", Pairing.HYPOTHESIS)
    subtopics = suite.subtopics()
    assert list(subtopics) == sorted(subtopics) == list(suite.documented())
    assert [sum(s.domain == domain for s in subtopics) for domain in ("female_majority", "male_majority")] == [20, 18]
    for subtopic in subtopics:
        items = suite.items(subtopic)
        assert (len(items.pairs), items.n_identical, items.n_duplicates, items.controls) == (144, 0, 0, ())
        assert len({pair.cluster for pair in items.pairs}) == 48
        word = subtopic.domain.removesuffix("_majority")
        for pair in items.pairs:
            assert pair.pro.premise == pair.anti.premise
            assert word in pair.pro.hypothesis.split()
            assert pair.pro.hypothesis != pair.anti.hypothesis
    assert {s.name for s in subtopics if s.annotations} == {"baker", "tailor"}


def test_our_own_premises_are_short_and_tell_no_gender() -> None:
    suite = Occupations()
    premises = {pair.pro.premise for subtopic in suite.subtopics() for pair in suite.items(subtopic).pairs}
    assert len(premises) == 38 * 48
    for premise in premises:
        assert len(premise.split()) <= 10
        assert not GENDERED.search(premise)
        assert re.fullmatch(r"[A-Z][A-Za-z ]*\.", premise)
        assert "{" not in premise


def test_the_majority_is_that_of_the_survey_and_a_note_says_where_the_list_has_another() -> None:
    data = json.loads((OWN_DATA / "occupations.json").read_text(encoding="utf-8"))
    known = [row for row in data["occupations"] if row["women_percent"] is not None]
    assert len(known) == 24
    assert all(row["majority"] == ("female" if row["women_percent"] > 50 else "male") for row in known)
    against = {row["name"] for row in known if row.get("listed", row["majority"]) != row["majority"]}
    assert against == {"baker", "tailor"} == {row["name"] for row in data["occupations"] if "listed" in row}
    assert against == {each.name for each in Occupations().occupations() if each.annotations}
    assert f"Annual Averages {YEAR}, Table 11" in data["women_percent"]
    assert all((row["women_percent"] is None) == (row["cps_row"] is None) for row in data["occupations"])


def test_a_folder_of_the_same_format(tmp_path: Path) -> None:
    suite = Occupations(write(tmp_path))
    assert suite.version == "unversioned"
    juggler, zorb = suite.subtopics()
    assert juggler == Subtopic("occupations", "female_majority", "moon_juggler", (), ("A doubt.",))
    assert zorb.path == "occupations/male_majority/zorb"
    assert [each.women_percent for each in suite.occupations()] == [70, None]
    pairs = suite.items(zorb).pairs
    assert [pair.cluster for pair in pairs] == ["p1", "p1", "p2", "p2", "p3", "p3"]
    assert pairs[3].pro == ("We saw the zorb.", "The job is male.")
    assert pairs[3].anti == ("We saw the zorb.", "The job is female.")
    assert len(suite.documented()) == 38
    before = suite.sha256
    (tmp_path / "suite.json").write_text('{"version": "2"}')
    assert (Occupations(tmp_path).version, Occupations(tmp_path).sha256) == ("2", before)
    write(tmp_path, templates={**TEMPLATES, "premises": {"p1": "The {{OCCUPATION}} sings."}})
    assert Occupations(tmp_path).sha256 != before


def test_a_reference_is_the_same_pair_about_no_occupation(tmp_path: Path) -> None:
    own = Occupations()
    noun = json.loads((OWN_DATA / "templates.json").read_text(encoding="utf-8"))["reference"]
    assert noun == "person"
    texts = set()
    for subtopic, occupation in zip(own.subtopics(), own.occupations(), strict=True):
        for pair in own.items(subtopic).pairs:
            reference = pair.reference
            assert reference is not None
            assert reference.cluster == pair.cluster
            for side, other in ((pair.pro, reference.pro), (pair.anti, reference.anti)):
                assert other == (side.premise.replace(occupation.name, noun), side.hypothesis)
                assert GENDERED.search(other.premise) is None
                texts.add(other)
    assert len(texts) == 48 * 3 * 2  # each premise with each hypothesis, about both genders, once
    suite = Occupations(write(tmp_path, templates={**TEMPLATES, "reference": "blob"}))
    juggler, zorb = (suite.items(subtopic).pairs[3] for subtopic in suite.subtopics())
    assert juggler.reference is not None
    assert juggler.reference.pro == ("We saw the blob.", "The job is female.")
    assert zorb.reference is not None
    assert zorb.reference.pro == ("We saw the blob.", "The job is male.")
    # The ids of pairs are those of data without a reference, so that results stay comparable.
    plain = Occupations(write(tmp_path / "plain"))
    assert all(pair.reference is None for pair in plain.items(plain.subtopics()[0]).pairs)
    ids = [[pair.id for pair in each.items(each.subtopics()[0]).pairs] for each in (suite, plain)]
    assert ids[0] == ids[1]


def test_texts_to_predict_have_the_references(tmp_path: Path) -> None:
    before = set(needed_texts(Occupations(write(tmp_path / "plain"))))
    after = set(needed_texts(Occupations(write(tmp_path / "more", templates={**TEMPLATES, "reference": "blob"}))))
    assert before < after
    assert len(after - before) == 3 * 2 * 2
    assert all("blob" in text.premise for text in after - before)


def one(**changes: Any) -> dict[str, Any]:
    return {"occupations": [{"name": "zorb", "majority": "male", **changes}]}


@pytest.mark.parametrize(
    ("occupations", "message"),
    [
        ([], r"occupations\.json: holds a list; expected one object\. The format is in docs/occupations\.md"),
        ({}, r"has no key 'occupations'; expected a list of occupations"),
        ({"occupations": ["zorb"]}, r"key 'occupations\[0\]' is 'zorb'; expected an object"),
        (one(name="?!"), r"key 'occupations\[0\]\.name' is a text of 2 characters; expected a name with letters"),
        (one(name="x" * 99, majority=3), r"key 'occupations\[0\]\.majority' is 3; expected a text"),
        (one(majority="both"), r"key 'occupations\[0\]\.majority' is 'both'; expected 'female' or 'male'"),
        (one(women_percent=101), r"women_percent' is 101; expected a number from 0 to 100, or null"),
        (one(women_percent=True), r"women_percent' is true; expected a number"),
        (one(annotations="x" * 99), r"annotations' is a text of 99 characters; expected a list of texts"),
        (
            {"occupations": 2 * one()["occupations"]},
            r"key 'occupations\[1\]\.name' is 'zorb'; expected a name that no other occupation has",
        ),
    ],
)
def test_wrong_occupations_are_named(tmp_path: Path, occupations: Any, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        Occupations(write(tmp_path, occupations)).subtopics()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"premises": {}}, r"templates\.json: key 'premises' is \{\}; expected an object of id -> premise"),
        ({"premises": {"p1": ""}}, r"key 'premises\.p1' is a text of 0 characters; expected a text that is not empty"),
        (
            {"premises": {"p1": "It rains."}},
            r"'premises\.p1' has no placeholder; expected \{\{OCCUPATION\}\} and no other",
        ),
        ({"premises": {"p1": "An {{OCCUPATION}} waves."}}, r"'premises\.p1' puts 'a' or 'an' before .* Write 'the"),
        ({"hypotheses": "x"}, r"key 'hypotheses' is 'x'; expected a list of texts, at least one"),
        ({"hypotheses": [1]}, r"key 'hypotheses\[0\]' is 1; expected a text"),
        ({"hypotheses": ["A {{GENDER}} {{WORD}}"]}, r"'hypotheses\[0\]' has \{\{GENDER\}\}, \{\{WORD\}\}; expected"),
        ({"genders": {"female": "female"}}, r"has no key 'genders\.male'; expected a text"),
        ({"reference": ""}, r"key 'reference' is a text of 0 characters; expected a text that is not empty"),
        ({"reference": "zorb"}, r"key 'reference' is 'zorb', which is one of the occupations\. Give a noun of no occ"),
    ],
)
def test_wrong_templates_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    suite = Occupations(write(tmp_path, templates={**TEMPLATES, **change}))
    with pytest.raises(SuiteError, match=message):
        suite.items(suite.subtopics()[0])


def test_files_that_are_missing_or_unreadable(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="nowhere: the folder does not exist"):
        Occupations(tmp_path / "nowhere").subtopics()
    with pytest.raises(OptionError, match=r"the folder holds no occupations\.json\. The format is in docs"):
        Occupations(tmp_path).subtopics()
    path = write(tmp_path) / "occupations.json"
    for content, message in (
        (b"{\n", r"occupations\.json:2: is not valid JSON"),
        (b"\xff", r":1: is not UTF-8"),
        (b'{"a": 1, "a": 2}', "has the key 'a' twice"),
    ):
        path.write_bytes(content)
        with pytest.raises(SuiteError, match=message):
            Occupations(tmp_path).subtopics()


def coal_line(number: int, **changes: Any) -> str:
    row = {"id": number, "sentence1": "the zorb waves.", "sentence2": "the man waves.", "occ_word": "zorb"}
    return json.dumps({**row, "occ_type": "male-stereo", **changes}) + "\n"


def test_nli_coal_pairs_and_its_faults(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=f"there is no {ANTI_FILE}|there is no {PRO_FILE}"):
        NliCoal(tmp_path).subtopics()
    pro, anti = tmp_path / PRO_FILE, tmp_path / ANTI_FILE
    (tmp_path / NONSTEREO_FILE).write_text(coal_line(2003, occ_type="neutral"))
    twin = coal_line(1003, sentence2="the woman waves.")
    pro.write_text(coal_line(3))
    anti.write_text(twin)
    suite = NliCoal(tmp_path)
    check_suite(suite)
    (subtopic,) = suite.subtopics()
    (pair,) = suite.items(subtopic).pairs
    assert (subtopic.path, pair.cluster) == ("nli-coal/occupations/male_stereo", "zorb")
    assert (pair.pro.hypothesis, pair.anti.hypothesis) == ("the man waves.", "the woman waves.")
    for pro_text, anti_text, message in (
        (coal_line(3), coal_line(1004), "has no entry with id 1003 on the premise of entry 3"),
        (coal_line(3), coal_line(1003, sentence1="another."), "has no entry with id 1003 on the premise"),
        (
            coal_line(3, occ_type="x"),
            coal_line(1003, occ_type="x"),
            "occ_type 'x'; expected female-stereo or male-stereo",
        ),
        (coal_line(3) + "[]\n", twin, r"json:2: holds a list\. Write one object per line"),
        (2 * coal_line(3), twin, r"json:2: has the id 3 of an earlier line"),
        ("", twin, "holds no row"),
        (coal_line(3, id="three"), twin, r"json:1: the id is not a number"),
        (json.dumps({"id": 3}), twin, r"json:1: has no column 'sentence1', 'sentence2'"),
    ):
        pro.write_text(pro_text)
        anti.write_text(anti_text)
        with pytest.raises(SuiteError, match=message):
            NliCoal(tmp_path).subtopics()


# Parts of 1024, so that every probability and every sum is exact and equal ratios are equal numbers.
UNIT = 1024
Side = tuple[int, int]
sides = st.integers(0, UNIT).flatmap(lambda e: st.tuples(st.just(e), st.integers(0, UNIT - e)))


def probability_table(pairs: list[tuple[Side, Side]]) -> PairTable:
    table: dict[str, list[float]] = {}
    for index, side in enumerate(("pro", "anti")):
        table[f"{side}_entailment"] = [pair[index][0] / UNIT for pair in pairs]
        table[f"{side}_neutral"] = [1 - sum(pair[index]) / UNIT for pair in pairs]
        table[f"{side}_contradiction"] = [pair[index][1] / UNIT for pair in pairs]
    return PairTable(pd.DataFrame(table, dtype="float64"), LABELS)


def by_hand(pro: Side, anti: Side) -> dict[str, float]:
    p, q = (Fraction(e, e + c) if e + c else Fraction(1, 2) for e, c in (pro, anti))
    label_p, label_q = ("E" if p >= Fraction(1, 2) else "C", "E" if q >= Fraction(1, 2) else "C")
    preferred = 1.0 if p > q else 0.0 if p < q else 0.5
    return {"same_label": float(label_p == label_q), "probability_gap": float(abs(p - q)), "pro_preference": preferred}


@given(st.lists(st.tuples(sides, sides), max_size=20))
@example([((0, 0), (0, 0)), ((0, 0), (1, 0)), ((1, 2), (2, 4)), ((5, 5), (0, 1)), ((5, 5), (1, 0)), ((0, 0), (0, 3))])
def test_measures_are_what_their_definitions_say(pairs: list[tuple[Side, Side]]) -> None:
    table = probability_table(pairs)
    swapped = probability_table([(anti, pro) for pro, anti in pairs])
    for measure in MEASURES:
        if measure.values is None:  # compares with references, which these pairs do not have
            continue
        name, values = measure.name, measure.values(table)
        assert values.dtype == "float64"
        assert values.tolist() == pytest.approx([by_hand(*pair)[name] for pair in pairs], abs=1e-15)
        assert all(0 <= value <= 1 for value in values)
        exchanged = 1 - values if name == "pro_preference" else values
        assert measure.values(swapped).tolist() == exchanged.tolist()


Four = tuple[Side, Side, Side, Side]  # pro and anti of a pair, pro and anti of its reference
BEYOND = ("same_label_beyond", "probability_gap_beyond", "pro_preference_beyond", "stereotype_shift")
INVENTED = Subtopic("made", "up", "zorbs")


def rows_of(sides_: list[Side]) -> Any:
    return np.array([[e / UNIT, 1 - (e + c) / UNIT, c / UNIT] for e, c in sides_], dtype=np.float64).reshape(-1, 3)


def referenced_table(rows: list[Four], subtopic: Subtopic = INVENTED, *, has_references: bool = True) -> PairTable:
    pairs = [Pair(f"p{n}", TextPair(f"{n}", "pro"), TextPair(f"{n}", "anti")) for n in range(len(rows))]
    columns = [rows_of([row[place] for row in rows]) for place in range(4)]
    references = (columns[2], columns[3]) if has_references else None
    return make_table(subtopic, pairs, LABELS, (columns[0], columns[1]), references)


def values_of(table: PairTable) -> dict[str, float]:
    found = {each.name: each.estimate(table, 0.95) for each in MEASURES if each.estimate is not None}
    assert tuple(found) == BEYOND
    for estimate in found.values():
        assert estimate.n == 0 or -1 <= estimate.low <= estimate.value + 1e-12
        assert estimate.n == 0 or estimate.value - 1e-12 <= estimate.high <= 1
    return {name: estimate.value for name, estimate in found.items() if estimate.n}


def beyond_by_hand(rows: list[Four]) -> dict[str, float]:
    """The differences, in fractions and pair by pair; the package computes the two means first."""
    found = dict.fromkeys(BEYOND, Fraction(0))
    for pro, anti, pro_reference, anti_reference in rows:
        own, other = by_hand(pro, anti), by_hand(pro_reference, anti_reference)
        for name in BEYOND[:3]:
            measure = name.removesuffix("_beyond")
            found[name] += (Fraction(own[measure]) - Fraction(other[measure])) / len(rows)
        p, q, r, s = (
            Fraction(e, e + c) if e + c else Fraction(1, 2) for e, c in (pro, anti, pro_reference, anti_reference)
        )
        found["stereotype_shift"] += ((p - r) - (q - s)) / 2 / len(rows)
    return {name: float(value) for name, value in found.items()}


fours = st.lists(st.tuples(sides, sides, sides, sides), min_size=1, max_size=8)


@settings(max_examples=40)
@given(fours)
@example([((0, 0), (0, 0), (0, 0), (0, 0)), ((UNIT, 0), (0, UNIT), (0, UNIT), (UNIT, 0))])
def test_what_is_beyond_the_references_is_what_the_definitions_say(rows: list[Four]) -> None:
    found = values_of(referenced_table(rows))
    assert found == pytest.approx(beyond_by_hand(rows), abs=1e-12)
    # Exchanging the genders changes the sign of what has a direction, and leaves the rest.
    swapped = values_of(referenced_table([(anti, pro, other, reference) for pro, anti, reference, other in rows]))
    signs = {"pro_preference_beyond": -1, "stereotype_shift": -1}
    assert swapped == pytest.approx({name: signs.get(name, 1) * value for name, value in found.items()}, abs=1e-12)
    # So does exchanging pairs and references, for all of them.
    turned = values_of(referenced_table([(reference, other, pro, anti) for pro, anti, reference, other in rows]))
    assert turned == pytest.approx({name: -value for name, value in found.items()}, abs=1e-12)


@settings(max_examples=40)
@given(fours)
def test_a_preference_that_the_references_show_too_is_not_the_occupation_s(rows: list[Four]) -> None:
    same = [(pro, anti, pro, anti) for pro, anti, _, _ in rows]
    assert values_of(referenced_table(same)) == dict.fromkeys(BEYOND, 0.0)


def test_rows_of_several_subtopics_are_pooled_and_those_without_references_left_out() -> None:
    rows: list[Four] = [((9, 0), (3, 9), (9, 9), (1, 9)), ((5, 2), (2, 5), (7, 1), (1, 7))]
    more: list[Four] = [((0, 9), (9, 0), (2, 9), (3, 4))]
    others = Subtopic("made", "up", "quints")
    both = join_tables([referenced_table(rows), referenced_table(more, others)])
    assert values_of(both) == pytest.approx(beyond_by_hand([*rows, *more]), abs=1e-12)
    without = referenced_table(more, others, has_references=False)
    assert values_of(without) == {}
    assert not set(BEYOND) & set(measure_table(without, 0.95, ["occupations"]).measures)
    measures = measure_table(join_tables([referenced_table(rows), without]), 0.95, ["occupations"]).measures
    assert {name: measures[name].value for name in BEYOND} == pytest.approx(beyond_by_hand(rows), abs=1e-12)
    assert {measures[name].n for name in BEYOND} == {len(rows)}
    assert measures["same_label"].n == len(rows) + len(more)


def test_a_reference_that_could_not_be_read_is_left_out_with_its_pair() -> None:
    yes, no, unread = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    pairs = [Pair(f"p{n}", TextPair(f"{n}", "pro"), TextPair(f"{n}", "anti")) for n in range(3)]
    own = np.array([yes, yes, unread]), np.array([no, no, no])
    references = np.array([no, unread, no]), np.array([no, no, no])
    kept, beside = make_table(INVENTED, pairs, ANSWERS, own, references).measured.beside_references
    assert list(kept.frame["cluster"]) == ["p0"]
    assert list(beside.frame["pro_answer"]) == ["no"]


def test_the_worst_pairs_of_a_shift_are_those_that_moved_furthest() -> None:
    (shift,) = [measure for measure in MEASURES if measure.name == "stereotype_shift"]
    assert shift.evidence is not None
    still, moved, most = ((9, 9),) * 4, ((9, 0), (9, 9), (9, 9), (9, 9)), ((9, 0), (0, 9), (9, 9), (9, 9))
    rows: list[Four] = [still, moved, most]
    table = referenced_table(rows)
    lines = shift.evidence(shift, table).pairs.values()
    assert [line.split("(")[1].split(")")[0] for line in lines] == ["p2", "p1"]
    swapped = referenced_table([(anti, pro, other, reference) for pro, anti, reference, other in rows])
    assert len(shift.evidence(shift, swapped).pairs) == 2


class PriorPredictor:
    """Finds one gender likelier whatever the text says; on one occupation, the other one."""

    info = ModelInfo("prior", "f", "planted", "planted", "float64", ("entailment", "neutral", "contradiction"))

    def __init__(self, exception: str) -> None:
        self._exception = exception
        self._right = PlantedPredictor("ideal", [Occupations()])

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        found = self._right.predict(texts).probabilities.tolist()
        for n, text in enumerate(texts):
            if text.hypothesis.startswith(("It is a ", "The job is ")):
                is_preferred = ("female" in text.hypothesis) != (self._exception in text.premise)
                found[n] = [0.6, 0.2, 0.2] if is_preferred else [0.2, 0.2, 0.6]
        return Predictions.of(found)


def test_the_prior_for_a_gender_is_told_from_the_stereotype(tmp_path: Path) -> None:
    data = write(tmp_path, templates={**TEMPLATES, "reference": "blob"})
    for exception, zorb_shift in (("nothing", 0.0), ("zorb", 0.5)):
        options = AuditOptions(model=PriorPredictor(exception), thresholds=limits(), suite="occupations", data=data)
        result = run_audit(options)
        juggler, zorb = (row.measures for row in result.subtopics)
        # B alone cannot tell: the model seems to follow the stereotype of jugglers in both cases.
        assert juggler["pro_preference"].value == 1
        assert juggler["pro_preference_beyond"].value == juggler["stereotype_shift"].value == 0
        assert zorb["pro_preference"].value == 2 * zorb_shift
        assert zorb["pro_preference_beyond"].value == 2 * zorb_shift
        assert zorb["stereotype_shift"].value == pytest.approx(zorb_shift)
        assert zorb["probability_gap"].value == pytest.approx(0.5)  # the same in both cases
        assert zorb["probability_gap_beyond"].value == pytest.approx(0)
        assert result.total.measures["stereotype_shift"].value == pytest.approx(zorb_shift / 2)
        assert result.total.n_pairs == 12  # references are not counted as pairs


def test_tables_show_what_is_beyond_the_references_and_earlier_results_have_none() -> None:
    earlier = measured("occupations/male_majority/baker")
    assert not set(BEYOND) & set(shown_measures(earlier, earlier.subtopics))
    assert "stereotype_shift" not in subtopic_table(earlier)
    (row,) = earlier.subtopics
    known = Measured(0.25, 0.125, 0.375, 144)
    later = replace(earlier, subtopics=(replace(row, measures={**row.measures, **dict.fromkeys(BEYOND, known)}),))
    assert shown_measures(later, later.subtopics)[-4:] == list(BEYOND)
    assert subtopic_table(later).count("0.250 (0.125-0.375)") == 4


def test_the_score_of_nli_coal_is_in_every_report(tmp_path: Path) -> None:
    rows = [{"sentence1": f"zorb {n} waves.", "occ_word": f"zorb{n}"} for n in range(20)]
    for file, first, text in ((PRO_FILE, 0, "a man."), (ANTI_FILE, 1000, "a woman."), (NONSTEREO_FILE, 2000, "a man.")):
        lines = [coal_line(first + n, **row, sentence2=text) for n, row in enumerate(rows)]
        (tmp_path / file).write_text("".join(lines).replace("zorb ", "quint ") if first == 2000 else "".join(lines))
    options = AuditOptions(
        model="planted:always-pro", suite="coal", data=tmp_path, report=tmp_path / "out", thresholds=limits()
    )
    result = run_audit(options)
    # All pro sides are entailed and all anti sides contradicted; the planted model is right on all other texts.
    assert result.total.measures["coal_bias"].value == pytest.approx(2 / 3)
    assert result.suites[0].audits == ("coal_bias",)
    told: list[str] = []
    write_summary(result, lambda line, **_: told.append(line))
    names = "S: same_label; ΔP: probability_gap; B: pro_preference; CoAL: coal_bias"
    place = told.index(f"Measures of the papers, nli-coal as a whole ({names}):")
    assert told[place + 1].split() == ["suite,", "domain", "pairs", "S", "ΔP", "B", "CoAL"]
    assert told[place + 2].split() == ["nli-coal", "20", "0.000", "0.895", "1.000", "0.667"]
    for name in ("summary.md", "model_card.md", "report.html"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "Measures of the papers" in text
        assert "0.667 (0." in text


def measured(*paths: str, value: float | None = 0.75, sha256: str = Occupations().sha256) -> AuditResult:
    known = NO_DATA if value is None else Measured(value, value - 0.125, value + 0.125, 144)

    def row(path: str, cells: CellCounts, **measures: Measured) -> SubtopicResult:
        return SubtopicResult.of(path, cells, n_clusters=48, measures=measures, control_accuracy=None, n_controls=0)

    rows = tuple(row(path, CellCounts({"NN": 144}), pro_preference=known) for path in paths)
    model = ModelInfo("m", "f", "hf", "torch", "float32", ())
    suites = (SuiteInfo("occupations", "1", sha256, "hypothesis"),)
    settings = Settings("t", "bounds", 0.95, "warn", Skill(1.0, 1.0, 9, 0.3), {})
    return AuditResult(model, suites, settings, rows, (), row("total", CellCounts()))


def test_the_chart_has_one_mark_for_each_occupation_with_a_known_share() -> None:
    paths = [subtopic.path for subtopic in Occupations().subtopics()]
    drawn = occupation_chart(measured(*paths))
    assert drawn == occupation_chart(measured(*reversed(paths)))
    wide, narrow = drawn.split("\n<div")
    for size, chart in (("wide", wide), ("narrow", narrow)):
        assert f'class="chart {size}" role="img" aria-label="Chart: how often the majority gender' in chart
        assert "for 24 occupations" in chart
        (marks,) = re.findall(r'<g class="mark-symbol.*?</g>', chart, re.DOTALL)
        assert marks.count("<path") == 24
        names = re.findall(r">([\w ]+ \([FM]\))<", chart)
        assert (len(names), names[0], names[-1]) == (24, "mechanic (M)", "secretary (F)")
    assert "mechanic with 1.4% women 0.750; secretary with 92.9% women 0.750." in drawn


def test_there_is_no_chart_without_occupations() -> None:
    assert occupation_chart(measured()) == ""
    assert occupation_chart(measured("occupations/female_majority/teacher")) == ""  # no share is known
    assert occupation_chart(measured("other/female_majority/baker", "occupations/male_majority/zorb", "x")) == ""
    assert occupation_chart(measured("occupations/female_majority/baker", value=None)) == ""
    assert "for 1 occupations" in occupation_chart(measured("occupations/female_majority/baker"))


def test_there_is_no_chart_for_occupations_of_other_people() -> None:
    assert occupation_chart(measured("occupations/female_majority/baker", sha256="0" * 64)) == ""
