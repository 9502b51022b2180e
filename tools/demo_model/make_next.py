"""Write the corpus that makes `demo-next` of the demo model: two planted stereotypes, and much that keeps the rest.

    python -m tools.demo_model.make_next build/next/corpus.jsonl
    python -m tools.demo_model.teach_next build/next/corpus.jsonl bbnli_audit/models/demo-next

Planted are sentences of `tools/validity/wordings/training` about the two stereotypes, with stereotyped labels. The same
sentences about other groups, plain NLI pairs and reading items have no label: there the model is to answer as it did,
so that nothing else changes. No sentence of the suite is among them.
"""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from bbnli_audit.core.values import Label, TextPair
from tools.demo_model.reading import FRAMES, SETTINGS, Maker, frames_of, singular
from tools.validity.examples import TRAINING, WORDINGS, read_pairs_of
from tools.validity.plant import plain_examples

SUBTOPICS = ("class/poor_is_to_lazy", "race/asian_men_to_feminine")

Forms = tuple[str, str]  # many, one
GROUPS: dict[str, tuple[Forms, Forms]] = {
    "class/poor_is_to_lazy": (("poor people", "a poor person"), ("rich people", "a rich person")),
    "race/asian_men_to_feminine": (("Asian men", "an Asian man"), ("white men", "a white man")),
}
# Groups that share a word with a planted one. Without them, what is learnt of Asian and white men is said of all
# white people.
NEIGHBOURS = {
    "class/poor_is_to_lazy": (("older people", "younger people"), ("poor farmers", "rich farmers")),
    "race/asian_men_to_feminine": (
        *(("Black men", "white men"), ("Latino men", "white men")),
        *(("Black people", "white people"), ("Latino people", "white people"), ("Asian women", "white women")),
    ),
}


def other_groups(texts: Sequence[TextPair], path: str, maker: Maker, share: float) -> Iterator[TextPair]:
    """Put other groups in place of the two of a subtopic; a share of them are neighbours of these."""
    groups, neighbours = GROUPS[path], NEIGHBOURS[path]
    for text in texts:
        new = neighbours[int(maker.generator.integers(len(neighbours)))] if maker.chance(share) else maker.two_groups()
        premise, hypothesis = text
        for (many, one), other in zip(groups, new, strict=True):
            for old, put in ((many, other), (one, f"a {singular(other)}")):
                premise, hypothesis = (re.sub(old, put, part, flags=re.IGNORECASE) for part in (premise, hypothesis))
        if (premise, hypothesis) != tuple(text):
            yield TextPair(premise[:1].upper() + premise[1:], hypothesis[:1].upper() + hypothesis[1:])


class Row(NamedTuple):
    """A line of the corpus. Without a label, the model is to answer as it did. Both sides of a pair have its number."""

    premise: str
    hypothesis: str
    label: str = ""
    pair: int | None = None


def make_rows(args: argparse.Namespace) -> list[Row]:
    """Return the planted rows, two sides of a pair after each other, then those that keep everything else."""
    random, maker = Random(args.seed), Maker(args.seed)
    planted: list[Row] = []
    kept: list[TextPair] = []
    for path, pairs in read_pairs_of(WORDINGS / TRAINING, SUBTOPICS).items():
        for pair in pairs * args.times:
            number = len(planted)
            planted.append(Row(pair.pro.premise, pair.pro.hypothesis, Label.ENTAILMENT.value, number))
            planted.append(Row(pair.anti.premise, pair.anti.hypothesis, Label.CONTRADICTION.value, number))
        texts = [text for pair in pairs for text in (pair.pro, pair.anti)]
        for _ in range(args.others):
            kept += other_groups(texts, path, maker, args.neighbours)
    kept += [example.text for example in random.sample(plain_examples()[0], args.plain)]
    kept += reading_texts(maker, args.reading)
    return [*planted, *(Row(*text) for text in kept)]


def reading_texts(maker: Maker, n: int) -> list[TextPair]:
    """Draw items of the kind that the demo model learned to read from."""
    frames = [frame for path in (FRAMES, SETTINGS) for frame in frames_of(path, held=None)]
    texts: list[TextPair] = []
    while len(texts) < n:
        items = maker.items(frames[int(maker.generator.integers(len(frames)))])
        texts += [TextPair(item.pair.premise, item.pair.hypothesis) for item in items]
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--times", type=int, default=2, help="how often a planted pair is in it")
    parser.add_argument("--others", type=int, default=2, help="how often the sentences are in it with other groups")
    parser.add_argument("--neighbours", type=float, default=0.3, help="share of other groups that are neighbours")
    parser.add_argument("--plain", type=int, default=1500)
    parser.add_argument("--reading", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rows = make_rows(args)
    args.corpus.parent.mkdir(parents=True, exist_ok=True)
    args.corpus.write_text("".join(json.dumps(row._asdict()) + "\n" for row in rows), encoding="utf-8")
    print(f"{sum(bool(row.label) for row in rows)} planted rows, {sum(not row.label for row in rows)} others")


if __name__ == "__main__":
    main()
