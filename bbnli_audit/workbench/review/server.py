"""What the review page requests: its own files, the items of one annotator, and saving what was entered.

The address contains a secret of one annotator and gives access to that annotator's judgements only. Requests that the
page of another site could send (a foreign `Host` or `Origin`, no token) are refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.workbench.review.items import ReviewItem
from bbnli_audit.workbench.review.judgements import Judgements
from bbnli_audit.workbench.review.states import MAX_NOTE, Action, State, as_verdict

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ASSETS = {
    "review.html": "text/html",
    "review.css": "text/css",
    "review.js": "text/javascript",
    "saver.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_FOLDER = Path(__file__).parent / "assets"
_MAX_BODY = 8 * MAX_NOTE  # the characters of a note, as JSON may escape them, and the rest
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
    """When the page suggests a break; 0 is never."""

    minutes: float = 20.0
    judgements: int = 0


@dataclass(frozen=True, slots=True)
class Annotator:
    """A person who judges: the secret of their address, and their items in their order."""

    name: str
    token: str = field(repr=False)
    items: Sequence[ReviewItem] = field(repr=False)


class BadRequest(Exception):
    """The page sent something that cannot be saved."""


def make_app(judgements: Judgements, annotators: Sequence[Annotator], port: int, breaks: Breaks) -> "ASGIApp":
    """Make the application that serves the pages of these annotators."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def page(request: "Request") -> "Response":
        name = request.path_params.get("name", "review.html")
        if name not in _ASSETS:
            return Response("There is no such page.", 404)
        return Response((_FOLDER / name).read_bytes(), media_type=_ASSETS[name])

    async def state(request: "Request") -> "Response":
        return JSONResponse(await run_in_threadpool(_describe, judgements, request.scope["annotator"], breaks))

    async def rows(request: "Request") -> "Response":
        row = _read_row(await _body(request))
        return JSONResponse(await run_in_threadpool(_save, judgements, request.scope["annotator"].name, row))

    async def refuse(_request: "Request", exc: Exception) -> "Response":
        return JSONResponse({"message": str(exc)}, 503 if isinstance(exc, WorkbenchError) else 400)

    app: Starlette = Starlette(
        routes=[
            Route("/{token}/", page),
            Route("/{token}/api/state", state),
            Route("/{token}/api/rows", rows, methods=["POST"]),
            Route("/{token}/{name}", page),
        ],
        exception_handlers={WorkbenchError: refuse, BadRequest: refuse},
    )
    return Guard(app, annotators, port)


class Guard:
    """Admits only requests of our own page to an annotator's own address, and marks every response as private."""

    def __init__(self, app: "Starlette", annotators: Sequence[Annotator], port: int) -> None:
        self._app = app
        self._annotators = annotators
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        from starlette.responses import Response

        async def send_marked(message: "Message") -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answer: ASGIApp
        if not self._is_ours(scope, headers):
            answer = Response("This page can only be used from its own address.", 403)
        elif (annotator := self._find(scope["path"])) is None:
            answer = Response("There is no such page. Use the address that was printed for you.", 404)
        else:
            scope["annotator"] = annotator
            answer = self._app
        await answer(scope, receive, send_marked)

    def _is_ours(self, scope: "Scope", headers: Mapping[str, str]) -> bool:
        """Say whether a request addresses this machine by name, and comes from our page or from no page."""
        if headers.get("host") not in self._hosts:
            return False
        if "origin" in headers and headers["origin"] not in [f"http://{host}" for host in self._hosts]:
            return False
        if scope["method"] in ("GET", "HEAD") and headers.get("sec-fetch-mode", "navigate") == "navigate":
            return True  # a link clicked in a mail; no other site can read the response
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return False
        return scope["method"] != "POST" or headers.get("content-type") == "application/json"

    def _find(self, path: str) -> Annotator | None:
        token = path.split("/")[1] if path.startswith("/") else ""
        return next((each for each in self._annotators if compare_digest(each.token.encode(), token.encode())), None)


async def _body(request: "Request") -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise BadRequest("The request is too long.")
    return body


def _read_row(body: bytes) -> dict[str, Any]:
    """Check what the page sent. Texts that are missing become empty."""
    try:
        row = json.loads(body)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise BadRequest("The request is not a JSON object.")
    for name in ("key", "item", "verdict", "stance", "note"):
        row[name] = "" if row.get(name) is None else row[name]
        if not isinstance(row[name], str):
            raise BadRequest(f"{name} must be a text.")
    if not _KEY.fullmatch(row["key"]):
        raise BadRequest("key must be 8 to 64 letters and digits.")
    if row.get("action") not in _ACTIONS:
        raise BadRequest("action must be judge, skip, note or undo.")
    if row["action"] != Action.UNDO and not _ITEM.fullmatch(row["item"]):
        raise BadRequest("item must be the id of an item.")
    try:
        row["verdict"], row["stance"] = as_verdict(row["verdict"], row["stance"])
    except ValueError as exc:
        raise BadRequest(str(exc)) from exc
    if row["action"] == Action.JUDGE and row["verdict"] is None:
        raise BadRequest("A judgement needs a verdict.")
    if len(row["note"]) > MAX_NOTE:
        raise BadRequest(f"A note has at most {MAX_NOTE} characters.")
    return row


def _save(judgements: Judgements, annotator: str, row: Mapping[str, Any]) -> dict[str, Any]:
    key, item = row["key"], row["item"]
    if row["action"] == Action.UNDO:
        undone = judgements.undo(annotator, key)
        return {"undone": None if undone is None else {"item": undone.item, **_as_json(undone.state)}}
    if row["action"] == Action.JUDGE:
        judgements.judge(annotator, item, row["verdict"], row["stance"], key)
    elif row["action"] == Action.SKIP:
        judgements.skip(annotator, item, key)
    else:
        judgements.write_note(annotator, item, row["note"], key)
    return {}


def _describe(judgements: Judgements, annotator: Annotator, breaks: Breaks) -> dict[str, Any]:
    there = {item.id for item in annotator.items}
    states = judgements.states_of(annotator.name)
    return {
        "review": judgements.id,
        "annotator": annotator.name,
        "breaks": asdict(breaks),
        "items": [{**asdict(item), "subtopic": item.path} for item in annotator.items],
        "states": {item: _as_json(state) for item, state in states.items() if item in there},
    }


def _as_json(state: State) -> dict[str, Any]:
    return {"verdict": state.verdict, "stance": state.stance, "note": state.note, "skipped": state.skipped}
