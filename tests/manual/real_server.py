"""A real server with a real model, at the address in BBNLI_REAL_SERVER (such as http://127.0.0.1:8123/v1).

Run by hand (`pytest tests/manual/real_server.py`), since CI has no such server: docs/generative.md, "Against a real
server", says how to start one. What a server can do wrong is in tests/e2e/test_server.py, which needs none.
"""

import json
import os
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import BUILT_IN
from bbnli_audit.models.served.server import find_server
from bbnli_audit.models.served.server_client import Requests
from tests.e2e.runs import read_report, read_usage, run_pytest
from tests.invented import write_templates
from tests.relay_server import Relay, relay

ADDRESS = os.environ.get("BBNLI_REAL_SERVER", "").rstrip("/")
pytestmark = pytest.mark.skipif(not ADDRESS, reason="BBNLI_REAL_SERVER names no server")

PROMPT = BUILT_IN["true"]
TEXTS = [TextPair(f"Workshop {n} is open to Zorbs and Quints.", f"Zorbs juggle in workshop {n}.") for n in range(12)]
ROWS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]  # yes, no, and what could not be read


@pytest.fixture(scope="module")
def model() -> str:
    """The name of the first model that the server has."""
    with build_opener(ProxyHandler({})).open(f"{ADDRESS}/models", timeout=30) as response:
        return f"openai:{json.load(response)['data'][0]['id']}"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


def test_what_was_answered_is_not_asked_again_when_the_server_comes_back(model: str, tmp_path: Path) -> None:
    def open_model(between: Relay) -> StoredPredictor:
        requests = Requests(max_tokens=8, first_wait=0.05, n_tries=2, n_at_once=2)
        source = find_server(model, ModelSettings(prompt=PROMPT, base_url=between.url), requests)
        return StoredPredictor(source, PredictionStore(tmp_path / "store.sqlite"))

    with relay(ADDRESS) as between:
        between.n_answers = 5
        predictor = open_model(between)
        with pytest.raises(ModelError, match="the same command goes on from there"):
            predictor.predict(TEXTS)
        kept = set(between.answered)
        assert predictor.tally.n_predicted == len(kept) == 5

        between.n_answers = None
        between.asked.clear()
        predictor = open_model(between)
        rows = predictor.predict(TEXTS).probabilities.tolist()
        assert all(row in ROWS for row in rows)
        assert between.asked == {prompt: 1 for text in TEXTS if (prompt := PROMPT.render(text)) not in kept}

        between.asked.clear()
        assert open_model(between).predict(TEXTS).probabilities.tolist() == rows
        assert not between.asked


def test_the_first_token_agrees_with_the_word_that_is_written_first(model: str) -> None:
    written = find_server(model, ModelSettings(prompt=PROMPT, base_url=ADDRESS), Requests(max_tokens=1))
    read = find_server(model, ModelSettings(prompt=PROMPT, base_url=ADDRESS, is_first_token=True))
    assert written.info.fingerprint != read.info.fingerprint
    try:
        shares = read.open().predict(TEXTS).probabilities
    except ModelError as exc:
        if "sends no log-probabilities" in str(exc):
            pytest.skip(f"{ADDRESS} sends no log-probabilities")
        raise
    assert shares.sum(axis=1).tolist() == pytest.approx([1.0] * len(TEXTS))
    rows = written.open().predict(TEXTS).probabilities
    for share, row in zip(shares.tolist(), rows.tolist(), strict=True):
        if ROWS[2] not in (share, row):
            # The likeliest token is a spelling of this word, and the other word has six.
            assert share[row.index(1.0)] >= 1 / 7


def test_an_audit_from_the_command_line_is_stored(model: str, tmp_path: Path) -> None:
    write_templates(tmp_path / "data")
    args = [
        "audits",
        f"--model={model}",
        f"--bbnli-base-url={ADDRESS}",
        "--bbnli-prompt=true",
        f"--bbnli-data={tmp_path / 'data'}",
        f"--bbnli-store={tmp_path / 'store.sqlite'}",
    ]
    first = run_pytest(*args, f"--bbnli-report={tmp_path / 'one'}")
    n_texts, n_stored, n_predicted = read_usage(first.stdout)
    assert (n_stored, n_predicted) == (0, n_texts)
    second = run_pytest(*args, f"--bbnli-report={tmp_path / 'two'}")
    assert read_usage(second.stdout) == (n_texts, n_texts, 0)
    results = [read_report(tmp_path / name) for name in ("one", "two")]
    assert results[0] == results[1]
    assert results[0][0]["model"]["backend"] == "server"
    assert first.returncode == second.returncode
