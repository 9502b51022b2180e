"""Causal language models on small checkpoints made here: batches, shared starts, first tokens, and what is refused."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.inference.plain_check import check_against_plain
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.language_model import decoding
from bbnli_audit.models.language_model.answers import Answer, parse_answer
from bbnli_audit.models.language_model.decoding import Decoder
from bbnli_audit.models.language_model.forms import FORMS
from bbnli_audit.models.language_model.generative import GenerativePredictor, find_generative
from bbnli_audit.models.language_model.token_tree import grow
from bbnli_audit.models.loading import one_core_each
from bbnli_audit.models.opening import plan_model
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import BUILT_IN, YES_NO, Prompt
from bbnli_audit.models.protocol import ModelSource, check_predictions
from tests.tiny_checkpoint import WORDS, edit_weights, invented_texts

SPECIAL = ["[UNK]", "[END]", "[USER]", "[BOT]"]
ANSWERS = ["Yes", "No", "yes", "no", ":", "Hypothesis", "Answer", "with", "or", "followed", "by", "an", "explanation"]
CHAT = "{% for m in messages %}[USER] {{ m['content'] }}{% endfor %} [BOT] {{ DATE }}"
PROMPT = Prompt("short", "{premise} Hypothesis : {hypothesis} Answer with yes or no .")


class Decoding(NamedTuple):
    max_new_tokens: int = 64
    first_token: bool = False


GREEDY = Decoding()
FAMILIES = ("Llama", "GPT2", "Mistral", "GPTNeoX", "Qwen2", "Bloom", "Mamba")


def save_causal(
    folder: Path,
    family: str = "Llama",
    *,
    chat: str | None = None,
    seed: int = 0,
    more: Sequence[str] = (),
    **settings: Any,
) -> Path:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(seed)
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys([*SPECIAL, *ANSWERS, *WORDS, *more]))}
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 256,
        "initializer_range": 0.6,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": None,
        **({"num_key_value_heads": 1} if family in ("Llama", "Mistral", "Qwen2") else {}),
        **settings,
    }
    if family == "Mamba":
        sizes = {key: sizes[key] for key in ("hidden_size", "num_hidden_layers", "initializer_range", "eos_token_id")}
    config = getattr(transformers, f"{family}Config")(vocab_size=len(vocabulary), **sizes)
    head = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    getattr(transformers, head)(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit()])
    fast = transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="[END]", additional_special_tokens=["[USER]", "[BOT]"]
    )
    fast.chat_template = chat
    fast.save_pretrained(folder)
    return folder


def find(folder: Path, prompt: Prompt = PROMPT, how: Decoding = GREEDY) -> ModelSource:
    settings = ModelSettings(prompt=prompt, is_first_token=how.first_token, device="cpu")
    return find_generative(str(folder), folder, settings, how.max_new_tokens)


def load(folder: Path, prompt: Prompt = PROMPT, how: Decoding = GREEDY) -> GenerativePredictor:
    opened = find(folder, prompt, how).open()
    assert isinstance(opened, GenerativePredictor)
    return opened


def texts_of_few_premises(n_premises: int = 6, n_hypotheses: int = 8) -> list[TextPair]:
    found = invented_texts(n_premises * n_hypotheses)
    return [TextPair(found[row % n_premises].premise, text.hypothesis) for row, text in enumerate(found)]


def written(predictor: GenerativePredictor, texts: Sequence[TextPair], *, is_plain: bool) -> list[list[int]]:
    """Return the tokens of each answer, in the order of the texts."""
    decoder = predictor._decoder
    found: dict[int, list[int]] = {}
    with one_core_each(is_on_cpu=True):
        for batch in predictor.plan(texts):
            prompts = [entry.ids for entry in batch.inputs]
            answers = [decoder.decode_alone(ids) for ids in prompts] if is_plain else decoder.decode(prompts)
            found.update(zip(batch.rows, answers, strict=True))
    return [found[row] for row in range(len(texts))]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_causal(tmp_path_factory.mktemp("llama"), seed=4)

    def make_it_answer(tensors: dict[str, Any]) -> None:
        tensors["lm_head.weight"][4:8] *= 2.0  # yes and no

    edit_weights(folder, make_it_answer)
    return folder


def count_tokens(model: Any) -> list[int]:
    """Return a list that gets the number of tokens of each later pass."""
    n_read: list[int] = []
    words = model.get_input_embeddings()
    words.register_forward_pre_hook(lambda _module, inputs: n_read.append(inputs[0].numel()))
    return n_read


@pytest.mark.parametrize("family", FAMILIES)
def test_trees_change_no_token(tmp_path: Path, family: str) -> None:
    predictor = load(save_causal(tmp_path, family), how=Decoding(6))
    texts = texts_of_few_premises(2, 4)
    plain = written(predictor, texts, is_plain=True)
    # Bloom sees how far tokens are from each other in the row, and Mamba keeps no cache of tokens.
    assert (predictor._decoder.longest > 0) is (family not in ("Bloom", "Mamba"))
    assert written(predictor, texts, is_plain=False) == plain
    assert len(set(map(tuple, plain))) > 2
    expected = [list(FORMS[YES_NO].row_of_text(predictor._prompts.text_of(answer))) for answer in plain]
    assert predictor.predict(texts).probabilities.tolist() == expected


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("Mistral", {"sliding_window": 100}),  # near in the prompt
        ("GPTNeo", {"window_size": 100, "attention_types": [[["global", "local"], 1]]}),  # near in the row
    ],
)
def test_a_model_that_sees_only_nearby_tokens_reads_no_trees(
    tmp_path: Path, family: str, settings: dict[str, Any]
) -> None:
    predictor = load(save_causal(tmp_path, family, **settings), how=Decoding(6))
    assert predictor._decoder.longest == 0
    assert load(save_causal(tmp_path / "far", "Mistral", sliding_window=1000))._decoder.longest > 0
    check_against_plain(predictor, [*texts_of_few_premises(2, 2), TextPair("zorbs juggle " * 100, "quints walk past")])


def test_each_beginning_is_read_once(llama: Path) -> None:
    predictor = load(llama, how=Decoding(8))
    [batch] = predictor.plan(texts_of_few_premises(2, 6))
    prompts = [entry.ids for entry in batch.inputs]
    n_read = count_tokens(predictor._model)
    found = predictor._decoder.next_logits(prompts).numpy()
    assert sum(n_read) == len(grow(prompts).ids)
    assert sum(n_read) < 0.6 * sum(map(len, prompts))
    plain = [predictor._decoder.plain_logits(ids).numpy() for ids in prompts]
    assert found == pytest.approx(np.stack(plain), abs=1e-4)


def test_what_all_prompts_begin_with_is_read_at_loading(tmp_path: Path) -> None:
    predictor = load(save_causal(tmp_path), Prompt("after", "the red moon {premise} Hypothesis : {hypothesis}"))
    decoder = predictor._decoder
    assert predictor._prompts.text_of(decoder._start.ids).startswith("the red moon")
    n_read = count_tokens(predictor._model)
    prompts = [predictor._prompts.encode(text).ids for text in texts_of_few_premises(3, 2)]
    for _ in range(2):
        decoder.next_logits(prompts)
    assert predictor._prompts.text_of(decoder._start.ids) == "the red moon"
    assert n_read[-1] == len(grow(prompts).ids) - 3
    # A prompt that begins with another word shares nothing.
    prompts[1] = (prompts[1][-1], *prompts[1])
    found = decoder.next_logits(prompts).numpy()
    assert decoder._start.ids == ()
    plain = np.stack([decoder.plain_logits(ids).numpy() for ids in prompts])
    assert found == pytest.approx(plain, abs=1e-4)


def test_long_prompts_are_read_alone(llama: Path) -> None:
    predictor = load(llama, how=Decoding(4))
    texts = [*texts_of_few_premises(2, 2), TextPair("zorbs juggle " * 60, "quints walk past")]
    lengths = [len(predictor._prompts.encode(text).ids) for text in texts]
    assert lengths[0] < predictor._decoder.longest < lengths[-1]
    assert written(predictor, texts, is_plain=False) == written(predictor, texts, is_plain=True)


def test_trees_are_tried_on_few_tokens(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_read: list[list[int]] = []
    use_trees = Decoder.use_trees

    def counted(decoder: Decoder, prompts: Sequence[Sequence[int]], longest: int) -> None:
        n_read.append(count_tokens(decoder._model))
        decoder._copies = FreshCopies(decoder._model)  # a copy counts its tokens, too
        use_trees(decoder, prompts, longest)

    monkeypatch.setattr(Decoder, "use_trees", counted)
    assert load(llama)._decoder.longest > 0
    assert len(n_read[0]) > 5
    assert sum(n_read[0]) < 150


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


@pytest.mark.parametrize("how", [Decoding(8), Decoding(first_token=True)])
def test_a_batch_of_one_gives_what_a_batch_of_many_gives(llama: Path, how: Decoding) -> None:
    predictor = load(llama, how=how)
    texts = [*texts_of_few_premises(4, 6), *invented_texts(10)]
    together = predictor.predict(texts).probabilities
    alone = np.concatenate([predictor.predict([text]).probabilities for text in texts])
    backwards = predictor.predict(texts[::-1]).probabilities[::-1]
    assert together.argmax(axis=1).tolist() == alone.argmax(axis=1).tolist() == backwards.argmax(axis=1).tolist()
    if how.first_token:
        assert together == pytest.approx(alone, abs=1e-5)
    else:
        assert set(map(tuple, together.tolist())) == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}


def test_a_near_tie_is_settled_alone(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor, texts = load(llama, how=Decoding(8)), texts_of_few_premises(2, 3)
    plain = written(predictor, texts, is_plain=True)
    monkeypatch.setattr(decoding, "NEAR_TIE", 1e9)
    assert written(predictor, texts, is_plain=False) == plain
    assert predictor._decoder.n_alone == len(texts)


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
        "from tests.e2e.test_generative import find, texts_of_few_premises\n"
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
