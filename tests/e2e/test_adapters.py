"""Adapters of peft are merged into their base model, and never left out in silence."""

import json
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.models.checkpoint import check_folder, find_checkpoint
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.inference.plain_check import check_against_plain
from bbnli_audit.models.opening import plan_model
from tests.entrances import NO_FILES
from tests.loopback_hub import loopback_hub
from tests.tiny_checkpoint import edit_weights, invented_texts, save_checkpoint

pytestmark = pytest.mark.e2e


def save_adapter(folder: Path, base: Path, **settings: Any) -> Path:
    """Write an adapter whose weights are random, so that it changes every answer."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(base, **settings)
    torch.manual_seed(1)
    config = LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"], init_lora_weights=False)
    get_peft_model(model, config).save_pretrained(str(folder))
    return folder


def with_peft(base: Path, adapter: Path, **settings: Any) -> Any:
    """Compute texts with the adapter beside its base, not merged: nothing of ours takes part."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(base, **settings)
    model, tokenizer = PeftModel.from_pretrained(model, adapter).eval(), AutoTokenizer.from_pretrained(base)
    with torch.no_grad():
        logits = [model(**tokenizer(*text, return_tensors="pt")).logits[0] for text in invented_texts(6)]
    return torch.stack(logits).double().softmax(-1).numpy()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return save_checkpoint(tmp_path / "base")


def test_an_adapter_is_merged_and_fingerprinted_with_its_base(tmp_path: Path, base: Path) -> None:
    adapter, texts = save_adapter(tmp_path / "adapter", base), invented_texts(6)
    found = find_checkpoint(str(adapter), None)
    predictor = HFPredictor(found, "cpu")
    rows = predictor.predict(texts).probabilities
    assert rows == pytest.approx(with_peft(base, adapter), abs=1e-5)
    assert np.abs(rows - HFPredictor(find_checkpoint(str(base), None), "cpu").predict(texts).probabilities).max() > 0.01
    check_against_plain(predictor, texts)
    edit_weights(base, lambda tensors: tensors["classifier.bias"].add_(1))
    assert found.fingerprint() != found.info.fingerprint
    edit_weights(base, lambda tensors: tensors["classifier.bias"].sub_(1))
    assert found.fingerprint() == found.info.fingerprint
    assert plan_model(str(adapter), ModelOptions(device="cpu")).open([]).predictor.info == found.info


