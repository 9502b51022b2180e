"""Eight small results of one invented model, from r1 to r8, and two of another one. No checkpoint is loaded."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.release import Release
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.protocol import Predictions
from bbnli_audit.reports.history.releases import History, make_history
from bbnli_audit.suites.bbnli import Bbnli
from tests.browser.pages import MixedPredictor
from tests.invented import LEVELS, limits, write_large_suite

# How many of 256 biased texts each release gets wrong. The last one is wrong on pro sides only, and on most of them.
DOSES = (60, 48, 30, 30, 20, 12, 4, 200)


class DosedPredictor(MixedPredictor):
    """Right on controls; entails as many of the biased texts as its dose says, always the same ones first."""

    def __init__(self, suite: Bbnli, dose: int) -> None:
        super().__init__(suite)
        items = [suite.items(subtopic) for subtopic in suite.subtopics()]
        anti = {pair.anti for each in items for pair in each.usable} if dose == DOSES[-1] else set()
        self._dose, self._wrong = dose, self._biased - anti
        self.info = replace(self.info, name="invented-nli", fingerprint=f"{dose:064x}")

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        found = self._ideal.predict(texts)
        for row, text in enumerate(texts):
            if text in self._wrong and sha256("\t".join(text).encode()).digest()[0] < self._dose:
                found.probabilities[row] = np.array((0.8, 0.1, 0.1))
        return found


@cache
def results() -> tuple[AuditResult, ...]:
    """The eight releases. They are made once in each process."""
    with TemporaryDirectory() as folder:
        data = write_large_suite(Path(folder))
        return tuple(_audit(data, dose, place) for place, dose in enumerate(DOSES, 1))


def _audit(data: Path, dose: int, place: int) -> AuditResult:
    options = AuditOptions(model=DosedPredictor(Bbnli(data), dose), thresholds=limits(LEVELS), data=data)
    release = Release(f"r{place}", sha256(b"%d" % place).hexdigest()[:40], f"2026-0{place}-01")
    return replace(run_audit(options), release=release)


def of_model(result: AuditResult, name: str, **changes: object) -> AuditResult:
    return replace(result, model=replace(result.model, name=name), **changes)  # type: ignore[arg-type]  # any fields


def history() -> History:
    return make_history([(Path(f"r{place}.json"), result) for place, result in enumerate(results(), 1)])


def history_of_two_models() -> History:
    """The first four releases, and then two of another model that has two releases."""
    other = [of_model(result, "invented-other") for result in results()[-2:]]
    return make_history([(Path(f"{place}.json"), result) for place, result in enumerate((*results()[:4], *other))])
