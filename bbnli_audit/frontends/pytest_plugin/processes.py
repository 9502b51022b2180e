"""The processes of one pytest run: what they share under xdist, which one shows progress, and how much each predicted.

Under xdist, the processes share predictions through a store. This is the store that keeps predictions between runs. If
there is no such store, it is a temporary one, which the controller makes and removes.
"""

import gc
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.audit.audit import Audit
from bbnli_audit.frontends.pytest_plugin.settings import STORE_FILE
from bbnli_audit.models.inference.progress import Progress, Shown, Watcher, Written
from bbnli_audit.models.loading import Share
from bbnli_audit.models.opening import Process


class Processes:
    """This process, and what it knows of the run's other processes."""

    audit: Audit  # set after __init__, before this object is registered with pytest

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._worker: Mapping[str, Any] | None = getattr(config, "workerinput", None)
        self._folder: Path | None = None  # the folder that workers share
        self._watchers: list[Watcher] = []
        self._n_models = 0
        self._usage: dict[str, dict[str, tuple[int, int, str | None]]] = {}  # by model, then by process
        self.is_worker = self._worker is not None

    @property
    def here(self) -> Process:
        if self._worker is None:
            return Process()
        number = "".join(letter for letter in str(self._worker["workerid"]) if letter.isdigit())
        folder = self._worker.get("bbnli_folder")
        share = Share(int(number or 0), int(self._worker["workercount"]))
        return Process(share, Path(folder) / STORE_FILE if folder else None)

    # Progress

    def show_progress(self) -> Progress:
        """Return the progress display for the next model that is opened."""
        if self._worker is None:
            return self._make_shown() or Progress()
        folder = self._worker.get("bbnli_folder")
        if folder is None:
            return Progress()
        place = Path(folder) / f"model-{self._n_models}"
        place.mkdir(exist_ok=True)
        self._n_models += 1
        return Written(place / f"progress-{self._worker['workerid']}.json")

    def _make_shown(self) -> Shown | None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or self._config.get_verbosity() < 0:
            return None

        def write_line(line: str) -> None:
            reporter.ensure_newline()
            reporter.write_line(line)

        def move(line: str) -> None:
            reporter.ensure_newline()
            reporter.rewrite(line, erase=True)

        return Shown(write_line=write_line, move=move if sys.stdout.isatty() and reporter.isatty else None)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give each worker the folder that all workers share."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="bbnli-"))
            for number in range(len(self.audit.readers)):
                place = self._folder / f"model-{number}"
                place.mkdir()
                shown = self._make_shown()
                if shown is not None:
                    self._watchers.append(Watcher(place, shown))
                    self._watchers[-1].start()
        node.workerinput["bbnli_folder"] = str(self._folder)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        for reader in self.audit.readers.values():
            reader.close()
        for watcher in self._watchers:
            watcher.stop()

    def pytest_unconfigure(self) -> None:
        if self.is_worker and any(reader.is_opened for reader in self.audit.readers.values()):
            # A worker's process ends here. After the freeze, the last garbage collections skip torch's objects, which
            # saves two seconds.
            gc.collect()
            gc.freeze()
        self.audit.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # Which process predicted how much

    def usage(self) -> dict[str, Any]:
        """Return how much this process has predicted so far for each model, as plain values."""
        process = "main" if self._worker is None else str(self._worker["workerid"])
        found = {}
        for name, reader in self.audit.readers.items():
            if reader.is_opened and reader.opened.tally is not None:
                tally, store = reader.opened.tally, reader.opened.store
                found[name] = [tally.n_texts, tally.n_predicted, None if store is None else store.trouble]
        return {"process": process, "models": found}

    def gather(self, usage: Mapping[str, Any]) -> None:
        for name, used in usage["models"].items():
            self._usage.setdefault(name, {})[usage["process"]] = tuple(used)

    def summary(self) -> Iterable[str]:
        """Say how many predictions were stored, and how many were made.

        All processes need the same texts, so only the numbers of predicted texts are added up.
        """
        kept, store, here = "", self.audit.options.store, self._config.invocation_params.dir
        if store is not None:
            kept = f" ({store.relative_to(here) if store.is_relative_to(here) else store})"
        for name in self.audit.readers:
            used = list(self._usage.get(name, {}).values())
            if not used:
                continue
            n_texts, n_predicted = max(n for n, _, _ in used), sum(n for _, n, _ in used)
            title = f"Predictions for {name}" if name else "Predictions"
            n_stored = max(0, n_texts - n_predicted)
            yield f"{title}: {n_texts:,} texts, {n_stored:,} stored{kept}, {n_predicted:,} predicted."
            for trouble in dict.fromkeys(trouble for _, _, trouble in used if trouble):
                yield f"Warning: {trouble}."
