"""Measures how fast an audit is, beside what else there is, and writes a page with the figures.

`python -m benchmarks.inference --output docs/benchmark.md`. The machine should have nothing else to do; `--quick` only
shows that everything runs.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contenders import CONTENDERS, CROSS_ENCODER, EXACT, GENERIC, LOOP, ONE_BY_ONE, ONNX, PIPELINE, Contender
from benchmarks.end_to_end import measure_runs, measure_start_up
from benchmarks.figures import list_figures
from benchmarks.growth import measure_growth
from benchmarks.memory import measure_memory
from benchmarks.page import describe_machine, figures_table, silence
from benchmarks.parts import measure_parts
from benchmarks.sections import (
    comparison_section,
    full_section,
    growth_section,
    parts_section,
    rows_paragraph,
    runs_section,
)
from benchmarks.side_by_side import Comparison, compare
from benchmarks.winoqueer_full import measure_full
from benchmarks.workloads import Workload, bbnli_workload, random_checkpoints, shared_path, wq_workload

# Which part of the texts a round takes: 1 all, 3 every third batch, and another third in the next round.
Strides = Mapping[Contender, int]
ALL_TEXTS: Strides = {ONE_BY_ONE: 9, LOOP: 3, PIPELINE: 3, CROSS_ENCODER: 3, EXACT: 3, GENERIC: 3, ONNX: 3}
LARGE_MODEL: Strides = {ONE_BY_ONE: 96, LOOP: 48, PIPELINE: 20, CROSS_ENCODER: 20, EXACT: 20, GENERIC: 20, ONNX: 20}
ROWS: Strides = {LOOP: 9, PIPELINE: 3, CROSS_ENCODER: 3, EXACT: 3, GENERIC: 3, ONNX: 3}
OTHER_ARCHITECTURE: Strides = {LOOP: 48, PIPELINE: 20, CROSS_ENCODER: 20, EXACT: 20, ONNX: 20}


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured."""

    n_rounds: int
    n_texts: int
    n_check: int
    n_wq_rows: int
    n_memory_texts: int
    growth: tuple[int, ...]
    n_start_ups: int
    audit_options: tuple[str, ...]
    audited_model: str
    n_full_pairs: int  # of each subtopic


FULL = Scale(3, sys.maxsize, 32, 3000, 320, (1000, 4000, 16000, 40000), 11, (), "minilm-nli", sys.maxsize)
QUICK = Scale(1, 64, 8, 40, 8, (200, 400), 2, ("-k", "programmer"), "tiny-nli", 8)

HOW = """\
"In a round" says which part of its own batches a contender ran in each of {n_rounds} interleaved rounds, in each
round others, all from all over the set: with 1/3 three rounds run every text once. Speed is the median of the rounds,
counted in useful operations and told in texts of the whole set, so that a part with longer texts is not a slower one.
All compute float32 on the same cores. The limit is the number of texts a second if the machine did nothing but the
model's useful matrix products (linear layers of all layers for all real tokens, attention), at the rate measured
between the runs for one layer of the model on 1,024 tokens; the better of one thread a core and one thread for all.
More than 100 % is possible, because the limit counts the last layer for all tokens. Padding is what the model
computed beyond the real tokens. "Other labels" are those that differ from the loop's, of those that both gave.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, no meaningful figure")
    parser.add_argument("--output", type=Path, help="the page (default: standard output)")
    arguments = parser.parse_args()
    page = write_page(QUICK if arguments.quick else FULL)
    if arguments.output is None:
        print(page)
    else:
        arguments.output.write_text(page, encoding="utf-8")


def write_page(scale: Scale) -> str:
    machine = describe_machine(os.getloadavg()[0])
    silence()
    minilm = shared_path("models", "minilm-nli")
    start_up = measure_start_up(scale.n_start_ups)
    data = f"--bbnli-data={shared_path('data', 'bbnli')}"
    runs = measure_runs(
        scale.n_rounds, f"--model={shared_path('models', scale.audited_model)}", data, *scale.audit_options
    )
    growth = measure_growth(scale.growth, scale.n_rounds)
    full = measure_full("demo", scale.n_full_pairs)
    parts = measure_parts(shared_path("models", scale.audited_model))
    memory = {found.name: measure_memory(found.name, minilm, scale.n_memory_texts) for found in CONTENDERS}

    def run(workload: Workload, strides: Strides) -> Comparison:
        present = {contender: strides[contender] for contender in CONTENDERS if contender in strides}
        return compare(workload, present, scale.n_rounds, scale.n_check)

    bbnli = run(bbnli_workload("Published BBNLI, minilm-nli", minilm, scale.n_texts), ALL_TEXTS)
    wq = run(wq_workload("WQ-NLI, minilm-nli", minilm, scale.n_wq_rows), ROWS)
    with random_checkpoints() as (bert_folder, distilbert_folder):
        title = "Published BBNLI, BERT-base size, random weights"
        bert = run(bbnli_workload(title, bert_folder, scale.n_texts), LARGE_MODEL)
        title = "Published BBNLI, DistilBERT size, random weights (by the generic path)"
        distilbert = run(bbnli_workload(title, distilbert_folder, scale.n_texts), OTHER_ARCHITECTURE)

    figures = list_figures(bbnli, bert, wq, distilbert, parts, runs, start_up, growth)
    sections = [
        "# How fast an audit is\n",
        f"Written by `make bench`. {machine}",
        *(["**A quick run: the sizes are too small for any figure.**\n"] if scale is QUICK else []),
        "## Figures to reach\n",
        figures_table(figures),
        "## Side by side\n",
        HOW.format(n_rounds=scale.n_rounds),
        comparison_section(bbnli, memory),
        f"Memory: of a process that predicts {scale.n_memory_texts} texts from all over the set.\n",
        comparison_section(wq) + rows_paragraph(wq),
        comparison_section(bert),
        comparison_section(distilbert),
        "## Whole runs\n",
        runs_section(runs, start_up, scale.audited_model, scale.n_rounds, scale.n_start_ups),
        parts_section(parts, scale.audited_model),
        "## More texts\n",
        growth_section(growth),
        "## Full WQ-NLI\n",
        full_section(full),
    ]
    return "\n".join(sections)


if __name__ == "__main__":
    main()
