"""Which folders hold a language model, and what is refused with which message."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.language_model.token_probability import CAUSAL, MASKED, lm_kind
from tests.tiny_checkpoint import SPECIAL, WORDS, edit_config, edit_weights
from tests.tiny_language_model import PAIRS, load_lm, save_lm


@pytest.mark.parametrize(
    ("architectures", "expected"),
    [
        (["BertForMaskedLM"], MASKED),
        (["BertForPreTraining"], MASKED),
        (["ElectraForPreTraining"], None),
        (["GPT2LMHeadModel"], CAUSAL),
        (["LlamaForCausalLM"], CAUSAL),
        (["XLMWithLMHeadModel"], None),
        (["BertForSequenceClassification"], None),
        ([], None),
        (None, None),
        ("GPT2LMHeadModel", CAUSAL),
    ],
)
def test_the_kind_is_read_from_the_config(tmp_path: Path, architectures: Any, expected: str | None) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": architectures}))
    assert lm_kind(tmp_path) == expected


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_no_readable_config_is_no_language_model(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    assert lm_kind(tmp_path) is None


def test_a_checkpoint_for_pre_training_is_read_as_masked(tmp_path: Path) -> None:
    predictor = load_lm(save_lm(tmp_path, "bert", head="BertForPreTraining"))
    assert predictor.predict([TextPair(*PAIRS[1])]).probabilities[0, 0] != 0.5


def no_mask_token(folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    settings = {key: value for key, value in json.loads(path.read_text()).items() if key != "mask_token"}
    path.write_text(json.dumps(settings))


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def no_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def cut_off(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def no_head(folder: Path) -> None:
    edit_weights(folder, lambda tensors: [tensors.pop(name) for name in list(tensors) if "transform" in name])


def looks_ahead(folder: Path) -> None:
    edit_config(folder, architectures=["BertLMHeadModel"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (no_mask_token, "its tokenizer has no mask token, so words cannot be masked.\nSet tokenizer.mask_token"),
        (pickled, "no weights in safetensors format (pytorch_model.bin)"),
        (no_tokenizer, "the folder has no tokenizer (tokenizer.json, vocab.txt"),
        (cut_off, "its weights cannot be loaded"),
        (no_head, "It has no trained language-model head"),
        (looks_ahead, "its outputs for a token depend on the tokens after it"),
    ],
)
def test_a_damaged_checkpoint_gets_a_message(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    folder = save_lm(tmp_path, "bert")
    damage(folder)
    with pytest.raises(ModelError) as caught:
        load_lm(folder)
    assert f"--model={folder}: " in str(caught.value)
    assert message in str(caught.value)
    assert "\n" in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_outputs_that_are_not_finite_are_refused(tmp_path: Path, value: float) -> None:
    folder = save_lm(tmp_path, "bert")
    edit_weights(folder, lambda tensors: tensors["cls.predictions.bias"].fill_(value))
    queries = [TextPair(*pair) for pair in PAIRS[:2]]
    with pytest.raises(ModelError, match=r"not finite \(NaN or infinity\) for 2 of 2 pairs of sentences"):
        load_lm(folder).predict(queries)


def test_tokens_that_the_model_does_not_have_are_told(tmp_path: Path) -> None:
    folder = save_lm(tmp_path, "bert")
    path = folder / "tokenizer.json"
    settings = json.loads(path.read_text())
    settings["model"]["vocab"]["frobs"] = len(SPECIAL) + len(WORDS)
    path.write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="broke on a batch of 2 sentences of up to 4 tokens: "):
        load_lm(folder).predict([TextPair("frobs juggle", "zorbs juggle")])
