"""The label of a text depends on the text alone: not on its batch, its order, the threads or the way it is computed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.values import Pairing, TextPair
from bbnli_audit.models.batches import cut_by_length, cut_by_tokens
from bbnli_audit.models.checkpoint import find_checkpoint
from bbnli_audit.models.classifier.classify import NEAR_TIE
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.opening import plan_model
from bbnli_audit.models.protocol import Batch
from bbnli_audit.suites.bbnli import Bbnli
from tests.shared_data import shared_path
from tests.tiny_checkpoint import edit_config, edit_weights, invented_texts, save_checkpoint

pytestmark = pytest.mark.e2e


def real_texts(n_texts: int) -> list[TextPair]:
    suite = Bbnli(shared_path("data", "bbnli"), Pairing.BOTH)
    pairs = [pair for subtopic in suite.subtopics() for pair in suite.items(subtopic).usable]
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.pro, pair.anti)))
    return texts[:: len(texts) // n_texts][:n_texts]


def in_batches_of(predictor: HFPredictor, texts: list[TextPair], n_tokens: int) -> Any:
    """Predict with batches of another size, in threads."""
    batches = predictor._encoder.plan(texts, n_tokens, is_padding_free=True)
    found = np.empty((len(texts), 3))
    for batch, predictions in predictor.run(batches):
        found[list(batch.rows)] = predictions.probabilities
    return found


# A text of the larger checkpoint takes ten times as long.
@pytest.mark.parametrize(("name", "n_texts"), [("tiny-nli", 96), ("minilm-nli", 48)])
def test_every_batch_gives_the_same_bits_on_a_real_checkpoint(name: str, n_texts: int) -> None:
    predictor = HFPredictor(find_checkpoint(str(shared_path("models", name)), None), "cpu")
    assert predictor.padding_free is not None
    texts = real_texts(n_texts)
    together = predictor.predict(texts).probabilities
    alone = np.concatenate([predictor.predict([text]).probabilities for text in texts])
    backwards = predictor.predict(texts[::-1]).probabilities[::-1]
    assert (together == alone).all()
    assert (together == backwards).all()
    for n_tokens in (64, 333, 4096):
        assert (in_batches_of(predictor, texts, n_tokens) == together).all()
    # And the model's own forward, which knows nothing of our batches, says the same.
    predictor.padding_free = None
    own = predictor.predict(texts).probabilities
    assert (own.argmax(axis=1) == together.argmax(axis=1)).all()
    assert own == pytest.approx(together, abs=1e-5)


SHIFTED: dict[str, Any] = {"pad_token_id": 0, "max_position_embeddings": 80}
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}
SMALL = {"dim": 16, "hidden_dim": 32, "n_layers": 2, "n_heads": 2}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", {}),
    "roberta": ("Roberta", SHIFTED),
    "xlm-roberta": ("XLMRoberta", SHIFTED),
    "electra": ("Electra", {"embedding_size": 16}),
    "electra with a projection": ("Electra", {"embedding_size": 8}),
    "distilbert": ("DistilBert", SMALL),
    "deberta-v2": ("DebertaV2", RELATIVE),
}
PADDING_FREE = {"bert", "roberta", "xlm-roberta", "electra"}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_computed_as_transformers_does(tmp_path: Path, name: str) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    family, settings = FAMILIES[name]
    folder = save_checkpoint(tmp_path, family=family, **settings)
    predictor = HFPredictor(find_checkpoint(str(folder), None), "cpu")
    assert (predictor.padding_free is not None) == (name in PADDING_FREE)
    texts = invented_texts(40)
    found = predictor.predict(texts).probabilities
    assert (found == np.concatenate([predictor.predict([text]).probabilities for text in texts])).all()
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for text, row in zip(texts, found, strict=True):
        with torch.no_grad():
            logits = model(**tokenizer(*text, return_tensors="pt")).logits[0]
        assert row == pytest.approx(logits.double().softmax(-1).tolist(), abs=2e-5)


def test_a_model_that_the_padding_free_pass_gets_wrong_is_computed_its_own_way(tmp_path: Path) -> None:
    """Looks like BERT and is not: its attention is scaled otherwise."""
    predictor = HFPredictor(find_checkpoint(str(save_checkpoint(tmp_path)), None), "cpu")
    for layer in predictor._model.base_model.encoder.layer:
        layer.attention.self.scaling = 3.0
    assert predictor.find_padding_free() is None


def test_a_spelled_out_padding_token_is_left_to_the_model(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, family="Roberta", **SHIFTED)
    predictor = HFPredictor(find_checkpoint(str(folder), None), "cpu")
    text = TextPair("the red [PAD] moon", "zorbs juggle")
    found = predictor.predict([*invented_texts(3), text]).probabilities[-1]
    predictor.padding_free = None
    assert found == pytest.approx(predictor.predict([text]).probabilities[0], abs=1e-6)


def test_near_ties_are_settled_by_the_text_alone(tmp_path: Path) -> None:
    """With almost no head every text is a near tie; its label must not depend on the batch all the same."""
    folder = save_checkpoint(tmp_path)
    edit_weights(folder, lambda tensors: [tensors[f"classifier.{name}"].mul_(1e-6) for name in ("weight", "bias")])
    predictor = HFPredictor(find_checkpoint(str(folder), None), "cpu")
    texts = invented_texts(30)
    settled = predictor.predict(texts).probabilities
    assert (np.ptp(settled, axis=1) < NEAR_TIE).all()

    class Noisy(HFPredictor):
        """Rounds otherwise in larger batches, as some matrix libraries do."""

        def logits(self, texts: Any) -> Any:
            logits = super().logits(texts)
            return logits + (
                1e-6 * np.random.default_rng(len(texts)).normal(size=logits.shape) if len(texts) > 1 else 0
            )

    noisy = Noisy(find_checkpoint(str(folder), None), "cpu")
    for some in (texts, texts[::-1], texts[3:17]):
        batches = [Batch((0,), (noisy._encoder.encode(some)[0],), 1), *noisy.plan(some)]
        for batch in batches:
            labels = noisy.forward(batch).probabilities.argmax(axis=1)
            expected = [predictor.forward(Batch((0,), (text,), 1)).probabilities.argmax() for text in batch.inputs]
            assert list(labels) == expected


def change_weight(folder: Path) -> None:
    edit_weights(folder, lambda tensors: tensors["classifier.bias"].add_(1e-3))


def change_labels(folder: Path) -> None:
    edit_config(folder, id2label={"0": "neutral", "1": "entailment", "2": "contradiction"}, label2id=None)


def change_tokenizer(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"zorbs"', '"zorbz"'))


def change_max_length(folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(path.read_text().replace('"model_max_length": 64', '"model_max_length": 32'))


def change_nothing(folder: Path) -> None:
    (folder / "README.md").write_text("another note")


@pytest.mark.parametrize("dtype", [None, "bf16"])
@pytest.mark.parametrize(
    "change",
    [change_nothing, change_weight, change_labels, change_tokenizer, change_max_length],
    ids=lambda c: c.__name__,
)
def test_what_decides_an_answer_is_part_of_its_key(
    tmp_path: Path, change: Callable[[Path], None], dtype: str | None
) -> None:
    folder, texts = save_checkpoint(tmp_path / "model"), invented_texts(10)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def n_predicted(dtype: str | None) -> int:
        options = ModelOptions(store=tmp_path / "store", dtype=dtype, device="cpu")
        opened = plan_model(str(folder), options).open([])
        assert isinstance(opened.predictor, StoredPredictor)
        opened.predictor.predict(texts)
        opened.close()
        return opened.predictor.tally.n_predicted

    assert n_predicted(None) == len(texts)
    change(folder)
    is_same = change is change_nothing and dtype is None
    if change is not change_nothing:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} != before
    assert n_predicted(dtype) == (0 if is_same else len(texts))
    assert n_predicted(dtype) == 0


def test_a_label_order_given_by_hand_is_part_of_the_key(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path)
    infos = [
        find_checkpoint(str(folder), labels, hash_content=lambda path: path.name).info
        for labels in (None, "entailment,neutral,contradiction", "neutral,entailment,contradiction")
    ]
    assert infos[0] == infos[1] != infos[2]
    assert replace(infos[2], fingerprint="", labels=()) == replace(infos[0], fingerprint="", labels=())


def test_batches_hold_every_text_once_and_respect_their_size() -> None:
    lengths = [int(length) for length in np.random.default_rng(1).integers(3, 300, size=500)]
    for batches in (list(cut_by_tokens(lengths, 1024)), list(cut_by_length(lengths, 1024, 4))):
        assert sorted(row for batch in batches for row in batch) == list(range(500))
        # Longest first: what does not fit shows at once.
        assert max(lengths) in [lengths[row] for row in batches[0]]
    assert all(sum(lengths[row] for row in batch) <= 1024 for batch in cut_by_tokens(lengths, 1024))
    for batch in cut_by_length(lengths, 1024, 4):
        assert len({lengths[row] for row in batch}) == 1
        assert len(batch) <= max(4, 1024 // lengths[batch[0]])
    assert list(cut_by_tokens([5000], 1024)) == [[0]]  # longer than a batch: alone
    assert list(cut_by_tokens([], 1024)) == list(cut_by_length([], 1024, 4)) == []
