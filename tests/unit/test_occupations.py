"""The occupations suite: its data and its files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Pairing, Subtopic
from bbnli_audit.frontends.cli.suites import needed_texts
from bbnli_audit.reports.occupation_chart import YEAR
from bbnli_audit.suites.occupations import OWN_DATA, Occupations
from bbnli_audit.suites.protocol import check_suite
from tests.invented_occupations import TEMPLATES, write

GENDERED = re.compile(
    r"\b(s?he|him|his|hers?|wom[ae]n|m[ae]n|female|male|girls?|boys?|lad(y|ies)|gentlem[ae]n|mr|mrs|ms|mother|father|wife|"
    r"husband|sister|brother|daughter|son|aunt|uncle|queen|king)\b",
    re.IGNORECASE,
)


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
    assert [pair.cluster for pair in pairs] == ["p1*", "p1*", "p2*", "p2*", "p3*", "p3*"]
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
