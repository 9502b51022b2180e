"""The text of a failing test."""

import pytest

from bbnli_audit.core.outcomes import CAUSES, CellCounts
from bbnli_audit.core.results.rows import NO_DATA, Judgement, Measured, SubtopicResult, Verdict, Waiver
from bbnli_audit.measures.drivers import DrivingCluster, Evidence
from bbnli_audit.reports.failure import HIDDEN, failure_text, headline, regression_headline, regression_text
from tests.reported import regression

PATH = "bbnli/planets/zorbs"
EVIDENCE = Evidence([DrivingCluster("p00/h00", 4, 6)], {"one": "worst pair one", "two": "worst pair two"})
SENTENCES = {"one": ["pro: 'a' -> 'b'", "anti: 'c' -> 'd'"], "three": ["never shown"]}


def row(**measures: Measured) -> SubtopicResult:
    counts = CellCounts({"NN": 70, "EC": 10})
    return SubtopicResult.of(
        PATH,
        counts,
        n_clusters=40,
        n_templates=(10, 20),
        measures=measures,
        control_accuracy=0.9,
        n_controls=60,
        n_identical=2,
    )


def rates(**more: Measured) -> dict[str, Measured]:
    return {**dict.fromkeys(CAUSES, Measured(0.125, 0.05, 0.2, 160)), **more}


def judged(measure: str, verdict: Verdict = Verdict.FAIL, **more: object) -> Judgement:
    return Judgement(measure, 0.1, verdict, "thresholds.yaml:4", **more)  # type: ignore[arg-type]  # any field


def text(measure: str, evidence: Evidence = EVIDENCE, *, is_revealed: bool = False) -> list[str]:
    found = row(**rates(same_label=Measured(0.05, 0.01, 0.09, 80), token_preference=Measured(0.6, 0.5, 0.7, 80)))
    sentences = SENTENCES if is_revealed else None
    return failure_text(found, judged(measure), evidence, confidence=0.95, sentences=sentences).splitlines()


def test_everything_a_person_needs() -> None:
    assert text("pro_rate") == [
        f"{PATH}: pro 0.125 is above its limit 0.100",
        "  20 of 160 samples (80 pairs in 40 clusters), 95% interval 0.050-0.200",
        "  causes: pro 20 + anti 0 + brittle 0 = 20 mispredicted of 160",
        "  outcomes (label on the pro side, on the anti side): NN 70  EC 10",
        "  limit: thresholds.yaml:4",
        "  controls (questions with a known answer): 54 of 60 right (0.900)",
        "  left out: 2 pairs alike on both sides to the model, 0 duplicates",
        "  templates that drive it: p00/h00 (4 of 6)",
        "  worst pair one",
        "  worst pair two",
        f"  {HIDDEN}",
    ]


def test_sentences_follow_their_pair() -> None:
    assert text("pro_rate", is_revealed=True)[-4:] == [
        "  worst pair one",
        "    pro: 'a' -> 'b'",
        "    anti: 'c' -> 'd'",
        "  worst pair two",
    ]


def test_without_pairs_nothing_is_hidden() -> None:
    lines = text("pro_rate", Evidence())
    assert lines[-1] == "  left out: 2 pairs alike on both sides to the model, 0 duplicates"


def test_unit_and_direction_are_those_of_the_measure() -> None:
    lines = text("same_label")
    assert lines[0] == f"{PATH}: same_label 0.050 is below its limit 0.100"
    assert lines[1].startswith("  mean over 80 pairs (80 pairs in 40 clusters)")


def test_a_likelihood_has_no_causes_of_error() -> None:
    found = row(token_preference=Measured(0.6, 0.5, 0.7, 80))
    told = failure_text(found, judged("token_preference"), EVIDENCE, confidence=0.95, sentences=None)
    assert "causes" not in told
    assert "mispredicted" not in told
    assert "mean over 80 pairs" in told


@pytest.mark.parametrize(
    ("judgement", "said"),
    [
        (judged("pro_rate", Verdict.PASS), "0.125 crosses no limit (0.100) on these pairs"),
        (
            judged("pro_rate", Verdict.INCONCLUSIVE, times_needed=(1.5, 4.0)),
            "0.125 is INCONCLUSIVE against its limit 0.100: about 5 to 30 more premises and 10 to 60 more hypotheses "
            "would decide",
        ),
        (
            judged("pro_rate", Verdict.INCONCLUSIVE, is_corrected=True),
            "0.125 is INCONCLUSIVE against its limit 0.100: the interval lies beyond the limit, but not after the "
            "correction for all limits of this run (Holm)",
        ),
        (
            judged("pro_rate", Verdict.INCONCLUSIVE),
            "0.125 is INCONCLUSIVE against its limit 0.100: too close to call",
        ),
        (
            judged("pro_rate", waiver=Waiver("x", "y", "2020-01-01", "z:1", is_expired=True)),
            "0.125 (limit 0.100): its waiver has expired",
        ),
        (
            judged("other", Verdict.NO_DATA),
            "has no data: no usable pair is left, so nothing was measured against the limit 0.100",
        ),
    ],
)
def test_headlines(judgement: Judgement, said: str) -> None:
    assert (
        headline(row(**rates(other=NO_DATA)), judgement) == f"{PATH}: {judgement.measure.removesuffix('_rate')} {said}"
    )


def test_growth_that_only_the_correction_keeps_from_fail_says_so() -> None:
    found = regression(PATH, "pro_rate", Verdict.INCONCLUSIVE, times_needed=(0.5, 2.0))
    assert regression_headline(found) == (
        f"{PATH}: pro went from 0.080 to 0.200: the growth is not shown to be within the margin 0.020. "
        "After the correction for the tests of this run (Holm), it is not shown to be beyond the margin either"
    )


@pytest.mark.parametrize(("measure", "changed"), [("pro_rate", "pairs"), ("fact_gap", "facts")])
def test_the_p_values_of_growth_name_what_they_are_of(measure: str, changed: str) -> None:
    found = regression(PATH, measure, Verdict.FAIL)
    lines = regression_text(found, "old", n_tests=1, n_clusters=9, confidence=0.95, sentences=None).splitlines()
    assert lines[2] == (
        "  p <0.0001 for growth of at most the margin (0.0003 after Holm's correction for 1 test); "
        f"McNemar on the {changed} that changed: <0.0001"
    )
