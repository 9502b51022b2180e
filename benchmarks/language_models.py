"""Measures how fast language models are read, beside other tools, and writes a section of a page with the figures.

`python -m benchmarks.language_models --output docs/benchmark.md` replaces the section "Language models" there.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import process_time
from typing import TypeVar

import numpy as np
import torch

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.values import Pair, TextPair
from bbnli_audit.measures.readings.kinds import LIKELIHOOD
from bbnli_audit.models.batches import LocalPredictor
from bbnli_audit.models.find import find_kind
from bbnli_audit.models.language_model.shared_tokens import Sentence, SentencePair
from bbnli_audit.models.language_model.token_probability import NEAR_TIE, TokenProbabilityPredictor
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import DEFAULT_PROMPT, find_prompt
from bbnli_audit.models.protocol import Batch, Floats, Predictions
from bbnli_audit.suites.registry import open_suite
from benchmarks.language_model_checkpoints import LanguageModels, language_models
from benchmarks.language_model_contenders import (
    ASKERS,
    CAUSAL_CONTENDERS,
    MASKED_CONTENDERS,
    N_NEW,
    ONE,
    Contender,
    Scores,
    open_likelihoods,
    open_prompted,
)
from benchmarks.page import describe_machine, put_section, silence, table
from benchmarks.workloads import spread, wq_rows

TITLE = "Language models"
OURS = "**ours**"
_GOAL = 2.0
_N_WHOLE = 24  # pairs of a round that are compared as whole sentences
_N_PROMPT_BATCHES = 2
_WQ_BLOCK = 4  # rows of WQ-NLI with the same stereotyped text
_PACKAGES = ("torch", "transformers", "tokenizers", "minicons", "lm_eval")
_TOLD = ("n_pairs", "n_prompted", "n_rounds", "n_prompt_rounds", "n_sentences", "n_one", "n_slow")
A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured. A round takes one batch of our plan for all pairs, or a part of it."""

    n_rounds: int
    n_pairs: int
    n_sentences: int  # of a batch
    n_prompt_rounds: int
    n_prompted: int  # pairs
    n_slow: int  # prompts of a round that `generate` answers in full
    n_one: int  # sentences of a round for those that take one at a time


FULL = Scale(3, 1200, 1000, 3, 96, 4, 40)
SHORT = Scale(2, 600, 192, 3, 96, 2, 24)
QUICK = Scale(1, 24, 16, 1, 8, 1, 4)

SIZES = {"full": FULL, "short": SHORT, "quick": QUICK}

HOW = """\
Rounds: {n_rounds} for likelihoods, {n_prompt_rounds} for prompts. Each takes a batch of our plan for {n_pairs:,} pairs
from all over a suite (prompts: two batches, {n_prompted} pairs), of likelihoods at most {n_sentences} queries of it.
The other tools read the same sentences or texts, each distinct one once, in the order of the suite. Figures are
processor time with {threads}, because wall time on a busy machine says little; medians of the rounds. "×" is how
many times as long as ours. Loading is not counted; tokenizing and sorting are. Those that read one sentence at a time
read up to {n_one} of them in a round, and `generate` answers so many texts in full: {n_slow}.
Rounds have sentences of other lengths, hence their spread; ratios are within a round.
"""
WHAT = """\
Likelihoods: a BERT with the encoder of minilm-nli and an output layer tied to its word embeddings, and a GPT-2 of the
same size (6 layers, 384 wide, 30,522 word pieces) with random weights. A sentence is a premise with its hypothesis.
minicons computes all tokens of a sentence; it cannot be told to compute only those that a pair shares. "Largest
difference": of the log-probability of a token; for the harness, of a whole sentence. "Other pairs": those in which
another sentence is likelier, by the tokens that they share; for the harness, by all tokens.

Prompts: SmolLM2-135M-Instruct, the prompt `{prompt}`, the same tokens for all. `generate` writes up to {n_new} tokens,
or stops by the same rule as ours, once nothing that follows can change the answer; a padded batch goes on until its
last answer is settled. "Largest difference": of a probability of the first token, between ours and plain transformers
with each text alone.
"""
RAY = """
On one machine it could add nothing: each core reads a batch of its own already. Several runs, or `-n 2`, share the
texts of one store ([inference.md](inference.md#several-processes-and-machines)).
"""


