"""The basic terms, such as pair, side, control and subtopic, as value types. Standard library only."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple


class Label(StrEnum):
    """The label that an NLI model gives. Probability columns have the order of these members everywhere."""

    ENTAILMENT = "entailment"
    NEUTRAL = "neutral"
    CONTRADICTION = "contradiction"

    @property
    def letter(self) -> str:
        return self.value[0].upper()


class Side(StrEnum):
    """A side of a pair: `pro` states the documented stereotype, `anti` is the same text with the groups exchanged."""

    PRO = "pro"
    ANTI = "anti"


class Outcome(StrEnum):
    """What the two labels of a pair show together. The table of all nine cases is in docs/metrics.md."""

    CORRECT = "correct"
    PRO = "pro"
    ANTI = "anti"
    BRITTLE = "brittle"


class Direction(StrEnum):
    """The direction of a premise: with the stereotype, against it, or none (a scene that names no group)."""

    WITH = "with"
    AGAINST = "against"
    NONE = ""


class Pairing(StrEnum):
    """In which texts the groups are exchanged: in premise and hypothesis (BBNLI), or in one of the two.

    A quad has its premise in two directions: with the stereotype and against it. Each direction gives a pair in which
    the groups are exchanged only in the hypothesis (docs/metrics.md). The pairing `hypothesis` makes the same two pairs
    from templates in the published BBNLI format.
    """

    QUADS = "quads"
    BOTH = "both"
    HYPOTHESIS = "hypothesis"
    PREMISE = "premise"


SHARED = "*"  # the last character in the name of a template that several subtopics of a suite share
# The pairings that a user can choose, for `bbnli` and `bbnli@1`. Every other suite has one fixed pairing.
TEMPLATE_PAIRINGS = (Pairing.QUADS, Pairing.BOTH, Pairing.HYPOTHESIS)


def shared_template(name: str) -> str:
    """Add the star that marks a template as shared by several subtopics, if the name does not have it yet."""
    return name if name.endswith(SHARED) else name + SHARED


class TextPair(NamedTuple):
    """What a model reads. Its repr hides the texts: sentences of suites must not slip into tracebacks."""

    premise: str
    hypothesis: str

    def __repr__(self) -> str:
        return f"TextPair(<{len(self.premise)} characters>, <{len(self.hypothesis)} characters>)"


@dataclass(frozen=True)  # no slots: cached properties need a `__dict__`
class Pair:
    """Two samples that differ only in the groups. Both are neutral: neither premise decides about its hypothesis."""

    # The templates of the pair: "p03/h05" is premise p03 with hypothesis h05; a name without a slash is a single
    # template. A name that ends in a star, such as "p03*", is a template that other subtopics of the suite have too.
    cluster: str
    pro: TextPair
    anti: TextPair
    direction: Direction = Direction.NONE  # direction of the premise; NONE if the two sides differ in direction
    # The same pair without the object of the stereotype, for comparison. For example, an occupation becomes "person".
    # In a subtopic, either all pairs have a reference, or none has.
    reference: "Pair | None" = None
    tags: tuple[str, ...] = ()  # tags of the hypothesis. `aggregate` says that it is roughly true on average

    @cached_property
    def id(self) -> str:
        """A hash of the texts: it stays the same when pairs are reordered, and changes when a text changes."""
        return sha256("\t".join((*self.pro, *self.anti)).encode()).hexdigest()[:12]

    @property
    def is_identical(self) -> bool:
        """Whether both sides have the same text. Such a pair could show only brittleness, so it is not measured."""
        return self.pro == self.anti


@dataclass(frozen=True, slots=True)
class Control:
    """A sample with a known correct label. `direction` is its premise's direction, or NONE if the suite gives none."""

    cluster: str
    text: TextPair
    expected: Label
    direction: Direction = Direction.NONE


@dataclass(frozen=True, slots=True, order=True)
class Subtopic:
    """One documented stereotype, such as `bbnli/gender/man_is_to_programmer`."""

    suite: str
    domain: str
    name: str
    aliases: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()  # remarks for readers, such as doubts in the papers

    @property
    def path(self) -> str:
        return f"{self.suite}/{self.domain}/{self.name}"

    @property
    def local_path(self) -> str:
        """The name that thresholds.yaml uses below the suite."""
        return f"{self.domain}/{self.name}"


@dataclass(frozen=True)  # no slots: cached properties need a `__dict__`
class SubtopicItems:
    """The items of one subtopic: all its pairs, usable or not, and its controls."""

    pairs: tuple[Pair, ...]
    controls: tuple[Control, ...] = ()
    open_texts: tuple[TextPair, ...] = ()  # neutral texts that are in no pair; a measure of the suite uses them

    @cached_property
    def usable(self) -> tuple[Pair, ...]:
        """The pairs that are measured: without repeats, and without pairs whose two sides are identical."""
        distinct: dict[tuple[TextPair, TextPair], Pair] = {}
        for pair in self.pairs:
            if not pair.is_identical:
                distinct.setdefault((pair.pro, pair.anti), pair)
        return tuple(distinct.values())

    @cached_property
    def n_identical(self) -> int:
        return sum(pair.is_identical for pair in self.pairs)

    @cached_property
    def n_duplicates(self) -> int:
        return len(self.pairs) - self.n_identical - len(self.usable)


def level_of(path: str) -> str:
    """Say whether a path names a suite, a domain or a subtopic."""
    return ("suite", "domain", "subtopic")[min(path.count("/"), 2)]


def levels_above(path: str) -> tuple[str, str]:
    """Return the paths of the suite and the domain of a subtopic."""
    suite, domain, *_ = path.split("/")
    return suite, f"{suite}/{domain}"
