"""Whatever stands in a file that we read, or in its place: nothing but our own error comes out, with a message."""

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.core.errors import AuditError
from bbnli_audit.models.served.server import NoLogProbabilities, read_first_token, read_words
from bbnli_audit.models.served.server_client import BadAnswer
from tests.entrances import ENTRANCES, JSON_ENTRANCES, NO_FILES, Entrance
from tests.reported import HOSTILE

# JSON that readers trip over, as it stands in a file.
TRAPS = (
    *("null", "true", "-1", "1e400", "NaN", "{}", "[]", "[[]]", "[null]", "[1]", '{"": ""}', '""', '"\\u00b2"', '"1"'),
    *("9" * 5000, "[" * 300 + "]" * 300, '{"a":' * 20_000 + "1" + "}" * 20_000, '"\\ud800"', '{"\\udc80": 1}'),
    *('{"a": 1, "a": 2}', '"\\u0000"', '"::error::x"', '"{{GROUP1}}"', '"{{x}}"', "2", "0.5", "-0"),
)
traps = st.sampled_from(TRAPS) | st.sampled_from(HOSTILE).map(json.dumps) | st.integers().map(str)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
MAY_BE_MISSING = ("suite.json", "release.json", "controls.jsonl", "mask.manifest.json")
MARK = "the place of the trap"


def refused(entrance: Entrance, folder: Path) -> str | None:
    """Read, and return the message if the file is refused. Any other error fails the test."""
    try:
        entrance.read(folder)
    except AuditError as exc:
        message = str(exc)
        assert message.strip()
        message.encode()
        return message
    return None


def places(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    inside: Any = enumerate(document) if isinstance(document, list) else getattr(document, "items", tuple)()
    for key, value in inside:
        yield from places(value, (*above, key))


def put(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    document = copy.deepcopy(document)
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return document


@pytest.mark.parametrize("entrance", ENTRANCES, ids=str)
def test_a_sound_file_is_read(entrance: Entrance, tmp_path: Path) -> None:
    entrance.write(tmp_path)
    if entrance.name not in ("p.csv", "p.parquet"):  # these two stand for files of other tests
        assert refused(entrance, tmp_path) is None


@pytest.mark.parametrize("entrance", ENTRANCES, ids=str)
@given(st.data())
@settings(max_examples=15)
def test_any_bytes(entrance: Entrance, data: st.DataObject) -> None:
    sound = (entrance.content if isinstance(entrance.content, str) else json.dumps(entrance.content)).encode()
    cut = st.integers(0, len(sound)).map(lambda at: sound[:at])
    damaged = st.tuples(cut, st.binary(max_size=6)).map(lambda both: both[0] + both[1] + sound[len(both[0]) + 1 :])
    content = data.draw(st.binary(max_size=60) | cut | damaged | traps.map(str.encode))
    with tempfile.TemporaryDirectory() as folder:
        entrance.write(Path(folder), content)
        refused(entrance, Path(folder))


@pytest.mark.parametrize("entrance", JSON_ENTRANCES, ids=str)
@given(st.data())
@settings(max_examples=40)
def test_any_json_value_at_any_place(entrance: Entrance, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(list(places(entrance.content))))
    trap = data.draw(traps | values.map(json.dumps))
    content = json.dumps(put(entrance.content, place, MARK)).replace(json.dumps(MARK), trap)
    with tempfile.TemporaryDirectory() as folder:
        entrance.write(Path(folder), content.encode())
        refused(entrance, Path(folder))


@pytest.mark.parametrize("make", NO_FILES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("entrance", ENTRANCES, ids=str)
def test_what_is_no_file(entrance: Entrance, make: Callable[[Path], None], tmp_path: Path) -> None:
    path = entrance.write(tmp_path)
    path.unlink()
    make(path)
    message = refused(entrance, tmp_path)
    # A file that may be missing counts as missing, or is told.
    assert message is None or str(tmp_path) in message
    assert message is not None or entrance.name in MAY_BE_MISSING


@given(st.data())
@settings(max_examples=40)
def test_any_answer_of_a_server(data: st.DataObject) -> None:
    logprobs = {"content": [{"token": "yes", "top_logprobs": [{"token": "yes", "logprob": -0.5}]}]}
    answer = {"model": "m", "choices": [{"message": {"content": "yes"}, "logprobs": logprobs}]}
    place = data.draw(st.sampled_from(list(places(answer))[1:]))
    found = put(answer, place, data.draw(values))
    for read in (read_words, read_first_token):
        with suppress(BadAnswer, NoLogProbabilities):
            read(found)
