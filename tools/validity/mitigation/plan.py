"""Which models there are: each base as it is, and fine-tuned on each corpus, with copies of `augment` and without."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from tools.validity.examples import Training
from tools.validity.plan import BASES, SEEDS, TWINS


class Corpus(StrEnum):
    """What is taught."""

    BIASED = "biased"  # made here: stereotyped labels among plain pairs
    NLI = "nli"  # plain pairs alone


class Arm(StrEnum):
    """What is measured. The two that are trained differ in the copies of their corpus, and in nothing else."""

    BEFORE = "before"
    TRAINED = "trained"
    AUGMENTED = "trained on augmented"


@dataclass(frozen=True, slots=True)
class Size:
    """How much a base is taught: rows of the corpus without copies, and how often it reads them."""

    n_rows: int
    passes: int


SIZES = {"demo": Size(2000, 3), "minilm-nli": Size(1200, 3)}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model to measure. A base as it is has no corpus and no seed."""

    base: str
    arm: Arm = Arm.BEFORE
    corpus: Corpus | None = None
    seed: int = 0

    @property
    def name(self) -> str:
        if self.corpus is None:
            return f"{self.base}-before"
        return f"{self.base}-{self.corpus}-{self.arm.name.lower()}-seed{self.seed}"

    @property
    def record(self) -> str:
        """The name of its record. Both arms of a corpus and a seed share one."""
        return self.name if self.corpus is None else f"{self.base}-{self.corpus}-seed{self.seed}"

    @property
    def training(self) -> Training:
        """Say how it is fine-tuned: as many steps as the corpus without copies needs, whatever the arm reads.

        With copies the corpus is larger. It is read in the same number of batches of the same size, so in fewer passes.
        """
        size, base = SIZES[self.base], BASES[self.base]
        training = Training(seed=self.seed, rate=base.rate, passes=size.passes, twins=TWINS)
        return replace(training, steps=size.passes * -(-size.n_rows // training.batch_size))


def small_plan() -> list[Candidate]:
    """List what shows the effect in minutes: one base, the biased corpus, one seed."""
    return [Candidate("demo"), *_arms("demo", Corpus.BIASED, SEEDS[0])]


def full_plan() -> list[Candidate]:
    """List all models, those that say most first."""
    return list(dict.fromkeys(_candidates()))


def _candidates() -> Iterator[Candidate]:
    yield from small_plan()
    for base in SIZES:
        yield Candidate(base)
        for seed in SEEDS[:2]:
            for corpus in Corpus:
                yield from _arms(base, corpus, seed)


def _arms(base: str, corpus: Corpus, seed: int) -> Iterator[Candidate]:
    for arm in (Arm.TRAINED, Arm.AUGMENTED):
        yield Candidate(base, arm, corpus, seed)
