"""Makes very small masked and causal language models with random weights, and sentences of invented groups for them."""

from pathlib import Path
from random import Random
from typing import Any

from bbnli_audit.models.language_model.token_probability import (
    TokenProbabilityPredictor,
    find_token_probability,
    lm_kind,
)
from bbnli_audit.models.options import ModelSettings
from tests.tiny_checkpoint import WORDS, save_checkpoint

HEADS = {
    "bert": "BertForMaskedLM",
    "roberta": "RobertaForMaskedLM",
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "no-start": "GPT2LMHeadModel",
}
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.5}


def save_lm(folder: Path, which: str, head: str | None = None, max_length: int = 64) -> Path:
    """Write a language model: `bert` with word pieces, the others with byte pairs, where a space is part of a token."""
    if which == "bert":
        return save_checkpoint(folder, head=head or HEADS[which], max_length=max_length)
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = byte_pairs(which, max_length)
    family = {"roberta": "Roberta", "llama": "Llama"}.get(which, "GPT2")
    positions = max_length + 2 if family == "Roberta" else max_length
    sizes = {**SIZES, "vocab_size": len(tokenizer), "max_position_embeddings": positions}
    if family != "GPT2":
        sizes["intermediate_size"] = 32
    config = getattr(transformers, f"{family}Config")(
        **sizes,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    getattr(transformers, head or HEADS[which])(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def byte_pairs(which: str, max_length: int) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = {"roberta": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "llama": ["<s>", "</s>"]}.get(which, ["<|end|>"])
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    names: dict[str, str] = {}
    if which == "roberta":
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        names = {"pad_token": "<pad>", "mask_token": "<mask>", "unk_token": "<unk>", "cls_token": "<s>"}
        names |= {"sep_token": "</s>", "bos_token": "<s>", "eos_token": "</s>"}
    elif which == "llama":
        names = {"bos_token": "<s>", "eos_token": "</s>"}
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    elif which == "gpt2":
        names = {"bos_token": "<|end|>", "eos_token": "<|end|>", "unk_token": "<|end|>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **names)  # type: ignore[no-untyped-call]


def load_lm(folder: Path) -> TokenProbabilityPredictor:
    kind = lm_kind(folder)
    assert kind is not None
    source = find_token_probability(str(folder), folder, kind, ModelSettings(device="cpu"))
    opened = source.open()
    assert isinstance(opened, TokenProbabilityPredictor)
    return opened


def invented_pairs(n_pairs: int = 24) -> list[tuple[str, str]]:
    """Make sentences of many lengths, with one group in place of another or the two exchanged."""
    chance = Random(1)
    words = [word for word in WORDS if word not in ("zorbs", "quints")]
    pairs = []
    for index in range(n_pairs):
        start, middle, end = (" ".join(chance.choices(words, k=chance.randint(1, 6))) for _ in range(3))
        other = "nimble jugglers" if index % 3 == 0 else "quints"
        if index % 2:
            pairs.append((f"{start} zorbs {middle}", f"{start} {other} {middle}"))
        else:
            pairs.append((f"zorbs {middle} {other} {end}", f"{other} {middle} zorbs {end}"))
    return pairs


PAIRS = invented_pairs()
