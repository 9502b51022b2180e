"""Measure how long the statistics of one audit take: intervals, verdicts, and growth since a baseline, at all levels.

Two invented models answer benchmark 2; the second errs so often that every measure grew and every p value is needed.
Both are predicted before the clock starts. Times are of the processor, not of the clock.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from functools import wraps
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from bbnli_audit.audit.audit import Audit, run_audit
from bbnli_audit.audit.gate import growth
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.file import write_result
from bbnli_audit.measures import direction
from bbnli_audit.measures.readings import table
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.models.protocol import Predictions
from bbnli_audit.suites.registry import open_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bbnli_audit.core.values import TextPair
    from bbnli_audit.suites.protocol import Suite

SUITE = "bbnli"
THRESHOLDS = Path(__file__).parents[1] / "thresholds.yaml"
# Where the rest of the package calls the statistics.
CALLS = {
    table: ("design_of", "estimate_means", "estimate_difference", "find_spreads"),
    direction: ("estimate_difference",),
    growth: ("find_change_spreads", "measure_increase", "holm"),
}


class Careless(PlantedPredictor):
    """Right on controls; wrong on a share of the texts of pairs."""

    def __init__(self, suite: Suite, share: float) -> None:
        super().__init__("ideal", [suite])
        self._share = share
        self.info = replace(self.info, fingerprint=sha256(str(share).encode()).hexdigest())
        pairs = [pair for subtopic in suite.subtopics() for pair in suite.items(subtopic).usable]
        self._texts = {text for pair in pairs for text in (pair.pro, pair.anti)}

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        rows = super().predict(texts).probabilities
        for row, text in zip(rows, texts, strict=True):
            drawn = int(sha256("\t".join((str(self._share), *text)).encode()).hexdigest()[:8], 16) / 16**8
            if text in self._texts and drawn < self._share:
                row[:] = (0.9, 0.05, 0.05) if drawn < 0.7 * self._share else (0.05, 0.05, 0.9)
        return Predictions.of(rows)


class Clock:
    """Adds up the time of calls; a call within a call counts once."""

    def __init__(self) -> None:
        self.seconds, self._depth = 0.0, 0

    def timing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def timed(*args: Any, **kwargs: Any) -> Any:
            start, self._depth = process_time(), self._depth + 1
            try:
                return call(*args, **kwargs)
            finally:
                self._depth -= 1
                self.seconds += 0.0 if self._depth else process_time() - start

        return timed


@contextmanager
def clock() -> Iterator[Clock]:
    """Time the statistics inside the `with` block."""
    found = Clock()
    before = [(module, name, getattr(module, name)) for module, names in CALLS.items() for name in names]
    try:
        for module, name, call in before:
            setattr(module, name, found.timing(call))
        yield found
    finally:
        for module, name, call in before:
            setattr(module, name, call)


class Times(NamedTuple):
    statistics: float  # in measures/statistics
    in_all: float  # with the tables, verdicts and rows around them


def time_audit(before: float = 0.15, after: float = 0.35) -> Times:
    suite = open_suite(SUITE)
    with TemporaryDirectory(prefix="bbnli-benchmark-") as folder:
        path = Path(folder, "baseline.json")
        options = AuditOptions(model=Careless(suite, before), thresholds=THRESHOLDS, suite=SUITE)
        write_result(run_audit(options), path)
        options = replace(options, model=Careless(suite, after), baseline=path)
        with closing(Audit(options)) as audit, clock() as found:
            paths = list(audit.subtopics)
            audit.prepare(paths)
            for subtopic in audit.subtopics.values():
                audit.reader.read(subtopic)
            assert audit.facts.is_competent
            start = process_time()
            for each in paths:
                audit.measure(each)
            assert audit.regressions is not None
            tests = audit.regressions.tests(paths)
            audit.regressions.select(tests)
            for test in tests:
                audit.compare(test)
            result = audit.conclude()
            seconds = process_time() - start
    assert result is not None
    return Times(found.seconds, seconds)


def time_audits(n: int = 5) -> Times:
    return Times(*map(min, zip(*(time_audit() for _ in range(n)), strict=True)))
