"""Judges the items of a workbench folder by two simple rules, to try out the steps after `review` without people.

    python -m tools.next_version.stand_in WORK judgements.csv

The rules do not replace annotators: they know nothing about stereotypes. A release made from their judgements shows
that the workbench works; it is not a benchmark.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from bbnli_audit.workbench.extend.table import Item, Sample, Word, read_table
from bbnli_audit.workbench.review.exchange import COLUMNS

TIME = "2026-01-01T00:00:00.000000Z"
_TURNS_ROUND = frozenset(("never", "not", "no", "hardly", "rarely", "seldom", "without"))
_FUNCTION_WORDS = frozenset(
    "a about all an and are as at be been but by can do for from had has have he her him his i if in into is it its "  # noqa: SIM905
    "like of on one or other out over she some than that the their them then there these they this those to two up "
    "was were what when where which while who will with you".split()
)
_LOW_RANK = 15


def judge(
    items: list[Item], sides: dict[tuple[str, str], str], ranks: dict[tuple[str, str], int]
) -> Iterator[list[str]]:
    """Yield rows of judgements: by a rule on words alone, and by one that also wants a word the model finds likely."""
    for item in items:
        is_word = item.word.lower() not in _FUNCTION_WORDS
        is_likely = ranks[item.template, item.word] <= _LOW_RANK
        side = sides[f"{item.domain}/{item.subtopic}", item.template]
        if item.word.lower() in _TURNS_ROUND:
            side = "anti" if side == "pro" else "pro"
        for name, is_valid in (("rule-words", is_word), ("rule-words-and-rank", is_word and is_likely)):
            yield [item.item, name, "valid" if is_valid else "incoherent", side if is_valid else "", "", TIME]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    work: Path = arguments.work
    samples = read_table(work / "expanded.csv", Sample)
    sides = {(f"{sample.domain}/{sample.subtopic}", sample.masked): sample.side for sample in samples}
    ranks = {(word.masked, word.word): word.rank for word in read_table(work / "filled.csv", Word)}
    with arguments.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(judge(read_table(work / "items.csv", Item), sides, ranks))


if __name__ == "__main__":
    main()
