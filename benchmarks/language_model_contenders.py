"""The ways to read a language model that are compared, each opened on a checkpoint's folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import chunks
from bbnli_audit.models.find import find_model
from bbnli_audit.models.language_model.forms import form_of
from bbnli_audit.models.language_model.generative import GenerativePredictor
from bbnli_audit.models.language_model.token_probability import TokenProbabilityPredictor
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import Prompt

BATCH_SIZE = 32  # of sentences that a causal model reads
MASKED_BATCH_SIZE = 8  # of sentences of which a masked model reads a copy for each token
PROMPTS_AT_ONCE = 16  # as many as ours
N_NEW = 64
ONE = "one sentence"

Scores = dict[str, np.ndarray[Any, np.dtype[np.float64]]]  # of each sentence: of its tokens, or one sum
ScoreSentences = Callable[[Sequence[str]], Scores]
Answer = Callable[[Sequence[TextPair]], list[int]]  # the likeliest column of each text


class Contender(NamedTuple):
    name: str
    open: Callable[[Path], ScoreSentences]


class Asker(NamedTuple):
    name: str
    open: Callable[["GenerativePredictor", Prompt], Answer]


def open_likelihoods(folder: Path) -> TokenProbabilityPredictor:
    opened = find_model(str(folder), ModelSettings()).open()
    assert isinstance(opened, TokenProbabilityPredictor)
    return opened


def open_prompted(folder: Path, prompt: Prompt) -> GenerativePredictor:
    opened = find_model(str(folder), ModelSettings(prompt=prompt)).open()
    assert isinstance(opened, GenerativePredictor)
    return opened


def _open_minicons(folder: Path, *, is_causal: bool, batch_size: int) -> ScoreSentences:
    from minicons import scorer

    family: Any = scorer.IncrementalLMScorer if is_causal else scorer.MaskedLMScorer
    opened = family(str(folder), "cpu")

    def prepare(sentences: Sequence[str]) -> Any:
        if is_causal:
            return opened.prepare_text(list(sentences), bos_token=True)
        # Given tokens: its own call of a masked model's tokenizer is one that transformers 5 no longer has.
        return opened.prepare_text(opened.tokenizer(list(sentences), padding=True, return_tensors="pt"))

    def score(sentences: Sequence[str]) -> Scores:
        found: Scores = {}
        for some in chunks(sentences, batch_size):
            rows = opened.compute_stats(prepare(some))
            # Nothing is known of the first token, which the model starts from.
            found |= {each: np.array([np.nan, *row]) for each, row in zip(some, rows, strict=True)}
        return found

    return score


def _open_harness(folder: Path, batch_size: int) -> ScoreSentences:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    opened: Any = HFLM(pretrained=str(folder), device="cpu", dtype="float32", batch_size=batch_size)

    def score(sentences: Sequence[str]) -> Scores:
        asked = [Instance("loglikelihood", {}, ("", each), at) for at, each in enumerate(sentences)]
        found = opened.loglikelihood(asked, disable_tqdm=True)
        return {each: np.array([total]) for each, (total, _) in zip(sentences, found, strict=True)}

    return score


MASKED_CONTENDERS = (
    Contender(f"minicons, {ONE}", lambda folder: _open_minicons(folder, is_causal=False, batch_size=1)),
    Contender(
        f"minicons, batches of {MASKED_BATCH_SIZE}",
        lambda folder: _open_minicons(folder, is_causal=False, batch_size=MASKED_BATCH_SIZE),
    ),
)
CAUSAL_CONTENDERS = (
    Contender(f"minicons, {ONE}", lambda folder: _open_minicons(folder, is_causal=True, batch_size=1)),
    Contender(
        f"minicons, batches of {BATCH_SIZE}",
        lambda folder: _open_minicons(folder, is_causal=True, batch_size=BATCH_SIZE),
    ),
    Contender(f"lm-evaluation-harness, {ONE}", lambda folder: _open_harness(folder, 1)),
    Contender(f"lm-evaluation-harness, batches of {BATCH_SIZE}", lambda folder: _open_harness(folder, BATCH_SIZE)),
)


class _Settled:
    """Stops a row once its answer is settled, as ours does."""

    def __init__(self, is_settled: Callable[[str], bool], decode: Callable[[Sequence[int]], str], n_read: int) -> None:
        self._is_settled, self._decode, self._n_read = is_settled, decode, n_read

    def __call__(self, ids: torch.Tensor, _scores: object, **_options: object) -> torch.Tensor:
        rows = [self._is_settled(self._decode(row)) for row in ids[:, self._n_read :].tolist()]
        return torch.tensor(rows, dtype=torch.bool)


def _open_generate(ours: GenerativePredictor, prompt: Prompt, n_at_once: int, *, stops: bool) -> Answer:
    """Ask the model that ours has loaded, with the same tokens, by plain `generate`."""
    model: Any = ours._model
    encoder, form, pad = ours._prompts, form_of(prompt), 0

    def answer(texts: Sequence[TextPair]) -> list[int]:
        found = []
        for some in chunks(texts, n_at_once):
            rows = [encoder.encode(text).ids for text in some]
            width = max(map(len, rows))
            ids = torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows])
            mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
            rule = [_Settled(form.is_settled, encoder.text_of, width)] if stops else []
            with torch.inference_mode():
                written = model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    max_new_tokens=N_NEW,
                    do_sample=False,
                    pad_token_id=pad,
                    stopping_criteria=rule,
                )
            told = [encoder.text_of(row) for row in written[:, width:].tolist()]
            found += [int(np.argmax(form.row_of_text(text))) for text in told]
        return found

    return answer


ASKERS = (
    Asker(f"generate, one text, {N_NEW} tokens", lambda ours, prompt: _open_generate(ours, prompt, 1, stops=False)),
    Asker("generate, one text, until it is settled", lambda ours, prompt: _open_generate(ours, prompt, 1, stops=True)),
    Asker(
        f"generate, {PROMPTS_AT_ONCE} texts padded, until settled",
        lambda ours, prompt: _open_generate(ours, prompt, PROMPTS_AT_ONCE, stops=True),
    ),
)
