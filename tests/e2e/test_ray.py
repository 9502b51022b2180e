"""The Ray engine on a real cluster of this machine's cores: the same numbers, whatever happens to its workers."""

import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.checkpoint import Checkpoint, find_checkpoint
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.classifier.on_ray import RayPredictor, _check_versions, _is_on_gpu, _versions
from bbnli_audit.models.protocol import Batch
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.protocol import get_items
from tests.shared_data import shared_path
from tests.tiny_checkpoint import save_checkpoint

pytestmark = pytest.mark.e2e

N_TEXTS = 200


@pytest.fixture(scope="module")
def texts() -> list[TextPair]:
    suite = Bbnli()
    pairs = (pair for subtopic in suite.subtopics() for pair in get_items(suite, subtopic).usable)
    distinct = dict.fromkeys(text for pair in pairs for text in (pair.pro, pair.anti))
    return list(islice(distinct, 0, None, len(distinct) // N_TEXTS))[:N_TEXTS]


@pytest.fixture(scope="module", autouse=True)
def _ray_ends_here() -> Iterator[None]:
    """Ray is started by the first predictor, and would stay until the end of the process."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_worker_niceness", "0")  # else all other tests on the machine go first
        yield
    import_module("ray").shutdown()


@pytest.fixture(autouse=True)
def _nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    kill(worker_pids())  # they end with their predictor, but the next test should not wait for that
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def tiny(tmp_path: Path, saved: Path) -> Checkpoint:
    """Make a checkpoint that a test may damage."""
    return find_checkpoint(str(shutil.copytree(saved, tmp_path / "tiny")), None)


def on_ray(checkpoint: Checkpoint, address: str | None = None) -> RayPredictor:
    return RayPredictor(checkpoint, "cpu", address)


def worker_pids() -> list[int]:
    """Find the workers below this process: it starts Ray's node, and that one starts the workers."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text().rpartition(")")
        except OSError:
            continue  # has ended meanwhile
        parents[int(status.parent.name)] = int(rest.split()[1]), name.partition("(")[2]
    return [
        pid
        for pid, (parent, name) in parents.items()
        if name.startswith("ray::_Worker") and parents.get(parent, (0, ""))[0] == os.getpid()
    ]


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # has ended meanwhile
            os.kill(pid, signal.SIGKILL)


# Before any test that starts Ray: a cluster that is connected already is used as it is.
def test_an_address_where_nobody_answers_is_refused_at_once(tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(OptionError, match=rf"^--bbnli-ray-address={address}: no Ray cluster answers there: .+"):
            on_ray(tiny, address)
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(OptionError, match=rf"^RAY_ADDRESS={address}: no Ray cluster answers there: .+"):
            on_ray(tiny)
    with pytest.raises(OptionError, match=r"^--bbnli-ray-address=nonsense: no Ray cluster answers there: .+"):
        on_ray(tiny, "nonsense")


def test_a_missing_package_is_named(tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionError) as caught:
        on_ray(tiny)
    assert str(caught.value) == '--bbnli-engine=ray needs the package ray: pip install "bbnli-audit[ray]"'


def test_numbers_are_those_of_the_local_engine(tiny: Checkpoint, texts: list[TextPair]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    found = on_ray(tiny).predict(texts)
    expected = HFPredictor(tiny, "cpu").predict(texts)
    assert np.array_equal(found.probabilities, expected.probabilities)
    assert np.array_equal(found.is_truncated, expected.is_truncated)
    assert signal.getsignal(signal.SIGTERM) is before


def one_by_one(batches: Sequence[Batch], taken: list[Batch]) -> Iterator[Batch]:
    for batch in batches:
        for row in batch.rows:
            taken.append(batch.only([row]))
            yield taken[-1]


def test_batches_of_a_killed_worker_are_computed_by_others(texts: list[TextPair]) -> None:
    checkpoint = find_checkpoint(str(shared_path("models", "tiny-nli")), None)
    predictor = on_ray(checkpoint)
    assert predictor.info == checkpoint.info
    n_cpus = import_module("ray").cluster_resources()["CPU"]
    taken: list[Batch] = []
    killed: list[int] = []
    rows: list[int] = []
    found = np.full((len(texts), 3), np.nan)
    for batch, predictions in predictor.run(one_by_one(predictor.plan(texts), taken)):
        rows += batch.rows
        found[list(batch.rows)] = predictions.probabilities
        # Taken when a worker has room for them, and not before: other processes may want to share the work.
        assert len(taken) - len(rows) < 2 * n_cpus
        if len(rows) == N_TEXTS // 4:
            killed = worker_pids()[:1]
            kill(killed)
    assert killed
    assert not set(killed) & set(worker_pids())
    assert sorted(rows) == list(range(len(texts)))
    assert np.array_equal(found, HFPredictor(checkpoint, "cpu").predict(texts).probabilities)


def test_what_a_worker_refuses_is_told_in_its_own_words(tiny: Checkpoint, texts: list[TextPair]) -> None:
    weights = tiny.folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    damaged = find_checkpoint(tiny.info.name)
    with pytest.raises(ModelError, match=rf"^--model={tiny.info.name}: its weights cannot be loaded: .+") as caught:
        on_ray(damaged).predict(texts[:3])
    assert type(caught.value) is ModelError
    assert "Traceback" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_every_machine_must_have_the_same_files(tiny: Checkpoint, texts: list[TextPair]) -> None:
    predictor = on_ray(replace(tiny, info=replace(tiny.info, fingerprint="another")))
    with pytest.raises(ModelError, match=rf", has different files in {tiny.folder}\.\nPut the checkpoint"):
        predictor.predict(texts[:3])
    shutil.rmtree(tiny.folder)
    with pytest.raises(ModelError, match=rf", has no folder {tiny.folder}\.\nPut the checkpoint"):
        predictor.predict(texts[:3])


def test_every_machine_must_have_the_same_versions() -> None:
    _check_versions("node7", _versions())
    with pytest.raises(
        ModelError, match=r"^--bbnli-engine=ray: node7, .+, has torch 1\.0 \(here 2\..+\), so its numbers"
    ):
        _check_versions("node7", {**_versions(), "torch": "1.0"})


@pytest.mark.parametrize(
    ("device", "n_gpus", "is_on_gpu"),
    [("auto", 0, False), ("auto", 2, True), ("cpu", 2, False), ("cuda", 1, True), ("cuda:1", 1, True)],
)
def test_graphics_cards_are_used_where_there_are_any(device: str, n_gpus: int, is_on_gpu: bool) -> None:
    assert _is_on_gpu(device, {"CPU": 8.0, "GPU": float(n_gpus)}) is is_on_gpu


@pytest.mark.parametrize(("device", "n_gpus"), [("cuda", 0), ("mps", 0), ("mps", 1)])
def test_a_device_that_the_cluster_lacks_is_refused(device: str, n_gpus: int) -> None:
    with pytest.raises(OptionError, match=f"^--bbnli-device={device}: the Ray cluster has no such device"):
        _is_on_gpu(device, {"CPU": 8.0, "GPU": float(n_gpus)})
