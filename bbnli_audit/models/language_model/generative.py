"""Causal language models asked yes or no, computed by torch: a head with two labels, and a column for no answer."""

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.results.audit import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import predict_all, run_in_threads
from bbnli_audit.models.checkpoint import check_contents, fetch, hash_contents, read_config
from bbnli_audit.models.language_model.answers import PARSER, Answer, is_settled, parse_answer
from bbnli_audit.models.language_model.decoding import Decoder, Row
from bbnli_audit.models.language_model.prompt_tokens import PromptEncoder
from bbnli_audit.models.language_model.prompts import Prompt
from bbnli_audit.models.loading import (
    WHOLE_MACHINE,
    Share,
    first_line,
    import_torch,
    load_pretrained,
    max_length_of,
    one_core_each,
    pick_device,
    quiet_transformers,
)
from bbnli_audit.models.protocol import Batch, Predictions
from bbnli_audit.suites.probe import probe_items

if TYPE_CHECKING:
    from bbnli_audit.models.find import ModelSource

KIND = "generative"
LABELS = ("entailment", "not_entailment")
HEADS = ("ForCausalLM", "LMHeadModel")

# Yes is entailed, no is not (read as neutral). A yes/no answer is never a contradiction, so that column is free.
ROW_OF = {Answer.YES: (1.0, 0.0, 0.0), Answer.NO: (0.0, 1.0, 0.0), Answer.UNPARSED: (0.0, 0.0, 1.0)}
_LEAST_MASS = 0.05  # of yes and no together; a first token that is nearly always something else is no answer
_NEAR = 1e-4  # rounding changes a probability by some millionths

# Decoding reads all weights for every token, so more rows at once cost little until they no longer fit the caches.
_CPU_ROWS, _GPU_ROWS = 16, 64


@dataclass(frozen=True, slots=True)
class Decoding:
    """How an answer is made: greedily, or read off the probabilities of its first token."""

    max_new_tokens: int = 64
    first_token: bool = False


def find_generative(
    name: str,
    folder: Path | None,
    prompt: Prompt,
    hash_content: Callable[[Path], str],
    *,
    decoding: Decoding = Decoding(),  # noqa: B008 - frozen
    device: str = "auto",
    share: Share = WHOLE_MACHINE,
) -> "ModelSource":
    """Find a causal language model on disk or the hub, and say what it is, without loading it.

    Args:
        name: A folder or a name on the hub; what messages and results call the model.
        folder: Where it lies, if not at `name`.
        prompt: What it is asked.
        hash_content: Gives the SHA-256 of a file.
        decoding: How its answers are made.
        device: The value of --bbnli-device.
        share: Which part of the machine this process has.
    """
    from bbnli_audit.models.find import ModelSource

    place = folder or Path(name)
    if not place.is_dir():
        place = fetch(name)
    check_generative(name, place)
    how = json.dumps([KIND, prompt.template, asdict(decoding), "float32", PARSER])
    info = ModelInfo(name, hash_contents(how, place, hash_content), KIND, "torch", "float32", LABELS)
    return ModelSource(info, lambda: GenerativePredictor(place, prompt, info, decoding, device, share), is_content=True)


def check_generative(name: str, folder: Path) -> None:
    """Refuse, without loading anything, what can be seen to be wrong in a folder."""
    config = read_config(name, folder)
    heads = config.get("architectures") or []
    if not any(str(head).endswith(HEADS) for head in heads):
        found = ", ".join(map(str, heads)) or "none named"
        raise ModelError(
            f"--model={name}: its head is {found}; a model that is asked with a prompt needs a language-model head "
            "(…ForCausalLM).\nLeave the prompt out for an NLI checkpoint, or give a causal language model."
        )
    check_contents(name, folder)


