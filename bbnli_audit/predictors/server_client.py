"""Talks to an OpenAI-compatible server: what is tried again, what is not, and what a user is told.

No message holds a key, a password or a text: what a server writes about an error may quote all three.
"""

import base64
import json
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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit

from bbnli_audit.errors import ModelError, OptionError
from bbnli_audit.predictors.prompts import Prompt
from bbnli_audit.values import TextPair

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

SERVER = "openai:"
DEFAULT_URL = "https://api.openai.com/v1"
_RETRIED = (408, 409, 425, 429)  # and all from 500 on
# Not answered because of what the prompt says: a refusal, like one in words.
_FILTERED = ("content_filter", "content_policy_violation")
# What servers tell about a model that stays the same between two looks; the rest are clocks and random ids.
_STABLE = ("id", "root", "parent", "owned_by", "max_model_len", "meta")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asking:
    """How a server is asked. Only `max_tokens` may change an answer. Times are in seconds."""

    max_tokens: int = 64
    n_at_once: int = 8
    timeout: float = 60.0
    n_tries: int = 6
    first_wait: float = 0.5  # doubled with every try
    longest_wait: float = 30.0
    longest_asked_wait: float = 300.0  # of a Retry-After


class Address(NamedTuple):
    """A base URL as it may be shown, and what its user name and password make as a header."""

    url: str
    authorization: str | None

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    def headers(self) -> dict[str, str]:
        return {} if self.authorization is None else {"Authorization": self.authorization}


