"""What the audit computes is what plain transformers computes: a fresh model, one text at a time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.checkpoint import find_checkpoint
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.inference.plain_check import check_against_plain
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.language_model.generative import find_generative
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import Prompt
from bbnli_audit.models.protocol import ModelSource
from tests.tiny_checkpoint import LABELS, edit_config, invented_texts, save_checkpoint
from tests.tiny_language_model import PAIRS, SIZES, load_lm, save_lm

pytestmark = pytest.mark.e2e
# Full attention up to 28 tokens, blocks of four tokens above.
BLOCKS: dict[str, Any] = {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 256, "max_length": 256}
POOLED: dict[str, Any] = {
    "d_model": 16,
    "n_head": 2,
    "d_head": 8,
    "d_inner": 32,
    "block_sizes": [1, 1],
    **dict.fromkeys(
        ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings")
    ),
}


def save_causal_classifier(folder: Path, family: str) -> Path:
    """Write a causal classifier whose tokenizer ends every text, and whose config names no padding token."""
    import torch
    import transformers
    from tokenizers import processors

    save_lm(folder, "gpt2")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    end = tokenizer.eos_token
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=[(end, tokenizer.eos_token_id)]
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {**SIZES, "vocab_size": len(tokenizer), "max_position_embeddings": 256}
    sizes |= {"intermediate_size": 32} if family == "Llama" else {}
    config = getattr(transformers, f"{family}Config")(**sizes, id2label=dict(enumerate(LABELS)), pad_token_id=None)
    getattr(transformers, f"{family}ForSequenceClassification")(config).save_pretrained(folder)
    return folder


def open_folder(folder: Path) -> HFPredictor:
    return HFPredictor(find_checkpoint(str(folder), None), "cpu")


def with_plain_transformers(folder: Path, texts: list[TextPair]) -> Any:
    """Load the checkpoint again for each text: nothing of ours takes part."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer, rows = AutoTokenizer.from_pretrained(folder), []
    for text in texts:
        model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
        with torch.no_grad():
            rows.append(model(**tokenizer(*text, return_tensors="pt")).logits[0].double().softmax(-1).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("family", ["GPT2", "Llama"])
def test_the_last_token_is_pooled_if_no_padding_token_is_named(tmp_path: Path, family: str) -> None:
    folder, texts = save_causal_classifier(tmp_path, family), invented_texts(12)
    found = open_folder(folder).predict(texts).probabilities
    assert found == pytest.approx(with_plain_transformers(folder, texts), abs=1e-5)


@pytest.mark.parametrize(("family", "settings"), [("BigBird", BLOCKS), ("Funnel", POOLED), ("Bert", {})])
def test_no_text_changes_the_next_one(tmp_path: Path, family: str, settings: dict[str, Any]) -> None:
    """BigBird keeps full attention after a short text; Funnel keeps lengths, which threads would exchange."""
    folder = save_checkpoint(tmp_path, family=family, **settings)
    predictor = open_folder(folder)
    assert predictor.has_state == (family != "Bert")
    predictor.n_threads = 2
    short, long = TextPair("a red moon", "the moon"), TextPair(" ".join(["the red moon"] * 13), "zorbs juggle")
    predictor.predict([short])
    texts = [short, *invented_texts(8), long]
    found = predictor.predict(texts).probabilities
    assert found == pytest.approx(with_plain_transformers(folder, texts), abs=1e-5)
    check_against_plain(predictor, texts)


def test_a_model_that_replaces_a_weight_while_it_computes_is_copied_for_each_use(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification

    def double(layer: Any, _inputs: Any, _outputs: Any) -> None:
        layer.weight = torch.nn.Parameter(2 * layer.weight)

    model = AutoModelForSequenceClassification.from_pretrained(save_checkpoint(tmp_path)).eval()
    text = torch.tensor([[5, 6, 7]])
    expected = model(input_ids=text).logits.tolist()
    model.classifier.register_forward_hook(double)
    copies = FreshCopies(model)
    copies.find_state(lambda tried: tried(input_ids=text))
    assert copies.has_state
    assert [copies.for_use()(input_ids=text).logits.tolist() for _ in range(2)] == [expected, expected]


def spoil(predictor: HFPredictor) -> HFPredictor:
    """Let the model in use pool another token than a fresh one does, as a wrong padding token would."""
    predictor._model.config.pad_token_id = predictor._encoder._tokenizer.eos_token_id
    return predictor


def test_a_difference_from_plain_transformers_is_an_error_with_both_figures(tmp_path: Path) -> None:
    folder, texts = save_causal_classifier(tmp_path, "GPT2"), invented_texts(6)
    check_against_plain(open_folder(folder), texts)
    with pytest.raises(ModelError) as caught:
        check_against_plain(spoil(open_folder(folder)), texts)
    told = str(caught.value)
    assert "our probabilities differ from those of plain transformers on" in told
    assert "as audited and" in told
    assert "bbnli-audit inspect" in told
    assert not any(part in told for text in texts for part in text)


def test_the_check_comes_before_any_prediction_is_kept(tmp_path: Path) -> None:
    folder, store = save_causal_classifier(tmp_path / "model", "GPT2"), PredictionStore(tmp_path / "store")
    info = find_checkpoint(str(folder), None).info
    stored = StoredPredictor(ModelSource(info, lambda: spoil(open_folder(folder)), is_content=True), store)
    for _ in range(2):  # asked again, it is not forgotten
        with pytest.raises(ModelError, match="plain transformers"):
            stored.predict(invented_texts(6))
    assert stored.tally.n_predicted == 0


@pytest.mark.parametrize("which", ["bert", "gpt2"])
def test_likelihoods_are_checked_too(tmp_path: Path, which: str) -> None:
    predictor, texts = load_lm(save_lm(tmp_path, which)), [TextPair(*pair) for pair in PAIRS[:4]]
    check_against_plain(predictor, texts)
    predictor._model._model.get_output_embeddings().register_forward_hook(lambda _module, _inputs, out: out * 3)
    with pytest.raises(ModelError, match="our probabilities differ from those of plain transformers on"):
        check_against_plain(predictor, texts)


def test_answers_are_checked_too(tmp_path: Path) -> None:
    folder = save_lm(tmp_path, "llama", max_length=256)
    settings = ModelSettings(device="cpu", prompt=Prompt("short", "{premise} {hypothesis}?"))
    predictor: Any = find_generative(str(folder), folder, settings, 4).open()
    check_against_plain(predictor, invented_texts(4))
    predictor._model.lm_head.register_forward_hook(lambda _module, _inputs, out: out * 3)
    with pytest.raises(ModelError, match="our probabilities differ from those of plain transformers on"):
        check_against_plain(predictor, invented_texts(4))


def test_a_padding_token_that_the_config_names_is_kept(tmp_path: Path) -> None:
    """Then plain transformers pools the token before it, and so do we."""
    folder, texts = save_causal_classifier(tmp_path, "GPT2"), invented_texts(6)
    edit_config(folder, pad_token_id=0)
    found = open_folder(folder).predict(texts).probabilities
    assert found == pytest.approx(with_plain_transformers(folder, texts), abs=1e-5)
