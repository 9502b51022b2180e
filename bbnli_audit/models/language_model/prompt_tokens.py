"""Prompts become tokens, and tokens become text again. Knows a tokenizer, and nothing of what runs the model."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.language_model.decoding import Row
from bbnli_audit.models.language_model.prompts import Prompt

# Chat templates that write today's date into the prompt would give other answers tomorrow: theirs is always this one.
_NO_CLOCK = "{% macro strftime_now(format) %}01 Jan 2025{% endmacro %}"


class EncodedPrompt(NamedTuple):
    row: Row
    is_truncated: bool


class PromptEncoder:
    """A prompt and a tokenizer that knows how many tokens its model takes beside the answer."""

    def __init__(self, tokenizer: Any, prompt: Prompt, max_length: int, name: str) -> None:
        self.prompt = prompt
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._name = name
        self._begins_in_thought = self._is_chat and self._as_chat("").rstrip().endswith("<think>")

    def encode(self, text: TextPair, group: int) -> EncodedPrompt:
        """Render and encode; `group` marks texts whose prompts begin alike."""
        ids = self._ids_of(text)
        if len(ids) <= self._max_length:
            return EncodedPrompt(Row(tuple(ids), group), is_truncated=False)
        # Cuts the premise, so that the hypothesis keeps its group and the question its words.
        premise = self._tokenizer(text.premise, add_special_tokens=False, verbose=False)["input_ids"]
        n_kept = len(premise)
        while len(ids) > self._max_length:
            if n_kept == 0:
                raise ModelError(
                    f"{self._name} takes {self._max_length} tokens beside its answer; the prompt {self.prompt.name!r} "
                    f"needs {len(ids)} even without a premise. Write a shorter prompt."
                )
            n_kept = max(0, n_kept - (len(ids) - self._max_length))
            ids = self._ids_of(TextPair(str(self._tokenizer.decode(premise[:n_kept])), text.hypothesis))
        return EncodedPrompt(Row(tuple(ids), group), is_truncated=True)

    def text_of(self, answer: Sequence[int]) -> str:
        text = str(self._tokenizer.decode(list(answer), skip_special_tokens=True))
        return f"<think>{text}" if self._begins_in_thought else text

    @cached_property
    def first_ids(self) -> tuple[list[int], list[int]]:
        """Give the tokens that are a yes, and those that are a no, in any spelling."""
        vocabulary = self._tokenizer.get_vocab()
        yes, no = (
            sorted({vocabulary[token] for token in _spellings(word) if token in vocabulary}) for word in ("yes", "no")
        )
        if not yes or not no:
            raise ModelError(
                f"{self._name}: its tokenizer has no single token for yes or no, so their probabilities cannot be read "
                "off the first token.\nLet the model write its answer instead."
            )
        return yes, no

    @property
    def _is_chat(self) -> bool:
        return self._tokenizer.chat_template is not None

    def _ids_of(self, text: TextPair) -> list[int]:
        prompt = self.prompt.render(text)
        if self._is_chat:
            return list(self._tokenizer(self._as_chat(prompt), add_special_tokens=False, verbose=False)["input_ids"])
        ids = list(self._tokenizer(prompt, verbose=False)["input_ids"])
        # Some tokenizers end every text; the model would have nothing to add.
        return ids[:-1] if ids and ids[-1] == self._tokenizer.eos_token_id else ids

    def _as_chat(self, prompt: str) -> str:
        return str(
            self._tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                chat_template=_NO_CLOCK + self._tokenizer.get_chat_template(),
                tokenize=False,
                add_generation_prompt=True,
                enable_thinking=False,  # templates that do not know it leave it alone
            )
        )


def _spellings(word: str) -> Iterator[str]:
    for spelled in (word, word.capitalize(), word.upper()):
        for space in ("", "Ġ", "▁"):  # how tokenizers write a space before a word
            yield space + spelled
