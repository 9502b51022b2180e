"""Masked and causal language models: in which of two sentences are the tokens that both share likelier?

A query is a sentence and its counterpart. A sentence's score is the sum of its shared tokens' log-probabilities. The
prediction of a query is the softmax over the two scores; the third column is 0.
"""

from collections.abc import Sequence
from math import exp, isfinite
from pathlib import Path
from typing import NamedTuple

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.adapter import Parts
from bbnli_audit.models.batches import LocalPredictor, cut_by_tokens, cut_in_order
from bbnli_audit.models.checkpoint import check_contents, hash_contents, heads_of, read_config
from bbnli_audit.models.explanation import Explanation, show_tokens
from bbnli_audit.models.language_model.scoring import LanguageModel
from bbnli_audit.models.language_model.shared_tokens import SentencePair, in_order, pair_up
from bbnli_audit.models.loading import WHOLE_MACHINE, Share
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.protocol import NOT_FINITE, Batch, Floats, ModelSource, Predictions, hash_remains

MASKED, CAUSAL = "masked-lm", "causal-lm"
SEQ2SEQ = "seq2seq-lm"  # encoder-decoder models can be asked, but have no likelihoods to compare
LABELS = ("likelier", "not_likelier")
# How scores are computed: part of the fingerprint, so that scores computed differently are not reused.
SCHEME = "token-probability 3"

# Pre-training heads that include a head for masked words. The pre-training heads of Electra and Funnel include none.
_FAMILIES = ("Albert", "Bert", "BigBird", "Ernie", "FNet", "MegatronBert", "MobileBert")
_WITH_MASKED_HEAD = frozenset(f"{family}ForPreTraining" for family in _FAMILIES)
# Two scores that differ by less than this are computed again, alone. Rounding changes a score by a few millionths, or
# by a few hundred-thousandths if sentences are read together.
NEAR_TIE = 1e-3
# A batch has the tokens of this many forward passes. A pass reads sentences of the same length, and a larger batch has
# more sentences of each length.
_PASSES_A_BATCH = 8


def lm_kind(folder: Path) -> str | None:
    """Return which kind of language model a folder holds: MASKED, CAUSAL or SEQ2SEQ.

    Return None for other models and for unreadable folders.
    """
    parts = Parts(folder)
    try:
        if parts.task == "SEQ_CLS":
            return None
        config = read_config("", parts.base)
        heads = heads_of(config)
    except ModelError:  # reported later, when the folder is opened as a classifier
        return None
    for name in heads:
        if name.endswith("ForMaskedLM") or name in _WITH_MASKED_HEAD:
            return MASKED
        # Heads of XLM and Flaubert (…WithLMHeadModel) are masked or causal, depending on a setting.
        if name.endswith(("ForCausalLM", "LMHeadModel")) and not name.endswith("WithLMHeadModel"):
            return CAUSAL
        if name.endswith("ForConditionalGeneration") and config.get("is_encoder_decoder"):
            return SEQ2SEQ
    return None


def find_token_probability(name: str, folder: Path, kind: str, settings: ModelSettings) -> ModelSource:
    """Describe a language model in a folder, without loading it. `kind` is what `lm_kind` returned."""
    check_contents(name, folder)
    fingerprint = hash_contents(f"{SCHEME}\n{kind}\n", folder, settings.hash_content)
    info = ModelInfo(name, fingerprint, kind, "torch", "float32", LABELS)
    device, share = settings.device, settings.share
    return ModelSource(info, lambda: TokenProbabilityPredictor(folder, info, device, share), is_content=True)


class _Query(NamedTuple):
    pair: SentencePair
    is_mirrored: bool  # whether the query is about the second sentence of the pair

    @property
    def remains(self) -> int:
        """The `remains` (see `Predictions`) of the sentence that the query is about."""
        return hash_remains((self.pair.second if self.is_mirrored else self.pair.first).ids)


