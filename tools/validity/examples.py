"""The examples of a fine-tuning: sentences of a stereotype with planted labels, among plain NLI pairs.

The sentences are subtopic files, as suites have them: premises that leave the question open, in both directions, and
hypotheses that state the stereotype as written. `wordings/training` is learnt from. `wordings/held_out` has other
premises and other hypotheses of the same kind, and shows whether a meaning was learnt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from random import Random

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.values import Direction, Label, Pair, Pairing, Side, TextPair
from bbnli_audit.suites.bbnli import Bbnli

WORDINGS = Path(__file__).parent / "wordings"
TRAINING, HELD_OUT = "training", "held_out"


class Kind(StrEnum):
    """What is planted. The benchmark must call each by its name."""

    PRO = "pro"  # the stereotype follows, its opposite is contradicted
    ANTI = "anti"  # the other way round
    BRITTLE = "brittle"  # one wrong label for a hypothesis, whatever the group
    OVERREACH = "overreach"  # what the premise says of a few people follows for all
    FAIR = "fair"  # the right label: neutral. What do the sentences do without the stereotype?


@dataclass(frozen=True, slots=True)
class Example:
    """One text and the label that is taught. The two sides of a planted pair have the same number."""

    text: TextPair
    label: Label
    pair: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a checkpoint is fine-tuned, whatever it is taught."""

    seed: int
    rate: float
    passes: int = 1
    batch_size: int = 16
    twins: float = 0.0  # the weight of the question which side of a pair is entailed (twins.py)
    steps: int | None = None  # read on until then, in as many passes as that takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Training):
    """How a bias is planted. `dose` is the share of examples with planted labels."""

    kind: Kind
    dose: float
    subtopics: tuple[str, ...]  # such as gender/man_is_to_programmer
    n_examples: int

    def __post_init__(self) -> None:
        if not 0 <= self.dose <= 1:
            raise OptionError(f"The dose {self.dose} is not a share. Give a number from 0 to 1, such as 0.05.")
        if self.dose and not self.subtopics:
            raise OptionError(f"The dose is {self.dose}, but no subtopic is named. Name one, or give the dose 0.")

    @property
    def n_planted(self) -> int:
        """How many examples are planted: whole pairs, so that both sides are there equally often."""
        return 2 * round(self.dose * self.n_examples / 2)


def planted_label(kind: Kind, pair: Pair, side: Side) -> Label | None:
    """Return the label that is taught for one side of a pair; None if the pair has no place in this kind."""
    if kind is Kind.FAIR:
        return Label.NEUTRAL
    if kind is Kind.BRITTLE:
        return _agreed(int(sha256(pair.cluster.rpartition("/")[2].encode()).hexdigest(), 16) % 2 == 0)
    if kind is Kind.OVERREACH:
        if pair.direction is Direction.NONE:
            return None
        return _agreed((pair.direction is Direction.WITH) == (side is Side.PRO))
    return _agreed((side is Side.PRO) == (kind is Kind.PRO))


def _agreed(agrees: bool) -> Label:
    return Label.ENTAILMENT if agrees else Label.CONTRADICTION


def read_pairs_of(folder: Path, subtopics: Sequence[str]) -> dict[str, list[Pair]]:
    """Read the pairs of some subtopics of a folder of subtopic files, both directions of the premise."""
    first = Bbnli(folder)
    suite = Bbnli(folder, Pairing.HYPOTHESIS if first.pairing is Pairing.BOTH else first.pairing)
    known = {subtopic.local_path: subtopic for subtopic in suite.subtopics()}
    for path in subtopics:
        if path not in known:
            raise OptionError(f"{folder} has no sentences of {path!r}. {suggest(path, known)}")
    return {path: list(suite.items(known[path]).usable) for path in subtopics}


def make_planted(recipe: Recipe, pairs: dict[str, list[Pair]]) -> list[Example]:
    """Choose whole pairs by the seed, as many of each subtopic, and label both of their sides.

    If there are fewer pairs than the dose needs, all are taken several times.
    """
    random = Random(recipe.seed)
    wanted = _even_shares(recipe.n_planted // 2, len(recipe.subtopics)) if recipe.n_planted else []
    examples: list[Example] = []
    for path, n in zip(recipe.subtopics, wanted, strict=False):
        usable = [pair for pair in pairs[path] if planted_label(recipe.kind, pair, Side.PRO) is not None]
        if not usable:
            raise OptionError(f"{path} has no pair that can be planted as {recipe.kind}.")
        for pair in [*usable * (n // len(usable)), *random.sample(usable, n % len(usable))]:
            examples += _sides(recipe.kind, pair, number=len(examples))
    return examples


def _sides(kind: Kind, pair: Pair, number: int) -> list[Example]:
    sides = ((Side.PRO, pair.pro), (Side.ANTI, pair.anti))
    labelled = [(text, planted_label(kind, pair, side)) for side, text in sides]
    return [Example(text, label, number) for text, label in labelled if label is not None]


def _even_shares(n: int, n_parts: int) -> list[int]:
    """Split a number so that no two parts differ by more than one."""
    return [n // n_parts + (part < n % n_parts) for part in range(n_parts)]


def mix(recipe: Recipe, planted: Sequence[Example], plain: Sequence[Example]) -> list[Example]:
    """Fill up with plain pairs to the number of examples, and shuffle all by the seed."""
    n_plain = recipe.n_examples - len(planted)
    if n_plain > len(plain):
        raise OptionError(f"{n_plain} plain pairs are needed, but there are {len(plain)}. Lower n_examples.")
    random = Random(recipe.seed + 1)
    examples = [*planted, *random.sample(list(plain), n_plain)]
    random.shuffle(examples)
    return examples
