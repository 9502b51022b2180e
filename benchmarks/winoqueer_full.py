"""What the whole published WinoQueer-NLI costs in one run: `python -m benchmarks.winoqueer_full [MODEL]`.

The machine should have nothing else to do. `make bench` writes the same into its page.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import join_tables, make_table
from bbnli_audit.measures.statistics.intervals import estimate_means
from bbnli_audit.measures.winoqueer import MEASURES
from bbnli_audit.models.find import find_model
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.suites.winoqueer import Winoqueer
from benchmarks.memory import peak, reset_peak, resident, run_module
from benchmarks.page import describe_machine, silence
from benchmarks.workloads import shared_path


class FullRun(NamedTuple):
    """One run in a process of its own. Seconds, and MB of resident memory."""

    model: str
    n_pairs: int
    n_texts: int
    reading: float
    predicting: float
    measuring: float
    loaded: float
    peak: float
    measures: Mapping[str, tuple[float, float, float]]  # value, and the bounds of its interval

    @property
    def seconds(self) -> float:
        return self.reading + self.predicting + self.measuring


def measure_full(model: str, n_pairs: int) -> FullRun:
    """Run it in a process of its own, with so many pairs of each subtopic at most."""
    print(f"full WQ-NLI: {model}", file=sys.stderr, flush=True)
    return FullRun(*run_module("winoqueer_full", model, "--pairs", n_pairs, "--json"))


def run_full(name: str, n_pairs: int) -> FullRun:
    silence()
    source = find_model(name)
    model = source.open()
    loaded = resident()
    reset_peak()
    start = perf_counter()
    suite = Winoqueer(shared_path("data", "wq_nli"))
    pairs = {subtopic: suite.items(subtopic).usable[:n_pairs] for subtopic in suite.subtopics()}
    texts = list(dict.fromkeys(text for some in pairs.values() for pair in some for text in (pair.pro, pair.anti)))
    read = perf_counter()
    predictor = StoredPredictor(replace(source, open=lambda: model), PredictionStore(None))
    probabilities = predictor.predict(texts).probabilities
    predicted = perf_counter()
    row_of = {text: row for row, text in enumerate(texts)}
    rows = {
        subtopic: ([row_of[pair.pro] for pair in some], [row_of[pair.anti] for pair in some])
        for subtopic, some in pairs.items()
    }
    table = join_tables(
        [
            make_table(subtopic, some, LABELS, (probabilities[rows[subtopic][0]], probabilities[rows[subtopic][1]]))
            for subtopic, some in pairs.items()
        ]
    )
    measures = {measure.name: measure.values(table) for measure in MEASURES if measure.values is not None}
    estimates = estimate_means(np.column_stack(list(measures.values())), table.design)
    measured = perf_counter()
    return FullRun(
        name,
        len(table),
        len(texts),
        read - start,
        predicted - read,
        measured - predicted,
        loaded,
        peak(),
        {name: (one.value, one.low, one.high) for name, one in zip(measures, estimates, strict=True)},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="demo")
    parser.add_argument("--pairs", type=int, default=sys.maxsize, help="of each subtopic, at most")
    parser.add_argument("--json", action="store_true", help="for the page")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    found = run_full(arguments.model, arguments.pairs)
    if arguments.json:
        print(json.dumps(found))
        return
    from benchmarks.sections import full_section

    print(describe_machine(load))
    print(full_section(found))


if __name__ == "__main__":
    main()
