"""Makes a very small BERT checkpoint with random weights, for tests of loading and of what can go wrong with it."""

import json
from pathlib import Path
from random import Random
from typing import Any

from bbnli_audit.core.values import TextPair

WORDS = [
    *("a", "the", "on", "red", "moon", "workshop", "is", "are", "zorbs", "quints", "juggle", "better", "than", "most"),
    *("it", "usual", "for", "to", "be", "nimble", "quick", "and", "share", "many", "walk", "past", "there", "has"),
    *("no", "was", "built", "last", "year", "busy", "jugglers", ".", ",", "not"),
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LABELS = ("entailment", "neutral", "contradiction")


def save_checkpoint(
    folder: Path,
    labels: tuple[str, ...] = LABELS,
    *,
    family: str = "Bert",
    head: str | None = None,
    max_length: int = 64,
    seed: int = 0,
    **settings: Any,
) -> Path:
    """Write a checkpoint as save_pretrained does; `settings` go into its config, and None leaves one out."""
    import torch
    import transformers

    torch.manual_seed(seed)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": max_length,
        "initializer_range": 0.5,
        **settings,
    }
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(SPECIAL) + len(WORDS),
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
        **{name: size for name, size in sizes.items() if size is not None},
    )
    getattr(transformers, head or f"{family}ForSequenceClassification")(config).save_pretrained(folder)
    make_tokenizer(max_length).save_pretrained(folder)
    return folder


def make_tokenizer(max_length: int) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
    )


def invented_texts(n_texts: int = 60) -> list[TextPair]:
    """Make texts of many lengths from the words that the checkpoint knows."""
    chance = Random(0)

    def sentence() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 19)))

    return [TextPair(sentence(), sentence()) for _ in range(n_texts)]


def edit_config(folder: Path, **changes: Any) -> None:
    """Change keys of config.json; None removes one."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def edit_weights(folder: Path, edit: Any, file: str = "model.safetensors") -> None:
    """Load the tensors, let `edit(tensors)` change them, and save them again."""
    from safetensors.torch import load_file, save_file

    path = folder / file
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path, metadata={"format": "pt"})
