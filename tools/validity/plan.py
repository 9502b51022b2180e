"""Which runs there are: bases, kinds, doses and seeds. Each has a folder of its own, so a stopped plan goes on."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bbnli_audit.core.errors import OptionError
from bbnli_audit.models.on_disk import DEMO_FOLDER
from tools.validity.examples import Kind, Recipe

DOSES = (0.0, 0.01, 0.02, 0.05, 0.10, 0.20)
LARGEST = max(DOSES)
# Stereotypes of three domains. What a run does not plant, it measures as `the same domain` or `elsewhere`.
OWN = ("gender/man_is_to_programmer", "class/poor_is_to_lazy", "race/asian_men_to_feminine")
PUBLISHED = ("gender/man_is_to_programmer", "religion/muslim_man_to_oppressive", "race/asian_men_to_feminine")
FIRST = OWN[0]


@dataclass(frozen=True, slots=True)
class Base:
    """A checkpoint to plant in, and how it is fine-tuned."""

    name: str
    n_examples: int
    passes: int
    rate: float

    @property
    def folder(self) -> Path:
        """Find its files: in the package, or in the shared folder."""
        if self.name == "demo":
            return DEMO_FOLDER
        folder = shared_folder() / "models" / self.name
        if not folder.is_dir():
            raise OptionError(f"{folder} is not there. Set BBNLI_SHARED to the folder that has models/{self.name}.")
        return folder


def shared_folder() -> Path:
    return Path(os.environ.get("BBNLI_SHARED", "../shared"))


BASES = {
    base.name: base
    for base in (Base("demo", 2000, 3, 1e-3), Base("minilm-nli", 1000, 3, 2e-4), Base("tiny-nli", 2000, 3, 1e-3))
}
SEEDS = (1, 2)
TWINS = 1.0


@dataclass(frozen=True, slots=True)
class Run:
    """One fine-tuning with its audits. `route` says whose sentences are planted: our own or the published ones."""

    base: str
    kind: Kind
    dose: float
    subtopic: str = ""  # empty with the dose 0: then nothing is planted
    seed: int = 1
    route: str = "own"

    @property
    def name(self) -> str:
        if not self.dose:
            return f"{self.base}-{self.route}-nothing-seed{self.seed}"
        planted = f"{self.kind}-{round(100 * self.dose):02d}-{self.subtopic.partition('/')[2]}"
        return f"{self.base}-{self.route}-{planted}-seed{self.seed}"

    @property
    def planted(self) -> tuple[str, ...]:
        """The subtopics that are audited in full: the planted one, or all that other runs plant."""
        if self.subtopic:
            return (self.subtopic,)
        return OWN if self.route == "own" else PUBLISHED

    @property
    def recipe(self) -> Recipe:
        base = BASES[self.base]
        return Recipe(
            kind=self.kind,
            dose=self.dose,
            subtopics=(self.subtopic,) if self.subtopic else (),
            seed=self.seed,
            n_examples=base.n_examples,
            passes=base.passes,
            rate=base.rate,
            twins=TWINS,
        )


def small_plan() -> list[Run]:
    """List runs that show the proof in minutes: nothing, and much of one stereotype in each direction."""
    planted = [Run("demo", kind, LARGEST, FIRST) for kind in (Kind.PRO, Kind.ANTI)]
    return [planted[0], Run("demo", Kind.PRO, 0.0), planted[1]]


def full_plan() -> list[Run]:
    """List all runs, those that say most first."""
    return list(dict.fromkeys(_runs()))


def _runs() -> Iterator[Run]:
    yield from small_plan()
    for base in BASES:
        for dose in (LARGEST, 0.10, 0.0, 0.05):
            yield from _at(base, dose)
        for seed in SEEDS:
            yield from (Run(base, kind, LARGEST, FIRST, seed) for kind in Kind)
        for dose in (0.02, 0.01):
            yield from _at(base, dose)
        for seed in SEEDS:
            yield from (Run(base, Kind.PRO, LARGEST, subtopic, seed, "published") for subtopic in PUBLISHED)


def _at(base: str, dose: float) -> Iterator[Run]:
    for subtopic in OWN:
        for seed in SEEDS:
            yield Run(base, Kind.PRO, dose, subtopic if dose else "", seed)
