"""The model: some layers of all-MiniLM-L6-v2 with a smaller vocabulary and a fresh three-way head."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from tools.demo_model.student import POSITIONS, config_of


@torch.no_grad()
def new_model(encoder_folder: Path, vocabulary: dict[str, int], layers: Sequence[int], dropout: float) -> Any:
    """Copy the encoder's embeddings of the chosen word pieces and some of its layers; pooler and classifier are new.

    The last layer should be one of the encoder's upper ones: below them [CLS] hardly depends on the text.
    """
    encoder: Any = AutoModel.from_pretrained(encoder_folder, dtype=torch.float32)
    old = encoder.config
    config = config_of(vocabulary, old.hidden_size, len(layers), old.num_attention_heads, dropout)
    model: Any = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    full = AutoTokenizer.from_pretrained(encoder_folder).get_vocab()
    rows = torch.tensor([full[token] for token in vocabulary])
    encoder.encoder.layer = torch.nn.ModuleList([encoder.encoder.layer[at] for at in layers])
    state = encoder.state_dict()
    state["embeddings.word_embeddings.weight"] = state["embeddings.word_embeddings.weight"][rows]
    state["embeddings.position_embeddings.weight"] = state["embeddings.position_embeddings.weight"][:POSITIONS]
    wanted = model.bert.state_dict()
    state = {name: value for name, value in state.items() if name in wanted and not name.startswith("pooler")}
    missing, _ = model.bert.load_state_dict(state, strict=False)
    if any(not name.startswith("pooler") for name in missing):
        raise SystemExit(f"{encoder_folder} lacks {missing}")
    start_matching(model)
    return model


@torch.no_grad()
def start_matching(model: Any, heads: int = 3, same_word: float = 9.0, other_side: float = 10.0) -> None:
    """Set some heads of the first layer to find the nearest word of the other sentence.

    all-MiniLM has only ever read one sentence at a time; from its own heads, three layers hardly begin to compare two.
    The sentence is marked in the direction in which words differ least. A head's last dimension compares the
    sentences, the others compare words in some of their principal components. Scores before the softmax: about
    `same_word` for the same word, less `other_side` within one sentence, more across. The first two heads write the
    components of the word they found where words differ least.
    """
    embeddings, layer = model.bert.embeddings, model.bert.encoder.layer[0]
    words, types = embeddings.word_embeddings.weight, embeddings.token_type_embeddings.weight
    spots = embeddings.position_embeddings.weight[torch.randint(60, (len(words),))]
    mark = torch.linalg.svd(words - words.mean(0), full_matrices=False)[2][-1]
    types.copy_(types[0] + 0.5 * torch.stack([-mark, mark]))
    first, second = (embeddings.LayerNorm(words + spots + side) for side in types)
    middle = (first + second).mean(0) / 2
    centred = (first + second) / 2 - middle
    across = (second - first).mean(0)
    within = (first - first.mean(0)).T @ (first - first.mean(0)) / len(words)
    across = torch.linalg.solve(within + 1e-3 * torch.eye(len(within)), across)
    across *= 2 / ((second - first) @ across).mean()  # -1 in the first sentence, 1 in the second
    _, scale, axes = torch.linalg.svd(centred, full_matrices=False)
    scale = scale / len(words) ** 0.5
    size = model.config.hidden_size // model.config.num_attention_heads
    width = size - 1
    mixed, _ = torch.linalg.qr(torch.randn(4 * width, width))
    shrunk = axes[: 4 * width] / scale[: 4 * width, None].sqrt()
    views = [shrunk[:width], mixed.T @ shrunk, shrunk[width : 2 * width]]
    attention = layer.attention.self
    for head, view in enumerate(views[:heads]):
        rows = slice(head * size, head * size + width)
        last = head * size + width
        gain = (same_word * size**0.5 / (centred @ view.T).square().sum(1).mean()).sqrt()
        side = (other_side * size**0.5) ** 0.5
        for part, sign in ((attention.query, 1.0), (attention.key, -1.0)):
            part.weight[rows] = gain * view
            part.weight[last] = sign * side * across
            part.bias[head * size : last + 1] = -part.weight[head * size : last + 1] @ middle
        if head < 2:
            found = axes[head * width : (head + 1) * width]
            room = axes[-1 - (head + 1) * width : -1 - head * width]
            attention.value.weight[rows] = found
            attention.value.bias[rows] = -found @ middle
            layer.attention.output.dense.weight[:, rows] = room.T
