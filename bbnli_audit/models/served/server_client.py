"""Talks to an OpenAI-compatible server. Decides which requests are tried again, and what the user is told.

No message contains a key, a password or a text, all of which a server's own error message may quote.
"""

import base64
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit, urlunsplit

from bbnli_audit.core.errors import ModelError, OptionError, ServerAwayError
from bbnli_audit.core.reading import BadJsonError, parse_message
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.options import ModelSettings

if TYPE_CHECKING:
    import openai

OpenAI: TypeAlias = "openai.OpenAI"
StatusError: TypeAlias = "openai.APIStatusError"

SERVED = "openai:"
DEFAULT_URL, BASE_URL_VARIABLE = "https://api.openai.com/v1", "OPENAI_BASE_URL"
_RETRIED = (408, 409, 425, 429)  # after these status codes, and all from 500 on, a request is sent again
# With these error codes, a server says that it did not answer because of the prompt's content. This counts like a
# refusal in words.
_FILTERED = ("content_filter", "content_policy_violation")
# Keys of a server's description that stay the same between requests. The others are clocks and random ids.
_STABLE = ("id", "root", "parent", "owned_by", "max_model_len", "meta")

T = TypeVar("T")
Read: TypeAlias = Callable[[Mapping[str, Any]], T]  # takes the wanted part out of the object that the server sent


class BadAnswer(Exception):
    """An answer that cannot be used. The message says why, without quoting the answer."""


@dataclass(frozen=True, slots=True)
class Requests:
    """How requests are made. Only `max_tokens` may change an answer. Times are in seconds."""

    max_tokens: int = 64
    n_at_once: int = 8
    timeout: float = 60.0
    n_tries: int = 6
    first_wait: float = 0.5  # the longest wait before the second try; doubled for each further try
    longest_wait: float = 30.0
    longest_asked_wait: float = 300.0  # the longest wait that a Retry-After header may ask for


class Address(NamedTuple):
    """A base URL without user name and password, and the header that holds them."""

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Address({self.url!r})"


