"""The Hugging Face predictor on small checkpoints made here: what it gives, and what it refuses."""

import json
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit import AuditOptions, Verdict, run_audit
from bbnli_audit.core.errors import AuditError, ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.checkpoint import find_checkpoint
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.find import find_model
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.protocol import ModelSource, check_predictions
from tests.invented import LIMITS, limits, write_templates
from tests.tiny_checkpoint import LABELS, WORDS, edit_config, edit_weights, save_checkpoint

TEXTS = [
    TextPair("the red moon", "zorbs juggle"),
    TextPair("a workshop on the red moon is busy .", "most zorbs juggle better than quints ."),
    TextPair("many quints walk past", "it is usual for zorbs to be nimble"),
    TextPair("there is a workshop", "the workshop was built last year"),
]


def load(name: str, device: str = "cpu") -> HFPredictor:
    return HFPredictor(find_checkpoint(name, None), device)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def predictor(checkpoint: Path) -> HFPredictor:
    return load(str(checkpoint), device="cpu")


def test_it_gives_what_transformers_gives(checkpoint: Path, predictor: HFPredictor) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    found = predictor.predict(TEXTS).probabilities
    for text, row in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            logits = model(**tokenizer(*text, return_tensors="pt")).logits[0]
        assert row == pytest.approx(logits.softmax(-1).tolist(), abs=1e-6)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_permuting_columns_together_with_id2label_changes_nothing(
    tmp_path: Path, predictor: HFPredictor, order: tuple[int, ...]
) -> None:
    folder = save_checkpoint(tmp_path)

    def permute(tensors: dict[str, Any]) -> None:
        for name in ("classifier.weight", "classifier.bias"):
            tensors[name] = tensors[name][list(order)].contiguous()

    edit_weights(folder, permute)
    edit_config(folder, id2label={str(row): LABELS[column] for row, column in enumerate(order)}, label2id=None)
    permuted = load(str(folder), device="cpu")
    assert permuted.info.labels == tuple(LABELS[column] for column in order)
    assert permuted.predict(TEXTS).probabilities == pytest.approx(predictor.predict(TEXTS).probabilities, abs=1e-12)
    if order != (0, 1, 2):
        assert permuted.info.fingerprint != predictor.info.fingerprint


texts = st.builds(
    TextPair,
    *(st.lists(st.sampled_from(WORDS), min_size=1, max_size=20).map(" ".join) for _ in range(2)),
)


@settings(max_examples=10)
@given(st.lists(texts, min_size=1, max_size=40))
def test_a_text_does_not_depend_on_its_batch(predictor: HFPredictor, drawn: list[TextPair]) -> None:
    together = predictor.predict(drawn).probabilities
    backwards = predictor.predict(drawn[::-1]).probabilities[::-1]
    alone = np.concatenate([predictor.predict([text]).probabilities for text in drawn])
    assert together == pytest.approx(alone, abs=1e-5)
    assert together == pytest.approx(backwards, abs=1e-5)
    assert (predictor.predict(drawn).probabilities == together).all()


def test_no_texts_give_no_rows(predictor: HFPredictor) -> None:
    assert predictor.predict([]).probabilities.shape == (0, 3)


def test_long_texts_are_cut_and_counted(predictor: HFPredictor) -> None:
    long = TextPair("the red moon " * 50, "zorbs juggle")
    predictions = predictor.predict([TEXTS[0], long])
    assert list(predictions.is_truncated) == [False, True]
    # The premise is what is cut: another hypothesis still gives another answer.
    other = predictor.predict([TextPair(long.premise, "quints walk")])
    assert not np.allclose(predictions.probabilities[1], other.probabilities[0], atol=1e-6)


def test_texts_that_the_cut_makes_alike_are_known(tmp_path: Path) -> None:
    cut = [TextPair("the red moon " * 50 + end, "zorbs juggle") for end in ("is busy", "has quints")]
    full = TextPair(" ".join(["the red moon"] * 19) + " the red", "zorbs juggle")
    texts = [*cut, TEXTS[0], TextPair(cut[0].premise, "quints walk"), full]
    predictor = load(str(save_checkpoint(tmp_path / "tiny")))
    stored = StoredPredictor(ModelSource.of(predictor), PredictionStore(tmp_path / "store.sqlite"))
    for _ in range(2):  # predicted, then from the store
        for found in (predictor.predict(texts), stored.predict(texts)):
            assert found.is_truncated.tolist() == [True, True, False, True, False]
            assert found.remains is not None
            first, second, whole, other, fills = found.remains.tolist()
            assert first == second != 0
            assert len({0, first, whole, other}) == 4
            assert fills == first, "a text that takes all the room may be what is left of another"
        stored = StoredPredictor(ModelSource.of(predictor), PredictionStore(tmp_path / "store.sqlite"))
    assert stored.tally.n_predicted == 0


def test_pairs_whose_groups_the_tokenizer_does_not_know_are_no_data(tmp_path: Path) -> None:
    """Both sides are the same tokens, so a model cannot but answer them alike."""
    folder = str(save_checkpoint(tmp_path / "tiny"))
    told = limits(LIMITS.replace("0.60", "0.0"))
    for groups, n_alike in ((("Zorbs", "Quints"), 0), (("Flurms", "Grobs"), 9)):
        write_templates(tmp_path / "data", GROUP1=[groups[0]], GROUP2=[groups[1]])
        (row,) = run_audit(AuditOptions(model=folder, thresholds=told, data=tmp_path / "data")).subtopics
        assert (row.n_identical, row.n_unseen, row.n_truncated) == (n_alike, n_alike, 0)
        assert (row.verdicts[0].verdict is Verdict.NO_DATA) == bool(n_alike)


