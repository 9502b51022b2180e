"""Cuts texts into batches by tokens, and runs several batches at a time."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.loading import one_core_each
from bbnli_audit.models.protocol import Batch, BatchPredictor, Predictions

# On a CPU, speed depends on the number of tokens in a batch, not on the number of texts. About _CPU_TOKENS tokens fit
# into the caches of a core; larger batches are slower. A graphics card is faster with larger batches.
_CPU_TOKENS, _GPU_TOKENS = 1024, 16384
# With fewer rows than this, math libraries compute a matrix product in another way, which rounds differently.
MIN_ROWS = 16
# For each text of a call, a tokenizer keeps much more in memory than ids. So a call gets this many texts at most.
TEXTS_AT_ONCE = 2048
_PATIENCE = 2.0  # seconds to wait for threads to end

T = TypeVar("T")


def tokens_at_once(is_on_cpu: bool) -> int:
    return _CPU_TOKENS if is_on_cpu else _GPU_TOKENS


def cut_by_tokens(lengths: Sequence[int], n_tokens: int) -> Iterator[list[int]]:
    """Cut rows into batches of at most `n_tokens` tokens: similar lengths together, the longest rows first.

    In this order a batch that is too large for memory fails at once. Long rows take more time per token, so the time
    left is estimated too long rather than too short.
    """
    return cut_in_order(_longest_first(lengths), lengths, n_tokens)


def cut_in_order(rows: Iterable[int], lengths: Sequence[int], n_tokens: int) -> Iterator[list[int]]:
    """Cut rows into batches of at most `n_tokens` tokens, in the order given."""
    batch: list[int] = []
    n_in_batch = 0
    for row in rows:
        if batch and n_in_batch + lengths[row] > n_tokens:
            yield batch
            batch, n_in_batch = [], 0
        batch.append(row)
        n_in_batch += lengths[row]
    if batch:
        yield batch


def cut_by_length(lengths: Sequence[int], n_tokens: int, min_rows: int = MIN_ROWS) -> Iterator[list[int]]:
    """Cut rows into batches. All rows of a batch have the same length, so that nothing is padded."""
    batch: list[int] = []
    for row in _longest_first(lengths):
        n_rows = max(min_rows, n_tokens // max(1, lengths[row]))
        if batch and (lengths[row] != lengths[batch[0]] or len(batch) == n_rows):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def fill_up(rows: Sequence[T], min_rows: int = MIN_ROWS) -> list[T]:
    """Repeat the last row until there are `min_rows` rows."""
    return [*rows, *[rows[-1]] * (min_rows - len(rows))]


def _longest_first(lengths: Sequence[int]) -> list[int]:
    return sorted(range(len(lengths)), key=lambda row: -lengths[row])


def run_in_threads(
    forward: Callable[[Batch], Predictions],
    batches: Iterable[Batch],
    n_threads: int,
    stop: Callable[[], object] = lambda: None,
) -> Generator[tuple[Batch, Predictions]]:
    """Run batches in threads and yield each when it is done. Take a batch only when a thread is free for it.

    After a failure, start no further batch. Finish and yield the running batches, so that they can be stored. With more
    than one thread, call `stop` after a failure and at the end.
    """
    if n_threads == 1:
        for batch in batches:
            yield batch, forward(batch)
        return
    waiting = iter(batches)
    running: dict[Future[Predictions], Batch] = {}
    failure: BaseException | None = None
    pool = _Pool(forward, n_threads)
    try:
        while True:
            for batch in islice(waiting, 0 if failure else n_threads - len(running)):
                running[pool.submit(batch)] = batch
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                batch, problem = running.pop(future), future.exception()
                if problem is None:
                    yield batch, future.result()
                else:
                    failure = failure or problem
                    stop()
    finally:
        stop()
        pool.close()
    if failure is not None:
        raise failure


class _Pool:
    """A pool of daemon threads. With them, Ctrl-C ends Python within seconds even if a server takes a minute to answer.

    Before Python ends, it waits for the threads of `concurrent.futures`, but not for daemon threads.
    """

    def __init__(self, forward: Callable[[Batch], Predictions], n_threads: int) -> None:
        self._forward = forward
        self._given: SimpleQueue[tuple[Batch, Future[Predictions]] | None] = SimpleQueue()
        self._threads = [Thread(target=self._work, name=f"bbnli-{n}", daemon=True) for n in range(n_threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, batch: Batch) -> "Future[Predictions]":
        future: Future[Predictions] = Future()
        self._given.put((batch, future))
        return future

    def close(self) -> None:
        """Tell the threads to end, and wait two seconds at most: enough for a computation, not for a slow server."""
        until = time.monotonic() + _PATIENCE
        for _ in self._threads:
            self._given.put(None)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        while (given := self._given.get()) is not None:
            batch, future = given
            try:
                future.set_result(self._forward(batch))
            except BaseException as exc:  # noqa: BLE001 - raised again in the thread that waits for the batch
                future.set_exception(exc)


class InBatches(BatchPredictor, ABC):
    """A predictor that cuts texts into batches itself."""

    info: ModelInfo

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        """Predict texts batch by batch, and return the predictions in the order of the texts."""
        import numpy as np

        probabilities, is_truncated = np.empty((len(texts), 3)), np.empty(len(texts), dtype=np.bool_)
        remains = np.zeros(len(texts), dtype=np.uint64)
        for batch, predictions in self.run(self.plan(texts)):
            rows = list(batch.rows)
            probabilities[rows], is_truncated[rows] = predictions.probabilities, predictions.is_truncated
            remains[rows] = 0 if predictions.remains is None else predictions.remains
        return Predictions(probabilities, is_truncated, remains)


class LocalPredictor(InBatches):
    """A model in this process. On a CPU, each core runs one batch at a time."""

    is_on_cpu: bool
    n_threads: int

    @abstractmethod
    def forward(self, batch: Batch) -> Predictions:
        """Predict one batch. Threads may call this at the same time."""

    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]:
        with one_core_each(self.is_on_cpu):
            yield from run_in_threads(self.forward, batches, self.n_threads)
