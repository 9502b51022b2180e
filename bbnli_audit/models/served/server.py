"""Generative models behind an OpenAI-compatible server: vLLM, TGI, llama.cpp, a hosted interface.

Every answer is given back as soon as it is there, so that it is stored at once: whatever a server or a network does
later costs tries, and never an answer that was had already.
"""

import json
import threading
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.results.audit import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import predict_all
from bbnli_audit.models.language_model.answers import PARSER, Answer, parse_answer
from bbnli_audit.models.language_model.generative import KIND, LABELS, ROW_OF
from bbnli_audit.models.language_model.prompts import Prompt
from bbnli_audit.models.protocol import Batch, Predictions
from bbnli_audit.models.served.server_client import SERVER, Asking, ServerClient, read_base_url

if TYPE_CHECKING:
    from openai import OpenAI

    from bbnli_audit.models.find import ModelSource

LEAST_MASS = 0.05  # of yes and no together, as for a checkpoint


def check_server(name: str, base_url: str | None) -> None:
    """Refuse at start-up what needs no server to be seen."""
    if not name.removeprefix(SERVER):
        raise OptionError(f"--model={name}: names no model. Give the name that the server knows: openai:NAME.")
    if find_spec("openai") is None:
        raise OptionError(f'--model={name} needs the package openai: pip install "bbnli-audit[api]"')
    read_base_url(base_url)


def find_server(
    name: str,
    base_url: str | None,
    prompt: Prompt,
    *,
    asking: Asking = Asking(),  # noqa: B008 - frozen
    is_described: bool = True,
) -> "ModelSource":
    """Find a served model and say what it is.

    The same name may stand for another model tomorrow. So the server is asked what it has, and what it says is part of
    the fingerprint (docs/decisions/0014-generative.md).

    Args:
        name: The value of --model, `openai:NAME`.
        base_url: The value of --bbnli-base-url.
        prompt: What the model is asked.
        asking: How it is asked.
        is_described: Whether to ask the server. Without, stored answers of whatever had that name there are taken.
    """
    from bbnli_audit.models.find import ModelSource

    check_server(name, base_url)
    server = ServerClient(name, read_base_url(base_url), asking)
    described = server.describe() if is_described else {}
    # Off the first token nothing is parsed, and one token is enough.
    how = ["first-token"] if asking.is_first_token else [asking.max_tokens, PARSER]
    parts = [KIND, server.address.url, server.model, described, prompt.template, *how]
    fingerprint = sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    info = ModelInfo(name, fingerprint, KIND, "server", "unknown", LABELS)
    return ModelSource(info, lambda: ServerPredictor(server, prompt, info), is_content=True)


class ServerPredictor:
    """A model that is asked over the network, several texts at a time."""

    def __init__(self, server: ServerClient, prompt: Prompt, info: ModelInfo) -> None:
        self.info = info
        self._server = server
        self._prompt = prompt

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        return predict_all(self, texts)

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        """Make a batch of every text."""
        return [Batch((row,), (text,), cost=1) for row, text in enumerate(texts)]

    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]:
        """Ask for batches. After a failure nothing new is asked, but what is under way is waited for and given."""
        waiting = iter(batches)
        n_at_once = self._server.asking.n_at_once
        running: dict[Future[Predictions], Batch] = {}
        failure: BaseException | None = None
        stop = threading.Event()
        with self._server.connected() as client, ThreadPoolExecutor(n_at_once, thread_name_prefix="bbnli") as pool:
            try:
                while True:
                    n_free = 0 if failure else n_at_once - len(running)
                    for batch in islice(waiting, n_free):
                        running[pool.submit(self._ask, client, batch, stop)] = batch
                    if not running:
                        break
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        batch, problem = running.pop(future), future.exception()
                        if problem is None:
                            yield batch, future.result()
                        else:
                            failure = failure or problem
                            stop.set()
            finally:
                stop.set()  # nobody waits for another try
        if failure is not None:
            raise failure

    def _ask(self, client: "OpenAI", batch: Batch, stop: threading.Event) -> Predictions:
        import numpy as np

        if self._server.asking.is_first_token:
            masses = [self._server.first_token(client, self._prompt, text, stop) for text in batch.inputs]
            rows = [_row_of(yes, no) for yes, no in masses]
        else:
            answers = [self._server.complete(client, self._prompt, text, stop) for text in batch.inputs]
            rows = [ROW_OF[parse_answer(answer)] for answer in answers]
        return Predictions(np.array(rows, dtype=np.float64), np.zeros(len(rows), dtype=np.bool_))


def _row_of(yes: float, no: float) -> tuple[float, float, float]:
    return ROW_OF[Answer.UNPARSED] if yes + no < LEAST_MASS else (yes / (yes + no), no / (yes + no), 0.0)
