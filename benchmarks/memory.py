"""How much memory a contender needs: run as a process of its own, `python -m benchmarks.memory CONTENDER FOLDER N`.

Linux only. The peak that `getrusage` reports is not used: a process inherits it from the one that started it.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.workloads import ROOT, bbnli_texts, spread


class Memory(NamedTuple):
    """Resident memory in MB."""

    loaded: float
    peak: float

    @property
    def above_model(self) -> float:
        return self.peak - self.loaded


def resident() -> float:
    return _read("VmRSS")


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> float:
    return _read("VmHWM")


def _read(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def run_module(name: str, *arguments: object) -> Any:
    """Run a module of this package and give what it prints last, as JSON."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_memory(contender: str, folder: Path, n_texts: int) -> Memory:
    return Memory(*run_module("memory", contender, folder, n_texts))


def main(name: str, folder: Path, n_texts: int) -> None:
    from benchmarks.contenders import CONTENDERS
    from benchmarks.page import silence

    silence()
    contender = next(contender for contender in CONTENDERS if contender.name == name)
    texts = spread(bbnli_texts(), n_texts)
    opened = contender.open(folder)
    loaded = resident()
    reset_peak()
    opened.predict(texts)
    print(json.dumps([loaded, peak()]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
