"""Reads what an OpenAI-compatible server sends. Nothing of it is quoted in a message: it may hold a text."""

import json
from collections.abc import Iterator, Mapping
from math import exp
from typing import Any, NamedTuple

_SPACES = " \t\n\u0120\u2581"  # the last two are how vocabularies write a space


class UnusableAnswer(Exception):
    """An answer that makes no sense. The text says why, without quoting it."""


class NoLogProbabilities(Exception):
    """An answer that would do, but for the probabilities that were asked for."""


class Words(NamedTuple):
    """What a model wrote, and the name that the server gave it."""

    served: str | None
    text: str


class FirstToken(NamedTuple):
    """How likely an answer begins with yes and with no, and the name that the server gave the model."""

    served: str | None
    yes: float
    no: float


def read_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise UnusableAnswer("it sent something that is no JSON") from None
    if not isinstance(found, dict):
        raise UnusableAnswer("it sent JSON that is no object")
    return found


def read_words(text: str) -> Words:
    found = read_object(text)
    return Words(_served(found), _content(found) or "")


def read_first_token(text: str) -> FirstToken:
    """Sum the probabilities of yes and of no in any spelling, as far as the server tells them.

    Raises:
        NoLogProbabilities: when it tells none. An answer without a first token (a refusal) is neither yes nor no.
    """
    found = read_object(text)
    served, content = _served(found), _content(found)
    told = found["choices"][0].get("logprobs")
    if not content and not told:
        return FirstToken(served, 0.0, 0.0)
    if not isinstance(told, dict):
        raise NoLogProbabilities
    masses = {"yes": 0.0, "no": 0.0}
    try:
        for token, log_probability in _alternatives(told):
            word = token.strip(_SPACES).lower()
            if word in masses:
                masses[word] += exp(min(0.0, log_probability))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UnusableAnswer("it sent log-probabilities in a form that is not known") from None
    return FirstToken(served, masses["yes"], masses["no"])


def _alternatives(told: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Give the likeliest first tokens. Some servers answer a chat in the older form, a token a key."""
    if isinstance(told.get("content"), list):
        for entry in (told["content"] or [{"top_logprobs": []}])[0]["top_logprobs"]:
            yield entry["token"], float(entry["logprob"])
    elif isinstance(told.get("top_logprobs"), list):
        for token, log_probability in ((told["top_logprobs"] or [{}])[0] or {}).items():
            yield token, float(log_probability)
    else:
        raise NoLogProbabilities


def _content(found: Mapping[str, Any]) -> str | None:
    try:
        message = found["choices"][0]["message"]
        content = None if "refusal" in message and "content" not in message else message["content"]
    except (KeyError, IndexError, TypeError):
        raise UnusableAnswer("it sent JSON without choices[0].message.content") from None
    if content is not None and not isinstance(content, str):
        raise UnusableAnswer("it sent an answer that is no text")
    return content


def _served(found: Mapping[str, Any]) -> str | None:
    served = found.get("model")
    return served if isinstance(served, str) and served else None
