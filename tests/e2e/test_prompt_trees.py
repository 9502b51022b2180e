"""Prompts that are read together, each beginning once: neither the tree nor the batch changes an answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbnli_audit.core.values import TextPair
from bbnli_audit.models.fresh import FreshCopies
from bbnli_audit.models.inference.plain_check import check_against_plain
from bbnli_audit.models.language_model import decoding
from bbnli_audit.models.language_model.decoding import Decoder
from bbnli_audit.models.language_model.forms import FORMS
from bbnli_audit.models.language_model.token_tree import grow
from bbnli_audit.models.prompts import YES_NO, Prompt
from tests.tiny_causal import Decoding, count_tokens, load, save_answering, save_causal, texts_of_few_premises, written
from tests.tiny_checkpoint import invented_texts

FAMILIES = ("Llama", "GPT2", "Mistral", "GPTNeoX", "Qwen2", "Bloom", "Mamba")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_answering(tmp_path_factory.mktemp("llama"))


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
