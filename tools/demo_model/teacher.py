"""The teacher: all-MiniLM-L6-v2 reading both sentences at once, with a head over the two sentences' means."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModel, AutoTokenizer

from tools.demo_model.pairs import LABELS


class Teacher(nn.Module):
    """An encoder and a classifier over [CLS], the two sentences' mean states, their difference and product."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(5 * size, size), nn.GELU(), nn.Dropout(0.1), nn.Linear(size, len(LABELS)))

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> torch.Tensor:
        states = self.encoder(
            input_ids=input_ids, token_type_ids=token_type_ids, attention_mask=attention_mask
        ).last_hidden_state
        second = (token_type_ids * attention_mask).unsqueeze(-1).to(states.dtype)
        first = attention_mask.unsqueeze(-1).to(states.dtype) - second
        premise = (states * first).sum(1) / first.sum(1)
        hypothesis = (states * second).sum(1) / second.sum(1).clamp(min=1)
        features = [states[:, 0], premise, hypothesis, (premise - hypothesis).abs(), premise * hypothesis]
        logits: torch.Tensor = self.head(torch.cat(features, dim=-1))
        return logits


def new_teacher(encoder_folder: Path) -> tuple[Teacher, Any]:
    """Take the published encoder as it is, word embeddings frozen, with a fresh head."""
    encoder = AutoModel.from_pretrained(
        encoder_folder,
        add_pooling_layer=False,
        dtype=torch.float32,
        hidden_dropout_prob=0.0,  # drawing the masks takes a fifth of the time, and a pass or two does not overfit
        attention_probs_dropout_prob=0.0,
    )
    encoder.embeddings.word_embeddings.weight.requires_grad_(False)
    return Teacher(encoder), AutoTokenizer.from_pretrained(encoder_folder)


def load_teacher(encoder_folder: Path, weights: Path) -> tuple[Teacher, Any]:
    teacher, tokenizer = new_teacher(encoder_folder)
    teacher.load_state_dict(torch.load(weights, weights_only=True))
    return teacher.eval(), tokenizer
