"""Properties of swapping: what must hold whatever the text."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.workbench.augment.lexicon import read_lexicon
from bbnli_audit.workbench.augment.reading import TextColumns
from bbnli_audit.workbench.augment.run import Augmenter
from bbnli_audit.workbench.augment.swap import Left, Swapper

OWN = Swapper(read_lexicon())
TERMS = OWN.lexicon.terms

# Terms that lead back to themselves: one use, and the other leads back.
SYMMETRIC = sorted(
    term.text
    for term in TERMS.values()
    if len(term.becomes) == 1
    for other in term.becomes.values()
    if list(TERMS[other.lower()].becomes.values()) == [term.text]
)
NEUTRAL = ["table", "Zorvian", "x1", "the", "Plim", "saw", "thermos", "é", "…", "42"]
GAPS = st.sampled_from([" ", "  ", "\n", "\t", ", ", ". ", "! ", ' "', "-", "/", " (", ") ", "'s ", "’s "])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a text of symmetric terms in any case, neutral words, and anything between them."""
    parts: list[str] = []
    for _ in range(draw(st.integers(0, 8))):
        word = draw(st.sampled_from(SYMMETRIC) | st.sampled_from(NEUTRAL))
        forms = [word, word.upper(), word[:1].upper() + word[1:]]
        parts += draw(st.sampled_from(forms)), draw(GAPS)
    return "".join(parts)


def swap(text: str) -> str:
    return OWN.swap(text, [], [])


def is_free_of_kept(text: str) -> bool:
    """Say whether no kept phrase arose by chance: `boy` and `band`, or `woman-made` swapped."""
    left: list[Left] = []
    OWN.swap(OWN.swap(text, [], left), [], left)
    return not any(one.is_kept for one in left)


@given(texts().filter(is_free_of_kept))
def test_swapping_twice_gives_the_text_back(text: str) -> None:
    assert swap(swap(text)) == text


@given(texts())
def test_everything_but_words_stays_where_it_was(text: str) -> None:
    assert re.sub(r"\w+", "", swap(text)) == re.sub(r"\w+", "", text)


@given(texts())
def test_the_case_of_each_word_stays(text: str) -> None:
    def shape(word: str) -> str:
        return "lower" if word.islower() else "upper" if word.isupper() and len(word) > 1 else word[:1].isupper() * "C"

    before, after = (re.findall(r"\w+", each) for each in (text, swap(text)))
    assert list(map(shape, before)) == list(map(shape, after))


@given(st.text())
def test_a_text_without_terms_is_unchanged(text: str) -> None:
    words = {word.lower() for word in re.findall(r"\w+", text)}
    if not words & {part for term in TERMS for part in re.findall(r"\w+", term)}:
        assert swap(text) == text


@given(st.lists(st.tuples(st.text() | texts(), st.text() | texts()), min_size=1, max_size=5))
def test_the_sieve_lets_every_text_with_a_term_through(pairs: list[tuple[str, str]]) -> None:
    for pair, may_hold in zip(pairs, OWN.sift(pairs), strict=True):
        assert may_hold or all(swap(text) == text for text in pair)


VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.integers())
ROWS = st.fixed_dictionaries({"id": VALUES, "premise": texts(), "label": VALUES, "hypothesis": texts(), "ü x": VALUES})


@given(st.lists(ROWS, min_size=1, max_size=6))
@settings(max_examples=50)
def test_rows_stay_and_copies_differ_in_their_texts_alone(rows: list[dict[str, object]]) -> None:
    with TemporaryDirectory() as folder:
        path, out = Path(folder, "in.jsonl"), Path(folder, "out.jsonl")
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        tally, _ = Augmenter(OWN).run(path, out, TextColumns())
        written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    expected = []
    for row in rows:
        expected.append({**row, "augmented": False})
        # Both sides go through one function: a term becomes the same in the premise and in the hypothesis.
        changed = {key: swap(str(row[key])) for key in ("premise", "hypothesis")}
        if any(changed[key] != row[key] for key in changed):
            expected.append({**row, **changed, "augmented": True})
    assert written == expected
    assert [list(row) for row in written] == [list(row) for row in expected]
    assert tally.n_read == len(rows)
    assert tally.n_copied == len(expected) - len(rows)
