"""Serves the review page on loopback, and saves what annotators enter on it.

Each annotator's address contains a secret, and gives access to this annotator's judgements only. A request with a
foreign `Host` or `Origin`, or without a secret, is refused: a page of another site could have sent it.

Addresses are stored in a file in the workbench's folder. Only the owner of this file can read it. The next server uses
the same addresses. So a page that is still open finds the next server, and saves there what it could not save before.
"""

import json
import os
import re
import secrets
import shlex
import signal
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hmac import compare_digest
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import OptionError, WorkbenchError
from bbnli_audit.core.reading import BadJsonError, parse_json, parse_message
from bbnli_audit.workbench.review.decide import needs_opinion
from bbnli_audit.workbench.review.items import ReviewItem, order_items
from bbnli_audit.workbench.review.judgements import Judgements
from bbnli_audit.workbench.review.states import MAX_NOTE, Action, Row, State, as_verdict, finished

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

Chosen = Mapping[str, Sequence[ReviewItem]]  # the items of each annotator, in the order to judge them
Say = Callable[[str], object]
ADDRESSES = ".review-addresses.json"
_HOST = "127.0.0.1"
_N_PORTS = 2**16
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")
_ASSETS = ("review.html", "review.css", "review.js", "saver.js", "suite.js", "icon.svg")
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOLDER = Path(__file__).parent / "assets"
_MAX_BODY = 8 * MAX_NOTE  # enough for a note whose characters JSON escapes, and for the other fields
_KEY = re.compile(r"[A-Za-z0-9-]{8,64}")
_ITEM = re.compile(r"[0-9a-f]{12}")
_ACTIONS = (Action.JUDGE, Action.SKIP, Action.NOTE, Action.UNDO)
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Breaks:
    """After how many minutes or judgements the page suggests a break; 0 means never."""

    minutes: float = 20.0
    judgements: int = 0


@dataclass(frozen=True, slots=True)
class Annotator:
    """A person who judges, the secret in this person's address, and the items in the order to judge them."""

    name: str
    token: str = field(repr=False)
    items: Sequence[ReviewItem] = field(repr=False)


class BadRequest(Exception):
    """The page sent something that cannot be saved."""


class ReviewApp:
    """Answers the page's requests to the addresses of annotators. Requests to all other addresses are refused."""

    def __init__(self, judgements: Judgements, annotators: Sequence[Annotator], port: int, breaks: Breaks) -> None:
        self._judgements = judgements
        self._annotators = annotators
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._breaks = breaks

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        from starlette.requests import Request
        from starlette.responses import JSONResponse

        if scope["type"] != "http":
            return
        try:
            response = await self._answer(Request(scope, receive))
        except (BadRequest, WorkbenchError) as exc:
            response = JSONResponse({"message": str(exc)}, 503 if isinstance(exc, WorkbenchError) else 400)
        response.headers.update(_HEADERS)
        await response(scope, receive, send)

    async def _answer(self, request: "Request") -> "Response":
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse, RedirectResponse, Response

        if not self._is_ours(request):
            return Response("This page can only be used from its own address.", 403)
        token, slash, name = request.scope["path"].removeprefix("/").partition("/")
        found = (each for each in self._annotators if compare_digest(each.token.encode(), token.encode()))
        annotator = next(found, None)
        if annotator is None:
            return Response("There is no such page. Use the address that was printed for you.", 404)
        if not slash:
            return RedirectResponse(f"/{token}/")
        if request.method == "POST" and name == "api/rows":
            row, key = _read_row(await _body(request), annotator.name)
            return JSONResponse(await run_in_threadpool(_save, self._judgements, row, key))
        if request.method not in ("GET", "HEAD"):
            return Response("Method Not Allowed", 405)
        if name == "api/state":
            return JSONResponse(await run_in_threadpool(_describe, self._judgements, annotator, self._breaks))
        name = name or "review.html"
        if name not in _ASSETS:
            return Response("There is no such page.", 404)
        path = _FOLDER / name
        return Response(path.read_bytes(), media_type=_TYPES[path.suffix])

    def _is_ours(self, request: "Request") -> bool:
        """Whether a request names this machine as its host, and no page of another site can misuse it."""
        headers = request.headers
        if headers.get("host") not in self._hosts:
            return False
        if "origin" in headers and headers["origin"] not in [f"http://{host}" for host in self._hosts]:
            return False
        if request.method in ("GET", "HEAD") and headers.get("sec-fetch-mode", "navigate") == "navigate":
            return True  # someone followed a link, such as one in a mail; another site cannot read the response
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return False
        return request.method != "POST" or headers.get("content-type") == "application/json"


