"""A served model that is read off the probabilities of its first token."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.language_model.forms import FORMS, LEAST_MASS
from bbnli_audit.models.opening import plan_model
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import BUILT_IN, YES_NO
from bbnli_audit.models.served.server import find_server
from bbnli_audit.models.served.server_client import Requests
from tests.loopback_server import Fault, Loopback, loopback

PROMPT = BUILT_IN["true"]
QUICK = Requests(first_wait=0.01, timeout=5.0)
TEXTS = [TextPair(f"Workshop {n} is open to Zorbs and Quints.", f"Zorbs juggle in {n}.") for n in range(4)]
UNPARSED = [0.0, 0.0, 1.0]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def chat_form(shares: Mapping[str, float]) -> dict[str, Any]:
    """Tell probabilities as OpenAI, vLLM and llama.cpp do."""
    told = [{"token": token, "logprob": math.log(share), "bytes": None} for token, share in shares.items()]
    return {"content": [{**told[0], "top_logprobs": told}], "refusal": None}


def old_form(shares: Mapping[str, float]) -> dict[str, Any]:
    """Tell them as for completions, which some servers do in chats as well."""
    told = {token: math.log(share) for token, share in shares.items()}
    return {"tokens": [next(iter(told))], "token_logprobs": [0.0], "text_offset": [0], "top_logprobs": [told]}


def ask(server: Loopback) -> list[float]:
    source = find_server("openai:zorb-1", ModelSettings(prompt=PROMPT, base_url=server.url, is_first_token=True), QUICK)
    found: list[list[float]] = source.open().predict(TEXTS[:1]).probabilities.tolist()
    return found[0]


@pytest.mark.parametrize("form", [chat_form, old_form])
@pytest.mark.parametrize(
    ("shares", "row"),
    [
        ({"Yes": 0.3, "No": 0.1, "The": 0.6}, [0.75, 0.25, 0.0]),
        ({"Yes": 0.1, " yes": 0.05, "YES": 0.05, "\u0120No": 0.1, "\u2581no": 0.1}, [0.5, 0.5, 0.0]),
        ({"No": 0.9, "Not": 0.1}, [0.0, 1.0, 0.0]),
        ({"Yes": 0.03, "No": 0.015, "The": 0.955}, UNPARSED),
        ({"Nothing": 0.9, "yesterday": 0.1}, UNPARSED),
    ],
)
def test_yes_and_no_are_summed_over_their_spellings(
    form: Callable[[Mapping[str, float]], Any], shares: Mapping[str, float], row: list[float]
) -> None:
    with loopback(lambda _: next(iter(shares)), logprobs=lambda _: form(shares)) as served:
        assert ask(served) == pytest.approx(row)
    body = served.bodies[0]
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"], body["temperature"]) == (1, True, 20, 0)


def test_yes_and_no_that_are_too_unlikely_are_no_answer() -> None:
    """A checkpoint and a server share this rule."""
    assert FORMS[YES_NO].row_of_masses([LEAST_MASS, 0.0]) == (1.0, 0.0, 0.0)
    assert FORMS[YES_NO].row_of_masses([LEAST_MASS * 0.999, 0.0]) == tuple(UNPARSED)


@pytest.mark.parametrize("told", [None, {}, {"content": None}])
def test_a_server_that_tells_no_probabilities_ends_the_run_at_once(told: Any) -> None:
    message = r"the server at http://127.0.0.1:\d+/v1 sends no log-probabilities of tokens.\nStart it so that it does"
    with loopback(lambda _: "Yes", logprobs=lambda _: told) as served, pytest.raises(ModelError, match=message):
        ask(served)
    assert served.n_asked == 1


def test_a_server_that_refuses_them_says_so() -> None:
    with (
        loopback(faults=[Fault(400, b'{"error": {"code": "bad_request"}}')]) as served,
        pytest.raises(ModelError, match=r"refuses the request .*\n.*or a request for log-probabilities"),
    ):
        ask(served)


@pytest.mark.parametrize(
    "body",
    [
        {"message": {"content": None}},
        {"message": {"content": "", "refusal": "no"}},
        {"message": {"content": ""}, "logprobs": {"content": []}},
        {"message": {"content": "No"}, "logprobs": {"top_logprobs": [{"No": 0.0}]}, "finish_reason": "content_filter"},
        {"message": {"content": ""}, "logprobs": {"top_logprobs": []}},
    ],
)
def test_an_answer_without_a_first_token_is_unparsed(body: dict[str, Any]) -> None:
    with loopback(faults=[Fault(body=json.dumps({"choices": [body]}).encode())]) as served:
        assert ask(served) == UNPARSED


@pytest.mark.parametrize(
    "told",
    [
        {"content": [{"token": "Yes"}]},
        {"content": [{"top_logprobs": [{"token": 5, "logprob": 0}]}]},
        {"content": [{"top_logprobs": [{"token": "Yes", "logprob": "high"}]}]},
        {"content": ["Yes"]},
        {"top_logprobs": ["Yes"]},
    ],
)
def test_probabilities_that_cannot_be_read_are_asked_for_again(told: Any) -> None:
    broken = {"choices": [{"message": {"content": "Yes"}, "logprobs": told}]}
    shares = {"Yes": 0.6, "No": 0.2}
    with loopback(faults=[Fault(body=json.dumps(broken).encode())], logprobs=lambda _: chat_form(shares)) as served:
        assert ask(served) == pytest.approx([0.75, 0.25, 0.0])
    assert served.n_asked == 2


def test_the_two_readings_are_two_models_and_both_are_stored(tmp_path: Path) -> None:
    with loopback(lambda _: "Yes", logprobs=lambda _: chat_form({"Yes": 0.6, "No": 0.2})) as served:
        for is_first_token, row in ((True, [0.75, 0.25, 0.0]), (False, [1.0, 0.0, 0.0])):
            for n_asked in (len(TEXTS), 0):
                served.asked.clear()
                settings = ModelSettings(prompt=PROMPT, base_url=served.url, is_first_token=is_first_token)
                source = find_server("openai:zorb-1", settings, QUICK)
                predictor = StoredPredictor(source, PredictionStore(tmp_path / "store.sqlite"))
                assert predictor.predict(TEXTS).probabilities.tolist() == [pytest.approx(row)] * len(TEXTS)
                assert served.n_asked == n_asked


def test_the_option_chooses_the_reading() -> None:
    shares = {"Yes": 0.6, "No": 0.2}
    with loopback(lambda _: "Yes", logprobs=lambda _: chat_form(shares)) as served:
        for answers, row in (("first-token", [0.75, 0.25, 0.0]), ("text", [1.0, 0.0, 0.0])):
            options = ModelOptions(prompt="true", base_url=served.url, answers=answers)
            model = plan_model("openai:zorb-1", options).open([])
            assert model.predictor.predict(TEXTS[:1]).probabilities.tolist() == [pytest.approx(row)]
