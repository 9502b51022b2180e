"""The student: a small BERT whose first layer starts by looking up each word's nearest word in the other sentence.

State of a token after the embeddings: the first WORDS dimensions are principal components of all-MiniLM's word
embeddings, the next four say which sentence it is in, the next SPOTS where in it; the rest is empty, and the first
layer's matching heads write the components of the word they found there. So the next layers see both words.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig

from tools.demo_model.pairs import LABELS, NEAR, Pair

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
HIDDEN, HEADS = 192, 4
WORDS, SIDES, SPOTS = 112, 4, 12
ROOM = HIDDEN - WORDS - SIDES - SPOTS
POSITIONS = 256


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


def word_components(table: np.ndarray) -> np.ndarray:
    """Principal components, strong ones shrunk to the square root of their scale; rows of equal length."""
    centred = table - table.mean(0)
    _, scale, axes = np.linalg.svd(centred, full_matrices=False)
    points: np.ndarray = centred @ axes[:WORDS].T / np.sqrt(scale[:WORDS])
    points *= np.sqrt(WORDS) / np.linalg.norm(points, axis=1, keepdims=True)
    single: np.ndarray = points.astype(np.float32)
    return single


@torch.no_grad()
def start_embeddings(model: Any, components: np.ndarray) -> None:
    embeddings = model.bert.embeddings
    for table in (embeddings.word_embeddings, embeddings.position_embeddings, embeddings.token_type_embeddings):
        table.weight.zero_()
    embeddings.word_embeddings.weight[:, :WORDS] = torch.from_numpy(components)
    embeddings.word_embeddings.weight[:, WORDS + SIDES + SPOTS :].normal_(0, 0.02)
    embeddings.word_embeddings.weight[0] = 0
    embeddings.token_type_embeddings.weight[0, WORDS : WORDS + SIDES] = 1.0
    embeddings.token_type_embeddings.weight[1, WORDS : WORDS + SIDES] = -1.0
    spot = torch.arange(POSITIONS).unsqueeze(1) / torch.tensor([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    waves = torch.cat([torch.sin(spot), torch.cos(spot)], dim=1)
    embeddings.position_embeddings.weight[:, WORDS + SIDES : WORDS + SIDES + SPOTS] = 0.5 * waves


@torch.no_grad()
def start_matching(layer: Any, components: np.ndarray, same_word: float = 9.0, other_side: float = 10.0) -> None:
    """Set three of the four heads to find the nearest word of the other sentence.

    A head's last dimension compares the sides; the others compare the words in some of their components. Scores
    before the softmax: about `same_word` for the same word, less `other_side` within one sentence, more across.
    """
    attention = layer.attention.self
    size = HIDDEN // HEADS
    width = size - 1
    mixed, _ = torch.linalg.qr(torch.randn(WORDS, width))
    views = [torch.eye(WORDS)[:, :width], mixed, torch.eye(WORDS)[:, width : 2 * width]]
    stretch = (HIDDEN / (WORDS + SIDES + SPOTS / 8)) ** 0.5  # what the layer norm does to the embeddings
    words = torch.from_numpy(components) * stretch
    carried = ROOM // 2
    attention.value.weight.normal_(0, 0.05)
    layer.attention.output.dense.weight.normal_(0, 0.03)
    for head, view in enumerate(views):
        rows = slice(head * size, (head + 1) * size)
        energy = float((words @ view).square().sum(1).mean())
        gain = (same_word * size**0.5 / energy) ** 0.5
        side = (other_side * size**0.5) ** 0.5 / (SIDES * stretch)
        for part, sign in ((attention.query, 1.0), (attention.key, -1.0)):
            part.weight[rows] = 0
            part.weight[head * size : head * size + width, :WORDS] = gain * view.T
            part.weight[head * size + width, WORDS : WORDS + SIDES] = sign * side
        if head < 2:
            picked = torch.arange(carried)
            attention.value.weight[rows] = 0
            attention.value.weight[head * size + picked, head * carried + picked] = 1.0
            target = WORDS + SIDES + SPOTS + head * carried
            layer.attention.output.dense.weight[:, rows] = 0
            layer.attention.output.dense.weight[target + picked, head * size + picked] = 1.0


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


def find_vocabulary(encoder: Path, start: Path | None, kept: list[Pair], size: int) -> dict[str, int]:
    """Return the vocabulary of a checkpoint to go on from, or choose one."""
    if start is None:
        return choose_vocabulary(encoder, kept, size)
    known = AutoTokenizer.from_pretrained(start).get_vocab()
    return dict(sorted(known.items(), key=lambda item: int(item[1])))


def new_student(encoder_table: np.ndarray, vocabulary: dict[str, int], layers: int, dropout: float) -> Any:
    """Build the untrained student over rows of the encoder's word embeddings, in the vocabulary's order."""
    config = config_of(vocabulary, HIDDEN, layers, HEADS, dropout)
    model: Any = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "embeddings" not in name:
                weight.normal_(0, 0.03 if "output.dense" in name else 0.05)
    components = word_components(encoder_table)
    start_embeddings(model, components)
    start_matching(model.bert.encoder.layer[0], components)
    return model
