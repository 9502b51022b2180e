"""Workers that were killed, servers that are away, and Ctrl-C: nobody waits for what will not come."""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bbnli_audit.core.errors import ModelError, ServerAwayError, hiding_frames
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.batches import run_in_threads
from bbnli_audit.models.inference.store import PredictionStore, text_key
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.protocol import Batch, ModelSource, Predictions

TEXTS = [TextPair("the red moon", f"zorbs juggle {n}") for n in range(4)]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="zombies are found by /proc")
def test_what_a_zombie_claimed_is_taken_over(tmp_path: Path) -> None:
    keys = [text_key(text) for text in TEXTS]
    theirs, ours = (PredictionStore(tmp_path / "store.sqlite") for _ in range(2))
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        theirs._owner = f"{theirs._owner.rpartition(':')[0]}:{process.pid}"
        assert theirs.claim("model", keys) == set(keys)
        stat = Path(f"/proc/{process.pid}/stat")
        while b") Z" not in stat.read_bytes():  # ended, and nobody has asked for its exit code yet
            time.sleep(0.01)
        assert ours.claim("model", keys) == set(keys)


class Away:
    """A model behind a server that stopped to answer after the first text."""

    info = ModelInfo("openai:away", "0" * 64, "callable", "server", "unknown", ("entailment",))

    def __init__(self) -> None:
        self.n_asked = 0

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        self.n_asked += 1
        if self.n_asked > 1:
            raise ServerAwayError("the server gave no usable answer in 6 tries")
        return Predictions.of([(0.2, 0.5, 0.3)] * len(texts))


def test_a_server_that_is_away_is_asked_once_and_what_is_known_stays_known() -> None:
    model = Away()
    predictor = StoredPredictor(ModelSource.of(model), PredictionStore(None))
    predictor.predict(TEXTS[:1])
    for _ in range(3):
        with pytest.raises(ModelError, match="no usable answer"):
            predictor.predict(TEXTS)
    assert model.n_asked == 2
    assert len(predictor.predict(TEXTS[:1]).probabilities) == 1


@pytest.mark.slow
def test_nobody_waits_for_answers_after_ctrl_c() -> None:
    release, stopped = threading.Event(), threading.Event()

    def answer(batch: Batch) -> Predictions:
        if batch.rows != (0,):
            release.wait(60)
        return Predictions.of([(0.2, 0.5, 0.3)])

    batches = [Batch((row,), (text,), cost=1) for row, text in enumerate(TEXTS)]
    results = run_in_threads(answer, batches, 4, stopped.set)
    next(results)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt())
    assert time.monotonic() - started < 15
    assert stopped.is_set()
    waiting = [thread for thread in threading.enumerate() if thread.name.startswith("bbnli-")]
    assert waiting
    assert all(thread.daemon for thread in waiting), "Python would wait for them when it ends"
    release.set()


def test_the_frames_below_are_hidden_after_ctrl_c() -> None:
    def work() -> None:
        sentence = "zorbs juggle"
        raise KeyboardInterrupt(sentence)

    with pytest.raises(KeyboardInterrupt) as caught, hiding_frames():
        work()
    assert [entry.name for entry in caught.traceback if entry.name == "work"] == []
    with pytest.raises(KeyboardInterrupt) as caught, hiding_frames(is_revealed=True):
        work()
    assert "work" in [entry.name for entry in caught.traceback]
