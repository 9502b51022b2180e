"""The one way to read files: what is too large, too deep or no file at all is refused with a message, and quickly."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bbnli_audit.core.errors import AuditError, SuiteError, suggest
from bbnli_audit.core.reading import (
    MOST_MESSAGE,
    MOST_NODES,
    MOST_YAML_BYTES,
    BadJsonError,
    Source,
    parse_json,
    parse_message,
)
from bbnli_audit.core.values import Pairing
from bbnli_audit.models.checkpoint import check_contents
from bbnli_audit.models.inference.store import check_store
from bbnli_audit.suites.template_file import expand_items, read_template_file
from tests.invented import template_data

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path / "file", AuditError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, f"has more than {MOST_NODES:,} keys and values, counting each use of an alias"),
        ("\n".join(f"k{n}: 1" for n in range(MOST_NODES)), f"has more than {MOST_NODES:,} keys and values"),
        ("\n".join(f"key{n}: 1" for n in range(200_000)), f"at most {MOST_YAML_BYTES:,} are read"),
        ("[" * 50_000, ":1: is nested too deeply"),
        ("- " * 50_000, ":1: is nested too deeply"),
        ("a: &x [*x]", ":1: is nested too deeply"),
        ("a: [1, 2", ":1: is not valid YAML"),
        ("a: \x00", "is not valid YAML: special characters are not allowed"),
    ],
    ids=["aliases", "many keys", "200,000 keys", "deep", "deep block", "itself", "open list", "null byte"],
)
def test_yaml_that_is_refused(source: Source, text: str, message: str) -> None:
    source.path.write_text(text, encoding="utf-8")
    started = time.monotonic()
    with pytest.raises(AuditError) as caught:
        source.read_yaml()
    assert message in str(caught.value)
    assert str(source.path) in str(caught.value)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "is nested too deeply"),
        ("[" * 200 + "]" * 200, "is nested too deeply"),
        ("9" * 5000, "has a whole number with thousands of digits"),
        ('{"a": "\\ud800"}', "holds a lone surrogate such as .*: half a character"),
        ('{"\\udc00": 1}', "holds a lone surrogate such as .*: half a character"),
        ('{"a": 1, "a": 2}', "has the key 'a' twice"),
        ("{", "is not valid JSON"),
    ],
)
def test_json_that_is_refused(source: Source, text: str, message: str) -> None:
    source.path.write_text(text, encoding="utf-8")
    with pytest.raises(AuditError, match=message):
        source.read_json()


def test_whole_characters_in_two_escapes_are_read() -> None:
    assert parse_json(json.dumps({"a": "😀" * 3})) == {"a": "😀" * 3}


def test_a_file_that_is_too_large(source: Source) -> None:
    source.path.write_text("x" * 11)
    with pytest.raises(AuditError, match="has 11 bytes; at most 10 are read"):
        source.read_bytes(most=10)


def test_words_that_multiply(tmp_path: Path) -> None:
    words = {f"W{n}": [f"word{m}" for m in range(30)] for n in range(8)}
    template = "Most {{GROUP1}} are " + " ".join(f"{{{{W{n}}}}}" for n in range(8))
    path = tmp_path / "zorbs.json"
    path.write_text(json.dumps(template_data(data=words, bias_hypothesis_stereotypical=[[template, 1, 2]])))
    file = read_template_file(path)
    with pytest.raises(SuiteError, match="combine to more than 200,000 texts"):
        expand_items(file, Pairing.BOTH)


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: check_store(folder / "pipe"),
        lambda folder: check_contents("m", folder),
        lambda folder: Source(folder / "pipe", AuditError).read_text(),
    ],
    ids=["store", "checkpoint", "text"],
)
def test_a_pipe_is_not_opened(read: Callable[[Path], object], tmp_path: Path) -> None:
    """Reading one would wait forever."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "model.safetensors").symlink_to("pipe")
    with pytest.raises(AuditError, match="not a file"):
        read(tmp_path)


def test_a_suggestion_from_very_many_names() -> None:
    started = time.monotonic()
    told = suggest("x" * 100_000, (f"name{n}" for n in range(200_000)))
    assert time.monotonic() - started < 10
    assert told.startswith("Known: name0, ")
    assert told.endswith(" and 199900 more.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[1]", "is JSON that is not an object"),
        ('{"a": 1, "a": 2}', "has the key 'a' twice"),
        ('{"a": ' + "[" * 101 + "]" * 101 + "}", "is nested too deeply"),
        ('{"a": ' + "[" * 100_000, "is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "has a whole number with thousands of digits"),
        ('{"a": "' + "x" * MOST_MESSAGE + '"}', f"at most {MOST_MESSAGE:,} are read"),
    ],
)
def test_a_message_from_a_connection_has_the_caps_of_a_file(text: str, message: str) -> None:
    with pytest.raises(BadJsonError, match=message):
        parse_message(text)


def test_half_a_character_in_a_message_is_left_to_its_reader() -> None:
    assert parse_message('{"note": "a\\ud800b"}') == {"note": "a\ud800b"}
