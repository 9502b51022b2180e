"""`bbnli-audit inspect` shows how one pair is read."""

from pathlib import Path

import pytest

from bbnli_audit.frontends.cli.main import main
from tests.e2e.test_plain_transformers import BLOCKS, save_causal_classifier
from tests.loopback_server import loopback
from tests.tiny_checkpoint import save_checkpoint
from tests.tiny_language_model import save_lm

pytestmark = pytest.mark.e2e
TEXTS = ["--device=cpu", "--premise=the red moon", "--hypothesis=zorbs juggle"]


def inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert main(["inspect", str(folder), *TEXTS]) == 0
    lines = [line.split("  ", 1) for line in capsys.readouterr().out.splitlines()]
    return {title: told.strip() for title, told in lines}


def test_an_encoder_reads_its_first_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspect(save_checkpoint(tmp_path), capsys)
    assert found["tokens"] == "[CLS] the red moon [SEP] zorbs juggle [SEP]  (8 tokens)"
    assert found["segments"] == "none"  # this tokenizer makes none
    assert found["the head reads"] == "[CLS] (token 1) of 8"
    assert found["path"] == "torch, padding-free: texts side by side"
    assert found["as audited"].startswith("entailment 0.")
    assert "within rounding" in found["difference"]


def test_a_causal_classifier_reads_its_last_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspect(save_causal_classifier(tmp_path, "GPT2"), capsys)
    n_tokens = len(found["tokens"].partition("  (")[0].split())
    assert found["the head reads"] == f"<|end|> (token {n_tokens}) of {n_tokens}"
    assert found["path"] == "torch, generic: batches of one length"


def test_a_model_with_state_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspect(save_checkpoint(tmp_path, family="BigBird", **BLOCKS), capsys)
    assert found["path"].startswith("torch, a fresh copy of the model for each batch")


def test_a_language_model_shows_what_two_sentences_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--device=cpu", "--premise=the red moon is busy", "--hypothesis=the busy moon is busy"]
    assert main(["inspect", str(save_lm(tmp_path, "bert")), *arguments]) == 0
    out = capsys.readouterr().out
    assert "each shared token masked in turn" in out
    assert "the moon is busy  (4 tokens)" in out


def test_what_is_not_computed_here_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "planted:ideal"]) == 4
    assert "inspect planted:ideal: this model is not computed on this machine, so" in capsys.readouterr().err


def test_a_served_model_is_refused_before_it_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with loopback(str) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        assert main(["inspect", "openai:served-model"]) == 4
        assert server.authorizations == set(), "it got no request"
    assert "inspect openai:served-model: this model is not computed on this machine, so" in capsys.readouterr().err