async def _body(request: "Request") -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise BadRequest("The request is too long.")
    return body


def _read_row(body: bytes, annotator: str) -> tuple[Row, str]:
    """Check a request of the page, and return it as a row with its key."""
    try:
        given = parse_message(body.decode())
    except (BadJsonError, UnicodeDecodeError):
        raise BadRequest("The request is not a JSON object.") from None
    texts: dict[str, str] = {}
    for name in ("key", "item", "verdict", "stance", "note"):
        texts[name] = "" if given.get(name) is None else given[name]
        if not isinstance(texts[name], str):
            raise BadRequest(f"{name} must be a text.")
    if not _KEY.fullmatch(texts["key"]):
        raise BadRequest("key must be 8 to 64 letters, digits or hyphens.")
    if given.get("action") not in _ACTIONS:
        raise BadRequest("action must be judge, skip, note or undo.")
    action = Action(given["action"])
    if action is not Action.UNDO and not _ITEM.fullmatch(texts["item"]):
        raise BadRequest("item must be the id of an item.")
    try:
        verdict, stance = as_verdict(texts["verdict"], texts["stance"])
    except ValueError as exc:
        raise BadRequest(str(exc)) from exc
    if action is Action.JUDGE and verdict is None:
        raise BadRequest("A judgement needs a verdict.")
    if len(texts["note"]) > MAX_NOTE:
        raise BadRequest(f"A note has at most {MAX_NOTE} characters.")
    said = (verdict, stance) if action is Action.JUDGE else (None, None)
    return Row(annotator, texts["item"], action, *said, texts["note"] if action is Action.NOTE else None), texts["key"]


def _save(judgements: Judgements, row: Row, key: str) -> dict[str, Any]:
    if row.action is Action.UNDO:
        undone = judgements.undo(row.annotator, key)
        return {"undone": None if undone is None else {"item": undone.item, **_as_json(undone.state)}}
    judgements.add(row, key)
    return {}


def _describe(judgements: Judgements, annotator: Annotator, breaks: Breaks) -> dict[str, Any]:
    there = {item.id for item in annotator.items}
    states = judgements.states_of(annotator.name)
    return {
        "review": judgements.id,
        "annotator": annotator.name,
        "breaks": asdict(breaks),
        "is_suite": any(item.is_of_suite for item in annotator.items),
        "items": [item.shown() for item in annotator.items],
        "states": {item: _as_json(state) for item, state in states.items() if item in there},
    }


def _as_json(state: State) -> dict[str, Any]:
    return {"verdict": state.verdict, "stance": state.stance, "note": state.note, "skipped": state.skipped}


def check_packages() -> None:
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise OptionError(f'The review page needs the package {name}: pip install "bbnli-audit[review]"')


def choose_items(
    names: Iterable[str], items: Sequence[ReviewItem], judgements: Judgements, only_disagreements: bool
) -> Chosen:
    """Return each annotator's items: all items, or those on which the other annotators disagree."""
    if not only_disagreements:
        return {name: order_items(name, items) for name in names}
    judged = finished(judgements.states(), (item.id for item in items))
    return {name: order_items(name, needs_opinion(items, judged, name)) for name in names}


