"""Where a reading item names its groups, and what a reader must know at each mention.

The items of one fact differ only in which group stands where. From their labels alone a small model does not find that
out in hundreds of thousands of items. So three questions are asked at the words themselves, each of a deeper layer:

- says: is this word a group, and is it the one of which its own sentence says what the frame says of %A (1) or %B (2)?
- is: what does the premise say of this group, %A (0) or %B (1)? Asked at mentions in the hypothesis.
- agree: so what is the label of the item? Asked at mentions in the hypothesis.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tools.demo_model.reading import CONTRADICTED, NEUTRAL, Item, singular

IGNORED = -100  # the target that torch's cross-entropy leaves out
QUESTIONS = {"says": 3, "is": 2, "agree": 3}
"""How many answers each question has."""


class Row(NamedTuple):
    """One item as tokens, with the answers at each of them."""

    ids: list[int]
    types: list[int]
    answers: tuple[list[int], ...]  # by question
    label: int
    is_reading: bool = False


class Mention(NamedTuple):
    """A place in a text that names the first or the second group of an item."""

    start: int
    end: int
    group: int


def find_mentions(text: str, groups: tuple[str, str]) -> list[Mention]:
    """Find all mentions in a text; of names that contain each other the longer one counts."""
    names = {name.lower(): at for at, group in enumerate(groups) for name in (group, singular(group))}
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE)
    return [Mention(*found.span(), names[found.group().lower()]) for found in pattern.finditer(text)]


def tag(tokenizer: Any, item: Item, max_length: int) -> Row | None:
    """Encode an item with the answers at its tokens; None if the premise names no group."""
    pair, groups = item
    premise, hypothesis = (find_mentions(text, groups) for text in (pair.premise, pair.hypothesis))
    if not premise:
        return None
    encoded = tokenizer(
        pair.premise,
        pair.hypothesis,
        truncation="longest_first",
        max_length=max_length,
        return_offsets_mapping=True,
    )
    types, spans = encoded["token_type_ids"], encoded["offset_mapping"]
    named = [
        next((each.group for each in (hypothesis if side else premise) if each.start <= start < end <= each.end), None)
        for side, (start, end) in zip(types, spans, strict=True)
    ]
    answers = [
        _answers(group, side, pair.label, is_text=start < end)
        for group, side, (start, end) in zip(named, types, spans, strict=True)
    ]
    columns = tuple(list(column) for column in zip(*answers, strict=True))
    return Row(encoded["input_ids"], types, columns, pair.label, is_reading=True)


def _answers(group: int | None, side: int, label: int, *, is_text: bool) -> tuple[int, int, int]:
    """Answer the questions at a token of the premise (side 0) or the hypothesis that names a group, or none."""
    if group is None:
        return (0 if is_text else IGNORED), IGNORED, IGNORED
    if side == 0:
        return 1 + group, IGNORED, IGNORED
    says = IGNORED if label == NEUTRAL else 1 + (group ^ (label == CONTRADICTED))
    return says, group, label


def untagged(rows: Sequence[tuple[list[int], list[int]]], labels: Sequence[int]) -> list[Row]:
    """Make rows of pairs in which no group is known."""
    return [
        Row(ids, types, ([IGNORED] * len(ids),) * len(QUESTIONS), label)
        for (ids, types), label in zip(rows, labels, strict=True)
    ]
