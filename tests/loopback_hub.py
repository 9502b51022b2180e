"""A real HTTP server on loopback with the part of the hub's interface that fetching a model needs."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

COMMIT = "0123456789" * 4


@contextmanager
def loopback_hub(models: Mapping[str, Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve folders as models of these names (owner/name). What is fetched goes to `cache`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = self._find()
            self.send_response(404 if found is None else 200)
            content = b"{}" if found is None else found
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def _find(self) -> bytes | None:
            path = self.path.partition("?")[0].removeprefix("/").removeprefix("api/models/")
            name = "/".join(path.split("/")[:2])
            what, *rest = path.split("/")[2:] or [""]
            folder = models.get(name)
            if folder is None:
                return None
            if what in ("", "revision"):
                return json.dumps({"id": name, "sha": COMMIT, "siblings": []}).encode()
            if what == "tree":
                sizes = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
                listed = [{"type": "file", "path": file, "size": size, "oid": "1"} for file, size in sizes.items()]
                return json.dumps(listed).encode()
            file = folder / rest[-1]
            return file.read_bytes() if file.exists() else None

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    for name, value in {
        "ENDPOINT": url,
        "HUGGINGFACE_CO_URL_TEMPLATE": f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
        "HF_HUB_OFFLINE": False,
        "HF_HUB_CACHE": str(cache),
    }.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
