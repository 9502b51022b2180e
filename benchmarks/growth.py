"""What a text costs as texts become more: each size in a process of its own, `python -m benchmarks.growth N`.

The texts are those of WQ-NLI, spread over the whole file, so that short and long ones have the same shares at each
size.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from bbnli_audit.models.find import find_model
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from benchmarks.memory import peak, reset_peak, resident, run_module
from benchmarks.workloads import distinct_wq_texts, shared_path, spread

# Small sizes are over before they can be timed once.
_TEXTS_IN_ALL = 8000


class Growth(NamedTuple):
    n_texts: int
    seconds: float
    above_model: float  # MB
    store_size: float  # MB

    @property
    def cost(self) -> float:
        return self.seconds / self.n_texts


def measure_growth(sizes: tuple[int, ...], n_rounds: int) -> list[Growth]:
    """Measure all sizes in interleaved rounds, and give the medians."""
    found: dict[int, list[Growth]] = {n_texts: [] for n_texts in sizes}
    for n_round in range(n_rounds):
        for n_texts in sizes:
            print(f"growth: {n_texts:,} texts, round {n_round + 1} of {n_rounds}", file=sys.stderr, flush=True)
            found[n_texts].append(Growth(n_texts, *run_module("growth", n_texts)))
    return [
        Growth(n_texts, *(median(getattr(one, name) for one in rounds) for name in Growth._fields[1:]))
        for n_texts, rounds in found.items()
    ]


def main(n_texts: int) -> None:
    source = find_model(str(shared_path("models", "tiny-nli")))
    model = source.open()
    source = replace(source, open=lambda: model)
    loaded = resident()
    reset_peak()
    texts = spread(distinct_wq_texts(), n_texts)
    seconds, peaks, sizes = [], [], []
    for _ in range(max(1, _TEXTS_IN_ALL // n_texts)):
        with TemporaryDirectory(prefix="bbnli-benchmark-") as folder:
            path = Path(folder, "predictions.sqlite")
            store = PredictionStore(path)
            start = perf_counter()
            StoredPredictor(source, store).predict(texts)
            seconds.append(perf_counter() - start)
            store.close()
            peaks.append(peak())
            sizes.append(path.stat().st_size / 2**20)
    print(json.dumps([median(seconds), peaks[0] - loaded, sizes[0]]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
