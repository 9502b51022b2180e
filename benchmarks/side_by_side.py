"""Contenders on the same checkpoint and the same texts, in interleaved rounds."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import torch
from transformers import AutoTokenizer

from bbnli_audit.core.values import Label, TextPair
from benchmarks.contenders import LOOP, Contender, Opened
from benchmarks.gemm import GemmMeter, read_shape
from benchmarks.workloads import Workload, spread


@dataclass(slots=True)
class Score:
    """What one contender did: useful operations a second, one entry a round."""

    rates: list[float] = field(default_factory=list)
    n_tokens: int = 0  # real ones
    n_computed: int | None = None  # with padding; None where they cannot be counted
    labels: dict[TextPair, Label] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return median(self.rates)

    @property
    def padding(self) -> float | None:
        return None if self.n_computed is None else self.n_computed / self.n_tokens - 1

    @property
    def spread(self) -> float:
        """Between the rounds, relative to their median."""
        return (max(self.rates) - min(self.rates)) / self.rate


@dataclass(frozen=True, slots=True)
class Comparison:
    workload: Workload
    scores: Mapping[str, Score]
    strides: Mapping[str, int]
    gemm_rates: tuple[float, float]  # one thread with all cores, one thread a core
    flop_a_text: float
    mean_tokens: float

    @property
    def limit(self) -> float:
        return max(self.gemm_rates) / self.flop_a_text

    def texts_a_second(self, contender: Contender) -> float:
        return self.scores[contender.name].rate / self.flop_a_text

    def share_of_limit(self, contender: Contender) -> float:
        return self.scores[contender.name].rate / max(self.gemm_rates)

    def ratio(self, contender: Contender, other: Contender) -> float | None:
        if other.name not in self.scores:
            return None
        return self.scores[contender.name].rate / self.scores[other.name].rate

    def row_ratio(self, contender: Contender) -> float:
        """Compare the time for the rows of the file: the loop predicts each row's texts, we the distinct ones once."""
        ratio = self.ratio(contender, LOOP)
        assert ratio is not None
        return ratio * len(self.workload.loop_texts) / len(self.workload.texts)

    def label_differences(self, contender: Contender) -> tuple[int, int]:
        """Say how many labels differ from the loop's, and how many were compared."""
        found, reference = self.scores[contender.name].labels, self.scores[LOOP.name].labels
        common = found.keys() & reference.keys()
        return sum(found[text] is not reference[text] for text in common), len(common)


class _TokenCounter:
    """Counts the tokens that a model looks up, padding and repetitions included."""

    def __init__(self, module: torch.nn.Module) -> None:
        embeddings = [part for part in module.modules() if isinstance(part, torch.nn.Embedding)]
        words = max(embeddings, key=lambda part: part.num_embeddings)
        words.register_forward_pre_hook(lambda _, args: self._seen.append(args[0].numel()))
        self._seen: list[int] = []  # threads append to it

    def take(self) -> int:
        n_tokens = sum(self._seen)
        self._seen.clear()
        return n_tokens


def compare(workload: Workload, strides: Mapping[Contender, int], n_rounds: int, n_check: int) -> Comparison:
    """Run rounds.

    Args:
        workload: What to run.
        strides: The contenders; 1 runs all texts in each round, 3 every third batch, another third in the next round.
            Speed is counted in useful operations, so that a share with somewhat longer texts is not a slower one.
        n_rounds: How often.
        n_check: Before that, every contender labels so many texts, the same ones.
    """
    shape = read_shape(workload.folder)
    lengths = _count_tokens(workload)
    meter = GemmMeter(shape)
    runners = {contender: _Runner(contender, workload, lengths) for contender in strides}
    scores = {contender.name: runners[contender].score for contender in strides}
    sample = spread(workload.texts, n_check)
    for runner in runners.values():
        runner.check(sample)
    for n_round in range(n_rounds):
        print(f"{workload.title}: round {n_round + 1} of {n_rounds}", file=sys.stderr, flush=True)
        for contender, runner in runners.items():
            meter.measure()
            texts = runner.choose(n_round, strides[contender])
            runner.score.rates.append(sum(shape.flop(lengths[text]) for text in texts) / runner.run(texts))
    of_workload = [lengths[text] for text in workload.texts]
    return Comparison(
        workload,
        scores,
        {contender.name: stride for contender, stride in strides.items()},
        meter.rates,
        sum(map(shape.flop, of_workload)) / len(of_workload),
        sum(of_workload) / len(of_workload),
    )


class _Runner:
    """A contender, opened on a workload."""

    def __init__(self, contender: Contender, workload: Workload, lengths: Mapping[TextPair, int]) -> None:
        self._opened: Opened = contender.open(workload.folder)
        self._lengths = lengths
        self._texts = workload.loop_texts if contender is LOOP else workload.texts
        self._batches = self._opened.cut(self._texts)
        self._counter = None if self._opened.module is None else _TokenCounter(self._opened.module)
        self.score = Score(n_computed=None if self._counter is None else 0)

    def choose(self, n_round: int, stride: int) -> list[TextPair]:
        stride = min(stride, len(self._batches))
        rows = [row for batch in self._batches[n_round % stride :: stride] for row in batch]
        return [self._texts[row] for row in sorted(rows)]

    def check(self, texts: Sequence[TextPair]) -> None:
        self.score.labels.update(zip(texts, self._opened.predict(texts), strict=True))
        if self._counter is not None:
            self._counter.take()

    def run(self, texts: Sequence[TextPair]) -> float:
        start = perf_counter()
        labels = self._opened.predict(texts)
        seconds = perf_counter() - start
        self.score.labels.update(zip(texts, labels, strict=True))
        self.score.n_tokens += sum(self._lengths[text] for text in texts)
        if self._counter is not None:
            self.score.n_computed = (self.score.n_computed or 0) + self._counter.take()
        return seconds


def _count_tokens(workload: Workload) -> dict[TextPair, int]:
    tokenizer = AutoTokenizer.from_pretrained(workload.folder)
    texts = workload.texts
    encoded = tokenizer([text.premise for text in texts], [text.hypothesis for text in texts])
    return {text: len(ids) for text, ids in zip(texts, encoded["input_ids"], strict=True)}
