"""The files of a checkpoint: some of all-MiniLM's word pieces, the tokenizer over them, the config, the weights."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoTokenizer, BertConfig

from tools.demo_model.pairs import LABELS, NEAR, Pair, batches_by_length, pad

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
POSITIONS = 256
Rows = list[tuple[list[int], list[int]]]


def choose_vocabulary(encoder_folder: Path, pairs: Sequence[Pair], size: int) -> dict[str, int]:
    """Choose special tokens, single characters, then the most frequent pieces; near sources count three times."""
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    full: dict[str, int] = tokenizer.get_vocab()
    counts: Counter[int] = Counter()
    for weight, chosen in (
        (3, [p for p in pairs if p.source in NEAR]),
        (1, [p for p in pairs if p.source not in NEAR]),
    ):
        texts = sorted({text for p in chosen for text in (p.premise, p.hypothesis)})
        for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]:
            for token in ids:
                counts[token] += weight
    characters = [t for t in full if t.isascii() and len(t.removeprefix("##")) == 1 and t.removeprefix("##").isalnum()]
    characters += [t for t in full if t.isascii() and len(t) == 1 and not t.isalnum()]
    by_count = sorted(full, key=lambda t: (-counts[full[t]], full[t]))
    ordinary = [t for t in by_count if t not in SPECIAL and not t.startswith("[unused")]
    chosen_tokens = list(dict.fromkeys([*SPECIAL, *characters, *ordinary]))[:size]
    rest = sorted(chosen_tokens[len(SPECIAL) :], key=lambda t: full[t])
    return {token: at for at, token in enumerate([*SPECIAL, *rest])}


def find_vocabulary(encoder: Path, start: Path | None, kept: list[Pair], size: int) -> dict[str, int]:
    """Return the vocabulary of a checkpoint to go on from, or choose one."""
    if start is None:
        return choose_vocabulary(encoder, kept, size)
    known = AutoTokenizer.from_pretrained(start).get_vocab()
    return dict(sorted(known.items(), key=lambda item: int(item[1])))


def write_tokenizer(encoder_folder: Path, vocabulary: dict[str, int], out: Path) -> None:
    """Write all-MiniLM's tokenizer with the smaller vocabulary, without its fixed padding and truncation."""
    settings = json.loads((encoder_folder / "tokenizer.json").read_text(encoding="utf-8"))
    settings["truncation"] = settings["padding"] = None
    settings["model"]["vocab"] = vocabulary
    for token in settings["added_tokens"]:
        token["id"] = vocabulary[token["content"]]
    for name, token in settings["post_processor"]["special_tokens"].items():
        token["ids"] = [vocabulary[name]]
    compact = json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
    (out / "tokenizer.json").write_text(compact + "\n", encoding="utf-8")
    config: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer",
        "model_max_length": POSITIONS,
        "do_lower_case": True,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
    }
    config |= {f"{token.strip('[]').lower()}_token": token for token in SPECIAL}
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def config_of(vocabulary: dict[str, int], hidden: int, layers: int, heads: int, dropout: float) -> BertConfig:
    """Describe a three-way classifier over a vocabulary."""
    return BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=0.0,
        classifier_dropout=0.1,
        pad_token_id=vocabulary["[PAD]"],
        id2label=dict(enumerate(LABELS)),
        label2id={label: at for at, label in enumerate(LABELS)},
    )


@torch.inference_mode()
def accuracy(model: Any, rows: Rows, labels: list[int]) -> float:
    """Share of right answers."""
    model.eval()
    right = 0
    for at in batches_by_length([len(ids) for ids, _ in rows], 64, None):
        answers = model(**pad([rows[i] for i in at])).logits.argmax(-1).tolist()
        right += sum(answer == labels[i] for answer, i in zip(answers, at, strict=True))
    model.train()
    return right / len(rows)


def save(model: Any, out: Path) -> None:
    """Write weights in half precision beside a config that loads them in single precision."""
    out.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().half().contiguous() for name, value in model.state_dict().items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    model.config.architectures = ["BertForSequenceClassification"]
    model.config.dtype = torch.float32
    model.config.save_pretrained(out)
