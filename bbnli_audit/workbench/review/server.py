"""What the review page asks for: its own files, the items of one annotator, and saving what was pressed.

The address holds a secret, one an annotator: through it one sees and changes that annotator's judgements and nothing
else. Requests that another site's page could send (a foreign `Host` or `Origin`, no token) are refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    "review.css": "text/css",
    "review.js": "text/javascript",
    "saver.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_FOLDER = Path(__file__).parent / "assets"
_MAX_BODY = 8 * MAX_NOTE  # a note's characters as JSON may escape them, and the rest
_KEY = re.compile(r"[A-Za-z0-9-]{8,64}")
_ITEM = re.compile(r"[0-9a-f]{12}")
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
    """When the page proposes a break; 0 is never."""

    minutes: float = 20.0
    judgements: int = 0


@dataclass(frozen=True, slots=True)
class Annotator:
    """One who judges: the secret of their address, and their items in their order."""

    name: str
    token: str = field(repr=False)
    items: Sequence[ReviewItem] = field(repr=False)


def make_app(judgements: Judgements, annotators: Sequence[Annotator], port: int, breaks: Breaks) -> "ASGIApp":
    """Make the application that answers the pages of these annotators."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def page(_request: "Request") -> "Response":
        return Response((_FOLDER / "review.html").read_bytes(), media_type="text/html")

    async def asset(request: "Request") -> "Response":
        name = request.path_params["name"]
        if name not in _ASSETS:
            return Response("There is no such page.", 404)
        return Response((_FOLDER / name).read_bytes(), media_type=_ASSETS[name])

    async def state(request: "Request") -> "Response":
        try:
            return JSONResponse(await run_in_threadpool(_describe, judgements, request.scope["annotator"], breaks))
        except WorkbenchError as exc:
            return JSONResponse({"message": str(exc)}, 503)

    async def rows(request: "Request") -> "Response":
        try:
            row = _read_row(await _body(request))
        except ValueError as exc:
            return JSONResponse({"message": str(exc)}, 400)
        try:
            answer = await run_in_threadpool(_save, judgements, request.scope["annotator"].name, row)
        except WorkbenchError as exc:
            return JSONResponse({"message": str(exc)}, 503)
        return JSONResponse(answer)

    app: Starlette = Starlette(
        routes=[
            Route("/{token}/", page),
            Route("/{token}/api/state", state),
            Route("/{token}/api/rows", rows, methods=["POST"]),
            Route("/{token}/{name}", asset),
        ]
    )
    return Guard(app, annotators, port)


class Guard:
    """Lets in only requests of our own page, to an annotator's own address, and marks every answer as private."""

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
            answer = Response("This page answers only to its own address.", 403)
        elif (annotator := self._find(scope["path"])) is None:
            answer = Response("There is no such page. Use the address that was printed for you.", 404)
        else:
            scope["annotator"] = annotator
            answer = self._app
        await answer(scope, receive, send_marked)

    def _is_ours(self, scope: "Scope", headers: Mapping[str, str]) -> bool:
        """Say whether a request goes to this machine by name, and comes from our page or from nobody's."""
        if headers.get("host") not in self._hosts:
            return False
        if "origin" in headers and headers["origin"] not in [f"http://{host}" for host in self._hosts]:
            return False
        if scope["method"] in ("GET", "HEAD") and headers.get("sec-fetch-mode", "navigate") == "navigate":
            return True  # an address that was clicked in a mail; no other site can read the answer
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
            raise ValueError("The request is too long.")
    return body


def _read_row(body: bytes) -> dict[str, Any]:
    try:
        row = json.loads(body)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ValueError("The request is no JSON object.")
    if not _KEY.fullmatch(_string(row, "key")):
        raise ValueError("key must be 8 to 64 letters and digits.")
    if row.get("action") not in (Action.JUDGE, Action.SKIP, Action.NOTE, Action.UNDO):
        raise ValueError("action must be judge, skip, note or undo.")
    if row["action"] != Action.UNDO and not _ITEM.fullmatch(_string(row, "item")):
        raise ValueError("item must be the name of an item.")
    verdict = as_verdict(_string(row, "verdict"), _string(row, "stance"))
    if row["action"] == Action.JUDGE and verdict[0] is None:
        raise ValueError("A judgement has a verdict.")
    if len(_string(row, "note")) > MAX_NOTE:
        raise ValueError(f"A note has at most {MAX_NOTE} characters.")
    return row


def _string(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text.")
    return value


def _save(judgements: Judgements, annotator: str, row: Mapping[str, Any]) -> dict[str, Any]:
    key, item = row["key"], row.get("item", "")
    if row["action"] == Action.UNDO:
        undone = judgements.undo(annotator, key)
        return {"undone": None if undone is None else {"item": undone.item, **_as_json(undone.state)}}
    if row["action"] == Action.JUDGE:
        judgements.judge(annotator, item, *as_verdict(row["verdict"], row.get("stance")), key=key)
    elif row["action"] == Action.SKIP:
        judgements.skip(annotator, item, key)
    else:
        judgements.write_note(annotator, item, _string(row, "note"), key)
    return {}


def _describe(judgements: Judgements, annotator: Annotator, breaks: Breaks) -> dict[str, Any]:
    there = {item.id for item in annotator.items}
    states = judgements.states_of(annotator.name)
    return {
        "review": judgements.id,
        "annotator": annotator.name,
        "breaks": {"minutes": breaks.minutes, "judgements": breaks.judgements},
        "items": [
            {
                "id": item.id,
                "subtopic": item.path,
                "hypothesis": item.hypothesis,
                "template": item.template,
                "word": item.word,
                "premise": item.premise,
            }
            for item in annotator.items
        ],
        "states": {item: _as_json(state) for item, state in states.items() if item in there},
    }


def _as_json(state: State) -> dict[str, Any]:
    return {"verdict": state.verdict, "stance": state.stance, "note": state.note, "skipped": state.skipped}