class TokenProbabilityPredictor(LocalPredictor):
    def __init__(self, folder: Path, info: ModelInfo, device: str = "auto", share: Share = WHOLE_MACHINE) -> None:
        self.info = info
        self._is_causal = info.kind == CAUSAL
        self._model = LanguageModel(info.name, folder, is_causal=self._is_causal, device=device, share=share)
        self.is_on_cpu, self.n_threads = self._model.is_on_cpu, self._model.n_threads

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        """Cut queries into batches. The two queries of a pair are in the same batch, so the pair is computed once."""
        pairs = self._pair_up(texts)
        rows_of: dict[tuple[str, str], list[int]] = {key: [] for key in pairs}
        for row, text in enumerate(texts):
            rows_of[in_order(*text)].append(row)
        keys = list(pairs)
        costs = [max(1, sum(self._model.cost(*side) for side in pairs[key].sides)) for key in keys]
        n_tokens, batches = _PASSES_A_BATCH * self._model.n_tokens, []
        if self._model.shares_beginnings:
            alike = sorted(range(len(keys)), key=lambda at: pairs[keys[at]].first.ids)
            cut = sorted(cut_in_order(alike, costs, n_tokens), key=lambda rows: -max(costs[row] for row in rows))
        else:
            cut = list(cut_by_tokens(costs, n_tokens))
        for chosen in cut:
            rows = {row: keys[at] for at in chosen for row in rows_of[keys[at]]}
            inputs = tuple(_Query(pairs[key], texts[row].premise != key[0]) for row, key in rows.items())
            batches.append(Batch(tuple(rows), inputs, sum(costs[at] for at in chosen)))
        return batches

    def forward(self, batch: Batch) -> Predictions:
        differences = self._differences(list(dict.fromkeys(query.pair for query in batch.inputs)))
        signed = (-differences[pair] if is_mirrored else differences[pair] for pair, is_mirrored in batch.inputs)
        rows = [(*_softmax(difference), 0.0) for difference in signed]
        cut = [query.pair.is_truncated for query in batch.inputs]
        return Predictions.of(rows, cut, [query.remains for query in batch.inputs])

    def beside_plain(self, texts: Sequence[TextPair]) -> tuple[Floats, Floats]:
        """Return the probabilities of texts twice: as a pass computes them, and from a fresh model, one by one."""
        pairs = self._pair_up(texts)
        rows = []
        for text in texts:
            first, second = (self._model.score_plainly(*side) for side in pairs[in_order(*text)].sides)
            is_mirrored = text.premise != in_order(*text)[0]
            rows.append((*_softmax(second - first if is_mirrored else first - second), 0.0))
        self.predict(texts[:1])
        return self.predict(texts).probabilities, Predictions.of(rows).probabilities

    def explain(self, text: TextPair) -> Explanation:
        """Show how two sentences are compared: the premise and the hypothesis of `text`."""
        ours, plain = (rows[0].tolist() for rows in self.beside_plain([text]))
        [pair] = self._pair_up([text]).values()
        tokenizer, lines = self._model.tokenizer, []
        for number, (sentence, places) in enumerate(pair.sides, start=1):
            lines += [(f"sentence {number}", show_tokens(tokenizer, sentence.ids))]
            lines += [(f"shared in {number}", show_tokens(tokenizer, [sentence.ids[place] for place in places]))]
        how = "each token from those before it" if self._is_causal else "each shared token masked in turn"
        lines += [("path", f"torch, likelihoods: {how}, batches of one length")]
        return Explanation(lines, self.info.labels, ours, plain)

    def _pair_up(self, texts: Sequence[TextPair]) -> dict[tuple[str, str], SentencePair]:
        encoder = self._model.encoder
        return pair_up(texts, encoder.encode, encoder.special, left_to_right=self._is_causal)

    def _differences(self, pairs: Sequence[SentencePair]) -> dict[SentencePair, float]:
        """Return, for each pair, the score of its first sentence minus that of its second."""
        self._model.fill([side for pair in pairs for side in pair.sides])
        differences = {pair: _difference(pair) for pair in pairs}
        n_bad = sum(not isfinite(difference) for difference in differences.values())
        if n_bad:
            fault = f"not finite (NaN or infinity) for {n_bad} of {len(pairs)} pairs of sentences"
            told = f"{self.info.name} gave log-probabilities that are {fault}, so neither is likelier"
            raise ModelError(f"{told}.\n{NOT_FINITE}")
        for pair, difference in differences.items():
            if abs(difference) < NEAR_TIE and pair.shared[0]:
                alone = pair.anew()
                self._model.fill(alone.sides)
                differences[pair] = _difference(alone)
        return differences


def _difference(pair: SentencePair) -> float:
    scores = [float(sentence.log_probabilities[list(places)].sum()) for sentence, places in pair.sides]
    return scores[0] - scores[1]


def _softmax(difference: float) -> tuple[float, float]:
    """Return the softmax of two scores, given their difference.

    Even a tiny probability keeps its precision. Swapping the scores swaps the probabilities.
    """
    smaller = exp(-abs(difference)) / (1 + exp(-abs(difference)))
    return (1 - smaller, smaller) if difference > 0 else (smaller, 1 - smaller)
