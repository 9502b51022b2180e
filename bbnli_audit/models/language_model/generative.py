"""Language models that are asked with a prompt, computed by torch: causal and encoder-decoder models."""

import json
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import LocalPredictor
from bbnli_audit.models.checkpoint import check_contents, hash_contents
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.language_model import forms
from bbnli_audit.models.language_model.decoding import SCHEME, Decoder
from bbnli_audit.models.language_model.encoder_decoder import EncoderDecoder
from bbnli_audit.models.language_model.forms import form_of
from bbnli_audit.models.language_model.token_probability import SEQ2SEQ, lm_kind
from bbnli_audit.models.language_model.token_tree import Ids, cut_into_trees
from bbnli_audit.models.loading import load_pretrained, one_core_each, place, telling_breaks
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import Prompt
from bbnli_audit.models.protocol import Batch, Floats, ModelSource, Predictions, hash_remains
from bbnli_audit.suites.probe import probe_items

# A text is computed again, alone, if its two likeliest answers differ by less than this in probability, or if the sum
# over all answers is this near to LEAST_MASS. Rounding changes probabilities by a few millionths.
_NEAR = 1e-4

# The most tokens of a tree, that is, of prompts that are read as one row. Every forward pass reads all weights, so
# small trees are slow. Attention is computed for all pairs of tokens, so large trees are slow, too. On a CPU, 384 to
# 768 tokens are best.
_CPU_TREE, _GPU_TREE = 512, 2048
# Chat templates always get this date: with today's date, the answers would change tomorrow.
_NO_CLOCK = "{% macro strftime_now(format) %}01 Jan 2025{% endmacro %}"


def find_generative(name: str, folder: Path, settings: ModelSettings, max_new_tokens: int = 64) -> ModelSource:
    """Describe a causal or encoder-decoder model in a folder, without loading it."""
    check_contents(name, folder)
    prompt = settings.prompt_or_default
    form = form_of(prompt)
    decoding = {"max_new_tokens": max_new_tokens, "first_token": settings.is_first_token}
    how = json.dumps([form.kind, prompt.template, decoding, "float32", SCHEME, *form.rules])
    fingerprint = hash_contents(how, folder, settings.hash_content)
    info = ModelInfo(name, fingerprint, form.kind, "torch", "float32", form.labels, prompt.name)
    return ModelSource(info, lambda: GenerativePredictor(folder, info, settings, max_new_tokens), is_content=True)


class GenerativePredictor(LocalPredictor):
    def __init__(self, folder: Path, info: ModelInfo, settings: ModelSettings, max_new_tokens: int) -> None:
        self.info = info
        self._form = form_of(settings.prompt_or_default)
        self._is_first_token = settings.is_first_token
        has_encoder = lm_kind(folder) == SEQ2SEQ
        head = "Seq2SeqLM" if has_encoder else "CausalLM"
        self._model, tokenizer, max_length = load_pretrained(info.name, folder, head)
        device, self.n_threads = place(self._model, settings.device, settings.share)
        self.is_on_cpu = device.type == "cpu"
        self._tree_size = _CPU_TREE if self.is_on_cpu else _GPU_TREE
        n_new = 1 if settings.is_first_token else max_new_tokens
        n_taken = max_length if has_encoder else max_length - n_new
        self._prompts = PromptEncoder(tokenizer, settings.prompt_or_default, n_taken, info.name, is_ended=has_encoder)
        end_ids = _end_ids(self._model, tokenizer)
        self._decoder = (EncoderDecoder if has_encoder else Decoder)(
            FreshCopies(self._model), end_ids, n_new, lambda ids: self._form.is_settled(self._prompts.text_of(ids))
        )
        with one_core_each(self.is_on_cpu):
            self._decoder.use_trees([self._prompts.encode(item.text).ids for item in probe_items()], max_length)

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        """Cut texts into batches. Texts whose prompts begin alike stay together."""
        encoded = [self._prompts.encode(text) for text in texts]
        alike = sorted(range(len(texts)), key=lambda at: encoded[at].ids)
        batches = []
        for tree in cut_into_trees([encoded[at].ids for at in alike], self._tree_size):
            rows = [alike[at] for at in tree]
            inputs = tuple(encoded[row] for row in rows)
            batches.append(Batch(tuple(rows), inputs, sum(len(each.ids) for each in inputs)))
        return sorted(batches, key=lambda batch: -max(len(each.ids) for each in batch.inputs))

    def forward(self, batch: Batch) -> Predictions:
        prompts = [entry.ids for entry in batch.inputs]
        with telling_breaks(self.info.name, "prompts", [len(ids) for ids in prompts]):
            found = self._read_first_tokens(prompts) if self._is_first_token else self._read_answers(prompts)
        cut = [entry.is_truncated for entry in batch.inputs]
        return Predictions.of(found, cut, [entry.remains for entry in batch.inputs])

    def beside_plain(self, texts: Sequence[TextPair]) -> tuple[Floats, Floats]:
        """Compute the first token's probabilities as in a pass, and alone with a fresh model: (n_texts, n_tokens)."""
        import torch

        prompts = [self._prompts.encode(text).ids for text in texts]
        with one_core_each(self.is_on_cpu):
            ours = self._decoder.next_logits(prompts)
            plain = [self._decoder.plain_logits(ids) for ids in prompts]
        found: list[Floats] = [torch.softmax(each.double(), -1).cpu().numpy() for each in (ours, torch.stack(plain))]
        return found[0], found[1]

    def _read_answers(self, prompts: Sequence[Ids]) -> list[forms.Row]:
        return [self._form.row_of_text(self._prompts.text_of(tokens)) for tokens in self._decoder.decode(prompts)]

    def _read_first_tokens(self, prompts: Sequence[Ids]) -> list[forms.Row]:
        found = self._masses(prompts)
        for at, masses in enumerate(found):
            *_, second, best = sorted(masses)
            if len(prompts) > 1 and (best - second < _NEAR or abs(sum(masses) - forms.LEAST_MASS) < _NEAR):
                found[at] = self._masses([prompts[at]])[0]
        return [self._form.row_of_masses(masses) for masses in found]

    def _masses(self, prompts: Sequence[Ids]) -> list[list[float]]:
        """Return, for each prompt, the probability that the first token begins each answer, in any spelling."""
        import torch

        probabilities = self._decoder.next_logits(prompts).double().softmax(dim=-1)
        masses = [probabilities[:, ids].sum(dim=-1) for ids in self._prompts.first_ids]
        found: list[list[float]] = torch.stack(masses, dim=-1).tolist()
        return found


