"""Make reading items: premises that state a difference between two groups, and short hypotheses about it.

The wordings are in `frames.txt`, word lists and general claims in `words.txt`. A block of the first is one frame; in
its lines, variants are parted by " / ".

- `P` premises, all of the same fact about the groups A and B
- `E` what follows from each of them; with the groups exchanged it is contradicted, unless it names neither
- `N` what each of them leaves open, in either order of the groups
- `G` an ability in which people might think the groups differ: general claims about it are left open
- `Q`, `F` in `settings.txt`: another fact of the same setting, and what follows from it; each fact leaves open what
  follows from the other
- `S name = x | y` a word that premise and hypothesis share, written {name}

%A, %B: the groups in the plural, %a, %b: one of them. %h + %l = %t: small counts, %h the larger by far. %H, %L: large
counts. %p + %q = 100: percentages. %r, %s: percentages of two groups. %x, %y: decimals. %m, %n: small numbers. The
first of two is the larger. %T: a town, %N: a first name, %D: a day, %Y: a year. {doing}, {else}, {third}, {things} and
{goods} in `schemas.txt`: what `predicates.py` draws.

Run as a program, it prints some items.
"""

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tools.demo_model.pairs import LABELS, Pair
from tools.demo_model.predicates import Predicates

FIRST, FRAMES, SCHEMAS, SETTINGS = (
    Path(__file__).parent / f"{name}.txt" for name in ("first", "frames", "schemas", "settings")
)
HELD_EVERY = 7
ENTAILED, NEUTRAL, CONTRADICTED = range(3)
_LONG_WORD = re.compile(r"\b[a-z]{4,}\b")


IRREGULAR = {"men": "man", "women": "woman", "children": "child", "people": "person", "townspeople": "townsman"}