def save_plain_adapter(folder: Path, base: Path) -> Path:
    """Write an adapter whose settings say no more than its rank and scale."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(2)
    name = "base_model.model.bert.encoder.layer.0.attention.self.query.lora_{}.weight"
    width = json.loads((base / "config.json").read_text())["hidden_size"]
    folder.mkdir()
    save_file(
        {name.format("A"): torch.randn(2, width), name.format("B"): torch.randn(width, 2)},
        folder / "adapter_model.safetensors",
    )
    settings = {
        "peft_type": "LORA",
        "task_type": None,
        "r": 2,
        "lora_alpha": 3,
        "target_modules": ["0.attention.self.query"],
        "base_model_name_or_path": str(base),
    }
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    return folder


def test_a_plain_adapter_needs_no_library_and_gives_what_peft_gives(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter, texts = save_plain_adapter(tmp_path / "adapter", base), invented_texts(6)
    expected = with_peft(base, adapter)
    monkeypatch.setitem(sys.modules, "peft", None)
    predictor = HFPredictor(find_checkpoint(str(adapter), None), "cpu")
    assert predictor.predict(texts).probabilities == pytest.approx(expected, abs=1e-5)
    plain = HFPredictor(find_checkpoint(str(base), None), "cpu").predict(texts).probabilities
    assert np.abs(expected - plain).max() > 0.01
    check_against_plain(predictor, texts)


ODD_SETTINGS = [
    *(("r", value) for value in (None, True, 0, -2, 2.0, "2", [2], 1e308)),
    *(("lora_alpha", value) for value in (None, True, "3", [3], math.nan, math.inf)),
    *(("target_modules", value) for value in ([], [1], [""], [["query"]])),
]


@pytest.mark.parametrize(("name", "value"), ODD_SETTINGS)
def test_odd_settings_of_a_plain_adapter_are_refused_before_it_is_loaded(
    tmp_path: Path, base: Path, name: str, value: object
) -> None:
    adapter = save_plain_adapter(tmp_path / "adapter", base)
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(ModelError, match=rf"in its adapter_config\.json {name} is .*; expected"):
        check_folder(str(adapter))


@pytest.mark.parametrize(("down", "up"), [((3, 16), (16, 3)), ((2, 16), (1, 2)), ((2, 1), (16, 2)), ((2,), (16, 2))])
def test_matrices_that_do_not_fit_are_not_stretched(
    tmp_path: Path, base: Path, down: tuple[int, ...], up: tuple[int, ...]
) -> None:
    """torch would add a row to every row, and another rank than r is another scale."""
    import torch

    def change(tensors: dict[str, Any]) -> None:
        for name in tensors:
            tensors[name] = torch.ones(down if "lora_A" in name else up)

    adapter = save_plain_adapter(tmp_path / "adapter", base)
    edit_weights(adapter, change, "adapter_model.safetensors")
    with pytest.raises(ModelError, match="and with r = 2 should be 2 x 16 and 16 x 2"):
        HFPredictor(find_checkpoint(str(adapter), None), "cpu")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("query", "value", "attention.self.value, which target_modules does not name"),
        ("base_model.model.", "", "tensors are for bert.encoder.layer.0.attention.self.query, which target_modules"),
        ("encoder.layer.0", "encoder.layer.9", "its weights cannot be loaded"),
        ("encoder.layer.0.attention.self.query", "embeddings.word_embeddings", "a Embedding, and a plain adapter"),
    ],
)
def test_a_plain_adapter_for_other_layers_is_refused(tmp_path: Path, base: Path, old: str, new: str, told: str) -> None:
    adapter = save_plain_adapter(tmp_path / "adapter", base)
    if "embeddings" in new:
        path = adapter / "adapter_config.json"
        path.write_text(path.read_text().replace("0.attention.self.query", "word_embeddings"))

    def rename(tensors: dict[str, Any]) -> None:
        for name in list(tensors):
            tensors[name.replace(old, new)] = tensors.pop(name)

    edit_weights(adapter, rename, "adapter_model.safetensors")
    with pytest.raises(ModelError, match=told):
        HFPredictor(find_checkpoint(str(adapter), None), "cpu")


def test_a_plain_adapter_with_other_tensors_is_refused(tmp_path: Path, base: Path) -> None:
    adapter = save_plain_adapter(tmp_path / "adapter", base)
    edit_weights(adapter, lambda tensors: tensors.pop(next(iter(tensors))), "adapter_model.safetensors")
    with pytest.raises(ModelError, match="its tensors are not pairs of lora_A"):
        HFPredictor(find_checkpoint(str(adapter), None), "cpu")


def test_a_head_that_comes_with_the_adapter_has_its_own_number_of_outputs(tmp_path: Path) -> None:
    base, three = save_checkpoint(tmp_path / "base", ("no", "yes")), {"num_labels": 3, "ignore_mismatched_sizes": True}
    adapter = save_adapter(tmp_path / "adapter", base, **three)
    with pytest.raises(ModelError, match="names its outputs LABEL_0, LABEL_1, LABEL_2"):
        check_folder(str(adapter))
    found = find_checkpoint(str(adapter), "entailment,neutral,contradiction")
    rows = HFPredictor(found, "cpu").predict(invented_texts(6)).probabilities
    assert rows == pytest.approx(with_peft(base, adapter, **three), abs=1e-5)


def test_without_peft_an_adapter_is_an_error_even_beside_full_weights(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = save_adapter(save_checkpoint(tmp_path / "full"), base)
    check_folder(str(full))
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ModelError, match=r"has an adapter \(adapter_config\.json\)\. To merge it, install .* peft: "):
        check_folder(str(full))


@pytest.mark.parametrize("is_own", [True, False], ids=["its own folder", "another adapter"])
def test_a_base_with_an_adapter_of_its_own_is_refused(tmp_path: Path, base: Path, *, is_own: bool) -> None:
    """The library transformers would merge that one too, if `peft` is there: twice, or not at all."""
    adapter = save_plain_adapter(tmp_path / "adapter", base)
    beside = save_plain_adapter(tmp_path / "other", base)
    for path in (adapter if is_own else beside).iterdir():
        shutil.copy(path, base)
    with pytest.raises(ModelError, match=r"the base of its adapter, .*, is an adapter too, and only one adapter can"):
        check_folder(str(base if is_own else adapter))


@pytest.mark.parametrize("make", NO_FILES, ids=lambda make: make.__name__)
def test_settings_that_are_no_file_are_not_overlooked_beside_full_weights(
    base: Path, make: Callable[[Path], None]
) -> None:
    make(base / "adapter_config.json")
    with pytest.raises(ModelError, match=r"its adapter_config\.json: (cannot be read|there is no such file)"):
        check_folder(str(base))


def test_what_is_wrong_with_an_adapter_is_told(tmp_path: Path, base: Path) -> None:
    adapter = save_adapter(tmp_path / "adapter", base)
    path = adapter / "adapter_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "base_model_name_or_path": "./gone"}))
    with pytest.raises(ModelError, match=r"for the base model \./gone, and there is no such folder"):
        check_folder(str(adapter))
    path.write_text("{}")
    with pytest.raises(ModelError, match="there is no base_model_name_or_path"):
        check_folder(str(adapter))
    path.write_text(json.dumps(settings))
    (adapter / "adapter_model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"and no adapter_model\.safetensors"):
        check_folder(str(adapter))


def test_the_base_of_an_adapter_is_fetched_from_the_hub_in_its_first_run(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter, texts = save_adapter(tmp_path / "adapter", base), invented_texts(6)
    (base / "README.md").write_text("Not fetched: it decides no answer.")
    here = plan_model(str(adapter), ModelOptions(device="cpu")).open([]).predictor
    expected = here.predict(texts).probabilities.tolist()
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "base_model_name_or_path": "owner/base"}))
    with loopback_hub({"owner/base": base}, tmp_path / "cache", monkeypatch):
        fetched = plan_model(str(adapter), ModelOptions(device="cpu")).open([]).predictor
        assert fetched.predict(texts).probabilities.tolist() == expected
    assert fetched.info.labels == here.info.labels
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert plan_model(str(adapter), ModelOptions(device="cpu")).open([]).predictor.info == fetched.info


def test_a_folder_of_checkpoints_names_them(tmp_path: Path) -> None:
    for step in (1000, 200, 30):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-best.txt").touch()
    with pytest.raises(ModelError) as caught:
        check_folder(str(tmp_path))
    assert "It holds checkpoint-30, checkpoint-200, checkpoint-1000." in str(caught.value)
    assert str(caught.value).endswith(f"Give one of them: --model={tmp_path}/checkpoint-1000")
