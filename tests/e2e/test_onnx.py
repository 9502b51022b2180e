"""ONNX Runtime says what the exact path says, in any batch, or says why it cannot."""

import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.checkpoint import Precision, find_checkpoint
from bbnli_audit.models.classifier.classify import EncodedText, probe_texts
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.classifier.onnx import OnnxPredictor, _check, _torch_logits
from bbnli_audit.models.classifier.onnx_int8 import write_int8
from bbnli_audit.models.loading import Share
from bbnli_audit.models.protocol import Batch, BatchPredictor, check_predictions
from tests.shared_data import shared_path
from tests.tiny_checkpoint import edit_weights, invented_texts, save_checkpoint

pytestmark = pytest.mark.e2e

FLOAT32, INT8 = Precision("float32", "onnx"), Precision("int8", "onnx")


def load(folder: Path, precision: Precision = FLOAT32) -> OnnxPredictor:
    return OnnxPredictor(find_checkpoint(str(folder), None, precision))


def exact(folder: Path) -> HFPredictor:
    return HFPredictor(find_checkpoint(str(folder), None), "cpu")


@pytest.fixture(scope="module")
def random_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def float32(random_bert: Path) -> OnnxPredictor:
    return load(random_bert)


@pytest.fixture(scope="module")
def int8(random_bert: Path) -> OnnxPredictor:
    return load(random_bert, INT8)


def assert_agrees(found: OnnxPredictor, expected: HFPredictor) -> None:
    texts = invented_texts()
    ours, theirs = found.predict(texts).probabilities, expected.predict(texts).probabilities
    assert np.ptp(theirs, axis=0).max() > 0.05  # not one answer for all
    assert (ours.argmax(axis=1) == theirs.argmax(axis=1)).all()
    assert ours == pytest.approx(theirs, abs=1e-4)


FAMILIES: dict[str, dict[str, Any]] = {
    "Roberta": {"pad_token_id": 0, "max_position_embeddings": 80},
    "DistilBert": {"dim": 16, "hidden_dim": 32, "n_layers": 2, "n_heads": 2},
    "DebertaV2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16},
}


def test_float32_agrees_with_the_exact_path(random_bert: Path, float32: OnnxPredictor) -> None:
    assert_agrees(float32, exact(random_bert))


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_agree_with_the_exact_path(tmp_path: Path, family: str) -> None:
    folder = save_checkpoint(tmp_path, family=family, **FAMILIES[family])
    assert_agrees(load(folder), exact(folder))


def test_a_trained_checkpoint_in_float32_and_int8() -> None:
    folder, texts = shared_path("models", "tiny-nli"), invented_texts()
    predictor = exact(folder)
    assert_agrees(load(folder), predictor)
    found = check_predictions(load(folder, INT8).predict(texts), 60, "model").probabilities
    assert np.abs(found - predictor.predict(texts).probabilities).mean() < 0.02


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_text_does_not_depend_on_its_batch(precision: str, request: pytest.FixtureRequest) -> None:
    predictor: OnnxPredictor = request.getfixturevalue(precision)
    texts = invented_texts()
    together = predictor.predict(texts).probabilities
    alone = np.concatenate([predictor.predict([text]).probabilities for text in texts])
    backwards = predictor.predict(texts[::-1]).probabilities[::-1]
    assert (together.argmax(axis=1) == alone.argmax(axis=1)).all()
    assert together == pytest.approx(alone, abs=1e-5)
    assert together == pytest.approx(backwards, abs=1e-5)
    assert predictor.predict([]).probabilities.shape == (0, 3)


def test_it_runs_batches_that_lost_some_of_their_rows(float32: OnnxPredictor) -> None:
    assert isinstance(float32, BatchPredictor)
    texts = invented_texts()
    whole = float32.predict(texts).probabilities
    batches = [batch.only(batch.rows[::2]) for batch in float32.plan(texts)]
    done = list(float32.run(batches))
    assert {batch.rows for batch, _ in done} == {batch.rows for batch in batches}
    for batch, predictions in done:
        assert predictions.probabilities == pytest.approx(whole[list(batch.rows)], abs=1e-5)


def test_long_texts_are_cut_and_counted(float32: OnnxPredictor) -> None:
    predictions = float32.predict([TextPair("the red moon", "zorbs juggle"), TextPair("the red moon " * 50, "zorbs")])
    assert list(predictions.is_truncated) == [False, True]


def test_two_labels_are_read_as_entailed_or_not(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, ("not_entailment", "entailment"))
    predictor = load(folder)
    probabilities = check_predictions(predictor.predict(invented_texts()), 60, "model").probabilities
    assert (probabilities[:, 2] == 0).all()
    assert_agrees(predictor, exact(folder))


def test_int8_is_another_model_and_nearly_the_same(int8: OnnxPredictor, float32: OnnxPredictor) -> None:
    texts = invented_texts()
    found = check_predictions(int8.predict(texts), 60, "model").probabilities
    expected = float32.predict(texts).probabilities
    assert (found != expected).any(axis=1).all()
    assert np.abs(found - expected).mean() < 0.02
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.9
    assert int8.info.dtype == "int8"
    assert int8.info.backend == "onnx"
    assert int8.info.fingerprint != float32.info.fingerprint


def test_int8_with_weights_that_layers_share(tmp_path: Path) -> None:
    folder, texts = save_checkpoint(tmp_path, family="Albert", embedding_size=16), invented_texts()
    found = check_predictions(load(folder, INT8).predict(texts), 60, "model").probabilities
    assert np.abs(found - exact(folder).predict(texts).probabilities).mean() < 0.02


