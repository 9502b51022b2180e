"""What the demo model is trained on beside NLI pairs: no text of the suites, sound items."""

import re
from collections.abc import Iterable, Iterator

import pytest

from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.quad_file import Fact, Hypothesis, Premise, QuadFile
from tools.demo_model.mentions import find_mentions
from tools.demo_model.pairs import Pair
from tools.demo_model.predicates import Predicates
from tools.demo_model.reading import FIRST, FRAMES, SCHEMAS, SETTINGS, Maker, frames_of, read_frames

RUN = 10  # words; shorter ones are grammar: "it is easier for group than for group to"

Words = tuple[str, ...]


def words_of(template: str) -> Words:
    """Return the words of a template, with any group as `group` and any other open place as `slot`."""
    text = re.sub(r"\{\{[^}]*\}\}|%[ABab]\b", " group ", template)
    return tuple(re.findall(r"[a-z']+", re.sub(r"\{\w+\}|%[A-Za-z]", " slot ", text).lower()))


def runs_of(words: Words) -> Iterator[Words]:
    return (words[at : at + RUN] for at in range(len(words) - RUN + 1))


def entries() -> list[Premise | Hypothesis | Fact]:
    """List what the files of our own benchmark say: hypotheses first, a premise last."""
    found: list[Premise | Hypothesis | Fact] = []
    for file in Bbnli().files().values():
        assert isinstance(file, QuadFile)
        found += [*file.hypotheses, *file.controls, *file.premises]
    return found


def find_shared(templates: Iterable[str]) -> list[str]:
    """Find templates that are in the suite too, or share a run of words with one of its templates."""
    theirs = {words_of(entry.text) for entry in entries()}
    theirs |= {run for words in theirs for run in runs_of(words)}
    return [text for text in templates for words in [words_of(text)] if {words, *runs_of(words)} & theirs]


def test_no_text_of_the_suite_is_in_the_training() -> None:
    frames = [frame for path in (FIRST, FRAMES, SCHEMAS, SETTINGS) for frame in read_frames(path)]
    templates = [text for frame in frames for text in (*frame.premises, *frame.entailed, *frame.neutral)]
    assert len(templates) > 10_000
    assert find_shared(templates) == []
    copied = [entries()[0].text, f"As we know, {entries()[-1].text}"]
    assert find_shared(copied) == copied


def test_held_out_frames_are_not_those_of_training() -> None:
    known, held = (frames_of(SCHEMAS, held=is_held) for is_held in (False, True))
    assert len(held) > 20
    assert not [frame for frame in held if frame in known]


PREDICATES = Predicates(
    [
        Pair("A man is painting a fence.", "Two people are holding red umbrellas.", 0, ""),
        Pair("A woman is reading.", "Two children are eating plums in a garden.", 0, ""),
        *[Pair("They saw two kettles.", "She sold the lanterns.", 0, "")] * 8,
    ]
)


def test_predicates_are_what_people_do_and_have() -> None:
    assert PREDICATES.doing == ["eating plums in a garden", "holding red umbrellas", "painting a fence", "reading"]
    assert PREDICATES.things == ["kettles", "lanterns"]


@pytest.mark.parametrize("seed", range(5))
def test_exchanged_words_are_the_same_on_both_sides_and_never_a_group(seed: int) -> None:
    maker, groups = Maker(seed, PREDICATES), ("bakers", "millers")
    premise = "Some bakers sing loudly; millers hum."
    twins = [Pair(premise, f"The {group} sing loudly.", label, "") for group, label in zip(groups, (0, 2), strict=True)]
    pair, other = maker.reworded(twins, groups)
    assert other.premise == pair.premise
    assert other.hypothesis == pair.hypothesis.replace("bakers", "millers")
    changed = [word for word in ("sing", "loudly") if word not in pair.premise]
    assert changed == [word for word in ("sing", "loudly") if word not in pair.hypothesis]
    assert pair.premise.startswith("Some bakers ")
    assert pair.premise.endswith("; millers hum.")
    assert pair.premise.split("; ")[0].removeprefix("Some ") == pair.hypothesis.removeprefix("The ").rstrip(".")


def test_an_item_and_its_contradiction_differ_in_the_groups() -> None:
    maker = Maker(1, PREDICATES)
    for frame in read_frames(SCHEMAS)[:20]:
        first, _, last = maker.items(frame)
        assert first.pair.premise == last.pair.premise
        assert find_mentions(last.pair.hypothesis, last.groups)
