"""Whole runs of pytest: audits of the published BBNLI files, and pytest in a project that does not audit."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import yaml

from benchmarks.workloads import ROOT

# Compiled code is kept between runs, as it is for everybody.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_PLAIN_TEST = "def test_nothing():\n    pass\n"


class Runs(NamedTuple):
    """Medians, in seconds."""

    cold: float
    cold_in_two: float
    warm: float
    changed_limit: float
    imports_torch: bool  # with everything stored


class StartUp(NamedTuple):
    """Medians, in seconds."""

    with_plugin: float
    without_plugin: float

    @property
    def added_ms(self) -> float:
        return 1000 * (self.with_plugin - self.without_plugin)


def measure_runs(n_rounds: int, *options: str) -> Runs:
    """Time runs with nothing stored, with all stored, with a limit changed, and with two workers.

    Args:
        n_rounds: How often each.
        options: For all of them, the model among them.
    """
    cold, in_two, warm, changed = [], [], [], []
    with TemporaryDirectory(prefix="bbnli-benchmark-") as folder:
        thresholds = _change_limit(Path(folder))
        for n_round in range(n_rounds):
            print(f"whole runs: round {n_round + 1} of {n_rounds}", file=sys.stderr, flush=True)
            store, other = (f"--bbnli-store={Path(folder, f'{name}-{n_round}.sqlite')}" for name in ("one", "two"))
            cold.append(_time_audit(store, *options))
            warm.append(_time_audit(store, *options))
            changed.append(_time_audit(store, f"--bbnli-thresholds={thresholds}", *options))
            in_two.append(_time_audit(other, "-n2", *options))
        # Unless capturing is off, pytest keeps the lines of importtime to itself.
        lines = _audit(["-X", "importtime"], "-s", store, *options).stderr
        assert re.search(r"\| +bbnli_audit\.frontends\.pytest_plugin\.session$", lines, re.MULTILINE)
        imports_torch = re.search(r"\| +torch$", lines, re.MULTILINE) is not None
    return Runs(median(cold), median(in_two), median(warm), median(changed), imports_torch)


def _change_limit(folder: Path) -> Path:
    settings = yaml.safe_load((ROOT / "thresholds.yaml").read_text(encoding="utf-8"))
    settings["defaults"]["max_pro"] = 0.2
    path = folder / "thresholds.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def _time_audit(*options: str) -> float:
    start = perf_counter()
    _audit([], *options)
    return perf_counter() - start


def _audit(python_options: Sequence[str], *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *python_options, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *options], cwd=ROOT, env=_ENVIRONMENT, capture_output=True, text=True)
    if done.returncode not in (0, 1) or "Predictions:" not in done.stdout:  # a model may cross limits
        raise SystemExit(f"pytest {options} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done


def measure_start_up(n_times: int) -> StartUp:
    """Time pytest on one empty test, with our plugin installed and with it blocked."""
    seconds: dict[str, list[float]] = {"": [], "no:bbnli_audit": []}
    with TemporaryDirectory(prefix="bbnli-benchmark-") as folder:
        Path(folder, "test_nothing.py").write_text(_PLAIN_TEST, encoding="utf-8")
        for n_time in range(n_times + 1):
            for plugin, found in seconds.items():
                command = [sys.executable, "-m", "pytest", "-q", *(["-p", plugin] if plugin else [])]
                start = perf_counter()
                subprocess.run(command, cwd=folder, env=_ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
                if n_time:  # the first time fills caches
                    found.append(perf_counter() - start)
    return StartUp(median(seconds[""]), median(seconds["no:bbnli_audit"]))