class GenerativePredictor:
    """A causal language model, loaded once."""

    def __init__(
        self,
        folder: Path,
        prompt: Prompt,
        info: ModelInfo,
        decoding: Decoding = Decoding(),  # noqa: B008 - frozen
        device: str = "auto",
        share: Share = WHOLE_MACHINE,
    ) -> None:
        self._torch = import_torch()
        self.info = info
        self._first_token = decoding.first_token
        with quiet_transformers():
            self._model, tokenizer = load_pretrained(
                info.name, str(folder), "AutoModelForCausalLM", whole="Give a whole language model."
            )
        self._device = pick_device(device, share)
        self._model.to(self._device, self._torch.float32).eval()
        self._is_on_cpu = self._device.type == "cpu"
        self._n_rows = _CPU_ROWS if self._is_on_cpu else _GPU_ROWS
        self._n_threads = max(1, self._torch.get_num_threads() // share.count) if self._is_on_cpu else 1
        n_new = 1 if decoding.first_token else decoding.max_new_tokens
        max_length = max_length_of(tokenizer, self._model) - n_new
        self._prompts = PromptEncoder(tokenizer, prompt, max_length, info.name)
        self._decoder = Decoder(self._model, _end_ids(self._model, tokenizer), n_new, self._is_done)
        self._is_cached = self._is_computed_alike()

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        return predict_all(self, texts)

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        """Cut texts into batches, those that share the start of their prompt together."""
        groups: dict[str, list[int]] = {}
        for at, text in enumerate(texts):
            groups.setdefault(self._prompts.prompt.prefix(text.premise), []).append(at)
        inputs = {at: self._prompts.encode(texts[at], n) for n, group in enumerate(groups.values()) for at in group}
        lengths = {at: len(entry.row.ids) for at, entry in inputs.items()}
        longest_first = sorted(groups.values(), key=lambda group: -max(lengths[at] for at in group))
        ordered = [at for group in longest_first for at in group]
        batches = [ordered[start : start + self._n_rows] for start in range(0, len(ordered), self._n_rows)]
        return [
            Batch(tuple(rows), tuple(inputs[at] for at in rows), sum(lengths[at] for at in rows)) for rows in batches
        ]

    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]:
        """Run batches, on a CPU one a core: with more threads a batch would be rounded otherwise."""
        with one_core_each(self._is_on_cpu):
            yield from run_in_threads(self.forward, batches, self._n_threads)

    def forward(self, batch: Batch) -> Predictions:
        """Predict one batch. Threads may call it at the same time."""
        import numpy as np

        rows = [entry.row for entry in batch.inputs]
        try:
            found = (
                self._read_first_tokens(rows) if self._first_token else [ROW_OF[answer] for answer in self._ask(rows)]
            )
        except (RuntimeError, IndexError) as exc:  # out of memory, ids the embeddings do not have
            shape = f"{len(rows)} prompts of up to {max(len(row.ids) for row in rows)} tokens"
            raise ModelError(f"{self.info.name} broke on a batch of {shape}: {first_line(exc)}.") from exc
        is_truncated = np.array([entry.is_truncated for entry in batch.inputs], dtype=np.bool_)
        return Predictions(np.array(found, dtype=np.float64), is_truncated)

    def _ask(self, rows: Sequence[Row]) -> list[Answer]:
        if self._is_cached:
            answers = self._decoder.decode(rows)
        else:
            answers = [self._decoder.decode_uncached(row.ids) for row in rows]
        return [parse_answer(self._prompts.text_of(answer)) for answer in answers]

    def _read_first_tokens(self, rows: Sequence[Row]) -> list[tuple[float, float, float]]:
        found = self._masses(rows)
        for at, (yes, no) in enumerate(found):
            if len(rows) > 1 and (abs(yes - no) < _NEAR or abs(yes + no - _LEAST_MASS) < _NEAR):
                found[at] = self._masses([rows[at]])[0]
        return [
            ROW_OF[Answer.UNPARSED] if yes + no < _LEAST_MASS else (yes / (yes + no), no / (yes + no), 0.0)
            for yes, no in found
        ]

    def _masses(self, rows: Sequence[Row]) -> list[tuple[float, float]]:
        """Give the probabilities that the answer begins with yes and with no, in any spelling."""
        probabilities = self._decoder.next_logits(rows, is_cached=self._is_cached).double().softmax(dim=-1)
        yes, no = (probabilities[:, ids].sum(dim=-1).tolist() for ids in self._prompts.first_ids)
        return list(zip(yes, no, strict=True))

    def _is_computed_alike(self) -> bool:
        first, second, third = (item.text for item in probe_items()[:3])
        texts = [first, TextPair(first.premise, second.hypothesis), third]
        rows = [entry.row for batch in self.plan(texts) for entry in batch.inputs]
        with one_core_each(self._is_on_cpu):
            return self._decoder.is_cacheable(rows)

    def _is_done(self, answer: Sequence[int]) -> bool:
        return is_settled(self._prompts.text_of(answer))


def _end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    configured = model.generation_config.eos_token_id
    ids = [tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])]
    return frozenset(token for token in ids if token is not None)
