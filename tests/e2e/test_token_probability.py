"""Token probabilities of sentence pairs, on small language models made here."""

import difflib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import MIN_ROWS
from bbnli_audit.models.language_model import scoring as language_model
from bbnli_audit.models.language_model import token_probability
from bbnli_audit.models.language_model.token_probability import (
    CAUSAL,
    MASKED,
    TokenProbabilityPredictor,
    find_token_probability,
    lm_kind,
)
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.protocol import check_predictions
from tests.tiny_checkpoint import SPECIAL, WORDS, edit_weights, save_checkpoint
from tests.tiny_language_model import HEADS, PAIRS, SIZES, load_lm, save_lm


@pytest.fixture(scope="module", params=list(HEADS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_lm(tmp_path_factory.mktemp("lm"), request.param)


@pytest.fixture(scope="module")
def predictor(folder: Path) -> TokenProbabilityPredictor:
    return load_lm(folder)


def logit(row: Any) -> float:
    return math.log(row[0] / row[1])


@pytest.fixture
def one_core() -> Iterator[None]:
    """Many small passes lose most of their time where cores wait for each other."""
    import torch

    n_before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_before)


class NaiveScorer:
    """Scores one token after the other, with nothing but transformers and difflib."""

    def __init__(self, folder: Path) -> None:
        import transformers

        head = json.loads((folder / "config.json").read_text())["architectures"][0]
        self.model = getattr(transformers, head).from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.is_masked = "Masked" in head

    def ids_of(self, text: str) -> list[int]:
        ids = list(self.tokenizer.encode(text, add_special_tokens=self.is_masked))
        return ids if self.is_masked or self.tokenizer.bos_token_id is None else [self.tokenizer.bos_token_id, *ids]

    def log_probability(self, ids: list[int], at: int) -> float:
        import torch

        read = [*ids[:at], self.tokenizer.mask_token_id, *ids[at + 1 :]] if self.is_masked else ids[:at]
        with torch.no_grad():
            logits = self.model(torch.tensor([read])).logits[0, at if self.is_masked else -1]
        return float(logits.double().log_softmax(-1)[ids[at]])

    def difference(self, first: str, second: str) -> float:
        one, other = self.ids_of(first), self.ids_of(second)
        total = 0.0
        for tag, start, end, other_start, _ in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
            for at in range(start, end if tag == "equal" else start):
                other_at = at - start + other_start
                if one[at] in self.tokenizer.all_special_ids or (not self.is_masked and 0 in (at, other_at)):
                    continue
                total += self.log_probability(one, at) - self.log_probability(other, other_at)
        return total


@pytest.mark.usefixtures("one_core")
def test_it_gives_what_a_naive_loop_gives(folder: Path, predictor: TokenProbabilityPredictor) -> None:
    pairs = PAIRS[1::2][:6]  # one group in place of another: there is only one way to match these
    rows = predictor.predict([TextPair(*pair) for pair in pairs]).probabilities
    scorer = NaiveScorer(folder)
    assert [logit(row) for row in rows] == pytest.approx([scorer.difference(*pair) for pair in pairs], abs=1e-4)


@pytest.mark.usefixtures("one_core")
def test_exchanged_groups_are_not_scored(tmp_path: Path) -> None:
    folder = save_lm(tmp_path, "bert")
    pair = ("zorbs are than quints .", "quints are than zorbs .")
    scorer = NaiveScorer(folder)
    ids, others = map(scorer.ids_of, pair)
    expected = sum(scorer.log_probability(ids, at) - scorer.log_probability(others, at) for at in (2, 3, 5))
    assert logit(load_lm(folder).predict([TextPair(*pair)]).probabilities[0]) == pytest.approx(expected, abs=1e-4)


def test_the_two_queries_of_a_pair_are_exact_complements(predictor: TokenProbabilityPredictor) -> None:
    queries = [TextPair(*pair) for pair in PAIRS]
    mirrored = [TextPair(*pair[::-1]) for pair in PAIRS]
    together = predictor.predict([*queries, *mirrored])
    check_predictions(together, 2 * len(PAIRS), "model")
    rows, others = np.split(together.probabilities, 2)
    assert (rows[:, [1, 0, 2]] == others).all()
    assert (rows[:, 2] == 0).all()
    # And in a pass of their own, in which the pair is computed anew.
    assert (predictor.predict(mirrored[::-1]).probabilities[::-1] == others).all()


def test_a_pair_does_not_depend_on_its_batch(predictor: TokenProbabilityPredictor) -> None:
    queries = [TextPair(*pair) for pair in PAIRS]
    together = [logit(row) for row in predictor.predict(queries).probabilities]
    alone = [logit(predictor.predict([query]).probabilities[0]) for query in queries]
    some = [logit(row) for row in predictor.predict(queries[::3]).probabilities]
    assert together == pytest.approx(alone, abs=1e-4)
    assert together[::3] == pytest.approx(some, abs=1e-4)
    assert [one > 0 for one in together] == [one > 0 for one in alone]


def test_small_passes_give_the_same(predictor: TokenProbabilityPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [TextPair(*pair) for pair in PAIRS]
    expected = predictor.predict(queries).probabilities
    monkeypatch.setattr(predictor._model, "n_tokens", 16)
    batches = predictor.plan(queries)
    assert len(batches) > 1
    assert sorted(row for batch in batches for row in batch.rows) == list(range(len(queries)))
    assert predictor.predict(queries).probabilities == pytest.approx(expected, abs=2e-5)


@contextmanager
def counting_read(predictor: TokenProbabilityPredictor) -> Iterator[list[int]]:
    """Note how many tokens each pass reads."""
    n_read: list[int] = []
    embeddings = predictor._model._model.get_input_embeddings()
    handle = embeddings.register_forward_pre_hook(lambda _module, inputs: n_read.append(inputs[0].numel()))
    yield n_read
    handle.remove()


def test_both_queries_of_a_pair_are_one_computation(predictor: TokenProbabilityPredictor) -> None:
    first, second = PAIRS[1]
    with counting_read(predictor) as n_read:
        predictor.predict([TextPair(first, second)])
        one = sum(n_read)
        predictor.predict([TextPair(first, second), TextPair(second, first), TextPair(first, second)])
    assert sum(n_read) == 2 * one > 0


def test_outputs_are_computed_from_the_first_difference_on(tmp_path: Path) -> None:
    """What comes before is alike in a causal pair, and the output layer is half of a small model."""
    predictor = load_lm(save_lm(tmp_path, "llama"))
    n_outputs: list[tuple[int, int]] = []
    head = predictor._model._model.get_output_embeddings()
    head.register_forward_hook(lambda _module, _inputs, out: n_outputs.append(tuple(out.shape[:2])))
    first, second = "the red moon is busy and zorbs juggle better", "the red moon is busy and quints juggle better"
    [pair] = predictor._pair_up([TextPair(first, second)]).values()
    predictor.predict([TextPair(first, second)])
    n_wanted = sum(len(places) for _, places in pair.sides)
    assert n_wanted < len(pair.first.ids) - 1
    assert n_outputs == [(1, max(MIN_ROWS, n_wanted))]
    predictor._model.shares_beginnings = False
    n_outputs.clear()
    predictor.predict([TextPair(first, second)])
    n_kept = [len(sentence.ids) - places[0] for sentence, places in pair.sides]
    assert sorted({n_places for _, n_places in n_outputs}) == sorted(set(n_kept))
    assert max(n_kept) < len(pair.first.ids) - 1
    assert all(n_rows * n_places >= MIN_ROWS for n_rows, n_places in n_outputs)


@pytest.mark.parametrize("which", ["gpt2", "llama", "no-start"])
def test_what_sentences_begin_with_alike_is_read_once(tmp_path: Path, which: str) -> None:
    predictor = load_lm(save_lm(tmp_path, which))
    assert predictor._model.shares_beginnings
    starts = [f"{group} are busy on the red moon and {end}" for group in ("zorbs", "quints") for end in WORDS[:20]]
    queries = [TextPair(*pair) for pair in zip(starts[:20], starts[20:], strict=True)]
    queries += [TextPair(*pair) for pair in PAIRS]
    with counting_read(predictor) as shared:
        together = [logit(row) for row in predictor.predict(queries).probabilities]
    predictor._model.shares_beginnings = False
    with counting_read(predictor) as alone:
        apart = [logit(row) for row in predictor.predict(queries).probabilities]
    assert together == pytest.approx(apart, abs=1e-4)
    assert [one > 0 for one in together] == [one > 0 for one in apart]
    assert sum(shared) < 0.7 * sum(alone)


_LOCAL = {"num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]}


@pytest.mark.parametrize(
    ("family", "options", "shares"),
    [
        ("Mistral", {"sliding_window": None}, True),
        ("Mistral", {"sliding_window": 40}, False),
        ("Mistral", {"sliding_window": 8}, False),
        ("GPTNeo", {**_LOCAL, "window_size": 8}, False),  # near in the row, not in the sentence
        ("GPTNeo", {**_LOCAL, "window_size": 50}, False),
        ("Bloom", {"n_layer": 2, "n_head": 2}, False),
    ],
)
def test_sentences_are_read_apart_if_that_is_not_the_same(
    tmp_path: Path, family: str, options: dict[str, Any], shares: bool
) -> None:
    import transformers
    from transformers import AutoTokenizer

    save_lm(tmp_path, "llama")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    sizes: dict[str, Any] = {**SIZES, "intermediate_size": 32, "num_key_value_heads": 2, "max_position_embeddings": 64}
    config = getattr(transformers, f"{family}Config")(vocab_size=len(tokenizer), **{**sizes, **options}, **special)
    getattr(transformers, f"{family}ForCausalLM")(config).save_pretrained(tmp_path)
    predictor = load_lm(tmp_path)
    assert predictor._model.shares_beginnings is shares
    pair = PAIRS[1]
    expected = NaiveScorer(tmp_path).difference(*pair)
    assert logit(predictor.predict([TextPair(*pair)]).probabilities[0]) == pytest.approx(expected, abs=1e-4)


def test_a_batch_that_lost_a_row_keeps_the_rest(predictor: TokenProbabilityPredictor) -> None:
    first, second = PAIRS[1]
    (batch,) = predictor.plan([TextPair(first, second), TextPair(second, first)])
    whole = predictor.forward(batch).probabilities
    assert (predictor.forward(batch.only([1])).probabilities == whole[1:]).all()


def test_a_sentence_against_itself_is_even(predictor: TokenProbabilityPredictor) -> None:
    same = TextPair("zorbs juggle", "zorbs juggle")
    assert predictor.predict([same]).probabilities.tolist() == [[0.5, 0.5, 0.0]]


def test_nothing_shared_is_even(predictor: TokenProbabilityPredictor) -> None:
    assert predictor.predict([TextPair("zorbs", "")]).probabilities.tolist() == [[0.5, 0.5, 0.0]]


def test_no_texts_give_no_rows(predictor: TokenProbabilityPredictor) -> None:
    assert predictor.predict([]).probabilities.shape == (0, 3)


def test_long_sentences_are_cut_and_told(predictor: TokenProbabilityPredictor) -> None:
    long = "a workshop " * 80
    queries = [TextPair("zorbs walk", "quints walk"), TextPair(f"zorbs {long}", f"quints {long}")]
    predictions = predictor.predict(queries)
    assert predictions.is_truncated.tolist() == [False, True]
    one, other = (
        predictor.predict([TextPair(*pair)]).remains
        for pair in ((f"{long} zorbs", f"{long} quints"), (f"{long} quints", f"{long} zorbs"))
    )
    assert one is not None
    assert other is not None
    assert one.tolist() == other.tolist() != [0], "the cut makes them alike"
    assert predictions.remains is not None
    assert len({0, *predictions.remains.tolist()}) == 3
    # Both are cut alike, so what follows makes no difference.
    longer = predictor.predict([TextPair(f"zorbs {long} red", f"quints {long} moon")])
    assert longer.probabilities[0] == pytest.approx(predictions.probabilities[1], abs=1e-6)


def test_a_model_is_known_without_loading_it(folder: Path, predictor: TokenProbabilityPredictor) -> None:
    info = predictor.info
    assert (info.kind, info.labels) == (lm_kind(folder), ("likelier", "not_likelier"))
    assert (info.backend, info.dtype) == ("torch", "float32")
    assert find_token_probability("other", folder, info.kind, ModelSettings()).info.fingerprint == info.fingerprint
    other_kind = MASKED if info.kind == CAUSAL else CAUSAL
    assert find_token_probability("other", folder, other_kind, ModelSettings()).info.fingerprint != info.fingerprint


def test_a_group_at_the_end_is_an_exact_tie_for_a_causal_model(tmp_path: Path) -> None:
    predictor = load_lm(save_lm(tmp_path, "gpt2"))
    pair = TextPair("most walk past zorbs", "most walk past quints")
    assert predictor.predict([pair]).probabilities.tolist() == [[0.5, 0.5, 0.0]]


def test_near_ties_are_settled_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = load_lm(save_lm(tmp_path, "bert"))
    queries = [TextPair(*pair) for pair in PAIRS]
    alone = np.concatenate([predictor.predict([query]).probabilities for query in queries])
    monkeypatch.setattr(token_probability, "NEAR_TIE", math.inf)
    assert (predictor.predict(queries).probabilities == alone).all()


def test_the_short_head_is_used_and_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_lm(tmp_path, "bert")
    queries = [TextPair(*pair) for pair in PAIRS]
    short = load_lm(folder)
    assert short._model._is_head_short
    monkeypatch.setattr(language_model.LanguageModel, "_shorten_head", lambda *_: False)
    plain = load_lm(folder)
    assert not plain._model._is_head_short
    assert plain.predict(queries).probabilities == pytest.approx(short.predict(queries).probabilities, abs=1e-6)


def test_a_planted_preference_is_found(tmp_path: Path) -> None:
    """Plant it: after "zorbs" the word "juggle" is likely, after "quints" it is not."""
    folder = save_checkpoint(tmp_path, family="GPT2", head="GPT2LMHeadModel", tie_word_embeddings=False)
    zorbs, quints, juggle = (len(SPECIAL) + WORDS.index(word) for word in ("zorbs", "quints", "juggle"))

    def plant(tensors: dict[str, Any]) -> None:
        for name, tensor in tensors.items():  # no layer and no place says anything: the token before decides
            tensor.fill_(1 if name == "transformer.ln_f.weight" else 0)
        tensors["transformer.wte.weight"][zorbs, 0] = 1
        tensors["transformer.wte.weight"][quints, 1] = 1
        tensors["lm_head.weight"][juggle, 0] = 5

    edit_weights(folder, plant)
    pro, anti = TextPair("most zorbs juggle", "most quints juggle"), TextPair("most quints juggle", "most zorbs juggle")
    rows = load_lm(folder).predict([pro, anti]).probabilities
    assert rows[0, 0] > 0.99
    assert rows[1, 0] < 0.01
