"""What the whole published WinoQueer-NLI costs in one run: `python -m benchmarks.winoqueer_full [MODEL]`."""

import sys
from dataclasses import replace
from time import perf_counter

import numpy as np
import pandas as pd

from bbnli_audit.inference.store import PredictionStore
from bbnli_audit.inference.stored import StoredPredictor
from bbnli_audit.metrics.frame import pair_frame
from bbnli_audit.metrics.intervals import estimate_means
from bbnli_audit.metrics.rates import cluster_codes
from bbnli_audit.metrics.winoqueer_measures import MEASURES
from bbnli_audit.predictors.resolve import find_model
from bbnli_audit.suites.winoqueer import Winoqueer
from benchmarks.memory import peak, reset_peak, resident
from benchmarks.page import silence, table
from benchmarks.workloads import shared_path


def main(name: str) -> None:
    silence()
    source = find_model(name)
    model = source.open()
    loaded = resident()
    reset_peak()
    start = perf_counter()
    suite = Winoqueer(shared_path("data", "wq_nli"))
    pairs = {subtopic: suite.items(subtopic).usable for subtopic in suite.subtopics()}
    texts = list(dict.fromkeys(text for some in pairs.values() for pair in some for text in (pair.pro, pair.anti)))
    read = perf_counter()
    predictor = StoredPredictor(replace(source, open=lambda: model), PredictionStore(None))
    probabilities = predictor.predict(texts).probabilities
    predicted = perf_counter()
    row_of = {text: row for row, text in enumerate(texts)}
    frame = pd.concat(
        pair_frame(
            subtopic,
            some,
            probabilities[[row_of[pair.pro] for pair in some]],
            probabilities[[row_of[pair.anti] for pair in some]],
        )
        for subtopic, some in pairs.items()
    )
    values = np.column_stack([measure(frame) for measure in MEASURES.values()])
    estimates = estimate_means(values, cluster_codes(frame))
    measured = perf_counter()
    costs = [
        "model",
        "pairs",
        "distinct texts",
        "reading",
        "predicting",
        "texts/s",
        "measures",
        "peak",
        "above the model",
    ]
    row = [
        name,
        f"{len(frame):,}",
        f"{len(texts):,}",
        f"{read - start:.1f} s",
        f"{predicted - read:.1f} s",
        f"{len(texts) / (predicted - read):.0f}",
        f"{measured - predicted:.1f} s",
        f"{peak():.0f} MB",
        f"{peak() - loaded:.0f} MB",
    ]
    print(table(costs, [row]))
    print(
        table(
            list(MEASURES), [[f"{100 * one.value:.2f} ({100 * one.low:.1f}–{100 * one.high:.1f})" for one in estimates]]
        )
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "demo")