def read_base_url(base_url: str | None) -> Address:
    """Read --bbnli-base-url, or use its default."""
    given = base_url or os.environ.get(BASE_URL_VARIABLE) or DEFAULT_URL
    try:
        parts = urlsplit(given.strip())
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        place = host if parts.port is None else f"{host}:{parts.port}"
    except ValueError:
        parts, place = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not place or parts.query or parts.fragment:
        # The value is not shown: it may contain a password.
        advice = "Give one like http://localhost:8000/v1, without '?' and '#'."
        raise OptionError(f"--bbnli-base-url: is not the address of a server. {advice}")
    headers = {}
    if parts.username is not None:
        secret = base64.b64encode(f"{parts.username}:{parts.password or ''}".encode()).decode()
        headers = {"Authorization": f"Basic {secret}"}
    return Address(urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", "")), headers)


class ServerClient:
    """A model on a server: its address, the requests to it, and the handling of their failures."""

    def __init__(self, name: str, settings: ModelSettings, requests: Requests) -> None:
        self.name = name
        self.model = name.removeprefix(SERVED)
        self.address = read_base_url(settings.base_url)
        self.is_first_token = settings.is_first_token
        self.requests = requests
        self._prompt = settings.prompt_or_default
        self._chance = Random()  # noqa: S311 - spreads retries in time
        self._lock = threading.Lock()
        self._returning = threading.Lock()
        self._served: str | None = None
        self._described: Mapping[str, Any] | None = None
        self._was_away = False

    @contextmanager
    def connected(self) -> Iterator[OpenAI]:
        """Open connections, and close them at the end. No variable of ours holds the key: tracebacks show variables."""
        from openai import DefaultHttpxClient, OpenAI

        url, headers = self.address
        # The library must not retry, because `_try` does. Prompts may go only to the server that was named, so no
        # redirect is followed. If the connection is not encrypted, proxies set in the environment are not used: a proxy
        # could read the prompts and answer them.
        how: Any = {"timeout": self.requests.timeout, "max_retries": 0}
        http = DefaultHttpxClient(follow_redirects=False, trust_env=url.startswith("https:"))
        client = OpenAI(base_url=url, api_key=_key(), default_headers=headers, http_client=http, **how)
        with _no_texts_in_logs(), client:
            yield client

    def describe(self) -> Mapping[str, Any]:
        """Ask the server for its description of this model. Return an empty mapping if it gives none."""

        def read(found: Mapping[str, Any]) -> Mapping[str, Any]:
            entries = found.get("data")
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                return {}
            # A server with a single model may accept any name for it.
            ours = next((entry for entry in entries if entry.get("id") == self.model), None)
            entry = entries[0] if ours is None and len(entries) == 1 else ours or {}
            return {key: entry[key] for key in _STABLE if key in entry}

        def send() -> str:
            from openai import APIStatusError

            try:
                return client.models.with_raw_response.list().text
            except APIStatusError as exc:
                if exc.status_code in (403, 404, 405, 500, 501):
                    return "{}"  # some servers lack this page, hide it from some keys, or fail to show it
                raise

        with self.connected() as client:
            self._described = self._try(send, read, threading.Event())
        return self._described

    def ask(self, client: OpenAI, text: TextPair, stop: threading.Event, read: Read[T], **how: Any) -> T:
        """Ask, with retries, and return what `read` finds in the answer. Threads may call this at the same time."""

        def send() -> str:
            from openai import APIStatusError

            create = client.chat.completions.with_raw_response.create
            chat: Any = [{"role": "user", "content": self._prompt.render(text)}]
            try:
                return create(model=self.model, messages=chat, temperature=0, **how).text
            except APIStatusError as exc:
                if exc.code in _FILTERED:
                    return '{"choices": [{"message": {"content": null}}]}'
                raise

        served, found = self._try(send, lambda answer: (answer.get("model"), read(answer)), stop)
        if self._was_away:
            self._check_same()
        if not served or not isinstance(served, str):
            return found
        with self._lock:
            first = self._served = self._served or served
        if served != first:
            fault = f"answered as {first[:80]!r}, then as {served[:80]!r}. These are two models"
            advice = "Name one of them exactly, and start a new prediction store (--bbnli-store)."
            raise ModelError(f"{self.where} {fault}.\n{advice}")
        return found

    def _check_same(self) -> None:
        """Check that a server that was away came back with the same model."""
        with self._returning:
            before = self._described
            if before is not None and self._was_away and self.describe() != before:
                self._described = before  # so that other threads see the change, too
                fault = "came back with another model, or other settings: what it says of itself has changed"
                advice = "The same command starts over with what runs there now."
                raise ModelError(f"{self.where} was away and {fault}.\n{advice}")
            self._was_away = False

    @property
    def where(self) -> str:
        return f"{self.name}: the server at {self.address.url}"

    def _try(self, send: Callable[[], str], read: Read[T], stop: threading.Event) -> T:
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        n_try = 0
        while True:
            n_try += 1
            asked_wait: float | None = None
            refused: ModelError | None = None
            try:
                return read(_read_object(send()))
            except APITimeoutError:
                problem = f"it did not answer within {self.requests.timeout:g} s"
            except APIConnectionError:
                self._was_away = True
                problem = "the connection failed or was cut"
            except BadAnswer as exc:
                problem = str(exc)
            except APIStatusError as exc:
                problem = f"status {exc.status_code}{_told(exc)}"
                asked_wait = _retry_after(exc.response.headers)
                refused = self._refusal(exc)
            # Raised outside `except`, so that no traceback shows the server's text.
            if refused is not None:
                raise refused
            if asked_wait is not None and asked_wait > self.requests.longest_asked_wait:
                problem += f", and it asks to wait {asked_wait:.0f} s"
            elif n_try < self.requests.n_tries and not stop.is_set():
                stop.wait(self._pause(n_try, asked_wait))
                continue
            raise ServerAwayError(
                f"{self.where} gave no usable answer in {n_try} tries; the last time {problem}.\nCheck that it is "
                "not overloaded. Its answers so far are in the prediction store: the same command goes on from there."
            )

    def _pause(self, n_try: int, asked_wait: float | None) -> float:
        if asked_wait is not None:
            return asked_wait + self._chance.uniform(0, self.requests.first_wait)
        longest = min(self.requests.longest_wait, self.requests.first_wait * 2.0 ** (n_try - 1))
        return longest * self._chance.uniform(0.5, 1)

    def _refusal(self, exc: StatusError) -> ModelError | None:
        """Return an error if another try would not help. Otherwise return None."""
        status = exc.status_code
        if exc.code == "insufficient_quota":
            problem, advice = "says that the account's quota is used up", "Raise it, or use another key."
        elif status in _RETRIED or status >= 500:
            return None
        elif status < 400:
            problem = f"sends requests on to {_place_of(exc.response.headers.get('location', ''))}"
            advice = (
                "Prompts go to the server that was named, and to no other. Give it as --bbnli-base-url if you trust it."
            )
        elif status in (401, 403):
            problem = "refuses the key"
            advice = f"Set OPENAI_API_KEY to a key that may use the model {self.model!r}."
        elif status == 404:
            problem = f"does not know a model {self.model!r}, or is another kind of server"
            advice = "Check the name after 'openai:', and --bbnli-base-url: it usually ends in /v1."
        else:
            problem, limit = "refuses the request", f"limit of {self.requests.max_tokens} tokens"
            if self.is_first_token:
                limit = "request for log-probabilities"
            advice = (
                f"It may not accept chat messages, temperature 0 or a {limit}; or a prompt is too long, or has content "
                "that the server does not allow."
            )
        return ModelError(f"{self.where} {problem} (status {status}{_told(exc)}).\n{advice}")


def _read_object(text: str) -> dict[str, Any]:
    try:
        return parse_message(text)
    except BadJsonError as exc:
        # The parser's message may quote the answer, so the error names only the kind of fault.
        kind = "JSON that is not an object" if "not an object" in exc.fault else "something that is not sound JSON"
        raise BadAnswer(f"it sent {kind}") from None


def _key() -> str:
    if not os.environ.get("OPENAI_API_KEY", "").strip().isascii():
        raise OptionError("OPENAI_API_KEY holds characters that a key cannot have. Copy it again.")
    return os.environ.get("OPENAI_API_KEY", "").strip() or "none"  # servers that need no key accept any


@contextmanager
def _no_texts_in_logs() -> Iterator[None]:
    """Turn off logs of openai at level DEBUG: some of its versions log whole requests."""
    logger = logging.getLogger("openai")
    before = logger.level
    if logger.getEffectiveLevel() < logging.INFO:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)


def _told(exc: StatusError) -> str:
    """Return the server's error code, but not its message, which may quote a key or a text."""
    known = [part for part in (exc.code, exc.param) if isinstance(part, str) and re.fullmatch(r"[a-z_]{3,40}", part)]
    return f", {': '.join(known)}" if known else ""


def _place_of(location: str) -> str:
    """Return scheme and host of a redirect, if they look ordinary. The rest of the address may contain a key."""
    found = re.match(r"https?://[A-Za-z0-9.\-\[\]:]{1,80}(?=[/?#]|$)", location)
    return found[0] if found else "another address"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "")
        if value.strip().replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
