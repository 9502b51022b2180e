"""What people do and have, taken from the NLI pairs: the words that make every item of a schema a new one.

Few frames are learned by heart. A schema is a frame whose predicates are drawn anew each time, so who wants to label
its items has to find the same words in the other sentence, and the group beside them.
"""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from tools.demo_model.pairs import Pair

_DOING = re.compile(
    r"(?:\w+ ){0,4}(?:man|woman|men|women|people|boys?|girls?|child|children|person|guys?|lady|ladies|kids?|couple)"
    r" (?:is|are) (\w+ing(?: [a-z]+){0,6})\.?"
)
_THINGS = re.compile(r"\b(?:two|three|four|some|many|several|of|the|these) ([a-z]{3,}s)\b")
_NOT_THINGS = re.compile(
    r"(ss|us|is|ous)$|^(has|was|does|this|its|his|others|always|perhaps|times|days|years|hours|lots)$"
)
_UNFIT = re.compile(
    r"\b(his|her|hers|him|he|she|they|their|them|its|it|himself|herself|themselves|each|another|other)\b"
)


class Predicates:
    """Draws three things that people do and two that they have."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        doing: set[str] = set()
        things: Counter[str] = Counter()
        for text in (text for pair in pairs for text in (pair.premise, pair.hypothesis)):
            if (found := _DOING.fullmatch(text.strip())) and not _UNFIT.search(found.group(1)):
                doing.add(found.group(1))
            things.update(word for word in _THINGS.findall(text) if not _NOT_THINGS.search(word))
        self.doing = sorted(doing)
        self.things = sorted(word for word, count in things.items() if count >= 8)
        self.words = sorted(
            {word for phrase in (*self.doing, *self.things) for word in phrase.split() if len(word) > 3}
        )

    def draw(self, random: np.random.Generator) -> dict[str, str]:
        """Draw a filling for each of the open places of a schema."""
        doing = (self.doing[int(at)] for at in random.choice(len(self.doing), 3, replace=False))
        things = (self.things[int(at)] for at in random.choice(len(self.things), 2, replace=False))
        return dict(zip(("doing", "else", "third", "things", "goods"), (*doing, *things), strict=True))
