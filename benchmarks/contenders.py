"""The ways to predict that are compared, each opened on a checkpoint's folder."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bbnli_audit.core.values import Label, TextPair
from bbnli_audit.models.checkpoint import EXACT as EXACT_PRECISION
from bbnli_audit.models.checkpoint import Precision
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.find import find_model
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.protocol import BatchPredictor, Predictor

BATCH_SIZE = 32
_LABELS = tuple(Label)

Predict = Callable[[Sequence[TextPair]], list[Label]]
Batches = list[list[int]]


class Opened(NamedTuple):
    """A model, loaded. `cut` gives the rows of its batches in the order in which it runs them."""

    predict: Predict
    cut: Callable[[Sequence[TextPair]], Batches]
    module: torch.nn.Module | None  # where torch computes it


class Contender(NamedTuple):
    name: str
    open: Callable[[Path], Opened]


def _cut(rows: Sequence[int], size: int) -> Batches:
    return [list(rows[start : start + size]) for start in range(0, len(rows), size)]


def _cut_in_twos(texts: Sequence[TextPair]) -> Batches:
    """Choose the texts of those that go one by one in twos: both sides of a pair, both texts of a row."""
    return _cut(range(len(texts)), 2)


def _make_pipeline(folder: Path) -> Any:
    from transformers import pipeline

    return pipeline("text-classification", model=str(folder), device="cpu", dtype=torch.float32)


def _as_input(text: TextPair) -> dict[str, str]:
    return {"text": text.premise, "text_pair": text.hypothesis}


def _open_pipeline(folder: Path) -> Opened:
    pipe = _make_pipeline(folder)

    def predict(texts: Sequence[TextPair]) -> list[Label]:
        return [Label(found["label"]) for found in pipe([_as_input(text) for text in texts], batch_size=BATCH_SIZE)]

    return Opened(predict, lambda texts: _cut(range(len(texts)), BATCH_SIZE), pipe.model)


def _open_pipeline_one_by_one(folder: Path) -> Opened:
    pipe = _make_pipeline(folder)

    def predict(texts: Sequence[TextPair]) -> list[Label]:
        return [Label(pipe(_as_input(text))["label"]) for text in texts]

    return Opened(predict, _cut_in_twos, pipe.model)


def _open_loop(folder: Path) -> Opened:
    """Do what the papers' scripts do."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def predict(texts: Sequence[TextPair]) -> list[Label]:
        labels = []
        for premise, hypothesis in texts:
            inputs = tokenizer(premise, hypothesis, return_tensors="pt", truncation=True)
            with torch.no_grad():
                probabilities = model(**inputs).logits.softmax(-1)
            labels.append(Label(model.config.id2label[int(probabilities.argmax())]))
        return labels

    return Opened(predict, _cut_in_twos, model)


def _open_cross_encoder(folder: Path) -> Opened:
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    names: dict[int, str] = model.config.id2label

    def predict(texts: Sequence[TextPair]) -> list[Label]:
        pairs = [tuple(text) for text in texts]
        scores: Any = model.predict(pairs, batch_size=BATCH_SIZE, show_progress_bar=False)
        return [Label(names[int(column)]) for column in scores.argmax(axis=1)]

    def cut(texts: Sequence[TextPair]) -> Batches:
        """Sort by characters, longest first, as it does."""
        lengths = [len(text.premise) + len(text.hypothesis) for text in texts]
        return _cut(sorted(range(len(texts)), key=lambda row: -lengths[row]), BATCH_SIZE)

    return Opened(predict, cut, model)


def _open_ours(predictor: Predictor, module: torch.nn.Module | None) -> Opened:
    assert isinstance(predictor, BatchPredictor)

    def predict(texts: Sequence[TextPair]) -> list[Label]:
        return [_LABELS[column] for column in predictor.predict(texts).probabilities.argmax(axis=1)]

    return Opened(predict, lambda texts: [list(batch.rows) for batch in predictor.plan(texts)], module)


def _load_ours(folder: Path, precision: Precision = EXACT_PRECISION) -> Predictor:
    return find_model(str(folder), ModelSettings(precision=precision)).open()


def _open_exact(folder: Path) -> Opened:
    predictor = _load_ours(folder)
    assert isinstance(predictor, HFPredictor)
    return _open_ours(predictor, predictor._model)


def _open_generic(folder: Path) -> Opened:
    predictor = _load_ours(folder)
    assert isinstance(predictor, HFPredictor)
    predictor.padding_free = None
    return _open_ours(predictor, predictor._model)


def _open_onnx(folder: Path) -> Opened:
    return _open_ours(_load_ours(folder, Precision(backend="onnx")), None)


ONE_BY_ONE = Contender("transformers pipeline, one by one", _open_pipeline_one_by_one)
LOOP = Contender("loop with batch 1 (the papers' scripts)", _open_loop)
PIPELINE = Contender("transformers pipeline, batch 32", _open_pipeline)
CROSS_ENCODER = Contender("sentence-transformers CrossEncoder.predict, batch 32", _open_cross_encoder)
EXACT = Contender("**ours, exact**", _open_exact)
GENERIC = Contender("ours, the generic path (other architectures)", _open_generic)
ONNX = Contender("ours, ONNX Runtime (`--bbnli-backend=onnx`)", _open_onnx)

CONTENDERS = tuple(
    contender
    for contender in (ONE_BY_ONE, LOOP, PIPELINE, CROSS_ENCODER, EXACT, GENERIC, ONNX)
    if contender is not ONNX or (find_spec("bbnli_audit.models.classifier.onnx") and find_spec("onnxruntime"))
)
