"""Makes very small causal language models with random weights, which can be asked, and texts to ask them about."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bbnli_audit.core.values import TextPair
from bbnli_audit.models.language_model.generative import GenerativePredictor, find_generative
from bbnli_audit.models.loading import one_core_each
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import Prompt
from bbnli_audit.models.protocol import ModelSource
from tests.tiny_checkpoint import WORDS, edit_weights, invented_texts

SPECIAL = ["[UNK]", "[END]", "[USER]", "[BOT]"]
ANSWERS = ["Yes", "No", "yes", "no", ":", "Hypothesis", "Answer", "with", "or", "followed", "by", "an", "explanation"]
PROMPT = Prompt("short", "{premise} Hypothesis : {hypothesis} Answer with yes or no .")


class Decoding(NamedTuple):
    max_new_tokens: int = 64
    first_token: bool = False


GREEDY = Decoding()


def save_causal(
    folder: Path,
    family: str = "Llama",
    *,
    chat: str | None = None,
    seed: int = 0,
    more: Sequence[str] = (),
    **settings: Any,
) -> Path:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(seed)
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys([*SPECIAL, *ANSWERS, *WORDS, *more]))}
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 256,
        "initializer_range": 0.6,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": None,
        **({"num_key_value_heads": 1} if family in ("Llama", "Mistral", "Qwen2") else {}),
        **settings,
    }
    if family == "Mamba":
        sizes = {key: sizes[key] for key in ("hidden_size", "num_hidden_layers", "initializer_range", "eos_token_id")}
    config = getattr(transformers, f"{family}Config")(vocab_size=len(vocabulary), **sizes)
    head = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    getattr(transformers, head)(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit()])
    fast = transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="[END]", additional_special_tokens=["[USER]", "[BOT]"]
    )
    fast.chat_template = chat
    fast.save_pretrained(folder)
    return folder


def save_answering(folder: Path) -> Path:
    """Write a model that often begins its answer with yes or no."""
    save_causal(folder, seed=4)

    def make_it_answer(tensors: dict[str, Any]) -> None:
        tensors["lm_head.weight"][4:8] *= 2.0  # yes and no

    edit_weights(folder, make_it_answer)
    return folder


def find(folder: Path, prompt: Prompt = PROMPT, how: Decoding = GREEDY) -> ModelSource:
    settings = ModelSettings(prompt=prompt, is_first_token=how.first_token, device="cpu")
    return find_generative(str(folder), folder, settings, how.max_new_tokens)


def load(folder: Path, prompt: Prompt = PROMPT, how: Decoding = GREEDY) -> GenerativePredictor:
    opened = find(folder, prompt, how).open()
    assert isinstance(opened, GenerativePredictor)
    return opened


def texts_of_few_premises(n_premises: int = 6, n_hypotheses: int = 8) -> list[TextPair]:
    found = invented_texts(n_premises * n_hypotheses)
    return [TextPair(found[row % n_premises].premise, text.hypothesis) for row, text in enumerate(found)]


def written(predictor: GenerativePredictor, texts: Sequence[TextPair], *, is_plain: bool) -> list[list[int]]:
    """Return the tokens of each answer, in the order of the texts."""
    decoder = predictor._decoder
    found: dict[int, list[int]] = {}
    with one_core_each(is_on_cpu=True):
        for batch in predictor.plan(texts):
            prompts = [entry.ids for entry in batch.inputs]
            answers = [decoder.decode_alone(ids) for ids in prompts] if is_plain else decoder.decode(prompts)
            found.update(zip(batch.rows, answers, strict=True))
    return [found[row] for row in range(len(texts))]


def count_tokens(model: Any) -> list[int]:
    """Return a list that gets the number of tokens of each later pass."""
    n_read: list[int] = []
    words = model.get_input_embeddings()
    words.register_forward_pre_hook(lambda _module, inputs: n_read.append(inputs[0].numel()))
    return n_read