def read_base_url(base_url: str | None) -> Address:
    """Read --bbnli-base-url, or what stands in for it."""
    given = base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
    try:
        parts = urlsplit(given.strip())
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        place = host if parts.port is None else f"{host}:{parts.port}"
    except ValueError:
        parts, place = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not place or parts.query or parts.fragment:
        raise OptionError(  # without the value, which may hold a password
            "--bbnli-base-url: is no address of a server. Give one like http://localhost:8000/v1, without '?' and '#'."
        )
    secret = None
    if parts.username is not None:
        secret = "Basic " + base64.b64encode(f"{parts.username}:{parts.password or ''}".encode()).decode()
    return Address(urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", "")), secret)


class _Unusable(Exception):
    """An answer that makes no sense. The text says why, without quoting it."""


class ServerClient:
    """A model on a server: where it is, how it is asked, and what happens when that fails."""

    def __init__(self, name: str, address: Address, asking: Asking) -> None:
        self.name = name
        self.model = name.removeprefix(SERVER)
        self.address = address
        self.asking = asking
        self._chance = Random()  # noqa: S311 - spreads the tries
        self._lock = threading.Lock()
        self._served: str | None = None

    @contextmanager
    def connected(self) -> Iterator["OpenAI"]:
        """Open connections, and close them. The key is in no variable of ours: tracebacks may show those."""
        from openai import OpenAI

        with (
            _no_texts_in_logs(),
            OpenAI(
                base_url=self.address.url,
                api_key=_key(),
                default_headers=self.address.headers(),
                timeout=self.asking.timeout,
                max_retries=0,  # ours know more
            ) as client,
        ):
            yield client

    def describe(self) -> Mapping[str, Any]:
        """Ask what the server has under this name; nothing when it does not say."""

        def read(text: str) -> Mapping[str, Any]:
            entries = _read_object(text).get("data")
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                return {}
            # A server of one model takes any name for it.
            ours = next((entry for entry in entries if entry.get("id") == self.model), None)
            found = entries[0] if ours is None and len(entries) == 1 else ours or {}
            return {key: found[key] for key in _STABLE if key in found}

        def send() -> str:
            from openai import APIStatusError

            try:
                return client.models.with_raw_response.list().text
            except APIStatusError as exc:
                if exc.status_code in (403, 404, 405, 500, 501):
                    return "{}"  # not every server has this page, shows it to every key, or has it in working order
                raise

        with self.connected() as client:
            return self._try(send, read, threading.Event())

    def complete(self, client: "OpenAI", prompt: Prompt, text: TextPair, stop: threading.Event) -> str:
        """Ask, as often as it takes, and give the model's words. Threads may call it at the same time."""

        def send() -> str:
            from openai import APIStatusError

            try:
                return client.chat.completions.with_raw_response.create(
                    model=self.model,
                    messages=[{"role": "user", "content": prompt.render(text)}],
                    temperature=0,
                    max_tokens=self.asking.max_tokens,
                ).text
            except APIStatusError as exc:
                if exc.code in _FILTERED:
                    return '{"choices": [{"message": {"content": null}}]}'
                raise

        served, words = self._try(send, _read_completion, stop)
        with self._lock:
            first = self._served = self._served or served
        if served is not None and first is not None and served != first:
            raise ModelError(
                f"{self.name}: the server at {self.address.url} answered as {first[:80]!r}, then as {served[:80]!r}. "
                "These are two models.\nName one of them exactly, and begin a new prediction store (--bbnli-store)."
            )
        return words

    def _try(self, send: Callable[[], str], read: Callable[[str], T], stop: threading.Event) -> T:
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        n_try = 0
        while True:
            n_try += 1
            asked_wait: float | None = None
            refused: ModelError | None = None
            try:
                return read(send())
            except APITimeoutError:
                problem = f"it did not answer within {self.asking.timeout:g} s"
            except APIConnectionError:
                problem = "the connection failed or was cut"
            except _Unusable as exc:
                problem = str(exc)
            except APIStatusError as exc:
                problem = f"status {exc.status_code}{_told(exc)}"
                asked_wait = _retry_after(exc.response.headers)
                refused = self._refusal(exc)
            # Raised out here, so that no traceback shows what the server wrote.
            if refused is not None:
                raise refused
            if asked_wait is not None and asked_wait > self.asking.longest_asked_wait:
                problem += f", and it asks to wait {asked_wait:.0f} s"
            elif n_try < self.asking.n_tries and not stop.is_set():
                stop.wait(self._pause(n_try, asked_wait))
                continue
            raise ModelError(
                f"{self.name}: no usable answer from the server at {self.address.url} in {n_try} tries; the last time "
                f"{problem}.\nLook whether it runs and is not overloaded. What it answered so far is in the prediction "
                "store: the same command goes on from there."
            )

    def _pause(self, n_try: int, asked_wait: float | None) -> float:
        if asked_wait is not None:
            return asked_wait + self._chance.uniform(0, self.asking.first_wait)
        longest = min(self.asking.longest_wait, self.asking.first_wait * 2.0 ** (n_try - 1))
        return longest * self._chance.uniform(0.5, 1)

    def _refusal(self, exc: "APIStatusError") -> ModelError | None:
        """Say what is wrong when another try would not help."""
        status = exc.status_code
        where = f"{self.name}: the server at {self.address.url}"
        told = f"(status {status}{_told(exc)})"
        if exc.code == "insufficient_quota":
            return ModelError(f"{where} says that the account's quota is used up {told}. Raise it, or use another key.")
        if status in _RETRIED or status >= 500:
            return None
        if status in (401, 403):
            return ModelError(
                f"{where} refuses the key {told}.\nSet OPENAI_API_KEY to a key that may use the model {self.model!r}."
            )
        if status == 404:
            return ModelError(
                f"{where} knows no model {self.model!r}, or is no such server {told}.\nLook at the name behind "
                "'openai:', and at --bbnli-base-url: it usually ends in /v1."
            )
        return ModelError(
            f"{where} refuses the request {told}.\nThe model may take no chat messages, no temperature 0 or no limit "
            f"of {self.asking.max_tokens} tokens, or a prompt is too long for it."
        )


def _key() -> str:
    if not os.environ.get("OPENAI_API_KEY", "").strip().isascii():
        raise OptionError("OPENAI_API_KEY holds characters that no key has. Copy it again.")
    return os.environ.get("OPENAI_API_KEY", "").strip() or "none"  # servers without keys take any


@contextmanager
def _no_texts_in_logs() -> Iterator[None]:
    """Some versions of openai log whole requests at level DEBUG."""
    logger = logging.getLogger("openai")
    before = logger.level
    if logger.getEffectiveLevel() < logging.INFO:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)


def _read_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise _Unusable("it sent something that is no JSON") from None
    if not isinstance(found, dict):
        raise _Unusable("it sent JSON that is no object")
    return found


def _read_completion(text: str) -> tuple[str | None, str]:
    """Give the name of the model that answered, and its words."""
    found = _read_object(text)
    try:
        message = found["choices"][0]["message"]
        content = None if "refusal" in message and "content" not in message else message["content"]
    except (KeyError, IndexError, TypeError):
        raise _Unusable("it sent JSON without choices[0].message.content") from None
    if content is not None and not isinstance(content, str):
        raise _Unusable("it sent an answer that is no text")
    served = found.get("model")
    return (served if isinstance(served, str) and served else None), content or ""


def _told(exc: "APIStatusError") -> str:
    """Give the server's name for the error; its message may quote a key or a text."""
    known = [part for part in (exc.code, exc.param) if isinstance(part, str) and re.fullmatch(r"[a-z_]{3,40}", part)]
    return f", {': '.join(known)}" if known else ""


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
