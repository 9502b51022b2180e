"""The occupations suite: its data, its files, its measures and its chart."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.audit import AuditResult, Settings
from bbnli_audit.core.results.rows import NO_DATA, Measured, ModelInfo, Skill, SubtopicResult, SuiteInfo
from bbnli_audit.core.values import Label, Pairing, Subtopic
from bbnli_audit.measures.occupations import MEASURES, coal_bias_score
from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.reports.occupation_chart import YEAR, occupation_chart
from bbnli_audit.suites.nli_coal import ANTI_FILE, PRO_FILE, NliCoal
from bbnli_audit.suites.occupations import OWN_DATA, Occupations
from bbnli_audit.suites.protocol import check_suite

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
    assert (suite.version, suite.pairing) == ("1.0.0", Pairing.HYPOTHESIS)
    subtopics = suite.subtopics()
    assert list(subtopics) == sorted(subtopics) == list(suite.documented())
    assert [sum(s.domain == domain for s in subtopics) for domain in ("female_majority", "male_majority")] == [18, 20]
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


def test_shares_of_women_fit_the_listed_majority_except_where_a_note_says_so() -> None:
    suite = Occupations()
    known = [each for each in suite.occupations() if each.women_percent is not None]
    assert len(known) == 24
    against = {each.name for each in known if (each.women_percent or 0) > 50 and each.majority == "male"}
    against |= {each.name for each in known if (each.women_percent or 0) < 50 and each.majority == "female"}
    assert against == {each.name for each in known if each.annotations}
    data = json.loads((OWN_DATA / "occupations.json").read_text(encoding="utf-8"))
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
        (b"\xff", r"is not UTF-8 \(byte 0\)"),
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
        assert measure.values is not None
        name, values = measure.name, measure.values(table)
        assert values.dtype == "float64"
        assert values.tolist() == pytest.approx([by_hand(*pair)[name] for pair in pairs], abs=1e-15)
        assert all(0 <= value <= 1 for value in values)
        exchanged = 1 - values if name == "pro_preference" else values
        assert measure.values(swapped).tolist() == exchanged.tolist()


def test_no_coal_score_without_data() -> None:
    labels = [label.value for label in Label]
    nothing, all_three = (
        PairTable(pd.DataFrame({"pro_label": each, "anti_label": each}), LABELS) for each in ([], labels)
    )
    assert math.isnan(coal_bias_score(nothing, labels))
    assert math.isnan(coal_bias_score(all_three, []))


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
    assert occupation_chart(measured("other/male_majority/baker", "occupations/male_majority/zorb", "x")) == ""
    assert occupation_chart(measured("occupations/male_majority/baker", value=None)) == ""
    assert "for 1 occupations" in occupation_chart(measured("occupations/male_majority/baker"))


def test_there_is_no_chart_for_occupations_of_other_people() -> None:
    assert occupation_chart(measured("occupations/male_majority/baker", sha256="0" * 64)) == ""
