"""What a cold audit of the published BBNLI set does beside running the model, in parts."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from bbnli_audit.audit.audit import Audit
from bbnli_audit.audit.model_reader import ModelReader
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.checkpoint import find_checkpoint
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.find import find_model
from bbnli_audit.models.inference.store import PredictionStore, Row
from bbnli_audit.models.inference.stored import StoredPredictor
from bbnli_audit.models.opening import OpenedModel
from bbnli_audit.models.protocol import Batch
from bbnli_audit.reports.files import write_data, write_reports
from benchmarks.workloads import ROOT, published_suite


class Parts(NamedTuple):
    """Seconds of an audit with the model loaded. Storing goes on while other threads run the model."""

    total: float
    planning: float
    storing: float
    measures: float
    reports: float

    @property
    def beside_model(self) -> float:
        return self.planning + self.storing + self.measures + self.reports


class _Watch:
    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds += perf_counter() - start


class _TimedPredictor(HFPredictor):
    watch = _Watch()

    def plan(self, texts: Sequence[TextPair]) -> list[Batch]:
        with self.watch.running():
            return super().plan(texts)


class _TimedStore(PredictionStore):
    watch = _Watch()

    def get(self, model: str, texts: Collection[bytes]) -> dict[bytes, Row]:
        with self.watch.running():
            return super().get(model, texts)

    def put(self, model: str, rows: Mapping[bytes, Row]) -> None:
        with self.watch.running():
            super().put(model, rows)

    def claim(self, model: str, texts: Sequence[bytes]) -> set[bytes]:
        with self.watch.running():
            return super().claim(model, texts)


def measure_parts(folder: Path) -> Parts:
    """Audit as `pytest --model` does in one process."""
    checkpoint = find_checkpoint(str(folder), None)
    model = _TimedPredictor(checkpoint)
    source = replace(find_model(str(folder)), open=lambda: model)
    options = AuditOptions(
        model=str(folder), thresholds=ROOT / "thresholds.yaml", suite="", suites=(published_suite(),)
    )
    with TemporaryDirectory(prefix="bbnli-benchmark-") as place:
        store = _TimedStore(Path(place, "predictions.sqlite"))
        audit = Audit(options)
        audit.reader = ModelReader(audit.items, lambda: OpenedModel(StoredPredictor(source, store)))
        start = perf_counter()
        audit.prepare(audit.subtopics)
        predicted = perf_counter()
        for path in audit.subtopics:
            audit.measure(path)
        result = audit.conclude()
        assert result is not None
        measured = perf_counter()
        pairs = audit.pairs()
        write_data(result, pairs, Path(place, "report"))
        write_reports(result, pairs, Path(place, "report"))
        written = perf_counter()
        store.close()
    return Parts(
        total=written - start,
        planning=model.watch.seconds,
        storing=store.watch.seconds,
        measures=measured - predicted,
        reports=written - measured,
    )