def _end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    configured = model.generation_config.eos_token_id
    ids = [tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])]
    return frozenset(token for token in ids if token is not None)


class EncodedPrompt(NamedTuple):
    ids: tuple[int, ...]
    is_truncated: bool
    remains: int = 0  # as in `Predictions`


class PromptEncoder:
    """Encodes prompts. `max_length` is the number of tokens that the model takes besides its answer."""

    def __init__(self, tokenizer: Any, prompt: Prompt, max_length: int, name: str, *, is_ended: bool = False) -> None:
        """With `is_ended`, prompts keep their end token: an encoder reads it, but a causal model would stop there."""
        self.prompt = prompt
        self._is_ended = is_ended
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._name = name
        self._is_chat = tokenizer.chat_template is not None
        self._begins_in_thought = self._is_chat and self._as_chat("").rstrip().endswith("<think>")

    def encode(self, text: TextPair) -> EncodedPrompt:
        ids = self._ids_of(text)
        if len(ids) <= self._max_length:
            return EncodedPrompt(tuple(ids), is_truncated=False, remains=hash_remains(ids))
        # Cut the premise, so that the hypothesis keeps its group and the question stays whole.
        premise = self._tokenizer(text.premise, add_special_tokens=False, verbose=False)["input_ids"]
        n_kept = len(premise)
        while len(ids) > self._max_length:
            if n_kept == 0:
                needs = f"the prompt {self.prompt.name!r} needs {len(ids)} even without a premise"
                limit = f"{self._name} takes {self._max_length} tokens besides its answer"
                raise ModelError(f"{limit}; {needs}. Write a shorter prompt.")
            n_kept = max(0, n_kept - (len(ids) - self._max_length))
            ids = self._ids_of(TextPair(str(self._tokenizer.decode(premise[:n_kept])), text.hypothesis))
        return EncodedPrompt(tuple(ids), is_truncated=True, remains=hash_remains(ids))

    def text_of(self, answer: Sequence[int]) -> str:
        text = str(self._tokenizer.decode(list(answer), skip_special_tokens=True))
        return f"<think>{text}" if self._begins_in_thought else text

    @cached_property
    def first_ids(self) -> list[list[int]]:
        """The tokens that each answer may begin with, in any spelling."""
        form = form_of(self.prompt)
        ids: list[list[int]] = [[] for _ in form.words]
        for token, number in self._tokenizer.get_vocab().items():
            place = form.answer_begun_by(token)
            if place is not None:
                ids[place].append(number)
        usual = [words[0] for words in form.words]
        cut = [word for word, found in zip(usual, ids, strict=True) if not self._begins(word, found)]
        if cut:
            problem = f"its tokenizer has no single token for {' or '.join(usual)} that tells how an answer begins"
            raise ModelError(f"{self._name}: {problem}.\nLet the model write its answer instead.")
        return [sorted(found) for found in ids]

    def _begins(self, word: str, ids: Collection[int]) -> bool:
        """Say whether the tokens of a word, in at least one spelling, begin with one of the `ids`."""
        spelled = [space + change(word) for change in (str.lower, str.capitalize) for space in ("", " ")]
        encoded = (self._tokenizer(text, add_special_tokens=False)["input_ids"] for text in spelled)
        return any(tokens[0] in ids for tokens in encoded if tokens)

    def _ids_of(self, text: TextPair) -> list[int]:
        prompt = self.prompt.render(text)
        if self._is_chat:
            return list(self._tokenizer(self._as_chat(prompt), add_special_tokens=False, verbose=False)["input_ids"])
        ids = list(self._tokenizer(prompt, verbose=False)["input_ids"])
        # Some tokenizers add an end token to every text; after it, a causal model would write nothing.
        return ids[:-1] if ids and ids[-1] == self._tokenizer.eos_token_id and not self._is_ended else ids

    def _as_chat(self, prompt: str) -> str:
        template = _NO_CLOCK + self._tokenizer.get_chat_template()
        # Templates that do not know `enable_thinking` ignore it.
        how = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        chat = [{"role": "user", "content": prompt}]
        return str(self._tokenizer.apply_chat_template(chat, chat_template=template, **how))
