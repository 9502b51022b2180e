"""Causal language models on small checkpoints made here: answers, first tokens, prompts, and what is refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.language_model.answers import Answer, parse_answer
from bbnli_audit.models.opening import plan_model
from bbnli_audit.models.prompts import BUILT_IN, Prompt
from bbnli_audit.models.protocol import check_predictions
from tests.tiny_causal import (
    GREEDY,
    PROMPT,
    SPECIAL,
    Decoding,
    find,
    load,
    save_answering,
    save_causal,
    texts_of_few_premises,
    written,
)
from tests.tiny_checkpoint import edit_weights

CHAT = "{% for m in messages %}[USER] {{ m['content'] }}{% endfor %} [BOT] {{ DATE }}"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_answering(tmp_path_factory.mktemp("llama"))


def test_answers_are_those_of_transformers_generate(llama: Path) -> None:
    import torch

    predictor = load(llama, how=Decoding(12))
    model, texts = predictor._model, texts_of_few_premises(3, 3)
    for text, answer in zip(texts, written(predictor, texts, is_plain=False), strict=True):
        ids = torch.tensor([predictor._prompts._ids_of(text)])
        found = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=12, pad_token_id=0
        )
        assert found[0, ids.shape[1] :].tolist()[: len(answer)] == answer


def test_an_answer_ends_as_soon_as_it_is_settled(llama: Path) -> None:
    predictor = load(llama, how=Decoding(20))
    texts = texts_of_few_premises(4, 6)
    answers = written(predictor, texts, is_plain=False)
    kinds = [parse_answer(predictor._prompts.text_of(answer)) for answer in answers]
    settled = [len(answer) for answer, kind in zip(answers, kinds, strict=True) if kind is not Answer.UNPARSED]
    assert settled
    assert min(settled) < 10
    assert max(map(len, answers)) == 20


def test_first_tokens_are_summed_over_spellings(llama: Path) -> None:
    import torch

    predictor, texts = load(llama, how=Decoding(first_token=True)), texts_of_few_premises(2, 3)
    found = predictor.predict(texts).probabilities
    vocabulary = predictor._prompts._tokenizer.get_vocab()
    for text, row in zip(texts, found.tolist(), strict=True):
        ids = torch.tensor([predictor._prompts._ids_of(text)])
        with torch.no_grad():
            probabilities = predictor._model(ids).logits[0, -1].double().softmax(-1)
        yes, no = (
            sum(probabilities[vocabulary[word]].item() for word in pair) for pair in (("Yes", "yes"), ("No", "no"))
        )
        expected = [yes / (yes + no), no / (yes + no), 0.0] if yes + no >= 0.05 else [0.0, 0.0, 1.0]
        assert row == pytest.approx(expected, abs=1e-5)
    check_predictions(predictor.predict(texts), len(texts), "tiny")


def test_a_first_token_that_is_neither_is_unparsed(tmp_path: Path) -> None:
    folder = save_causal(tmp_path)

    def silence(tensors: dict[str, Any]) -> None:
        tensors["lm_head.weight"][4:8] = 0.0
        tensors["lm_head.weight"][20] *= 50.0

    edit_weights(folder, silence)
    rows = load(folder, how=Decoding(first_token=True)).predict(texts_of_few_premises(5, 4)).probabilities
    assert [0.0, 0.0, 1.0] in rows.tolist()
    assert rows.sum(axis=1) == pytest.approx(1.0)


def test_a_tokenizer_without_yes_and_no_cannot_be_read_by_first_tokens(tmp_path: Path) -> None:
    folder = save_causal(tmp_path)
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"Yes"', '"Yes1"').replace('"yes"', '"yes1"'))
    with pytest.raises(ModelError, match="its tokenizer has no single token for yes or no"):
        load(folder, how=Decoding(first_token=True)).predict(texts_of_few_premises(1, 1))


def test_a_chat_template_is_used_and_writes_no_date(tmp_path: Path) -> None:
    predictor = load(save_causal(tmp_path, chat=CHAT.replace("DATE", "strftime_now('%d')")))
    text = TextPair("the red moon", "zorbs juggle")
    assert predictor._prompts._as_chat("hello").split() == ["[USER]", "hello", "[BOT]", "01", "Jan", "2025"]
    ids = predictor.plan([text])[0].inputs[0].ids
    assert ids[0] == SPECIAL.index("[USER]")
    assert SPECIAL.index("[BOT]") in ids


def test_what_is_thought_aloud_from_the_start_is_no_answer(tmp_path: Path) -> None:
    predictor = load(save_causal(tmp_path, chat="{{ messages[0]['content'] }} <think>\n"))
    assert parse_answer(predictor._prompts.text_of([4, 8])) is Answer.UNPARSED  # "Yes :"


def test_a_long_premise_is_cut_and_counted(llama: Path) -> None:
    predictor = load(llama)
    long, short = TextPair("zorbs juggle " * 200, "quints walk past"), TextPair("zorbs juggle", "quints walk past")
    predictions = predictor.predict([long, short])
    assert predictions.is_truncated.tolist() == [True, False]
    same = predictor.predict([TextPair(f"{long.premise} moon", long.hypothesis), TextPair(long.premise, "zorbs walk")])
    assert predictions.remains is not None
    assert same.remains is not None
    assert predictions.remains[0] == same.remains[0]
    assert len({0, *predictions.remains.tolist(), *same.remains.tolist()}) == 4, "the hypothesis is kept"
    rows = {
        batch.rows[at]: entry.ids for batch in predictor.plan([long, short]) for at, entry in enumerate(batch.inputs)
    }
    assert len(rows[0]) == 256 - 64
    assert rows[0][-11:] == rows[1][-11:]
    with pytest.raises(
        ModelError, match=r"takes 192 tokens besides its answer; the prompt 'long' needs 3.. even without"
    ):
        load(llama, Prompt("long", "{premise} {hypothesis}" + " the" * 300))


def test_the_fingerprint_names_all_that_decides_an_answer(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "one", chat=CHAT)

    def fingerprint(folder: Path = folder, prompt: Prompt = PROMPT, how: Decoding = GREEDY) -> str:
        return find(folder, prompt, how).info.fingerprint

    found = [
        fingerprint(),
        fingerprint(prompt=BUILT_IN["true"]),
        fingerprint(how=Decoding(32)),
        fingerprint(how=Decoding(first_token=True)),
        fingerprint(save_causal(tmp_path / "two", seed=1, chat=CHAT)),
        fingerprint(save_causal(tmp_path / "three", chat=CHAT.replace("[BOT]", "[USER]"))),
    ]
    assert len(set(found)) == len(found)
    assert fingerprint(prompt=Prompt("renamed", PROMPT.template)) == found[0]
    info = find(folder).info
    assert (info.kind, info.backend, info.dtype, info.labels) == (
        "generative",
        "torch",
        "float32",
        ("entailment", "not_entailment"),
    )


def test_stored_answers_need_no_model_and_no_torch(tmp_path: Path, llama: Path) -> None:
    texts = texts_of_few_premises(3, 3)
    path = tmp_path / "store.sqlite"
    first = StoredPredictor(find(llama), PredictionStore(path))
    found = first.predict(texts).probabilities
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from bbnli_audit.models.inference.store import PredictionStore\n"
        "from bbnli_audit.models.inference.stored import StoredPredictor\n"
        "from tests.tiny_causal import find, texts_of_few_premises\n"
        f"source = find(Path({str(llama)!r}))\n"
        f"predictor = StoredPredictor(source, PredictionStore(Path({str(path)!r})))\n"
        "print(predictor.predict(texts_of_few_premises(3, 3)).probabilities.tolist())\n"
        "assert 'torch' not in sys.modules and predictor.tally.n_predicted == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(found.tolist())


def test_what_is_no_language_model_is_refused(tmp_path: Path, llama: Path) -> None:
    from tests.tiny_checkpoint import save_checkpoint

    bert = str(save_checkpoint(tmp_path / "bert"))
    with pytest.raises(OptionError, match=f"--bbnli-prompt=true: --model={bert} is not a language model, so it cannot"):
        plan_model(bert, ModelOptions(prompt="true"))
    for missing, message in (
        ("model.safetensors", "no weights in safetensors"),
        ("tokenizer.json", "has no tokenizer"),
    ):
        folder = save_causal(tmp_path / missing)
        (folder / missing).unlink()
        with pytest.raises(ModelError, match=message):
            find(folder)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "nan")
    edit_weights(folder, lambda tensors: tensors["lm_head.weight"].fill_(float("nan")))
    with pytest.raises(ModelError, match=r"scores that are not finite \(NaN\)"):
        load(folder).predict(texts_of_few_premises(1, 2))
    folder = save_causal(tmp_path / "less")
    edit_weights(folder, lambda tensors: tensors.pop("model.norm.weight"))
    with pytest.raises(ModelError, match=r"its weights lack 1 of the model's tensors"):
        load(folder)
    folder = save_causal(tmp_path / "cut")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:100])
    with pytest.raises(ModelError, match="its weights cannot be loaded"):
        load(folder)