def read_words() -> dict[str, list[str]]:
    """Read the lists of the file with the words, by name."""
    lists: dict[str, list[str]] = {}
    for block in (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split("\n\n"):
        title, *lines = block.strip().splitlines()
        if title.startswith("["):
            lists[title.strip("[]")] = [part for line in lines for part in line.split(" | ")]
    return lists


WORDS = read_words()


class Item(NamedTuple):
    """A pair, and the groups that stand for %A and %B in its premise."""

    pair: Pair
    groups: tuple[str, str]


@dataclass
class Frame:
    """One fact of a block of the file."""

    premises: list[str] = field(default_factory=list)
    entailed: list[str] = field(default_factory=list)
    neutral: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    """What follows from the other fact of the same block."""
    ability: str = ""
    shared: dict[str, list[str]] = field(default_factory=dict)


def read_blocks(path: Path) -> list[list[Frame]]:
    """Read the facts of every block."""
    blocks = []
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        signed = [line.partition(" ")[::2] for line in block.strip().splitlines()]
        texts = {sign: text.split(" / ") for sign, text in signed if sign in "PENQF"}
        shared = dict(text.split(" = ") for sign, text in signed if sign == "S")
        ability = next((text for sign, text in signed if sign == "G"), "")
        facts = [(texts.get(premise), texts.get(follows)) for premise, follows in ("PE", "QF")]
        known = [(premises, follows) for premises, follows in facts if premises and follows]
        if known:
            words = {name: choices.split(" | ") for name, choices in shared.items()}
            others = [other for _, other in known[::-1]] if len(known) > 1 else [[]]
            blocks.append(
                [
                    Frame(premises, follows, texts["N"], other, ability, words)
                    for (premises, follows), other in zip(known, others, strict=True)
                ]
            )
    return blocks


def read_frames(path: Path = FRAMES) -> list[Frame]:
    return [frame for block in read_blocks(path) for frame in block]


def is_held(at: int) -> bool:
    """Say whether a block is kept out of training."""
    return at % HELD_EVERY == HELD_EVERY - 2


def frames_of(path: Path = FRAMES, *, held: bool | None) -> list[Frame]:
    """Return the facts of training, the held-out ones, or all (None)."""
    blocks = enumerate(read_blocks(path))
    return [frame for at, block in blocks if held is None or is_held(at) == held for frame in block]


def group_lists() -> list[list[str]]:
    return [entry.split(", ") for entry in WORDS["groups"]]


def singular(plural: str) -> str:
    """One member of a group."""
    first, *rest = re.split(r" (?=from |with |without |who )", plural, maxsplit=1)
    words = first.split(" ")
    last = words[-1]
    words[-1] = IRREGULAR.get(last) or (last[:-3] + "man" if last.endswith("men") else last.removesuffix("s"))
    tail = rest[0].replace("who speak ", "who speaks ") if rest else ""
    return " ".join([*words, tail]).strip()


class Maker:
    """Draws items with one generator of random numbers."""

    strange = 0.0
    """The share of items in which shared words are replaced."""

    def __init__(self, seed: int, predicates: Predicates | None = None) -> None:
        self.generator = np.random.default_rng(seed)
        self.groups = group_lists()
        self.predicates = predicates

    def one_of(self, options: list[str]) -> str:
        return options[int(self.generator.integers(len(options)))]

    def chance(self, share: float) -> bool:
        return bool(self.generator.random() < share)

    def number(self, value: int) -> str:
        written = WORDS["numbers"]
        return written[value] if value < len(written) and self.chance(0.6) else f"{value:,}"

    def two_groups(self) -> tuple[str, str]:
        """Draw two groups; mostly from one list, sometimes from two."""
        at = int(self.generator.integers(len(self.groups)))
        other = at if self.chance(0.93) else int(self.generator.integers(len(self.groups)))
        for _ in range(100):
            first, second = self.one_of(self.groups[at]), self.one_of(self.groups[other])
            for slot in ("place", "tongue", "tribe"):
                words = WORDS[f"{slot}s"]
                one, two = (words[int(i)] for i in self.generator.permutation(len(words))[:2])
                first, second = first.replace(f"{{{slot}}}", one), second.replace(f"{{{slot}}}", two)
            if first != second:
                return first, second
        raise AssertionError(self.groups[at])

    def values(self) -> dict[str, str]:
        """Numbers, names and places of one item."""

        def draw(low: int, high: int) -> int:
            return int(self.generator.integers(low, high + 1))

        low = draw(2, 9)
        high = low + draw(2, 11)
        less = draw(12, 900)
        share, rate, little = draw(55, 94), draw(40, 95), draw(2, 24)
        point = draw(20, 80) / 10
        return {
            "h": self.number(high),
            "l": self.number(low),
            "t": self.number(high + low),
            "H": self.number(int(less * (1.3 + 4 * self.generator.random())) + 3),
            "L": self.number(less),
            "p": str(share),
            "q": str(100 - share),
            "r": str(rate),
            "s": str(draw(3, rate - 8)),
            "x": f"{point + draw(5, 40) / 10:.1f}",
            "y": f"{point:.1f}",
            "m": self.number(little + draw(2, 25)),
            "n": self.number(little),
            "T": self.one_of(WORDS["places"]),
            "N": self.one_of(WORDS["names"]),
            "D": self.one_of(WORDS["days"]),
            "Y": str(draw(1950, 2024)),
        }

    def open_text(self, frame: Frame) -> str:
        """Draw a hypothesis that no premise of the frame decides."""
        if frame.elsewhere and self.chance(0.6):
            return self.one_of(frame.elsewhere)
        kind = self.generator.random()
        if kind < 0.70:
            return self.one_of(frame.neutral)
        if kind < 0.78:
            return self.one_of(WORDS["more forms"]).replace("{vp}", self.one_of(WORDS["other matters"]))
        if kind < 0.82:
            return self.one_of(WORDS["head forms"]).replace("{head}", self.one_of(WORDS["other heads"]))
        if kind < 0.92:
            ability = frame.ability if frame.ability and self.chance(0.6) else self.one_of(WORDS["abilities"])
            return self.one_of(WORDS["claims"]).replace("{g}", ability)
        return self.one_of(WORDS["character forms"]).replace("{c}", self.one_of(WORDS["character"]))

    def items(self, frame: Frame) -> list[Item]:
        """Make one item of each label over one premise."""
        groups = self.two_groups()
        values = self.values()
        chosen = {name: self.one_of(words) for name, words in frame.shared.items()}
        if self.predicates:
            chosen |= self.predicates.draw(self.generator)

        def fill(text: str, *, exchanged: bool = False) -> str:
            one, two = groups[::-1] if exchanged else groups
            for name, word in chosen.items():
                text = text.replace(f"{{{name}}}", word)
            here = {**values, "A": one, "B": two, "a": singular(one), "b": singular(two)}
            text = re.sub(r"%([A-Za-z])", lambda match: here[match.group(1)], text)
            text = re.sub(r"\b([Aa]) (?=[aeioAEIO](?!ne\b|u)|au|Au|u(?!ni|s))", r"\1n ", text)
            return re.sub(r'(^"?|[.?!] "?)([a-z])', lambda match: match.group(1) + match.group(2).upper(), text)

        premise = self.one_of(frame.premises)
        if self.chance(0.25):
            premise = self.one_of(WORDS["settings"]) + " " + premise
        elif self.chance(0.08):
            premise += " " + self.one_of(WORDS["settings"])
        follows = self.one_of([text for text in frame.entailed if re.search("%[ABab]", text)])
        texts = [
            fill(follows),
            fill(self.open_text(frame), exchanged=self.chance(0.5)),
            fill(follows, exchanged=True),
        ]
        pairs = [Pair(fill(premise), text, label, "reading") for label, text in enumerate(texts)]
        if self.chance(self.strange):
            pairs = self.reworded(pairs, groups)
        return [Item(pair, groups) for pair in pairs]

    def reworded(self, pairs: list[Pair], groups: tuple[str, str]) -> list[Pair]:
        """Put other words in place of some that all sentences share: what follows still follows, word for word."""
        if self.predicates is None:
            return pairs
        texts = [pairs[0].premise, *(pair.hypothesis for pair in pairs if pair.label != NEUTRAL)]
        common = set.intersection(*(set(_LONG_WORD.findall(text)) for text in texts))
        kept = {word for group in groups for word in re.findall(r"\w+", f"{group} {singular(group)}")}
        shared = [word for word in sorted(common - kept) if self.chance(0.6)]
        if not shared:
            return pairs
        new = {word: self.one_of(self.predicates.words) for word in shared}
        pattern = re.compile(rf"\b({'|'.join(map(re.escape, shared))})\b")

        def exchange(text: str) -> str:
            return pattern.sub(lambda found: new[found.group()], text)

        return [Pair(exchange(pair.premise), exchange(pair.hypothesis), pair.label, pair.source) for pair in pairs]


def make(count: int, seed: int, *, held: bool | None = False) -> list[Pair]:
    """Make about `count` items, a third of each label, of the frames of training, the held-out ones, or all (None)."""
    frames = frames_of(held=held)
    maker = Maker(seed)
    pairs: list[Pair] = []
    while len(pairs) < count:
        for at in maker.generator.permutation(len(frames)):
            pairs += [item.pair for item in maker.items(frames[int(at)])]
    return pairs[: count // 3 * 3]


def main() -> None:
    parser = argparse.ArgumentParser(description="Print some reading items.")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    frames = read_frames()
    print(f"{len(frames)} frames, {sum(map(is_held, range(len(frames))))} held out")
    for pair in make(args.count, args.seed, held=None):
        print(f"{LABELS[pair.label]:14}{pair.premise} -> {pair.hypothesis}")


if __name__ == "__main__":
    main()