def serve(judgements: Judgements, chosen: Chosen, breaks: Breaks, *, port: int, opens_browser: bool, say: Say) -> None:
    """Serve the pages until Ctrl-C. With port 0, use the port of the last time if it is free, otherwise any free port.

    A browser opens only if there is one annotator. `say` prints a line on the terminal.
    """
    import uvicorn

    work = judgements.path.parent
    known = _read_addresses(work)
    with _listen(port, next((known[name][1] for name in chosen if name in known), 0)) as listening:
        bound = listening.getsockname()[1]
        annotators = [
            Annotator(name, known[name][0] if name in known else secrets.token_urlsafe(16), items)
            for name, items in chosen.items()
        ]
        _write_addresses(work, known | {each.name: (each.token, bound) for each in annotators})
        config = uvicorn.Config(
            ReviewApp(judgements, annotators, bound, breaks),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        addresses = {each.name: f"http://{_HOST}:{bound}/{each.token}/" for each in annotators}

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                """Start, then print the addresses: even an immediate Ctrl-C must find a server that can stop."""
                await super().startup(sockets)
                width = max(map(len, addresses))
                for each in annotators:
                    say(f"  {each.name:<{width}}  {addresses[each.name]}  {_progress(judgements, each)}")
                say("Give each annotator their own address. Every key press is saved at once. Press Ctrl-C to end.")
                if opens_browser and len(annotators) == 1:
                    _open_browser(addresses[annotators[0].name])

        with _ending_cleanly():
            Server(config).run(sockets=[listening])
    say("")
    say("; ".join(f"{each.name}: {_progress(judgements, each)}" for each in annotators) + ".")
    names = " ".join(f"--annotator {shlex.quote(each.name)}" for each in annotators)
    say(f"Everything is in {judgements.path}. To continue: bbnli-audit extend review {shlex.quote(str(work))} {names}")


def _progress(judgements: Judgements, annotator: Annotator) -> str:
    states = judgements.states_of(annotator.name)
    n_judged = sum(item.id in states and states[item.id].is_finished for item in annotator.items)
    return f"{n_judged} of {len(annotator.items)} judged"


def _listen(port: int, last: int) -> socket.socket:
    """Listen on loopback. This begins before the address is printed, so that a quick click waits instead of failing."""
    if port not in range(_N_PORTS):
        fault = f"cannot be used: a port is a number from 1 to {_N_PORTS - 1}"
        raise OptionError(f"--port {port}: {fault}. Leave out --port.")
    for each in (port,) if port else (last, 0):
        try:
            return socket.create_server((_HOST, each))
        except OSError as exc:
            if port:
                raise OptionError(f"--port {port}: cannot be used: {exc.strerror}. Leave out --port.") from exc
    raise OptionError("No port of this machine is free for the page. Close other programs first.")


@contextmanager
def _ending_cleanly() -> Iterator[None]:
    """Treat Ctrl-C and a request to terminate as a normal end."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _open_browser(address: str) -> None:
    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        # A text browser would take over the terminal.
        if not isinstance(browser, webbrowser.GenericBrowser) or isinstance(browser, webbrowser.BackgroundBrowser):
            browser.open(address)


def _read_addresses(work: Path) -> dict[str, tuple[str, int]]:
    """Read each annotator's token and last port. A file that cannot be read counts as empty."""
    try:
        found: Any = parse_json((work / ADDRESSES).read_text(encoding="utf-8"))
        ours = {name: (token, int(port)) for name, (token, port) in found.items() if _TOKEN.fullmatch(token)}
        return {name: (token, port) for name, (token, port) in ours.items() if port in range(_N_PORTS)}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write_addresses(work: Path, addresses: Mapping[str, tuple[str, int]]) -> None:
    with suppress(OSError):
        handle, name = tempfile.mkstemp(dir=work, prefix=ADDRESSES)  # readable by its owner only
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(addresses, file)
        Path(name).replace(work / ADDRESSES)
