"""A served model, asked over real HTTP: faults cost tries and never answers, and nothing secret is told."""

import json
import logging
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.prompts import BUILT_IN, Prompt
from bbnli_audit.models.served.server import check_server, find_server
from bbnli_audit.models.served.server_client import Requests, read_base_url
from tests.loopback_server import Fault, Loopback, loopback

KEY = "sk-very-secret-0123456789"
PROMPT = BUILT_IN["entailed"]
QUICK = Requests(first_wait=0.01, timeout=5.0)
TEXTS = [TextPair(f"Workshop {n} is open to Zorbs and Quints.", f"Zorbs juggle in {n}.") for n in range(24)]
YES, NO, UNPARSED = ([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]])


@pytest.fixture(autouse=True)
def secret_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def ask(server: Loopback, texts: Sequence[TextPair] = TEXTS[:1], requests: Requests = QUICK) -> list[list[float]]:
    source = find_server("openai:zorb-1", ModelSettings(prompt=PROMPT, base_url=server.url), requests)
    found: list[list[float]] = source.open().predict(texts).probabilities.tolist()
    return found


def by_number(prompt: str) -> str:
    """Say yes, no or nothing, by the number of the workshop."""
    number = int(prompt.split("Workshop ")[1].split()[0])
    return ["Yes, they do.", "**No**", "I cannot tell."][number % 3]


def test_answers_come_back_in_order_and_are_asked_for_greedily() -> None:
    with loopback(by_number) as server:
        rows = ask(server, TEXTS)
    assert rows == [[*YES, *NO, *UNPARSED][n % 3] for n in range(24)]
    assert server.asked == {PROMPT.render(text): 1 for text in TEXTS}
    assert server.authorizations == {f"Bearer {KEY}"}
    body = server.bodies[0]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("zorb-1", 0, 64)
    assert [message["role"] for message in body["messages"]] == ["user"]


