"""What is swapped in a text, what is left, and which use a pronoun has."""

import json
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import AugmentError
from bbnli_audit.workbench.augment.lexicon import OWN_LEXICON, read_lexicon
from bbnli_audit.workbench.augment.swap import Found, Left, Swapper
from bbnli_audit.workbench.augment.uses import Use, find_use
from bbnli_audit.workbench.augment.words import plural

OWN = Swapper(read_lexicon())


def swap(text: str, swapper: Swapper = OWN) -> str:
    return swapper.swap(text, [], [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He hurt himself; SHE did not.", "She hurt herself; HE did not."),
        ("The man's dog and the women’s dogs", "The woman's dog and the men’s dogs"),
        ("her mother-in-law, an ex-wife", "his father-in-law, an ex-husband"),
        ("'Boys will sing,' he said. Men ran.", "'Girls will sing,' she said. Women ran."),
        ("Mr. Ames met Ms. Bell and Mrs Cole.", "Ms. Ames met Mr. Bell and Mr Cole."),
        ("A GIRL  smiles\tat\nher  sister!!", "A BOY  smiles\tat\nhis  brother!!"),
        ("I asked Mom.", "I asked Dad."),
        ("his fiancée, a policewoman", "her fiancé, a policeman"),
        ("Yes, ma’am.", "Yes, sir."),
        ("he/she, (she)", "she/he, (he)"),
    ],
)
def test_terms_are_swapped_with_case_and_punctuation_kept(text: str, expected: str) -> None:
    assert swap(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Grace, Will and Christian met Mark in Manchester.",
        "Mother Teresa, Spider-Man, Stephen King and the Beach Boys",
        "the Isle of Man; the Queen of Hearts",
        "Women's World Cup",
        "a man-made lake, no man’s land, you guys",
        "5 ms in MS, the host will miss the master",
        "the thermos, sheets, mankind, Hershey, ahead, human",
        "@he #she he_man man2 sHe HİS",
        "KING",
    ],
)
def test_names_parts_of_words_and_kept_phrases_stay(text: str) -> None:
    assert swap(text) is text


def test_what_was_found_and_left_is_told() -> None:
    found: list[Found] = []
    left: list[Left] = []
    OWN.swap("She gave her the man-made lake; Mr King saw.", found, left)
    assert found == [
        Found("she", "female", "he"),
        Found("her", "female", "him", "function_word"),
        Found("Mr", "male", "Ms"),
    ]
    assert left == [Left("man-made", is_kept=True), Left("king", is_kept=False)]


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("I saw her.", Use.OBJECT),
        ("I saw her", Use.OBJECT),
        ("gave her a book", Use.OBJECT),
        ("gave her book away", Use.DETERMINER),
        ("let her in", Use.OBJECT),
        ("her in-laws", Use.DETERMINER),
        ("saw her dance", Use.OBJECT),
        ("loved her dance", Use.DETERMINER),
        ("makes her happy.", Use.OBJECT),
        ("her happy child", Use.DETERMINER),
        ("took her back home", Use.OBJECT),
        ("on her back", Use.DETERMINER),
        ("her or his book", Use.DETERMINER),
        ("look at her or him", Use.OBJECT),
        ("because of her leaving the house", Use.DETERMINER),
        ("saw her leaving the house", Use.OBJECT),
        ("called her Zara", Use.OBJECT),
        ("in her All Stars team", Use.DETERMINER),
        ("told her I knew", Use.OBJECT),
        ('her "book"', Use.DETERMINER),
        ('"I saw her" he said', Use.OBJECT),
        ("I SAW HER AND HIM", Use.OBJECT),
    ],
)
def test_the_use_of_her(text: str, use: Use) -> None:
    start = text.lower().index("her")
    assert find_use(text, start, start + 3, frozenset({Use.DETERMINER, Use.OBJECT})).use is use


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a friend of his.", "a friend of hers."),
        ("his was red", "hers was red"),
        ("his now famous book", "her now famous book"),
        ("his or her book", "her or his book"),
        ("that is hers, not his", "that is his, not hers"),
    ],
)
def test_his_stands_alone_only_before_what_is_no_noun(text: str, expected: str) -> None:
    assert swap(text) == expected


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("secretary", "secretaries"),
        ("salesperson", "salespeople"),
        ("coach", "coaches"),
        ("guard", "guards"),
        ("attorney", "attorneys"),
        ("foreman", "foremen"),
        ("businesswoman", "businesswomen"),
        ("shaman", "shamans"),
        ("german", "germans"),
    ],
)
def test_the_plural_of_an_occupation(noun: str, expected: str) -> None:
    assert plural(noun) == expected


# Lexicons of other groups


def lexicon_file(folder: Path, pairs: list[dict[str, Any]], **more: Any) -> Path:
    path = folder / "lexicon.json"
    path.write_text(json.dumps({"format": 1, "sides": ["zorvian", "pliman"], "pairs": pairs, **more}), encoding="utf-8")
    return path


