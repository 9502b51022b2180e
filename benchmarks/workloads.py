"""What is run: texts of public suites, and checkpoints of several sizes. No text is ever printed."""

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from bbnli_audit.core.values import Label, Pairing, TextPair
from bbnli_audit.suites.bbnli import Bbnli

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BBNLI_SHARED", ROOT.parent / "shared"))
# Rows of WQ-NLI that differ in the counterfactual only stand together, two or four of them.
_WQ_BLOCK = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Workload:
    """Texts for one checkpoint."""

    title: str
    folder: Path
    texts: tuple[TextPair, ...]  # distinct, in the order of their file
    loop_texts: tuple[TextPair, ...]  # what a script that goes through the file row by row comes by
    n_rows: int  # of the file; as many as texts where a row is a text


def shared_path(*parts: str) -> Path:
    path = SHARED.joinpath(*parts)
    if not path.exists():
        raise SystemExit(f"needs {'/'.join(parts)} of the shared folder (BBNLI_SHARED, default ../shared)")
    return path


def published_suite() -> Bbnli:
    return Bbnli(shared_path("data", "bbnli"), Pairing.BOTH)


def bbnli_texts() -> tuple[TextPair, ...]:
    """Give what an audit with the published files predicts: the controls, and both sides of every usable pair."""
    suite = published_suite()
    texts: dict[TextPair, None] = {}
    for subtopic in suite.subtopics():
        items = suite.items(subtopic)
        texts.update(dict.fromkeys(control.text for control in items.controls))
        texts.update(dict.fromkeys(text for pair in items.usable for text in (pair.pro, pair.anti)))
    return tuple(texts)


def wq_rows() -> list[tuple[TextPair, TextPair]]:
    with shared_path("data", "wq_nli", "winoqueer_nli.csv").open(encoding="utf-8", newline="") as file:
        return [
            (
                TextPair(row["stereo_premise"], row["hypothesis"]),
                TextPair(row["counter_premise"], row["hypothesis"]),
            )
            for row in csv.DictReader(file)
        ]


def distinct_wq_texts() -> list[TextPair]:
    return list(dict.fromkeys(text for row in wq_rows() for text in row))


def bbnli_workload(title: str, folder: Path, n_texts: int) -> Workload:
    texts = bbnli_texts()[:n_texts]
    return Workload(title, folder, texts, texts, len(texts))


def wq_workload(title: str, folder: Path, n_rows: int) -> Workload:
    """Take rows from the whole file, those with the same stereotyped text together as they are there."""
    rows = wq_rows()
    blocks = [rows[start : start + _WQ_BLOCK] for start in range(0, len(rows), _WQ_BLOCK)]
    chosen = [row for block in spread(blocks, n_rows // _WQ_BLOCK) for row in block]
    loop_texts = tuple(text for row in chosen for text in row)
    return Workload(title, folder, tuple(dict.fromkeys(loop_texts)), loop_texts, len(chosen))


def spread(items: Sequence[T], n: int) -> list[T]:
    """Take so many items, evenly spread over all of them."""
    n = min(n, len(items))
    return [items[index * len(items) // n] for index in range(n)]


@contextmanager
def random_checkpoints() -> Iterator[tuple[Path, Path]]:
    """Make checkpoints of the sizes of BERT-base and DistilBERT, with random weights."""
    import torch
    from transformers import (
        AutoTokenizer,
        BertConfig,
        BertForSequenceClassification,
        DistilBertConfig,
        DistilBertForSequenceClassification,
    )

    tokenizer_folder = shared_path("models", "minilm-nli")
    names = [label.value for label in Label]
    settings: dict[str, Any] = {
        "id2label": dict(enumerate(names)),
        "label2id": {name: index for index, name in enumerate(names)},
    }
    with TemporaryDirectory(prefix="bbnli-benchmark-") as folder:
        bert, distilbert = Path(folder, "bert-base"), Path(folder, "distilbert")
        torch.manual_seed(0)
        model = BertForSequenceClassification(BertConfig(**settings))  # type: ignore[no-untyped-call]  # untyped there
        model.save_pretrained(bert)
        AutoTokenizer.from_pretrained(tokenizer_folder).save_pretrained(bert)
        torch.manual_seed(0)
        DistilBertForSequenceClassification(DistilBertConfig(**settings)).save_pretrained(distilbert)
        # DistilBERT knows no token types.
        tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder, model_input_names=["input_ids", "attention_mask"])
        tokenizer.save_pretrained(distilbert)
        yield bert, distilbert
