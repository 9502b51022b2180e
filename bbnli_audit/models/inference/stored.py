"""Makes one pass over texts: looks up stored predictions, then predicts and stores the missing ones in batches.

Several processes may make the same pass on one store. Each process claims a batch before predicting it. So they share
the work, and no text is predicted twice. If a process is killed, other processes take over its claims.
"""

import json
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from bbnli_audit.core.errors import ServerAwayError
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.core.versions import installed_version
from bbnli_audit.models.batches import chunks
from bbnli_audit.models.inference.plain_check import BesidePlain, check_against_plain, texts_to_check
from bbnli_audit.models.inference.progress import Progress
from bbnli_audit.models.inference.store import PredictionStore, Row, text_key
from bbnli_audit.models.protocol import Batch, BatchPredictor, ModelSource, Predictions, Predictor, check_predictions

# Change this number when you change how checkpoints are computed. Predictions stored under another number are not
# reused.
_SCHEME = 3
_LIBRARIES = ("torch", "transformers", "tokenizers", "onnxruntime")
_CHUNK = 256  # texts in a batch, for a model that does not cut batches itself
_SHORTEST_WAIT, _LONGEST_WAIT = 0.01, 0.5  # seconds between two lookups of texts that another process is predicting


@dataclass(slots=True)
class Tally:
    """How many distinct texts have an answer, and how many of them this process predicted."""

    n_texts: int = 0
    n_predicted: int = 0


class StoredPredictor:
    """A predictor that asks its store first. It loads the model only if the store lacks a text."""

    def __init__(
        self, source: ModelSource, store: PredictionStore, *, device: str = "auto", progress: Progress | None = None
    ) -> None:
        self._source = source
        self._store = store
        versions = {name: installed_version(name) for name in _LIBRARIES}
        key = json.dumps([_SCHEME, source.info.fingerprint, device, versions])
        self._key = sha256(key.encode()).hexdigest()
        self._progress = progress or Progress()
        self._known: dict[bytes, Row] = {}
        self._away: ServerAwayError | None = None
        self._is_checked = False
        self.tally = Tally()

    @property
    def info(self) -> ModelInfo:
        return self._source.info

    @cached_property
    def _model(self) -> BatchPredictor:
        opened = self._source.open()
        return opened if isinstance(opened, BatchPredictor) else _InChunks(opened)

    def _open(self, texts: Sequence[TextPair]) -> BatchPredictor:
        """Return the model. When it is first loaded, check it on a few of these texts before storing anything."""
        if not self._is_checked and isinstance(self._model, BesidePlain):
            check_against_plain(self._model, texts_to_check(texts))
        self._is_checked = True
        return self._model

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        keys = [text_key(text) for text in texts]
        self._make_known(dict(zip(keys, texts, strict=True)))
        rows = [self._known[key] for key in keys]
        cut, remains = [row.is_truncated for row in rows], [row.remains for row in rows]
        return Predictions.of([row[:3] for row in rows], cut, remains)

    def _make_known(self, texts: dict[bytes, TextPair]) -> None:
        missing = {key: text for key, text in texts.items() if key not in self._known}
        self._look_up(missing)
        if not missing:
            return
        if self._away is not None:
            raise self._away
        batches = self._open(list(missing.values())).plan(list(missing.values()))
        self._progress.begin(len(missing), sum(batch.cost for batch in batches))
        wait = _SHORTEST_WAIT
        try:
            while True:
                if self._predict(batches, missing):
                    wait = _SHORTEST_WAIT
                self._look_up(missing)
                if not missing:
                    return
                time.sleep(wait)  # another process is predicting the missing texts
                wait = min(2 * wait, _LONGEST_WAIT)
                batches = self._model.plan(list(missing.values()))
        except ServerAwayError as exc:
            self._away = exc
            raise
        finally:
            self._progress.end()

    def _look_up(self, missing: dict[bytes, TextPair]) -> None:
        found = self._store.get(self._key, missing)
        self._learn(found)
        for key in found:
            del missing[key]

    def _learn(self, rows: Mapping[bytes, Row]) -> None:
        self._known.update(rows)
        self.tally.n_texts = len(self._known)

    def _predict(self, batches: Sequence[Batch], missing: dict[bytes, TextPair]) -> int:
        """Predict the texts that no other process has claimed, and return their number."""
        keys = list(missing)  # the rows of batches are indices into this list
        claimed: set[bytes] = set()

        def claim() -> Iterator[Batch]:
            for batch in batches:
                ours = self._store.claim(self._key, [keys[row] for row in batch.rows])
                claimed.update(ours)
                if ours:
                    yield batch.only(row for row in batch.rows if keys[row] in ours)

        n_before = self.tally.n_predicted
        try:
            with closing(self._model.run(claim())) as results:
                for batch, predictions in results:
                    check_predictions(predictions, len(batch.rows), self.info.name)
                    self._source.check()  # also finds files that changed while the model was loaded
                    rows = dict(zip((keys[row] for row in batch.rows), _rows(predictions), strict=True))
                    self._store.put(self._key, rows)
                    self._learn(rows)
                    for key in rows:
                        claimed.discard(key)
                        missing.pop(key, None)
                    self.tally.n_predicted += len(rows)
                    self._progress.step(len(rows), batch.cost)
        finally:
            if claimed:
                self._store.release(self._key, claimed)
        return self.tally.n_predicted - n_before


def _rows(predictions: Predictions) -> list[Row]:
    cut = predictions.is_truncated.tolist()
    remains = [0] * len(cut) if predictions.remains is None else predictions.remains.tolist()
    return list(map(Row, *predictions.probabilities.T.tolist(), cut, remains))


class _InChunks:
    """Cuts a pass into batches, for a model that takes any list of texts."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        rows = chunks(range(len(texts)), _CHUNK)
        return [Batch(tuple(some), tuple(texts[row] for row in some), len(some)) for some in rows]

    def run(self, batches: Iterable[Batch]) -> Generator[tuple[Batch, Predictions]]:
        for batch in batches:
            yield batch, self._predictor.predict(batch.inputs)