FAULTS = {
    "too many": Fault(429, headers={"Retry-After": "0"}),
    "broken": Fault(500),
    "overloaded": Fault(503),
    "too late": Fault(seconds=0.6),
    "no JSON": Fault(body=b'{"choices": [{"mess'),
    "not an object": Fault(body=b'["Yes"]'),
    "nested": Fault(body=b'{"choices": ' + b"[" * 200 + b"]" * 200 + b"}"),
    "a key twice": Fault(body=b'{"choices": [{"message": {"content": "Yes"}}], "choices": []}'),
    "no choices": Fault(body=b'{"choices": []}'),
    "no content": Fault(body=b'{"choices": [{"message": {"role": "assistant"}}]}'),
    "no text": Fault(body=b'{"choices": [{"message": {"content": 5}}]}'),
    "broken off": Fault(body=b'{"choices": [{"message": {"content": "No"}, "finish_reason": "error"}]}'),
    "an error beside": Fault(body=b'{"error": {"code": 502}, "choices": [{"message": {"content": "No"}}]}'),
    "a page": Fault(502, b"<html>Bad gateway</html>"),
    "cut": Fault(body=b'{"choices": [{"message": {"content": "No"}}]}', is_cut=True),
    "cut at once": Fault(body=b"", is_cut=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_tried_again(fault: Fault) -> None:
    with loopback(faults=[fault, fault]) as server:
        assert ask(server, requests=Requests(first_wait=0.01, timeout=0.3)) == YES
    assert server.n_asked == 3


def test_all_faults_at_once_lose_nothing() -> None:
    with loopback(by_number, faults=[*FAULTS.values()] * 2) as server:
        rows = ask(server, TEXTS, Requests(first_wait=0.01, timeout=0.3, n_tries=12))
    assert rows == [[*YES, *NO, *UNPARSED][n % 3] for n in range(24)]
    assert all(server.answered[PROMPT.render(text)] == 1 for text in TEXTS)
    assert server.n_asked == 24 + 2 * len(FAULTS)


@pytest.mark.parametrize("header", [{"Retry-After": "0.4"}, {"retry-after-ms": "400"}])
def test_the_server_says_how_long_to_wait(header: dict[str, str]) -> None:
    with loopback(faults=[Fault(429, headers=header)]) as server:
        assert ask(server) == YES
    assert 0.4 <= server.times[1] - server.times[0] < 3


def test_a_date_to_wait_for_is_understood() -> None:
    from email.utils import formatdate

    with loopback(faults=[Fault(503, headers={"Retry-After": formatdate(time.time() + 2, usegmt=True)})]) as server:
        assert ask(server) == YES
    assert 0.8 <= server.times[1] - server.times[0] < 5


def test_pauses_grow() -> None:
    with loopback(faults=[Fault(500)] * 4) as server:
        ask(server, requests=Requests(first_wait=0.1))
    pauses = [later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False)]
    for pause, least in zip(pauses, (0.05, 0.1, 0.2, 0.4), strict=True):
        assert pause >= least


def test_a_wait_that_is_too_long_ends_the_run() -> None:
    message = "the last time status 429, and it asks to wait 7200 s"
    with (
        loopback(faults=[Fault(429, headers={"Retry-After": "7200"})]) as server,
        pytest.raises(ModelError, match=message),
    ):
        ask(server)
    assert server.n_asked == 1


REFUSALS: dict[str, tuple[Fault, str]] = {
    "401": (
        Fault(401),
        r"refuses the key \(status 401\).\nSet OPENAI_API_KEY to a key that may use the model 'zorb-1'",
    ),
    "403": (Fault(403), r"refuses the key \(status 403\)"),
    "404": (
        Fault(404, b'{"error": {"code": "model_not_found"}}'),
        r"does not know a model 'zorb-1'.*status 404, model_not_found",
    ),
    "400": (
        Fault(400, b'{"error": {"code": "unsupported_parameter", "param": "max_tokens"}}'),
        r"refuses the request \(status 400, unsupported_parameter: max_tokens\)",
    ),
    "quota": (Fault(429, b'{"error": {"code": "insufficient_quota"}}'), "the account's quota is used up"),
}


@pytest.mark.parametrize(("fault", "message"), REFUSALS.values(), ids=REFUSALS)
def test_what_another_try_would_not_help_ends_at_once(fault: Fault, message: str) -> None:
    with loopback(faults=[fault]) as server, pytest.raises(ModelError, match=message) as caught:
        ask(server)
    assert server.n_asked == 1
    assert server.url in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("is_list", [False, True], ids=["answers", "list of models"])
def test_a_redirect_is_refused_and_no_prompt_goes_elsewhere(status: int, is_list: bool) -> None:
    with loopback() as other:
        there = f"{other.url}/chat/completions"
        moved = Fault(status, headers={"Location": there})
        with loopback(faults=[] if is_list else [moved]) as server, pytest.raises(ModelError) as raised:
            server.moved = moved if is_list else None
            ask(server)
    place = there.removesuffix("/v1/chat/completions")
    assert f"sends requests on to {place} (status {status}" in str(raised.value)
    assert "Give it as --bbnli-base-url if you trust it" in str(raised.value)
    assert server.n_asked == (0 if is_list else 1)
    assert other.n_asked == 0
    assert other.authorizations == set()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_reads_no_prompt_that_is_not_encrypted(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with loopback() as proxy, loopback(by_number) as server:
        monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("NO_PROXY")
        assert ask(server) == YES
    assert (server.n_asked, proxy.n_asked, proxy.authorizations) == (1, 0, set())


def test_a_prompt_that_a_filter_stops_is_no_answer() -> None:
    with loopback(faults=[Fault(400, b'{"error": {"code": "content_filter"}}')]) as server:
        assert ask(server) == UNPARSED
    with loopback(faults=[Fault(body=b'{"choices": [{"message": {"content": null}}]}')]) as server:
        assert ask(server) == UNPARSED
    for choice in (
        {"message": {"refusal": "Yes, I refuse"}},
        {"message": {"content": "No", "refusal": "I refuse"}},
        {"message": {"content": "No"}, "finish_reason": "content_filter"},
    ):
        with loopback(faults=[Fault(body=json.dumps({"choices": [choice]}).encode())]) as server:
            assert ask(server) == UNPARSED


def test_tries_come_to_an_end() -> None:
    with (
        loopback(faults=[Fault(500)] * 10) as server,
        pytest.raises(ModelError, match=r"the server at .* gave no usable answer in 6 tries; the last time status 500"),
    ):
        ask(server)
    assert server.n_asked == 6


def test_no_more_requests_at_once_than_allowed() -> None:
    with loopback(seconds=0.03) as server:
        ask(server, TEXTS)
        assert 2 <= server.n_most_at_once <= 8
    with loopback(seconds=0.01) as server:
        ask(server, TEXTS[:8], Requests(n_at_once=2))
        assert server.n_most_at_once <= 2


def test_what_was_answered_is_kept_when_the_server_goes(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"

    def audit(server: Loopback) -> tuple[StoredPredictor, Callable[[], Any]]:
        source = find_server(
            "openai:zorb-1",
            ModelSettings(prompt=PROMPT, base_url=server.url),
            Requests(first_wait=0.01, n_tries=2, n_at_once=4),
        )
        predictor = StoredPredictor(source, PredictionStore(store))
        return predictor, lambda: predictor.predict(TEXTS).probabilities.tolist()

    with loopback(by_number, is_gone_after=10) as server:
        predictor, run = audit(server)
        with pytest.raises(ModelError, match="the same command goes on from there"):
            run()
        n_kept = predictor.tally.n_predicted
        kept = set(server.answered)
        assert n_kept == len(kept) == 10
        server.is_gone_after = None
        server.asked.clear()

        predictor, run = audit(server)
        assert run() == [[*YES, *NO, *UNPARSED][n % 3] for n in range(24)]
        assert predictor.tally.n_predicted == 14
        assert server.asked == {prompt: 1 for text in TEXTS if (prompt := PROMPT.render(text)) not in kept}

        server.asked.clear()
        predictor, run = audit(server)
        run()
        assert server.n_asked == 0


def test_answers_under_way_are_kept_when_another_one_fails(tmp_path: Path) -> None:
    with loopback(seconds=0.1, faults=[Fault(401)]) as server:
        source = find_server("openai:zorb-1", ModelSettings(prompt=PROMPT, base_url=server.url), QUICK)
        predictor = StoredPredictor(source, PredictionStore(tmp_path / "store.sqlite"))
        with pytest.raises(ModelError, match="refuses the key"):
            predictor.predict(TEXTS)
    assert predictor.tally.n_predicted == server.answered.total() == server.n_asked - 1


def test_a_server_that_is_not_there_ends_clearly() -> None:
    with loopback() as server:
        pass
    start = time.monotonic()
    with pytest.raises(ModelError) as caught:
        ask(server)
    assert f"the server at {server.url} gave no usable answer in 6 tries" in str(caught.value)
    assert "the connection failed or was cut" in str(caught.value)
    assert time.monotonic() - start < 10


def test_one_thread_that_gives_up_stops_the_others_soon() -> None:
    with loopback(faults=[Fault(500, headers={"Retry-After": "30"})] * 3 + [Fault(401)]) as server:
        start = time.monotonic()
        with pytest.raises(ModelError, match="refuses the key"):
            ask(server, TEXTS)
        assert time.monotonic() - start < 10


def test_keys_passwords_and_texts_are_never_told(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    text = TEXTS[0]
    told = json.dumps({"error": {"message": f"bad key {KEY} for {text.premise}", "code": KEY}}).encode()
    shown = []
    for status in (400, 401, 404, 429, 500):
        with loopback(faults=[Fault(status, told)] * 6) as server:
            url = server.url.replace("127", "zorb:pass-word@127")
            source = find_server("openai:zorb-1", ModelSettings(prompt=PROMPT, base_url=url), QUICK)
            with pytest.raises(ModelError) as caught:
                source.open().predict([text])
            shown += [str(caught.value), repr(source)]
            shown += [repr(entry.frame.f_locals) for entry in caught.traceback if "predictors" in str(entry.path)]
            assert server.url in str(caught.value)
            assert server.authorizations == {"Basic em9yYjpwYXNzLXdvcmQ="}
    out, err = capfd.readouterr()
    everything = "\n".join([*shown, caplog.text, out, err])
    assert "zorb-1" in everything
    assert not [secret for secret in (KEY, "pass-word", "em9yYjpw", *text) if secret in everything]
    monkeypatch.setenv("OPENAI_API_KEY", "schlüssel")
    with pytest.raises(OptionError, match="OPENAI_API_KEY holds characters that a key cannot have"):
        find_server("openai:zorb-1", ModelSettings(prompt=PROMPT, base_url="http://127.0.0.1:1"), QUICK)


def test_a_server_without_a_key_gets_a_dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with loopback() as server:
        ask(server)
    assert server.authorizations == {"Bearer none"}


def test_two_models_under_one_name_are_noticed() -> None:
    with loopback() as server:
        predictor = find_server("openai:zorb-1", ModelSettings(prompt=PROMPT, base_url=server.url), QUICK).open()
        predictor.predict(TEXTS[:2])
        server.served = "another-model"
        with pytest.raises(ModelError, match="answered as 'served-model', then as 'another-model'"):
            predictor.predict(TEXTS[2:4])


def test_a_server_that_comes_back_with_another_model_is_noticed(tmp_path: Path) -> None:
    one, two = {"id": "zorb-1", "meta": {"size": 5}}, {"id": "zorb-1", "meta": {"size": 6}}
    with loopback(models=[one]) as server:
        predictor = StoredPredictor(
            find_server("openai:zorb-1", ModelSettings(prompt=PROMPT, base_url=server.url), QUICK),
            PredictionStore(tmp_path / "store.sqlite"),
        )
        server.faults.append(Fault(is_cut=True))
        assert predictor.predict(TEXTS[:2]).probabilities.tolist() == [*YES, *YES]  # away, and the same
        server.faults.append(Fault(is_cut=True))
        server.models = [two]
        with pytest.raises(ModelError, match="came back with another model, or other settings"):
            predictor.predict(TEXTS[:3])
        assert predictor.tally.n_predicted == 2


def test_the_fingerprint_names_server_model_prompt_and_settings() -> None:
    def fingerprint(url: str, name: str = "zorb-1", prompt: Prompt = PROMPT, requests: Requests = QUICK) -> str:
        return find_server(f"openai:{name}", ModelSettings(prompt=prompt, base_url=url), requests).info.fingerprint

    one, two = {"id": "zorb-1", "root": "/one", "created": 5}, {"id": "zorb-2", "root": "/two"}
    with loopback(models=[one, two]) as server, loopback(models=None) as other:
        first = fingerprint(server.url)
        found = [
            first,
            fingerprint(server.url, "zorb-2"),
            fingerprint(server.url, prompt=BUILT_IN["true"]),
            fingerprint(server.url, requests=Requests(max_tokens=32)),
            fingerprint(other.url),
        ]
        assert len(set(found)) == len(found)
        server.models = [{**one, "created": 6, "permission": [{"id": "x"}]}, two]
        assert fingerprint(server.url + "/", requests=Requests(timeout=9, n_at_once=1)) == first
        assert fingerprint(server.url.replace("//", "//user:word@")) == first
        server.models = [{**one, "root": "/three"}, two]
        assert fingerprint(server.url) != first
        server.models_status = 500  # `transformers serve` without a hub cache
        assert fingerprint(server.url) not in found
        server.models_status = 200
        server.models = [{"id": "/models/any.gguf"}]
        assert fingerprint(server.url) not in (first, fingerprint(other.url))
        info = find_server("openai:zorb-1", ModelSettings(prompt=PROMPT, base_url=server.url)).info
    assert (info.name, info.kind, info.backend, info.labels) == (
        "openai:zorb-1",
        "generative",
        "server",
        ("entailment", "not_entailment"),
    )


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("https://u:p@api.example.org/v1", "https://api.example.org/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        (None, "https://api.openai.com/v1"),
    ],
)
def test_an_address_is_read(given: str | None, url: str) -> None:
    assert read_base_url(given).url == url
    assert "Basic" not in repr(read_base_url(given))


@pytest.mark.parametrize(
    "given", ["localhost:8000", "ftp://a/b", "http://", "http://a:port/", "http://a/v1?key=1", "x"]
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(
        OptionError, match=r"--bbnli-base-url: is not the address of a server. Give one like http://localhost"
    ):
        read_base_url(given)


def test_a_missing_package_or_name_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="--model=openai:: names no model"):
        check_server("openai:", None)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(
        OptionError, match=r'--model=openai:zorb-1 needs the package openai: pip install "bbnli-audit\[api\]"'
    ):
        check_server("openai:zorb-1", None)