def test_invented_groups_are_swapped_by_a_lexicon_of_ones_own(tmp_path: Path) -> None:
    pairs = [
        {"zorvian": "Zorvian", "pliman": "Pliman"},
        {"zorvian": "zo", "pliman": "pli", "use": "determiner"},
        {"zorvian": "zom", "pliman": "pli", "use": "object"},
        {"zorvian": "zorling", "pliman": "Pliman", "from": "zorvian"},
    ]
    swapper = Swapper(
        read_lexicon(lexicon_file(tmp_path, pairs, keep=[{"terms": ["Zorvian tea"], "reason": "a drink"}]))
    )
    assert swapper.lexicon.sides == ("zorvian", "pliman")
    assert swap("A Zorvian saw pli book and gave pli a zorling.", swapper) == (
        "A Pliman saw zo book and gave zom a Pliman."
    )
    assert swap("zorvian, he, Zorvian tea", swapper) == "zorvian, he, Zorvian tea"


def test_a_lexicon_that_extends_ours_adds_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "more.json"
    more = {
        "format": 1,
        "extends": True,
        "sides": ["female", "male"],
        "pairs": [{"male": "zorman", "female": "zorwoman"}, {"male": "fisherman", "female": "fisher"}],
        "keep": [{"terms": ["guys"], "reason": "neutral here"}],
    }
    path.write_text(json.dumps(more), encoding="utf-8")
    swapper = Swapper(read_lexicon(path))
    assert swap("a zorman, a fisherman, he", swapper) == "a zorwoman, a fisher, she"
    assert swap("a fisherwoman; the guys", swapper) == "a fisherwoman; the guys"
    assert swapper.lexicon.sha256 != OWN.lexicon.sha256


A = {"zorvian": "zo", "pliman": "pli"}


@pytest.mark.parametrize(
    ("pairs", "more", "message"),
    [
        ([A, {"zorvian": "zo", "pliman": "plo"}], {}, "'zo' appears twice, in pairs[0] and pairs[1]"),
        ([A, A], {}, "'zo' appears twice"),
        ([A, {"zorvian": "pli", "pliman": "x"}], {}, "'pli' is on both sides (pairs[0] as pliman, pairs[1] as"),
        ([{"zorvian": "Zo", "pliman": "zo"}], {}, "pairs[0] has 'Zo' on both sides"),
        ([{**A, "from": "zorvian"}], {}, "not symmetric: pairs[0] turns another term into 'pli'"),
        ([{**A, "from": "martian"}], {}, "key 'pairs[0].from' is \"martian\"; expected 'zorvian' or 'pliman'"),
        ([{**A, "use": "verb"}], {}, "expected 'determiner' or 'object' or 'independent'"),
        (
            [{**A, "use": "object"}, {"zorvian": "zo", "pliman": "plo", "use": "independent"}],
            {},
            "has the uses object, independent, which no rule tells apart",
        ),
        ([{"zorvian": "zo"}], {}, "key 'pairs[0].pliman' is missing or null"),
        ([{"zorvian": "zo.", "pliman": "pli"}], {}, "key 'pairs[0].zorvian' is \"zo.\"; expected letters"),
        ([{**A, "colour": "red"}], {}, "key 'pairs[0].colour' is not known"),
        (["zo"], {}, "key 'pairs[0]' is \"zo\"; expected an object"),
        ([], {}, "key 'pairs' is []; expected at least one pair"),
        ([A], {"sides": ["one"]}, "expected two different names"),
        ([A], {"format": 2}, "key 'format' is 2; expected 1"),
        ([A], {"kep": []}, "key 'kep' is not known. Did you mean 'keep'?"),
        ([A], {"keep": [{"terms": ["x"]}]}, "key 'keep[0]'"),
        ([A], {"keep": [{"terms": ["x"], "reason": " "}]}, "expected a text that gives the reason"),
        ([A], {"keep": [{"terms": ["ZO"], "reason": "x"}]}, "'zo' is in pairs[0] and in 'keep'"),
        ([A], {"extends": True}, "whose sides are male and female, but its own sides are zorvian and pliman"),
    ],
)
def test_an_unsound_lexicon_is_refused(tmp_path: Path, pairs: list[Any], more: dict[str, Any], message: str) -> None:
    path = lexicon_file(tmp_path, pairs, **more)
    with pytest.raises(AugmentError) as raised:
        read_lexicon(path)
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(path))


def test_a_lexicon_that_is_no_json_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{\n  "format": 1,,\n}')
    with pytest.raises(AugmentError, match=r"bad\.json:2: is not valid JSON"):
        read_lexicon(path)
    with pytest.raises(AugmentError, match="there is no such file"):
        read_lexicon(tmp_path / "none.json")


def test_our_lexicon_gives_a_reason_for_every_one_way_term_and_kept_term() -> None:
    data = json.loads(OWN_LEXICON.read_text(encoding="utf-8"))
    assert all(entry["reason"] for entry in data["keep"])
    for pair in data["pairs"]:
        if "from" in pair:
            assert pair["note"], pair


def test_our_lexicon_never_changes_whether_a_or_an_comes_before() -> None:
    for key, term in OWN.lexicon.terms.items():
        for other in term.becomes.values():
            assert (key[0] in "aeiou") == (other[0].lower() in "aeiou") or {key, other} & {"heir", "heiress"}, key