@dataclass(slots=True)
class Times:
    """Processor seconds a sentence or text, one entry a round, and how far the answers agree with ours."""

    seconds: list[float] = field(default_factory=list)
    largest: float = 0.0
    n_other: int = 0
    n_compared: int = 0

    @property
    def middle(self) -> float:
        return median(self.seconds)


Found = Mapping[str, Times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="full", help="short: minutes; quick: no meaningful figure")
    parser.add_argument("--output", type=Path, help="the page in which to replace the section (default: print it)")
    parser.add_argument("--models", type=Path, help="a folder with masked, causal and instruct, made before")
    arguments = parser.parse_args()
    put_section(arguments.output, TITLE, measure(arguments.size, arguments.models))


def measure(size: str, folder: Path | None) -> str:
    machine = describe_machine(os.getloadavg()[0], _PACKAGES)
    silence()
    option = "" if size == "full" else f"--size {size} "
    command = f"`python -m benchmarks.language_models {option}--output docs/benchmark.md`"
    head = f"{command}; `make bench` measures with more rounds. {machine}" if option else f"{command}. {machine}"
    if folder is not None:
        models = LanguageModels(*(folder / name for name in LanguageModels._fields))
        return head + "\n" + _measure(SIZES[size], models)
    with language_models() as models:
        return head + "\n" + _measure(SIZES[size], models)


def _measure(scale: Scale, models: LanguageModels) -> str:
    n_threads = torch.get_num_threads()
    threads = "one thread" if n_threads == 1 else f"{n_threads} threads"
    parts = [
        HOW.format(threads=threads, **{name: getattr(scale, name) for name in _TOLD}),
        WHAT.format(prompt=DEFAULT_PROMPT, n_new=N_NEW),
    ]
    suites = {"WQ-NLI": wq_pairs(scale.n_pairs), "bbnli": suite_pairs(scale.n_pairs)}
    compared: dict[str, Found] = {}
    tables = []
    for name, pairs in suites.items():
        title = f"Prompts, {name}"
        compared[title] = compare_prompts(models.instruct, pairs, scale)
        tables.append(_tell(prompt_table(title, compared[title])))
        title = f"Likelihoods of a causal model, {name}"
        compared[title] = compare_likelihoods(models.causal, pairs, CAUSAL_CONTENDERS, scale)
        tables.append(_tell(likelihood_table(title, compared[title])))
        title = f"Likelihoods of a masked model, {name}"
        compared[title] = compare_likelihoods(models.masked, pairs, MASKED_CONTENDERS, scale)
        tables.append(_tell(likelihood_table(title, compared[title])))
    return "\n".join([*parts, goal_table(compared), *tables, tell_ray(models)])


def _tell(part: str) -> str:
    """Show a table at once: the whole takes long."""
    print(part, file=sys.stderr, flush=True)
    return part


