"""Measure `bbnli-audit augment`: rows a second and peak memory, for each format and two sizes of file.

    python -m benchmarks.augment                # prints a Markdown table
    python -m benchmarks.augment IN OUT         # one run, in a process of its own; prints JSON

Rows are those of the shared NLI training data, repeated. Rows a second are given by the clock and by processor time,
which other work on the machine disturbs less. Linux only.
"""

import csv
import gzip
import json
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.memory import peak, reset_peak, resident, run_module
from tests.shared_data import SHARED

SIZES = (50_000, 200_000, 400_000)
SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".parquet")


def write(path: Path, n_rows: int) -> None:
    with gzip.open(SHARED / "data" / "nli" / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = list(islice(cycle(file.readlines()), n_rows))
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist([json.loads(line) for line in lines]), path, row_group_size=20_000)
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, list(json.loads(lines[0])))
            writer.writeheader()
            writer.writerows(map(json.loads, lines))
    else:
        with (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8") as out:
            out.writelines(lines)


def measure(path: Path, out: Path) -> dict[str, Any]:
    import pyarrow.parquet  # noqa: F401  # what is imported once is no matter of rows

    from bbnli_audit.workbench.augment.lexicon import read_lexicon
    from bbnli_audit.workbench.augment.reading import TextColumns
    from bbnli_audit.workbench.augment.run import Augmenter
    from bbnli_audit.workbench.augment.swap import Swapper

    augmenter = Augmenter(Swapper(read_lexicon()))
    before = resident()
    reset_peak()
    clock, processor = time.perf_counter(), time.process_time()
    tally, _ = augmenter.run(path, out, TextColumns())
    return {
        "per_second": tally.n_read / (time.perf_counter() - clock),
        "per_processor_second": tally.n_read / (time.process_time() - processor),
        "peak": peak() - before,
    }


def main() -> None:
    print(
        "| format | rows | rows/s (clock) | rows/s (processor) | peak memory above start, MB |\n|---|--:|--:|--:|--:|"
    )
    with TemporaryDirectory() as folder:
        for suffix in SUFFIXES:
            for n_rows in SIZES:
                path = Path(folder, f"in{suffix}")
                write(path, n_rows)
                found = run_module("augment", path, Path(folder, f"out-{n_rows}{suffix}"))
                print(
                    f"| {suffix} | {n_rows:,} | {found['per_second']:,.0f} | {found['per_processor_second']:,.0f} "
                    f"| {found['peak']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]), Path(sys.argv[2]))))
    else:
        main()
