"""The limit: how fast the useful matrix products of a model alone would be on this machine."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import torch

N_TOKENS = 1024
_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of an encoder."""

    n_layers: int
    width: int
    inner_width: int

    def flop(self, n_tokens: int) -> float:
        """Count the operations for a text: linear layers for all its tokens, and the two products of attention."""
        linear = 2 * (4 * self.width**2 + 2 * self.width * self.inner_width) * n_tokens
        attention = 2 * 2 * n_tokens**2 * self.width
        return float(self.n_layers * (linear + attention))


def read_shape(folder: Path) -> Shape:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    inner = config.hidden_dim if config.model_type == "distilbert" else config.intermediate_size
    return Shape(config.num_hidden_layers, config.hidden_size, inner)


class GemmMeter:
    """Measures the products of one layer on 1,024 tokens, again and again between other measurements."""

    def __init__(self, shape: Shape) -> None:
        self._n_cores = torch.get_num_threads()
        width, inner = shape.width, shape.inner_width
        self._sizes = [(width, width)] * 4 + [(inner, width), (width, inner)]
        self._weights = [torch.randn(size) for size in self._sizes]
        self._flop = sum(2 * N_TOKENS * rows * columns for rows, columns in self._sizes)
        self._one_thread: list[float] = []
        self._thread_a_core: list[float] = []

    def measure(self) -> None:
        self._one_thread.append(self._rate_of_thread())
        torch.set_num_threads(1)
        try:
            with ThreadPoolExecutor(self._n_cores) as pool:
                running = [pool.submit(self._rate_of_thread) for _ in range(self._n_cores)]
                self._thread_a_core.append(sum(future.result() for future in running))
        finally:
            torch.set_num_threads(self._n_cores)

    @property
    def rates(self) -> tuple[float, float]:
        """Medians so far, in operations a second: one thread with all cores, and one thread a core."""
        return median(self._one_thread), median(self._thread_a_core)

    def _rate_of_thread(self) -> float:
        inputs = {columns: torch.randn(N_TOKENS, columns) for _, columns in self._sizes}
        outputs = {rows: torch.empty(N_TOKENS, rows) for rows, _ in self._sizes}
        products = [
            (inputs[columns], weight.t(), outputs[rows])
            for (rows, columns), weight in zip(self._sizes, self._weights, strict=True)
        ]
        _multiply(products)
        n_times, start = 0, perf_counter()
        while perf_counter() - start < _SECONDS:
            _multiply(products)
            n_times += 1
        return n_times * self._flop / (perf_counter() - start)


def _multiply(products: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> None:
    for given, weight, output in products:
        torch.mm(given, weight, out=output)
