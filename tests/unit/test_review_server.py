"""The server over real connections: who is let in, what is saved, and how it ends."""

import http.client
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bbnli_audit.workbench.review.judgements import Judgements
from bbnli_audit.workbench.review.states import Action, Row
from tests.review_workspace import Running, make_items, serving, write_items

ITEMS = make_items(4)
KEY = "0123456789abcdef"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    write_items(folder, ITEMS)
    return folder


@pytest.fixture(scope="module")
def running(work: Path) -> Iterator[Running]:
    with serving(work, "ana", "ben") as server:
        yield server


def ask(
    running: Running, path: str, body: object = None, method: str | None = None, **headers: str
) -> tuple[int, str, dict[str, str]]:
    """Send a request as a program would, or, with headers, as a browser would."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if data is not None:
        names.setdefault("content-type", "application/json")
    connection.request(method or ("GET" if body is None else "POST"), path, data, names)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, {name.lower(): value for name, value in answer.getheaders()}


def base(running: Running, annotator: str) -> str:
    return urlsplit(running.addresses[annotator]).path


def row(**changes: Any) -> dict[str, Any]:
    return {"key": KEY, "action": "judge", "item": ITEMS[0].id, "verdict": "invalid", **changes}


def test_the_page_and_its_files_are_served_with_strict_headers(running: Running) -> None:
    for name in ("", "review.css", "review.js", "saver.js", "icon.svg", "api/state"):
        status, text, headers = ask(running, base(running, "ana") + name)
        assert (status, bool(text)) == (200, True)
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"  # the address is a secret
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_the_page_asks_for_nothing_from_elsewhere(running: Running) -> None:
    for name in ("", "review.css", "review.js", "saver.js"):
        _, text, _ = ask(running, base(running, "ana") + name)
        assert "//" not in text.replace("// ", "").replace("http://www.w3.org", "")


@pytest.mark.parametrize("path", ["/", "/api/state", "/x/", "/x/api/state", "/%00/", "/..%2f/", "//", "/A" * 30])
def test_without_the_token_there_is_nothing(running: Running, path: str) -> None:
    status, text, _ = ask(running, path)
    assert (status, "ana" in text) == (404, False)


def test_other_files_of_the_package_are_not_served(running: Running) -> None:
    for name in ("review.html.bak", "..%2fserver.py", "../server.py", "%2e%2e/%2e%2e/items.csv"):
        assert ask(running, base(running, "ana") + name)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},  # another name for 127.0.0.1 (DNS rebinding)
        {"host": "evil.example:{port}"},
        {"host": "127.0.0.1"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"},
        {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"},
    ],
)
def test_requests_that_other_pages_could_send_are_refused(running: Running, headers: dict[str, str]) -> None:
    sent = {name: value.format(port=running.port) for name, value in headers.items()}
    assert ask(running, base(running, "ana") + "api/state", **sent)[0] == 403
    assert ask(running, base(running, "ana") + "api/rows", row(), **sent)[0] == 403


def test_a_form_of_another_page_is_refused(running: Running) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert ask(running, base(running, "ana") + "api/rows", row(), content_type=kind)[0] == 403


def test_an_address_that_was_clicked_elsewhere_opens(running: Running) -> None:
    clicked = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert ask(running, base(running, "ana"), **clicked)[0] == 200


def test_an_address_without_its_last_slash_leads_to_the_page(running: Running) -> None:
    status, _, headers = ask(running, base(running, "ana").rstrip("/"))
    assert (status, urlsplit(headers["location"]).path) == (307, base(running, "ana"))


def test_only_rows_are_posted(running: Running) -> None:
    assert ask(running, base(running, "ana") + "api/state", row())[0] == 405
    assert ask(running, base(running, "ana"), method="DELETE")[0] == 405
    assert ask(running, "*", method="OPTIONS")[0] == 404


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "The request is not a JSON object."),
        (b"[]", "The request is not a JSON object."),
        (b"[" * 15000, "The request is not a JSON object."),
        (b'"\xff"', "The request is not a JSON object."),
        (b'{"key": "12345678", "key": "87654321"}', "The request is not a JSON object."),
        (b'{"key": ' + b"[" * 101 + b"]" * 101 + b"}", "The request is not a JSON object."),
        (row(key="short"), "key must be 8 to 64 letters, digits or hyphens."),
        (row(key=None), "key must be 8 to 64 letters, digits or hyphens."),
        (row(action="import"), "action must be judge, skip, note or undo."),
        (row(item="../../etc"), "item must be the id of an item."),
        (row(item=7), "item must be a text."),
        (row(verdict=None), "A judgement needs a verdict."),
        (
            row(verdict="good"),
            "verdict is 'good'; it must be valid, invalid, incoherent, entailed, contradicted, neither, malformed "
            "or empty",
        ),
        (row(stance="pro"), "stance is 'pro' and verdict 'invalid'; this verdict has no such stance"),
        (row(action="note", note="x" * 2001), "A note has at most 2000 characters."),
        (row(action="note", note="x" * 20000), "The request is too long."),
    ],
)
def test_a_wrong_request_is_refused_in_words(running: Running, body: object, message: str) -> None:
    status, text, _ = ask(running, base(running, "ana") + "api/rows", body)
    assert (status, json.loads(text)) == (400, {"message": message})


def test_what_is_saved_is_in_the_file_at_once_and_only_its_annotator_sees_it(running: Running, work: Path) -> None:
    status, text, _ = ask(running, base(running, "ben") + "api/rows", row(verdict="valid", stance="anti"))
    assert (status, text) == (200, "{}")
    ask(running, base(running, "ben") + "api/rows", row(key=KEY[::-1], action="note", note="a\ud800b"))
    with Judgements(work / "review.sqlite") as judgements:
        kept = judgements.states_of("ben")[ITEMS[0].id]
        assert (kept.label, kept.note) == ("valid-anti", "a?b")
    seen = {name: json.loads(ask(running, base(running, name) + "api/state")[1]) for name in ("ana", "ben")}
    assert seen["ana"]["states"] == {}
    assert seen["ben"]["states"] == {
        ITEMS[0].id: {"verdict": "valid", "stance": "anti", "note": "a?b", "skipped": None}
    }
    assert "ben" not in json.dumps(seen["ana"])
    status, text, _ = ask(running, base(running, "ana") + "api/rows", {"key": KEY, "action": "undo"})
    assert json.loads(text) == {"undone": None}  # she has nothing to undo
    status, text, _ = ask(running, base(running, "ben") + "api/rows", {"key": KEY[::-1] + "0", "action": "undo"})
    assert json.loads(text)["undone"] == {
        "item": ITEMS[0].id,
        "verdict": None,
        "stance": None,
        "note": "a?b",
        "skipped": None,
    }


def test_the_server_listens_on_this_machine_only(running: Running) -> None:
    others = {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        with pytest.raises(OSError):
            socket.create_connection((address, running.port), timeout=0.5)


def test_it_prints_an_address_for_each_and_no_sentence(running: Running) -> None:
    assert list(running.addresses) == ["ana", "ben"]
    assert len(set(running.addresses.values())) == 2
    assert all(item.hypothesis not in running.output and item.word not in running.output for item in ITEMS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_and_starts_again_at_the_same_address(tmp_path: Path, number: int) -> None:
    write_items(tmp_path, ITEMS)
    with serving(tmp_path, "ana lee", "ben") as first:
        port = first.port
        assert (tmp_path / ".review-addresses.json").stat().st_mode & 0o077 == 0  # only for its owner
        with Judgements(tmp_path / "review.sqlite") as judgements:
            judgements.add(Row("ana lee", ITEMS[0].id, Action.SKIP))
        rest = first.interrupt(number)
        assert first.process.returncode == 0
    assert "ana lee: 0 of 4 judged; ben: 0 of 4 judged." in rest
    assert f"extend review {tmp_path} --annotator 'ana lee' --annotator ben" in rest
    assert "Traceback" not in rest
    with serving(tmp_path, "ben") as second:
        assert second.port == port
        assert second.addresses["ben"] == first.addresses["ben"]


def test_a_failed_save_is_told_with_its_reason(tmp_path: Path) -> None:
    write_items(tmp_path, ITEMS)
    with serving(tmp_path, "ana") as running:
        (tmp_path / "review.sqlite").rename(tmp_path / "elsewhere.sqlite")
        status, text, _ = ask(running, base(running, "ana") + "api/rows", row())
        assert status == 503
        assert "was removed or replaced while in use" in json.loads(text)["message"]
