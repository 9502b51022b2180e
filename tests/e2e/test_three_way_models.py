"""Language models that are asked for three answers: small checkpoints, a served model, and constant answers."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.results.file import read_result
from bbnli_audit.core.results.rows import Measured, Verdict
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.language_model.forms import FORMS
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import BUILT_IN, LABELS, TRUTH, Prompt
from bbnli_audit.models.served.server import find_server
from bbnli_audit.models.served.server_client import Requests
from bbnli_audit.reports.papers import biased_answers
from tests.invented import limits, write_quads
from tests.loopback_server import loopback
from tests.tiny_causal import Decoding, find, load, save_causal, texts_of_few_premises
from tests.tiny_checkpoint import edit_weights

WORDS = ("Entailment", "neutral", "Neutral", "Contra", "contradiction", "True", "False", "cannot", "tell")
PROMPT = Prompt("own", "{premise} Hypothesis : {hypothesis} Answer with yes or no .", LABELS)
TEXTS = [TextPair("Zorbs and Quints share a workshop.", f"Zorbs juggle in {n}.") for n in range(4)]
QUICK = Requests(first_wait=0.01, timeout=5.0)
UNREAD = [1 / 3] * 3
FIRST = Decoding(first_token=True)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_causal(tmp_path_factory.mktemp("three-way"), seed=4, more=WORDS)

    def make_it_answer(tensors: dict[str, Any]) -> None:
        tensors["lm_head.weight"][-len(WORDS) :] *= 2.0

    edit_weights(folder, make_it_answer)
    return folder


def test_a_checkpoint_is_read_from_its_words(llama: Path) -> None:
    predictor, texts = load(llama, PROMPT, Decoding(8)), texts_of_few_premises(4, 6)
    found = predictor.predict(texts).probabilities.tolist()
    assert {tuple(row) for row in found} >= {(0, 1, 0), tuple(UNREAD)}
    assert np.concatenate([predictor.predict([text]).probabilities for text in texts]).tolist() == found
    assert predictor.info.kind == "generative-three-way"
    assert predictor.info.labels == ("entailment", "neutral", "contradiction")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (LABELS, (["Entailment"], ["neutral", "Neutral"], ["Contra", "contradiction"])),
        (TRUTH, (["True"], ["cannot"], ["False"])),
    ],
)
def test_a_checkpoint_is_read_from_its_first_token(llama: Path, form: str, words: tuple[list[str], ...]) -> None:
    import torch

    predictor, texts = load(llama, Prompt("own", PROMPT.template, form), FIRST), texts_of_few_premises(2, 3)
    vocabulary = predictor._prompts._tokenizer.get_vocab()
    for text, row in zip(texts, predictor.predict(texts).probabilities.tolist(), strict=True):
        ids = torch.tensor([predictor._prompts._ids_of(text)])
        with torch.no_grad():
            shares = predictor._model(ids).logits[0, -1].double().softmax(-1)
        masses = [sum(shares[vocabulary[word]].item() for word in some) for some in words]
        expected = [mass / sum(masses) for mass in masses] if sum(masses) >= 0.05 else UNREAD
        assert row == pytest.approx(expected, abs=1e-5)


def test_a_tokenizer_without_the_words_cannot_be_read_by_first_tokens(tmp_path: Path) -> None:
    folder = save_causal(tmp_path, more=("Entailment", "Neutral"))
    with pytest.raises(ModelError, match="no single token for entailment or neutral or contradiction"):
        load(folder, PROMPT, FIRST).predict(TEXTS[:1])


def test_each_form_of_a_question_has_its_own_fingerprint(llama: Path) -> None:
    prompts = [Prompt("own", PROMPT.template, form) for form in FORMS]
    found = {find(llama, prompt, how).info.fingerprint for prompt in prompts for how in (Decoding(), FIRST)}
    assert len(found) == 6


@pytest.mark.parametrize(
    ("prompt", "answer", "row"),
    [
        ("nli", "Neutral, because nothing is said.", [0, 1, 0]),
        ("nli", "The hypothesis contradicts the paragraph.", [0, 0, 1]),
        ("nli", "I can't help with that.", UNREAD),
        ("true-or-false", "True.", [1, 0, 0]),
        ("true-or-false", "Cannot tell.", [0, 1, 0]),
        ("true-or-false", "False", [0, 0, 1]),
    ],
)
def test_a_served_model_is_read_from_its_words(prompt: str, answer: str, row: list[float]) -> None:
    with loopback(lambda _: answer) as served:
        source = find_server("openai:zorb", ModelSettings(prompt=BUILT_IN[prompt], base_url=served.url), QUICK)
        assert source.open().predict(TEXTS[:1]).probabilities.tolist() == [row]
    assert source.info.kind == "generative-three-way"
    [asked] = served.asked
    assert asked == BUILT_IN[prompt].render(TEXTS[0])


@pytest.mark.parametrize(
    ("prompt", "shares", "row"),
    [
        ("nli", {"Ent": 0.2, " entail": 0.1, "Ne": 0.3, "N": 0.2, "Cont": 0.15, "neutrally": 0.05}, [0.4, 0.4, 0.2]),
        ("true-or-false", {"True": 0.1, "Cannot": 0.2, "Can": 0.1, "False": 0.4, "Yes": 0.2}, [0.125, 0.375, 0.5]),
        ("true-or-false", {"Yes": 0.9, "True": 0.01}, UNREAD),
    ],
)
def test_a_served_model_is_read_from_its_first_token(
    prompt: str, shares: Mapping[str, float], row: list[float]
) -> None:
    told = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
    with loopback(logprobs=lambda _: {"content": [{"top_logprobs": told}]}) as served:
        settings = ModelSettings(prompt=BUILT_IN[prompt], base_url=served.url, is_first_token=True)
        source = find_server("openai:zorb", settings, QUICK)
        assert source.open().predict(TEXTS[:1]).probabilities.tolist() == [pytest.approx(row)]


@pytest.mark.parametrize(
    ("answer", "is_read"), [("Neutral.", True), ("Entailment.", True), ("Contradiction.", True), ("Who knows.", False)]
)
def test_a_model_that_always_says_the_same_passes_nothing(tmp_path: Path, answer: str, is_read: bool) -> None:
    data = tmp_path / "data"
    write_quads(data)
    with loopback(lambda _: answer) as served:
        how: dict[str, Any] = {"prompt": "nli", "base_url": served.url, "store": tmp_path / "store.sqlite"}
        result = run_audit(AuditOptions(model="openai:zorb", thresholds=limits(), data=data, **how))
    assert not result.is_competent
    assert all(each.verdict is not Verdict.PASS for row in result.subtopics for each in row.verdicts)
    assert ("lean" in result.total.measures) == ("overreach" in result.total.measures)
    assert (result.total.n_unparsed == 0) is is_read
    assert (result.total.n_pairs > 0) is is_read


def test_biased_answers_are_told_by_prompt_and_for_the_worst_subtopics(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_quads(data, name="zorbs_are_to_fishing").rename(data / "planets" / "fishing.json")
    write_quads(data)

    def answer(prompt: str) -> str:
        is_pro = prompt.partition("Hypothesis: ")[2].startswith("Zorbs")
        return "Cannot tell." if "cannot tell" in prompt else "Entailment." if is_pro else "Neutral."

    with loopback(answer) as served:
        how: dict[str, Any] = {"prompt": "nli", "also_prompt": "true-or-false", "base_url": served.url}
        how |= {"store": tmp_path / "store.sqlite", "report": tmp_path / "report"}
        result = run_audit(AuditOptions(model="openai:zorb", thresholds=limits(), data=data, **how))
    pro, anti = (result.total.measures[name].value or 0.0 for name in ("pro_rate", "anti_rate"))
    assert pro > anti
    told = list(biased_answers(result))
    first = f"{pro + anti:.3f} with the prompt nli (pro {pro:.3f}, anti {anti:.3f})"
    second = "0.000 with the prompt true-or-false (pro 0.000, anti 0.000)"
    assert told[0] == f"Biased answers, the share of all (pro + anti): {first}; {second}."
    paths = [row.path for row in result.subtopics]
    shares = ", ".join(f"{path} {pro + anti:.3f}" for path in sorted(paths))
    assert told[1] == f"Subtopics with the largest share of biased answers: {shares}."
    nothing = dict.fromkeys(("pro_rate", "anti_rate"), Measured(0.0, 0.0, 0.1, 8))
    right = tuple(replace(row, measures={**row.measures, **nothing}) for row in result.subtopics)
    assert len(list(biased_answers(replace(result, subtopics=right)))) == 1, "none is the worst"
    summary, page = ((tmp_path / "report" / name).read_text() for name in ("summary.md", "report.html"))
    assert "with the prompt `nli`" in summary
    assert told[0] in page
    assert read_result(tmp_path / "report").model.prompt == "nli"


def test_two_prompts_ask_for_the_same_answers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_quads(data)
    how: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1", "prompt": "nli", "also_prompt": "true"}
    told = "--bbnli-also-prompt=true: asks for other answers than --bbnli-prompt=nli"
    with pytest.raises(OptionError, match=told):
        run_audit(AuditOptions(model="openai:zorb", thresholds=limits(), data=data, **how))
