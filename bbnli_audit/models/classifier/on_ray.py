"""The engine behind --bbnli-engine=ray: the same batches, computed by the workers of a Ray cluster.

The workers are our own actors, not a Ray Data pool. A Dataset reads its whole input before it starts. An audit makes
many passes, and for each pass a Dataset would start its actors and load the checkpoint again. Our engine takes no more
batches at a time than all its workers can hold. Its workers live as long as the predictor. If a worker dies, another
worker takes its batches.
"""

import logging
import os
import signal
import socket
import threading
import warnings
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from bbnli_audit.core.errors import AuditError, ModelError, OptionError
from bbnli_audit.core.values import TextPair
from bbnli_audit.core.versions import installed_version
from bbnli_audit.models.batches import InBatches, tokens_at_once
from bbnli_audit.models.checkpoint import Checkpoint, ContentStamps
from bbnli_audit.models.classifier.classify import TextEncoder
from bbnli_audit.models.classifier.hf import open_classifier
from bbnli_audit.models.inference.plain_check import BesidePlain, check_against_plain
from bbnli_audit.models.loading import Share, first_line, load_tokenizer
from bbnli_audit.models.protocol import Batch, Predictions
from bbnli_audit.suites.probe import probe_items

# A worker holds this many batches at most: the current one and the next, so that the worker never waits for the driver.
_BATCHES_AT_WORKER = 2
# The run ends with an error in two cases: more workers than this died on one batch; or more than this died in a row
# while they loaded the checkpoint, and no worker is left.
_MAX_LOSSES = 3
# Seconds to wait for the first worker. Machines that start on demand take minutes.
_PATIENCE_SECONDS = 900.0
_CONNECT_SECONDS = 5.0
_N_CHECKED = 3  # texts on which a worker is compared with plain transformers, besides a short and a long one
_OPTION = "--bbnli-ray-address"
_NO_CLUSTER = "no Ray cluster answers there"
# Packages whose version may change a number. The store's keys contain only the driver's versions, so workers must have
# the same versions.
_LIBRARIES = ("bbnli-audit", "torch", "transformers", "tokenizers", "onnxruntime")
# Skip lines that Ray prints whatever its log level. We handle lost workers ourselves, and report them when it matters.
_AT_IMPORT = {"RAY_DEDUP_LOGS_SKIP_REGEX": "worker died or was killed|killed due to memory pressure"}
_AT_START = {"RAY_USAGE_STATS_ENABLED": "0"}
# With this setting, Ray stops after one try of half a minute if something that is no cluster answers at an address.
_AT_CONNECTING = {"RAY_gcs_server_port_wait_time_s": "1"}


class RayPredictor(InBatches):
    """A checkpoint on the workers of a Ray cluster. This process only encodes texts."""

    def __init__(self, checkpoint: Checkpoint, device: str, address: str | None) -> None:
        """Use this process's connection to Ray, connect to a cluster, or start one here. Workers are started later."""
        self.info = checkpoint.info
        ray = _connect(address)
        self._encoder = TextEncoder(*load_tokenizer(self.info.name, checkpoint.folder))
        self._is_on_gpu = _is_on_gpu(device, ray.cluster_resources())
        here = replace(checkpoint, folder=checkpoint.folder.absolute())
        self._crew = _Crew(ray, here, "cuda" if self._is_on_gpu else "cpu")

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        is_on_cpu = not self._is_on_gpu
        return self._encoder.plan(texts, tokens_at_once(is_on_cpu), is_padding_free=is_on_cpu)

    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]:
        """Pass batches to workers as they become free, and yield each when it is done."""
        crew, source = self._crew, iter(batches)
        waiting: deque[Batch] = deque()
        running: dict[Any, tuple[Any, Batch]] = {}
        n_losses: Counter[tuple[int, ...]] = Counter()
        while True:
            waiting.extend(islice(source, max(0, crew.n_batches - len(waiting) - len(running))))
            if not waiting and not running:
                return
            n_at = Counter(worker for worker, _ in running.values())
            while waiting and (worker := crew.least_busy(n_at)) is not None:
                batch = waiting.popleft()
                running[worker.predict.remote(batch)] = worker, batch
                n_at[worker] += 1
            crew.grow(len(waiting))
            call = crew.wait(running)
            if call is None:
                continue
            worker, batch = running.pop(call)
            predictions = crew.get(call, worker)
            if predictions is not None:
                yield batch, predictions
                continue
            waiting.appendleft(batch)
            n_losses[batch.rows] += 1
            if n_losses[batch.rows] > _MAX_LOSSES:
                raise ModelError(
                    f"{self.info.name}: {n_losses[batch.rows]} workers of the Ray cluster died on the same batch of "
                    f"{len(batch.rows)} texts: {crew.last_loss}.\nThey may lack memory; look at Ray's logs."
                )