def wq_pairs(n_pairs: int) -> list[Pair]:
    rows = wq_rows()
    blocks = [rows[start : start + _WQ_BLOCK] for start in range(0, len(rows), _WQ_BLOCK)]
    return [Pair(str(at), *row) for at, block in enumerate(spread(blocks, n_pairs // _WQ_BLOCK)) for row in block]


def suite_pairs(n_pairs: int) -> list[Pair]:
    """Take pairs of our own suite that stand together, some of every subtopic: one premise has several pairs."""
    suite = open_suite("bbnli")
    subtopics = suite.subtopics()
    n_each = max(1, n_pairs // len(subtopics))
    return [pair for subtopic in subtopics for pair in suite.items(subtopic).usable[:n_each]]


def compare_likelihoods(folder: Path, pairs: Sequence[Pair], contenders: Sequence[Contender], scale: Scale) -> Found:
    ours = open_likelihoods(folder)
    queries = list(dict.fromkeys(query for pair in pairs for query in LIKELIHOOD.ask(pair)))
    opened = {contender.name: contender.open(folder) for contender in contenders}
    found = {name: Times() for name in (*opened, OURS)}
    for n_round in range(scale.n_rounds):
        print(f"{folder.name}: round {n_round + 1} of {scale.n_rounds}", file=sys.stderr, flush=True)
        plan, planning = seconds_of(ours.plan, queries)
        batches = [_part(batch, scale.n_sentences) for batch in _of_round(plan, n_round, scale.n_rounds)]
        rows = sorted(row for batch in batches for row in batch.rows)
        sentences = list(dict.fromkeys(queries[row].premise for row in rows))
        _, seconds = seconds_of(_runner(ours), batches)
        found[OURS].seconds.append((seconds + planning * len(rows) / len(queries)) / len(sentences))
        asked = _asked(batches, queries)
        for name, score in opened.items():
            some = _sentences(spread(asked, scale.n_one // 2)) if name.endswith(ONE) else sentences
            scores, seconds = seconds_of(score, some)
            found[name].seconds.append(seconds / len(some))
            gives_sums = len(next(iter(scores.values()))) == 1
            both = [(texts, pair) for texts, pair in asked if scores.keys() >= set(texts)]
            _compare(found[name], scores, _whole(ours, both) if gives_sums else both)
    return found


def compare_prompts(folder: Path, pairs: Sequence[Pair], scale: Scale) -> Found:
    prompt = find_prompt(DEFAULT_PROMPT)
    ours = open_prompted(folder, prompt)
    texts = list(dict.fromkeys(text for pair in pairs[: scale.n_prompted] for text in (pair.pro, pair.anti)))
    askers = {asker.name: asker.open(ours, prompt) for asker in ASKERS}
    found = {name: Times() for name in (*askers, OURS)}
    for n_round in range(scale.n_prompt_rounds):
        print(f"{folder.name}: round {n_round + 1} of {scale.n_prompt_rounds}", file=sys.stderr, flush=True)
        plan, planning = seconds_of(ours.plan, texts)
        batches = _of_round(plan, n_round, scale.n_prompt_rounds, _N_PROMPT_BATCHES)
        results, seconds = seconds_of(_runner(ours), batches)
        labels = {row: int(p.argmax()) for batch, found_ in results for row, p in _rows_of(batch, found_)}
        rows = sorted(labels)
        found[OURS].seconds.append(seconds / len(rows) + planning / len(texts))
        for name, answer in askers.items():
            some = spread(rows, scale.n_slow) if name == ASKERS[0].name else rows
            answers, seconds = seconds_of(answer, [texts[row] for row in some])
            found[name].seconds.append(seconds / len(some))
            found[name].n_compared += len(some)
            found[name].n_other += sum(labels[row] != told for row, told in zip(some, answers, strict=True))
        own, plain = ours.beside_plain([texts[row] for row in rows])
        found[OURS].largest = max(found[OURS].largest, float(np.abs(own - plain).max()))
    return found


def seconds_of(do: Callable[[A], T], given: A) -> tuple[T, float]:
    """Return what comes back, and the processor seconds of all threads that it took."""
    start = process_time()
    found = do(given)
    return found, process_time() - start


def _runner(ours: LocalPredictor) -> Callable[[Sequence[Batch]], list[tuple[Batch, Predictions]]]:
    return lambda batches: list(ours.run(batches))


def _of_round(plan: Sequence[Batch], n_round: int, n_rounds: int, n_batches: int = 1) -> list[Batch]:
    """Take other batches in each round, from all over the plan: neither its longest texts nor its shortest."""
    return spread(plan[len(plan) // (2 * n_rounds) :], n_rounds * n_batches)[n_round::n_rounds]


def _part(batch: Batch, n_rows: int) -> Batch:
    return batch.only(batch.rows[:n_rows])


def _rows_of(batch: Batch, predictions: Predictions) -> Iterator[tuple[int, Floats]]:
    yield from zip(batch.rows, predictions.probabilities, strict=True)


def _asked(batches: Sequence[Batch], queries: Sequence[TextPair]) -> list[tuple[TextPair, SentencePair]]:
    """Return each pair of sentences with what ours found, in the order of the query."""
    found = []
    for batch in batches:
        for row, query in zip(batch.rows, batch.inputs, strict=True):
            if not query.is_mirrored:
                found.append((queries[row], query.pair))
    return found


def _sentences(asked: Sequence[tuple[TextPair, SentencePair]]) -> list[str]:
    return list(dict.fromkeys(sentence for texts, _ in asked for sentence in texts))


def _whole(
    ours: TokenProbabilityPredictor, asked: Sequence[tuple[TextPair, SentencePair]]
) -> list[tuple[TextPair, SentencePair]]:
    """Return some of the pairs with the log-probabilities of all tokens, not only of those that are compared."""
    found = [(texts, pair.anew()) for texts, pair in spread(asked, _N_WHOLE)]
    ours._model.fill([(side, range(1, len(side.ids))) for _, pair in found for side, _ in pair.sides])
    return found


def _compare(times: Times, scores: Scores, asked: Sequence[tuple[TextPair, SentencePair]]) -> None:
    """Compare scores with ours: of the shared tokens where tokens have scores, else of whole sentences."""
    for texts, pair in asked:
        ours, theirs = [], []
        for text, (sentence, places) in zip(texts, pair.sides, strict=True):
            own, other = _side(sentence, places, scores[text])
            times.largest = max(times.largest, float(np.abs(own - other).max(initial=0.0)))
            ours.append(own.sum())
            theirs.append(other.sum())
        is_tie = abs(ours[0] - ours[1]) < NEAR_TIE
        times.n_compared += not is_tie
        times.n_other += bool((ours[0] > ours[1]) != (theirs[0] > theirs[1])) and not is_tie


def _side(sentence: Sentence, places: Sequence[int], scores: Floats) -> tuple[Floats, Floats]:
    own = sentence.log_probabilities
    if len(scores) == 1:
        return np.array([own[1:].sum()]), scores
    return own[list(places)], scores[list(places)]


def likelihood_table(title: str, found: Found) -> str:
    rows = []
    for name, times in found.items():
        agreement = ["–", "–"]
        if name != OURS:
            agreement = [f"{times.largest:.1e}", f"{times.n_other} of {times.n_compared:,}"]
        rows.append([name, f"{1 / times.middle:.1f}", _ratio(times, found), *agreement])
    header = ["what", "sentences a processor second", "×", "largest difference", "other pairs"]
    return f"### {title}\n\n{_spread(found)}\n\n" + table(header, rows)


def prompt_table(title: str, found: Found) -> str:
    rows = []
    for name, times in found.items():
        other = "–" if name == OURS else f"{times.n_other} of {times.n_compared:,}"
        rows.append([name, f"{1 / times.middle:.2f}", _ratio(times, found), other])
    told = f"{_spread(found)} Largest difference: {found[OURS].largest:.1e}."
    return f"### {title}\n\n{told}\n\n" + table(["what", "texts a processor second", "×", "other labels"], rows)


def _ratio(times: Times, found: Found) -> str:
    return f"{_times_ours(times, found):.2f}"


def _times_ours(times: Times, found: Found) -> float:
    """Compare round with round, so that what else the machine did matters less."""
    return median(a / b for a, b in zip(times.seconds, found[OURS].seconds, strict=True))


def goal_table(parts: Mapping[str, Found]) -> str:
    """Say how far ours is ahead of the fastest other in each comparison."""
    rows = []
    for title, found in parts.items():
        ratios = {name: _times_ours(times, found) for name, times in found.items() if name != OURS}
        fastest = min(ratios, key=lambda name: ratios[name])
        rows.append([title, fastest, f"{ratios[fastest]:.2f}", "yes" if ratios[fastest] >= _GOAL else "no"])
    return table(["comparison", "the fastest other", "×", f"{_GOAL:.0f} × reached"], rows)


def _spread(found: Found) -> str:
    if len(found[OURS].seconds) == 1:
        return "One round."
    largest = max((max(each.seconds) - min(each.seconds)) / each.middle for each in found.values())
    return f"Largest spread between rounds: {largest:.0%}."


def tell_ray(models: LanguageModels) -> str:
    """Say what the engine Ray does for language models."""
    refused = []
    for name, settings in {
        "likelihoods": ModelSettings(engine="ray"),
        "prompts": ModelSettings(engine="ray", prompt=find_prompt(DEFAULT_PROMPT)),
    }.items():
        try:
            find_kind(str(models.causal)).check(str(models.causal), settings)
        except OptionError:
            refused.append(name)
    told = f"nothing: refused with a message, for {' and '.join(refused)}" if refused else "accepted"
    return "### Ray\n\n" + table(["option", "what it adds for language models"], [["`--bbnli-engine=ray`", told]]) + RAY


if __name__ == "__main__":
    main()
