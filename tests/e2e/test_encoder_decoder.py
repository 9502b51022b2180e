"""Encoder-decoder models that are asked: answers as transformers gives them, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.models.language_model.forms import form_of
from bbnli_audit.models.opening import plan_model
from bbnli_audit.models.prompts import BUILT_IN
from tests.tiny_causal import Decoding, load, texts_of_few_premises
from tests.tiny_checkpoint import WORDS

ANSWERS = ("Yes", "No", "Entailment", "Neutral", "Contradiction", "Hypothesis", "Answer", "with", "or", ".", ":")
FAMILIES = {"T5": 1, "Bart": 2}  # tokens that every answer begins with


def save_seq2seq(folder: Path, family: str) -> Path:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    torch.manual_seed(3)
    special = ["<pad>", "</s>", "<unk>", "<s>"]
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys([*special, *ANSWERS, *WORDS]))}
    ids: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "vocab_size": len(vocabulary)}
    if family == "T5":
        sizes: dict[str, Any] = {
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 32,
            "num_layers": 2,
            "num_heads": 2,
            "initializer_factor": 20.0,
        }
        config: Any = transformers.T5Config(**sizes, **ids)
        config.decoder_start_token_id = 0
    else:
        layers = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
        sizes = {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 256, **layers}
        how: dict[str, Any] = {
            "decoder_start_token_id": 1,
            "forced_bos_token_id": 3,
            "bos_token_id": 3,
            "init_std": 0.5,
        }
        config = transformers.BartConfig(**sizes, **how, **ids)
    model = getattr(transformers, f"{family}ForConditionalGeneration")(config)
    model.generation_config.forced_bos_token_id = 3 if family == "Bart" else None
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    names = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=256, **names)  # type: ignore[no-untyped-call]
    fast.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_transformers_generate(tmp_path: Path, family: str) -> None:
    import torch

    predictor, texts = load(save_seq2seq(tmp_path, family), BUILT_IN["nli"], Decoding(6)), texts_of_few_premises(2, 3)
    rows = []
    for text in texts:
        ids = predictor._prompts.encode(text).ids
        assert ids[-1] == 1, "an encoder reads the end of the text"
        answer = predictor._decoder.decode_alone(ids)
        with torch.no_grad():
            found = predictor._model.generate(torch.tensor([ids]), do_sample=False, num_beams=1, max_new_tokens=9)
        written = found[0].tolist()[FAMILIES[family] :]
        assert answer == written[: len(answer)]
        assert len(answer) == 6 or written[len(answer)] == 1
        rows.append(list(form_of(BUILT_IN["nli"]).row_of_text(predictor._prompts.text_of(answer))))
    assert predictor.predict(texts).probabilities.tolist() == rows
    assert len({tuple(predictor._decoder.decode_alone(predictor._prompts.encode(t).ids)) for t in texts}) > 1


def test_first_tokens_are_read_and_agree_with_plain_transformers(tmp_path: Path) -> None:
    import torch

    folder, texts = save_seq2seq(tmp_path, "T5"), texts_of_few_premises(2, 3)
    predictor = load(folder, BUILT_IN["nli"], Decoding(first_token=True))
    ours, plain = predictor.beside_plain(texts)
    assert ours == pytest.approx(plain, abs=1e-6)
    vocabulary = predictor._prompts._tokenizer.get_vocab()
    for text, row in zip(texts, predictor.predict(texts).probabilities.tolist(), strict=True):
        ids = torch.tensor([predictor._prompts.encode(text).ids])
        with torch.no_grad():
            logits = predictor._model(input_ids=ids, decoder_input_ids=torch.tensor([[0]])).logits[0, -1]
        shares = logits.double().softmax(-1)
        masses = [shares[vocabulary[word]].item() for word in ("Entailment", "Neutral", "Contradiction")]
        expected = [mass / sum(masses) for mass in masses] if sum(masses) >= 0.05 else [1 / 3] * 3
        assert row == pytest.approx(expected, abs=1e-5)


def test_it_has_to_be_asked(tmp_path: Path) -> None:
    name = str(save_seq2seq(tmp_path, "T5"))
    with pytest.raises(OptionError, match="is an encoder-decoder model, which has to be asked"):
        plan_model(name, ModelOptions())
    assert plan_model(name, ModelOptions(prompt="nli")).is_asked