class _Worker:
    """Runs in a process of its own on the cluster, and keeps the checkpoint loaded."""

    def __init__(self, checkpoint: Checkpoint, device: str) -> None:
        self._checkpoint = checkpoint
        self._device = device

    def load(self) -> tuple[str, dict[str, str]]:
        """Load the checkpoint, and return the machine's name and the versions of its libraries.

        The constructor does not do this, because Ray turns exceptions in constructors into plain text.
        """
        info, folder, host = self._checkpoint.info, self._checkpoint.folder, socket.gethostname()
        before = ContentStamps.of(info.name, folder)
        if not folder.is_dir() or self._checkpoint.fingerprint() != info.fingerprint:
            problem = f"has different files in {folder}" if folder.is_dir() else f"has no folder {folder}"
            advice = "Put the checkpoint where all of its machines see it under the same path."
            raise ModelError(f"--model={info.name}: {host}, a machine of the Ray cluster, {problem}.\n{advice}")
        self._model = open_classifier(self._checkpoint, self._device, Share(0, os.cpu_count() or 1))  # one core
        before.check()
        if isinstance(self._model, BesidePlain):
            check_against_plain(self._model, [item.text for item in probe_items()[:_N_CHECKED]])
        return host, _versions()

    def predict(self, batch: Batch) -> Predictions:
        [(_, predictions)] = self._model.run([batch])
        return predictions


class _Crew:
    """The workers of a predictor. Ray ends a worker when nothing refers to it any more."""

    def __init__(self, ray: Any, checkpoint: Checkpoint, device: str) -> None:
        self._ray = ray
        resource = "CPU" if device == "cpu" else "GPU"
        self._n_max = max(1, int(ray.cluster_resources().get(resource, 0)))
        self.n_batches = self._n_max * _BATCHES_AT_WORKER  # enough to keep a full crew busy
        self._actor = ray.remote(num_cpus=1, num_gpus=int(resource == "GPU"))(_Worker)
        self._what = checkpoint, device
        self._ready: list[Any] = []
        self._loading: dict[Any, Any] = {}  # the worker of each running call of `load`
        self._n_lost_loading = 0
        self.last_loss = ""

    def least_busy(self, n_at: Counter[Any]) -> Any | None:
        """Return the worker with the fewest batches, or None if no worker has room for another batch."""
        worker = min(self._ready, key=n_at.__getitem__, default=None)
        return None if worker is None or n_at[worker] >= _BATCHES_AT_WORKER else worker

    def grow(self, n_waiting: int) -> None:
        """Start workers for batches that no worker has room for."""
        if self._n_lost_loading > _MAX_LOSSES and (self._ready or self._loading):
            return  # go on with the workers that there are
        n_missing = min(n_waiting, self._n_max - len(self._ready)) - len(self._loading)
        for _ in range(n_missing):
            worker = self._actor.remote(*self._what)
            self._loading[worker.load.remote()] = worker

    def wait(self, running: Iterable[Any]) -> Any | None:
        """Wait until a batch is done, and return its call.

        If a worker gets ready, or dies while loading, before any batch is done, return None.

        No batch is given to a worker that is not ready: a busy cluster may never start it.
        """
        patience = None if self._ready else _PATIENCE_SECONDS
        done, _ = self._ray.wait([*running, *self._loading], num_returns=1, timeout=patience)
        if not done:
            problem = f"no worker was ready after {patience:.0f} seconds"
            raise ModelError(f"--bbnli-engine=ray: {problem}. The cluster may be busy: look at it with `ray status`.")
        if done[0] in self._loading:
            self._welcome(done[0])
            return None
        return done[0]

    def _welcome(self, call: Any) -> None:
        worker = self._loading.pop(call)
        loaded = self.get(call, worker)
        if loaded is None:
            self._n_lost_loading += 1
            if self._n_lost_loading > _MAX_LOSSES and not self._ready and not self._loading:
                raise ModelError(
                    f"--bbnli-engine=ray: {self._n_lost_loading} workers died while they loaded the checkpoint: "
                    f"{self.last_loss}.\nThey may lack memory, or the package bbnli-audit; look at Ray's logs."
                )
            return
        _check_versions(*loaded)
        self._n_lost_loading = 0
        self._ready.append(worker)

    def get(self, call: Any, worker: Any) -> Any | None:
        """Return the result of a call. If the call raised, raise its exception. If its worker is lost, return None."""
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as exc:
            if isinstance(exc.cause, AuditError):
                raise exc.cause from None
            raise exc.cause from exc
        except self._ray.exceptions.RayError as exc:
            self.last_loss = first_line(exc)
            if worker in self._ready:
                self._ready.remove(worker)
            self._ray.kill(worker)  # it may be alive, only out of reach
            return None