@pytest.mark.parametrize("length", [0, 2, -5, "many", None, float("nan")])
def test_a_model_that_takes_no_text_is_refused(tmp_path: Path, length: object) -> None:
    folder = save_checkpoint(tmp_path)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": length}))
    if length is None:
        assert load(str(folder)).predict(TEXTS).is_truncated.tolist() == [False] * len(TEXTS)
        return
    with pytest.raises(ModelError, match=r"model_max_length in its tokenizer_config.json is .*; texts need 8 tok"):
        load(str(folder))


def test_two_labels_are_read_as_entailed_or_not(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, ("not_entailment", "entailment"))
    predictor = load(str(folder), device="cpu")
    probabilities = predictor.predict(TEXTS).probabilities
    assert (probabilities[:, 2] == 0).all()
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert predictor.info.labels == ("not_entailment", "entailment")


def test_nan_weights_are_refused(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path)
    edit_weights(folder, lambda tensors: tensors["classifier.bias"].fill_(float("nan")))
    predictor = load(str(folder), device="cpu")
    with pytest.raises(ModelError, match=r"not finite \(NaN or infinity\) for 4 of 4 texts"):
        check_predictions(predictor.predict(TEXTS), 4, "model")


def cut_off(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def drop_head(folder: Path) -> None:
    edit_weights(folder, lambda tensors: [tensors.pop(name) for name in list(tensors) if "classifier" in name])


def other_size(folder: Path) -> None:
    edit_config(folder, hidden_size=32)


def no_added_tokens(folder: Path) -> None:
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({key: value for key, value in tokenizer.items() if key != "added_tokens"}))


def text_as_size(folder: Path) -> None:
    edit_config(folder, hidden_size="large")


def no_heads(folder: Path) -> None:
    edit_config(folder, num_attention_heads=0)


def number_as_architecture(folder: Path) -> None:
    edit_config(folder, architectures=[1])


def odd_digit(folder: Path) -> None:
    edit_config(folder, id2label={"0": "entailment", "1": "neutral", "²": "contradiction"})


def deep_config(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000)


def generic_labels(folder: Path) -> None:
    edit_config(folder, id2label={str(index): f"LABEL_{index}" for index in range(3)}, label2id=None)


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def no_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_off, "its weights cannot be loaded"),
        (drop_head, "its weights lack 2 of the model's tensors (classifier.bias, classifier.weight…)"),
        (other_size, "its weights do not fit its config.json (tensors: 38): bert.embeddings.LayerNorm.bias is 16, and"),
        (generic_labels, "names its outputs LABEL_0, LABEL_1, LABEL_2, so we cannot tell which one is neutral"),
        (pickled, "no weights in safetensors format (pytorch_model.bin)"),
        (no_tokenizer, "the folder has no tokenizer (tokenizer.json, vocab.txt"),
        (no_config, "the folder has no config.json"),
        (no_added_tokens, "its tokenizer cannot be loaded: KeyError: 'added_tokens'"),
        (text_as_size, "its config.json cannot be loaded: "),
        (no_heads, "its weights cannot be loaded: ZeroDivisionError"),
        (number_as_architecture, "its head is 1; this audit needs a sequence-classification head"),
        (odd_digit, "id2label in its config.json is {'0': 'entailment'"),
        (deep_config, "its config.json: is nested too deeply"),
        (broken_config, "its config.json:1: is not valid JSON"),
    ],
)
def test_a_damaged_checkpoint_gets_a_message(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    folder = save_checkpoint(tmp_path)
    damage(folder)
    with pytest.raises(AuditError) as caught:
        load(str(folder), device="cpu")
    assert str(folder) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" in str(caught.value) or damage in (broken_config, deep_config, odd_digit)  # a second line: what to do


@pytest.mark.parametrize("head", ["BertForMaskedLM", "BertModel", "BertForTokenClassification"])
def test_another_head_is_refused(tmp_path: Path, head: str) -> None:
    folder = save_checkpoint(tmp_path, head=head)
    with pytest.raises(ModelError, match=f"its head is {head}; this audit needs a sequence-classification head"):
        load(str(folder))


@pytest.mark.parametrize(
    ("device", "message"), [("cuda:99", "cannot be used here: "), ("abacus", "there is no such device. Give auto, cpu")]
)
def test_a_device_that_is_not_here(checkpoint: Path, device: str, message: str) -> None:
    with pytest.raises(AuditError, match=f"--bbnli-device={device}: {message}"):
        load(str(checkpoint), device=device)


def test_a_hub_name_without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        ModelError, match="--model=nobody/nothing-here: is not a folder here, and cannot be fetched from the hub"
    ):
        find_model("nobody/nothing-here")


def test_a_hub_name_is_read_from_the_cache_without_network(
    tmp_path: Path, checkpoint: Path, predictor: HFPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "models--owner--name"
    shutil.copytree(checkpoint, place / "snapshots" / ("0" * 40))
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    found = find_model("owner/name")
    assert found.info.name == "owner/name"
    assert found.info.fingerprint == predictor.info.fingerprint


def test_the_fingerprint_follows_the_content_and_not_the_name(tmp_path: Path, predictor: HFPredictor) -> None:
    same = load(str(save_checkpoint(tmp_path / "copy")), device="cpu")
    other = load(str(save_checkpoint(tmp_path / "other", seed=1)), device="cpu")
    assert same.info.fingerprint == predictor.info.fingerprint
    assert other.info.fingerprint != predictor.info.fingerprint
