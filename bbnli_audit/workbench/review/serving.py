"""Runs the review: a port on loopback, a permanent address for each annotator, and a clean end.

The addresses are stored in the folder, readable by its owner only. So a page that is still open finds the server again
after a restart, and saves what it could not save before.
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
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.workbench.review.decide import needs_opinion
from bbnli_audit.workbench.review.items import ReviewItem, order_items
from bbnli_audit.workbench.review.judgements import Judgements
from bbnli_audit.workbench.review.server import Annotator, Breaks, make_app
from bbnli_audit.workbench.review.states import finished

ADDRESSES = ".review-addresses.json"
_HOST = "127.0.0.1"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")


def check_packages() -> None:
    """Check that the packages that serve the page are installed."""
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise OptionError(f'The review page needs the package {name}: pip install "bbnli-audit[review]"')


def choose_items(
    names: Iterable[str], items: Sequence[ReviewItem], judgements: Judgements, only_disagreements: bool
) -> dict[str, list[ReviewItem]]:
    """Return each annotator's items in their order: all, or those on which others disagree."""
    judged = finished(judgements.states(), (item.id for item in items)) if only_disagreements else {}
    return {
        name: order_items(name, needs_opinion(items, judged, name) if only_disagreements else items) for name in names
    }


def serve(
    judgements: Judgements,
    chosen: Mapping[str, Sequence[ReviewItem]],
    breaks: Breaks,
    *,
    port: int,
    opens_browser: bool,
    say: Callable[[str], None],
) -> None:
    """Serve the pages until Ctrl-C. With port 0, the last port is used if it is free, otherwise any.

    A browser opens only if there is one annotator. `say` takes lines for the terminal.
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
            make_app(judgements, annotators, bound, breaks),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        with _ending_cleanly():
            addresses = {each.name: f"http://{_HOST}:{bound}/{each.token}/" for each in annotators}
            width = max(map(len, addresses))
            for each in annotators:
                say(f"  {each.name:<{width}}  {addresses[each.name]}  {_progress(judgements, each)}")
            say("Give each annotator their own address. Every key press is saved at once. Press Ctrl-C to end.")
            if opens_browser and len(annotators) == 1:
                _open_browser(addresses[annotators[0].name])
            uvicorn.Server(config).run(sockets=[listening])
    say("")
    say("; ".join(f"{each.name}: {_progress(judgements, each)}" for each in annotators) + ".")
    names = " ".join(f"--annotator {shlex.quote(each.name)}" for each in annotators)
    say(f"Everything is in {judgements.path}. To continue: bbnli-audit extend review {shlex.quote(str(work))} {names}")


def _progress(judgements: Judgements, annotator: Annotator) -> str:
    states = judgements.states_of(annotator.name)
    n_judged = sum(item.id in states and states[item.id].is_finished for item in annotator.items)
    return f"{n_judged} of {len(annotator.items)} judged"


@contextmanager
def _listen(port: int, last: int) -> Iterator[socket.socket]:
    """Listen on loopback. This starts before the address is printed, so a quick click waits instead of failing."""
    for each in (port,) if port else (last, 0) if last else (0,):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # otherwise the port still counts as taken right after a restart
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_HOST, each))
            listening.listen()
        except (OSError, OverflowError) as exc:
            listening.close()
            if port:
                reason = getattr(exc, "strerror", None) or "a port is a number from 1 to 65535"
                raise OptionError(f"--port {port}: cannot be used: {reason}. Leave out --port.") from exc
        else:
            with listening:
                yield listening
            return
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
    """Read each annotator's token and last port. What cannot be read, or is not ours, is replaced."""
    try:
        found: Any = json.loads((work / ADDRESSES).read_text(encoding="utf-8"))
        return {
            name: (token, int(port)) for name, (token, port) in found.items() if _TOKEN.fullmatch(token) is not None
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write_addresses(work: Path, addresses: Mapping[str, tuple[str, int]]) -> None:
    with suppress(OSError):
        handle, name = tempfile.mkstemp(dir=work, prefix=ADDRESSES)  # readable by its owner only
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(addresses, file)
        Path(name).replace(work / ADDRESSES)
