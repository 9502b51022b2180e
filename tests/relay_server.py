"""An HTTP server on loopback that passes requests on to a real one, counts them, and can be gone."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from tests.loopback_server import serving

_SECONDS = 120


@dataclass
class Relay:
    """A running relay. After `n_answers` answers its connections are cut; None is never."""

    target: str
    n_answers: int | None = None
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)  # requests by prompt
    answered: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_gone(self) -> bool:
        return self.n_answers is not None and self.answered.total() >= self.n_answers


@contextmanager
def relay(target: str) -> Iterator[Relay]:
    """Pass on what comes to `url` to a server's base URL."""
    state = Relay(target)
    opener = build_opener(ProxyHandler({}))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._pass_on(None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            prompt = json.loads(body)["messages"][0]["content"]
            with state.lock:
                state.asked[prompt] += 1
            self._pass_on(body, prompt)

        def _pass_on(self, body: bytes | None, prompt: str | None = None) -> None:
            headers = {"Content-Type": "application/json"}
            request = Request(state.target + self.path.removeprefix("/v1"), body, headers)
            try:
                with opener.open(request, timeout=_SECONDS) as response:
                    status, content = response.status, response.read()
            except HTTPError as exc:
                status, content = exc.code, exc.read()
            with state.lock:
                if prompt is not None and state.is_gone:
                    self.close_connection = True
                    return
                if prompt is not None and status == 200:
                    state.answered[prompt] += 1
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as state.url:
        yield state
