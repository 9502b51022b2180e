"""A real HTTP server on loopback that speaks the chat interface, and fails as it is told to."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Fault:
    """What happens instead of an answer."""

    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # before anything is sent
    is_cut: bool = False  # the connection ends in the middle of the body


@dataclass
class Loopback:
    """A running server. `faults` are used up one a request; without any, `answer` is asked."""

    answer: Callable[[str], str | Fault]
    faults: list[Fault | None]  # None: an answer
    models: list[dict[str, Any]] | None
    models_status: int = 200
    moved: Fault | None = None  # sent instead of the list of models
    served: str = "served-model"
    seconds: float = 0.0  # every answer takes so long
    logprobs: Callable[[str], Any] | None = None  # what is told of an answer's first token
    is_gone_after: int | None = None  # requests, after which connections are cut
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)  # requests by prompt
    answered: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    authorizations: set[str] = field(default_factory=set)
    times: list[float] = field(default_factory=list)
    n_most_at_once: int = 0
    n_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def n_asked(self) -> int:
        return self.asked.total()


@contextmanager
def loopback(
    answer: Callable[[str], str | Fault] = lambda _: "Yes.",
    faults: Sequence[Fault] = (),
    models: list[dict[str, Any]] | None = None,
    **settings: Any,
) -> Iterator[Loopback]:
    state = Loopback(answer, list(faults), models, **settings)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            state.authorizations.add(self.headers.get("Authorization", ""))
            if self.path.endswith("/models") and state.moved is not None:
                self._send(state.moved)
            elif self.path.endswith("/models") and state.models_status != 200:
                self._send(Fault(state.models_status, b"Internal Server Error"))
            elif self.path.endswith("/models") and state.models is not None:
                self._send(Fault(body=json.dumps({"object": "list", "data": state.models}).encode()))
            else:
                self._send(Fault(404, b'{"error": {"message": "no such page"}}'))

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            if not sent:  # the client was killed before it had sent anything
                self.close_connection = True
                return
            body = json.loads(sent)
            prompt = body["messages"][0]["content"]
            with state.lock:
                state.n_at_once += 1
                state.n_most_at_once = max(state.n_most_at_once, state.n_at_once)
                state.asked[prompt] += 1
                state.bodies.append(body)
                state.times.append(time.monotonic())
                state.authorizations.add(self.headers.get("Authorization", ""))
                fault = state.faults.pop(0) if state.faults else None
                if state.is_gone_after is not None and state.n_asked > state.is_gone_after:
                    fault = Fault(is_cut=True)
            try:
                time.sleep(state.seconds)
                self._send(fault or self._answer(prompt))
                if fault is None:
                    with state.lock:
                        state.answered[prompt] += 1
            finally:
                with state.lock:
                    state.n_at_once -= 1

        def _answer(self, prompt: str) -> Fault:
            found = state.answer(prompt)
            if isinstance(found, Fault):
                return found
            message = {"role": "assistant", "content": found}
            choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
            if state.logprobs is not None:
                choice["logprobs"] = state.logprobs(prompt)
            content = {"id": "1", "object": "chat.completion", "created": 0, "model": state.served, "choices": [choice]}
            return Fault(body=json.dumps(content).encode())

        def _send(self, what: Fault) -> None:
            time.sleep(what.seconds)
            body = what.body if what.body is not None else b'{"error": {"message": "as told"}}'
            try:
                self.send_response(what.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                for name, value in what.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if what.is_cut else body)
            except OSError:
                self.close_connection = True  # the client did not wait
            if what.is_cut:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as state.url:
        yield state


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on loopback, in threads, and give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
