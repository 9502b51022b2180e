"""`openai:NAME`: generative models behind an OpenAI-compatible server, such as vLLM, TGI, llama.cpp or a hosted one.

Every answer is passed on and stored as soon as it arrives. If the server or the network fails later, requests are
repeated, but no answer that has arrived is lost.
"""

import json
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from math import exp
from typing import Any

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import InBatches, run_in_threads
from bbnli_audit.models.language_model.forms import Form, Row, form_of
from bbnli_audit.models.options import ModelKind, ModelSettings
from bbnli_audit.models.protocol import Batch, ModelSource, Predictions
from bbnli_audit.models.served.server_client import SERVED, BadAnswer, OpenAI, Requests, ServerClient, read_base_url

# The most log-probabilities per token that the interfaces of OpenAI and vLLM allow.
_N_ALTERNATIVES = 20


def check_server(name: str, base_url: str | None) -> None:
    """At start-up, refuse faults that can be seen without asking the server."""
    if not name.removeprefix(SERVED):
        raise OptionError(f"--model={name}: names no model. Give the name that the server knows: openai:NAME.")
    if find_spec("openai") is None:
        raise OptionError(f'--model={name} needs the package openai: pip install "bbnli-audit[api]"')
    read_base_url(base_url)


def find_server(name: str, settings: ModelSettings, requests: Requests = Requests()) -> ModelSource:  # noqa: B008
    """Find a served model, and ask the server to describe it.

    The same name may stand for another model tomorrow, so the server's description is part of the fingerprint
    (docs/decisions/0014-generative.md).
    """
    check_server(name, settings.base_url)
    server = ServerClient(name, settings, requests)
    # If only the first token is read, one token is enough and no text is parsed. In this case the fingerprint has
    # neither max_tokens nor the parser's version.
    prompt = settings.prompt_or_default
    form = form_of(prompt)
    how = ["first-token", *form.rules[:-1]] if settings.is_first_token else [requests.max_tokens, *form.rules]
    parts = [form.kind, server.address.url, server.model, server.describe(), prompt.template, *how]
    fingerprint = sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    info = ModelInfo(name, fingerprint, form.kind, "server", "unknown", form.labels, prompt.name)
    return ModelSource(info, lambda: ServerPredictor(server, info, form), is_content=True)


class ServerPredictor(InBatches):
    """A model that is asked over the network, several texts at a time."""

    def __init__(self, server: ServerClient, info: ModelInfo, form: Form) -> None:
        self.info = info
        self._form = form
        self._server = server

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        return [Batch((row,), (text,), cost=1) for row, text in enumerate(texts)]

    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]:
        stop = threading.Event()  # ends the retries of running requests when their answers are no longer wanted
        with self._server.connected() as client:

            def ask(batch: Batch) -> Predictions:
                return Predictions.of([self._row(client, text, stop) for text in batch.inputs])

            yield from run_in_threads(ask, batches, self._server.requests.n_at_once, stop.set)

    def _row(self, client: OpenAI, text: TextPair, stop: threading.Event) -> Row:
        server = self._server
        if not server.is_first_token:
            words = server.ask(client, text, stop, read_words, max_tokens=server.requests.max_tokens)
            return self._form.row_of_text(words)
        how = {"max_tokens": 1, "logprobs": True, "top_logprobs": _N_ALTERNATIVES}
        try:
            return self._form.row_of_masses(self._form.masses(server.ask(client, text, stop, read_first_token, **how)))
        except NoLogProbabilities:
            advice = "Start it so that it does, or leave --bbnli-answers out: then the model writes its answer."
            raise ModelError(f"{server.where} sends no log-probabilities of tokens.\n{advice}") from None


class NoLogProbabilities(Exception):
    """A usable answer without the log-probabilities that were asked for."""


def read_words(found: Mapping[str, Any]) -> str:
    return _content(found) or ""


def read_first_token(found: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the likeliest first tokens with their probabilities, as many as the server sends.

    The list is empty for an answer without a first token, such as a refusal.
    """
    content, told = _content(found), found["choices"][0].get("logprobs")
    if not content and (not told or _is_stopped(found)):
        return []
    if not isinstance(told, dict):
        raise NoLogProbabilities
    try:
        return [(_text(token), exp(min(0.0, log_probability))) for token, log_probability in _alternatives(told)]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadAnswer("it sent log-probabilities in an unknown form") from None


def _text(token: Any) -> str:
    if not isinstance(token, str):
        raise TypeError
    return token


def _alternatives(told: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the likeliest first tokens and their log-probabilities. Some servers use an older form: tokens as keys."""
    if isinstance(told.get("content"), list):
        for entry in (told["content"] or [{"top_logprobs": []}])[0]["top_logprobs"]:
            yield entry["token"], float(entry["logprob"])
    elif isinstance(told.get("top_logprobs"), list):
        for token, log_probability in ((told["top_logprobs"] or [{}])[0] or {}).items():
            yield token, float(log_probability)
    else:
        raise NoLogProbabilities


def _content(found: Mapping[str, Any]) -> str | None:
    """Return the model's answer. Return None if the model refused, or if a filter stopped the answer.

    Errors do not quote the answer, because it may repeat a text.
    """
    try:
        message = found["choices"][0]["message"]
        is_refused = _is_stopped(found) or bool(message.get("refusal"))
        content = None if is_refused else message["content"]
        has_broken = found["choices"][0].get("finish_reason") == "error"
    except (KeyError, IndexError, TypeError, AttributeError):
        raise BadAnswer("it sent JSON without choices[0].message.content") from None
    if has_broken or found.get("error"):
        raise BadAnswer("it said that its answer broke off")
    if content is not None and not isinstance(content, str):
        raise BadAnswer("it sent an answer that is not a text")
    return content


def _is_stopped(found: Mapping[str, Any]) -> bool:
    """Say whether a filter ended the answer. Then the words so far need not be what the model would have answered."""
    return bool(found["choices"][0].get("finish_reason") == "content_filter")


def _check(name: str, settings: ModelSettings) -> None:
    check_server(name, settings.base_url)
    settings.refuse_fast_paths(name)


KIND = ModelKind("served", f"{SERVED}NAME", lambda name: name.startswith(SERVED), _check, find_server)