def _is_on_gpu(device: str, resources: Mapping[str, float]) -> bool:
    has_gpu = resources.get("GPU", 0) >= 1
    if device == "cpu" or (device == "auto" and not has_gpu):
        return False
    if not device.startswith(("auto", "cuda")) or not has_gpu:
        raise OptionError(f"--bbnli-device={device}: the Ray cluster has no such device. Give auto, cpu or cuda.")
    return True


def _versions() -> dict[str, str]:
    """Return the versions of packages that may change a number. Builds for different hardware count as equal."""
    return {name: (installed_version(name) or "none").partition("+")[0] for name in _LIBRARIES}


def _check_versions(host: str, there: dict[str, str]) -> None:
    here = _versions()
    differing = [f"{name} {there[name]} (here {here[name]})" for name in _LIBRARIES if there[name] != here[name]]
    if differing:
        fault = f"{host}, a machine of the Ray cluster, has {', '.join(differing)}, so its numbers could differ"
        raise ModelError(f"--bbnli-engine=ray: {fault}.\nInstall the same versions on all machines.")


def _connect(address: str | None) -> Any:
    """Return the module ray, connected to a cluster. A cluster that is started here ends with this process."""
    try:
        with _as_guest(_AT_IMPORT):
            import ray
    except ImportError as exc:
        raise OptionError('--bbnli-engine=ray needs the package ray: pip install "bbnli-audit[ray]"') from exc
    option, address = ("RAY_ADDRESS", os.environ.get("RAY_ADDRESS")) if address is None else (_OPTION, address)
    source = f"{option}={address}"
    if address is not None:
        _check_answers(address, source)
    if ray.is_initialized():
        return ray
    with _as_guest(_AT_START if address is None else _AT_CONNECTING):
        try:
            how: dict[str, Any] = {"include_dashboard": False} if address is None else {}
            chosen = "local" if address is None else address
            ray.init(chosen, **how, log_to_driver=False, logging_level=logging.CRITICAL)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as exc:
            # Ray's messages quote their causes. The innermost cause is in the last line; show its first sentence.
            lines = str(exc.__cause__ or exc).strip().splitlines() or [type(exc).__name__]
            failed = "--bbnli-engine=ray: Ray cannot be started here" if address is None else f"{source}: {_NO_CLUSTER}"
            raise OptionError(f"{failed}: {lines[-1].partition('. ')[0].rstrip('.')}.") from exc
    return ray


def _check_answers(address: str, source: str) -> None:
    """Refuse an address at once if nothing can be reached there. Ray would try for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or "://" in host:  # auto, local, or another protocol: Ray itself answers fast
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as exc:
        advice = "Give the address that `ray start --head` printed, or leave the option out to use this machine alone."
        raise OptionError(f"{source}: {_NO_CLUSTER}: {first_line(exc)}.\n{advice}") from exc


@contextmanager
def _as_guest(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for Ray and hide warnings. Afterwards, undo both and restore the SIGTERM handler."""
    ours = {key: value for key, value in settings.items() if key not in os.environ}
    is_main = threading.current_thread() is threading.main_thread()
    on_sigterm = signal.getsignal(signal.SIGTERM) if is_main else None
    os.environ.update(ours)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for key in ours:
            os.environ.pop(key, None)
        if on_sigterm is not None:
            signal.signal(signal.SIGTERM, on_sigterm)