def test_int8_products_are_close_row_by_row(tmp_path: Path) -> None:
    """One product alone, with rows of very different ranges: none may be drowned by another."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    chance = np.random.default_rng(0)
    weight = chance.normal(size=(64, 32)).astype(np.float32)
    weight[:, 0] = 0
    ranges = np.array([0.001, 1, 1000, 0, 1])[:, None]
    rows = (ranges * (chance.normal(size=(5, 64)) + 2)).astype(np.float32)
    rows[4] = 3  # all one value
    rows = np.append(rows, np.eye(1, 64, dtype=np.float32) * 5, axis=0)  # all but one are zero, far from the middle
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["rows", "weight"], ["product"])],
        "product",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("product", TensorProto.FLOAT, ["n", 32])],
        [numpy_helper.from_array(weight, "weight")],
    )
    path = tmp_path / "float32.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    write_int8(path, tmp_path / "int8.onnx")
    written = onnx.load(tmp_path / "int8.onnx")
    onnx.checker.check_model(written)
    assert "MatMulInteger" in {node.op_type for node in written.graph.node}
    assert "weight" not in {tensor.name for tensor in written.graph.initializer}
    session = onnxruntime.InferenceSession(tmp_path / "int8.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"rows": rows})
    size = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(weight, axis=0).max()
    assert (np.abs(found - rows @ weight) <= 0.005 * size).all()
    for row, product in zip(rows, found, strict=True):
        assert (session.run(None, {"rows": row[None]})[0][0] == product).all()


def test_a_model_that_would_stay_in_float32_has_no_int8(tmp_path: Path) -> None:
    """GPT-2 multiplies by matrices in another way; float32 under the name of int8 would be a lie."""
    folder = save_checkpoint(tmp_path, family="GPT2", pad_token_id=0, bos_token_id=2, eos_token_id=3)
    with pytest.raises(ModelError, match="ONNX Runtime cannot run it: most of its matrix products cannot be"):
        load(folder, INT8)


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    ("family", "settings", "reason"),
    [
        # Mixes tokens by a Fourier transform, which the export does not know.
        ("FNet", {"type_vocab_size": 4}, "Exporting the operator 'aten::fft_fftn' to ONNX"),
        # Cuts a text into as many pieces as it has tokens: the graph keeps the number of its example.
        ("Bert", {"chunk_size_feed_forward": 1}, "[ONNXRuntimeError]"),
    ],
)
def test_a_model_that_cannot_be_exported(
    tmp_path: Path,
    temporary_folder: Path,
    capfd: pytest.CaptureFixture[str],
    family: str,
    settings: dict[str, Any],
    reason: str,
) -> None:
    folder = save_checkpoint(tmp_path / "model", family=family, **settings)
    assert exact(folder).predict(invented_texts(4)).probabilities.shape == (4, 3)  # torch can
    capfd.readouterr()
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = str(caught.value)
    assert message.startswith(f"--model={folder}: ONNX Runtime cannot run it: {reason}")
    assert message.endswith("\nLeave --bbnli-backend and --bbnli-dtype out: torch computes it then.")
    assert len(message) < 400 + len(str(folder))
    assert capfd.readouterr() == ("", "")
    assert list(temporary_folder.iterdir()) == []


def test_a_graph_that_computes_something_else_is_refused(random_bert: Path, float32: OnnxPredictor) -> None:
    model, texts = exact(random_bert)._model, float32._encoder.encode(probe_texts())
    assert len({len(text.ids) for text in texts}) > 2
    expected = _torch_logits(model, texts)
    _check(float32._session, texts, expected)
    expected[-1] += 0.1
    with pytest.raises(ValueError, match=r"does not compute what the model does, logits are off by 0\.1"):
        _check(float32._session, texts, expected)


def test_loading_leaves_no_trace(
    random_bert: Path, temporary_folder: Path, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    import torch

    def settings() -> list[Any]:
        files = Path("/proc/self/fd")  # not on every system
        n_files = len(list(files.iterdir())) if files.exists() else 0
        root = logging.root
        return [root.manager.disable, list(root.handlers), list(warnings.filters), torch.get_num_threads(), n_files]

    before = settings()
    capfd.readouterr()
    load(random_bert, INT8)
    os.write(1, b"still here")
    assert capfd.readouterr() == ("still here", "")
    assert len(recwarn) == 0
    assert settings() == before
    assert list(temporary_folder.iterdir()) == []


def test_workers_share_the_cores(random_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: 8)
    checkpoint = find_checkpoint(str(random_bert), None, FLOAT32)
    assert OnnxPredictor(checkpoint, Share(index=1, count=3)).n_threads == 2


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package(random_bert: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError) as caught:
        load(random_bert)
    assert str(caught.value) == ('--bbnli-backend=onnx needs onnx and onnxruntime: pip install "bbnli-audit[onnx]"')


def test_weights_that_are_not_numbers_are_refused_as_on_the_exact_path(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path)
    edit_weights(folder, lambda tensors: tensors["classifier.bias"].fill_(float("nan")))
    with pytest.raises(ModelError, match=r"not finite \(NaN or infinity\) for 4 of 4 texts"):
        check_predictions(load(folder).predict(invented_texts(4)), 4, "model")


def test_a_batch_that_breaks_is_told_without_its_texts(
    float32: OnnxPredictor, capfd: pytest.CaptureFixture[str]
) -> None:
    unknown = EncodedText(np.array([2, 9999, 3], dtype=np.int32), np.zeros(3, dtype=np.int32), is_truncated=False)
    with pytest.raises(ModelError, match=r"broke on a batch of 1 texts of up to 3 tokens: \[ONNXRuntimeError\]"):
        float32.forward(Batch((0,), (unknown,), 3))
    assert capfd.readouterr() == ("", "")
