"""What a suite gives is checked before a model reads it."""

from collections.abc import Sequence

import pytest

from bbnli_audit.core.errors import SuiteError
from bbnli_audit.core.values import Control, Label, Pair, Pairing, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.protocol import get_items

ZORBS = Subtopic("mine", "planets", "zorbs")
SOUND, BROKEN = TextPair("The moon is red.", "Zorbs juggle."), TextPair("The moon is red.", "Zorbs \ud800 juggle.")
REFERENCE = Pair("p0/h0", SOUND, BROKEN)


class Mine:
    """A suite with one subtopic."""

    name, version, pairing, sha256 = "mine", "1", Pairing.HYPOTHESIS, "0"

    def __init__(self, items: SubtopicItems) -> None:
        self._items = items

    def subtopics(self) -> Sequence[Subtopic]:
        return [ZORBS]

    def documented(self) -> Sequence[Subtopic]:
        return []

    def items(self, _subtopic: Subtopic) -> SubtopicItems:
        return self._items


@pytest.mark.parametrize(
    "items",
    [
        SubtopicItems((Pair("p0/h0", SOUND, BROKEN),)),
        SubtopicItems((Pair("p0/h0", SOUND, SOUND, reference=REFERENCE),)),
        SubtopicItems((Pair("p\ud800", SOUND, SOUND),)),
        SubtopicItems((), controls=(Control("p0/c0", BROKEN, Label.NEUTRAL),)),
        SubtopicItems((), open_texts=(SOUND, BROKEN)),
    ],
    ids=["pair", "reference", "cluster", "control", "open text"],
)
def test_half_a_character_in_any_text_of_a_suite_is_refused(items: SubtopicItems) -> None:
    with pytest.raises(SuiteError) as caught:
        get_items(Mine(items), ZORBS)
    told = "a text of mine/planets/zorbs holds a lone surrogate such as \\ud800"
    assert str(caught.value) == f"The suite 'mine': {told}: half a character, which UTF-8 cannot encode. Correct it."
