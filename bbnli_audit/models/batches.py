"""Batches: cut by tokens, and run several at a time."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from bbnli_audit.core.values import TextPair
from bbnli_audit.models.protocol import Batch, BatchPredictor, Predictions

# On a CPU the batch in tokens decides the speed, not the number of texts: this is about what fits the caches of a
# core; larger ones are slower. A graphics card wants more at once.
CPU_TOKENS = 1024
GPU_TOKENS = 16384


def cut_by_tokens(lengths: Sequence[int], n_tokens: int) -> Iterator[list[int]]:
    """Cut rows into batches of at most so many tokens, neighbours in length together, longest batch first.

    Longest first: what does not fit into memory shows at once, and the time left is never guessed too short.
    """
    batch: list[int] = []
    n_in_batch = 0
    for row in _longest_first(lengths):
        if batch and n_in_batch + lengths[row] > n_tokens:
            yield batch
            batch, n_in_batch = [], 0
        batch.append(row)
        n_in_batch += lengths[row]
    if batch:
        yield batch


def cut_by_length(lengths: Sequence[int], n_tokens: int, min_rows: int) -> Iterator[list[int]]:
    """Cut rows into batches of one exact length each, so that nothing is padded."""
    batch: list[int] = []
    for row in _longest_first(lengths):
        n_rows = max(min_rows, n_tokens // max(1, lengths[row]))
        if batch and (lengths[row] != lengths[batch[0]] or len(batch) == n_rows):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _longest_first(lengths: Sequence[int]) -> list[int]:
    return sorted(range(len(lengths)), key=lambda row: -lengths[row])


def run_in_threads(
    forward: Callable[[Batch], Predictions], batches: Iterable[Batch], n_threads: int
) -> Generator[tuple[Batch, Predictions]]:
    """Run batches in threads and give each back when it is done. None is taken before a thread is free for it."""
    if n_threads == 1:
        for batch in batches:
            yield batch, forward(batch)
        return
    waiting = iter(batches)
    with ThreadPoolExecutor(n_threads, thread_name_prefix="bbnli") as pool:
        running: dict[Future[Predictions], Batch] = {}
        while True:
            for batch in islice(waiting, n_threads - len(running)):
                running[pool.submit(forward, batch)] = batch
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()


def predict_all(predictor: BatchPredictor, texts: Sequence[TextPair]) -> Predictions:
    """Run all batches of these texts and put the rows back into their order."""
    import numpy as np

    probabilities, is_truncated = np.empty((len(texts), 3)), np.empty(len(texts), dtype=np.bool_)
    for batch, predictions in predictor.run(predictor.plan(texts)):
        rows = list(batch.rows)
        probabilities[rows], is_truncated[rows] = predictions.probabilities, predictions.is_truncated
    return Predictions(probabilities, is_truncated)
