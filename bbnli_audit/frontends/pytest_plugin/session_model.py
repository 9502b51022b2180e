"""The models of one run of pytest: how the options say they are computed, their store, their progress, and xdist.

The processes of a run share the pass through a store: the one that keeps predictions between runs, or a temporary one
that the controller makes and removes.
"""

import gc
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bbnli_audit.core.errors import OptionError
from bbnli_audit.frontends.pytest_plugin.plugin import get_setting
from bbnli_audit.models.find import check_model
from bbnli_audit.models.inference.opening import Inference, OpenedModel, read_inference
from bbnli_audit.models.inference.progress import Progress, Shown, Silent, Watcher, Written
from bbnli_audit.models.language_model.asking import Asking
from bbnli_audit.models.loading import Share

if TYPE_CHECKING:
    from bbnli_audit.suites.protocol import Suite

STORE_FILE = "predictions.sqlite"


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process did for its predictions, as it travels to the controller."""

    n_texts: int
    n_predicted: int
    trouble: str | None


class SessionProcesses:
    """What the models of a run share: the store, the folder of the xdist workers, and where progress is shown."""

    def __init__(self, config: pytest.Config, find_path: Callable[[str], Path | None]) -> None:
        self._config = config
        self.worker: Mapping[str, Any] | None = getattr(config, "workerinput", None)
        self.store = self._find_store(find_path)
        self._folder: Path | None = None
        self._watchers: list[Watcher] = []
        self._names: list[str] = []  # of folders with the progress of a model
        self._opened: list[OpenedModel] = []

    def _find_store(self, find_path: Callable[[str], Path | None]) -> Path | None:
        given = find_path("store")
        if self._config.getoption("bbnli_no_store"):
            if self._config.getoption("bbnli_store") is not None:
                raise OptionError(f"--bbnli-store={given} and --bbnli-no-store exclude each other. Leave one out.")
            return None
        # Without pytest's cache plugin (-p no:cacheprovider) nothing is kept, as that option says.
        cache = getattr(self._config, "cache", None)
        if given is None and cache is not None:
            return Path(cache.mkdir("bbnli")) / STORE_FILE
        return given

    def read_inference(self, asking: Asking, *options: str) -> Inference:
        """Read the options of these names, and say how a model is computed and where its predictions are kept."""
        run_folder = self.worker and self.worker.get("bbnli_folder")
        settings: dict[str, Any] = {option: get_setting(self._config, option) for option in options}
        return read_inference(
            **settings,
            store=self.store,
            run_store=Path(run_folder) / STORE_FILE if run_folder else None,
            share=_share(self.worker),
            asking=asking,
        )

    def add_model(self) -> str:
        """Make room for the progress of another model."""
        self._names.append(f"model-{len(self._names)}")
        return self._names[-1]

    def note_opened(self, opened: OpenedModel) -> None:
        self._opened.append(opened)

    def progress(self, name: str) -> Progress:
        if self.worker is not None:
            folder, worker = self.worker.get("bbnli_folder"), self.worker.get("workerid")
            return Written(Path(folder) / name / f"progress-{worker}.json") if folder else Silent()
        return self._make_shown() or Silent()

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

    def show(self, path: Path) -> Path:
        here = self._config.invocation_params.dir
        return path.relative_to(here) if path.is_relative_to(here) else path

    # xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give every worker the folder that they share."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="bbnli-"))
            for name in self._names:
                (self._folder / name).mkdir()
                shown = self._make_shown()
                if shown is not None:
                    self._watchers.append(Watcher(self._folder / name, shown))
                    self._watchers[-1].start()
        node.workerinput["bbnli_folder"] = str(self._folder)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        for opened in self._opened:
            opened.close()
        for watcher in self._watchers:
            watcher.stop()

    def pytest_unconfigure(self) -> None:
        if self.worker is not None and self._opened:
            # A worker's process ends here. Leaving torch's objects out of the last collections saves it two seconds.
            gc.collect()
            gc.freeze()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class SessionModel:
    """One model of a run, opened when it is needed."""

    def __init__(self, processes: SessionProcesses, name: str, inference: Inference) -> None:
        self._processes = processes
        self.name = name
        self._inference = inference
        self._place = processes.add_model()
        self._opened: OpenedModel | None = None
        self._usage: dict[str, Usage] = {}
        check_model(name, inference.labels, inference.computing, inference.asking)

    def open(self, suites: "Sequence[Suite]") -> OpenedModel:
        self._opened = self._inference.open(self.name, suites, self._processes.progress(self._place))
        self._processes.note_opened(self._opened)
        return self._opened

    def usage(self) -> dict[str, Any]:
        """Say what this process did so far, as plain values."""
        if self._opened is None or self._opened.tally is None:
            return {}
        tally, store = self._opened.tally, self._opened.store
        worker = self._processes.worker
        usage = Usage(tally.n_texts, tally.n_predicted, None if store is None else store.trouble)
        return {"process": "main" if worker is None else str(worker.get("workerid")), "usage": asdict(usage)}

    def gather(self, usage: Mapping[str, Any]) -> None:
        if usage:
            self._usage[str(usage["process"])] = Usage(**usage["usage"])

    def summary(self, title: str = "Predictions") -> Iterable[str]:
        """Tell where the predictions came from. Every process asks for the same texts; what they predict adds up."""
        if not self._usage:
            return
        n_texts = max(usage.n_texts for usage in self._usage.values())
        n_predicted = sum(usage.n_predicted for usage in self._usage.values())
        store = self._processes.store
        kept = f" ({self._processes.show(store)})" if store is not None else ""
        n_stored = max(0, n_texts - n_predicted)
        yield f"{title}: {n_texts:,} texts, {n_stored:,} stored{kept}, {n_predicted:,} predicted."
        for trouble in dict.fromkeys(usage.trouble for usage in self._usage.values() if usage.trouble):
            yield f"Warning: {trouble}."


def _share(worker: Mapping[str, Any] | None) -> Share:
    if worker is None:
        return Share()
    number = "".join(letter for letter in str(worker["workerid"]) if letter.isdigit())
    return Share(int(number or 0), int(worker["workercount"]))
