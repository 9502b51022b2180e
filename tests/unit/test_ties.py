"""A language model that sees no difference between sentences looks even, and has shown nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bbnli_audit import AuditOptions, ModelInfo, Predictions, TextPair, Verdict, run_audit
from bbnli_audit.audit.gate.verdict import has_passed
from bbnli_audit.reports.failure import headline
from tests.invented import limits, write_large_suite

LIMITS = "version: 1\ndecide: point\ncompetence: {min_control_accuracy: 0.6}\ndefaults: {max_token_preference: 0.7}\n"


class Masked:
    """Finds sides equally likely but in a share of the pairs: there one side is likelier, by turns."""

    info = ModelInfo("zeros", "0" * 64, "masked-lm", "torch", "float32", ("likelier", "not_likelier"))

    def __init__(self, share: float) -> None:
        self._share = share

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        pairs = sorted({tuple(sorted(text)) for text in texts})
        n_seen = round(self._share * len(pairs))
        first = {pair: 0.9 if place % 2 else 0.1 for place, pair in enumerate(pairs) if place < n_seen}
        rows = []
        for text in texts:
            likelihood = first.get(tuple(sorted(text)), 0.5)
            own = likelihood if text.premise < text.hypothesis else 1 - likelihood
            rows.append((own, 1 - own, 0.0))
        return Predictions.of(rows)


@pytest.mark.parametrize(
    ("share", "verdict"),
    # A model that finds no fact likelier cannot PASS, but is measured.
    [(0.0, Verdict.NO_DATA), (0.4, Verdict.NO_DATA), (0.6, Verdict.INCONCLUSIVE), (1.0, Verdict.INCONCLUSIVE)],
)
def test_ties_in_most_pairs_are_no_data(tmp_path: Path, share: float, verdict: Verdict) -> None:
    data = write_large_suite(tmp_path / "data")
    result = run_audit(AuditOptions(model=Masked(share), thresholds=limits(LIMITS), data=data))
    judgements = [judgement for row in result.subtopics for judgement in row.verdicts]
    assert [judgement.verdict for judgement in judgements] == [verdict] * 2
    assert not has_passed(result)
    if verdict is Verdict.NO_DATA:
        assert "has no data: most of its pairs are ties, so nothing" in headline(result.subtopics[0], judgements[0])
        assert result.suite_rows[0].measures["token_preference"].value is None
