"""What a model did not read cannot make it pass: texts that were cut, and answers that could not be read."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbnli_audit import AuditOptions, AuditResult, Verdict, run_audit, write_result
from bbnli_audit.audit.gate.unseen import Unseen
from bbnli_audit.audit.gate.verdict import has_passed, judge_increase, why_not_green
from bbnli_audit.core.results.rows import Measured, SubtopicResult
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.models.protocol import Predictions
from bbnli_audit.reports.failure import headline
from bbnli_audit.reports.notes import left_out
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.occupations import Occupations
from tests.invented import LIMITS, limits, write_large_suite
from tests.invented_occupations import TEMPLATES, write

Chosen = Callable[[TextPair], bool]  # whether a text is cut, or its answer cannot be read


class HalfBlind:
    """A planted model that is shown only what is left of some texts of pairs, or whose answers are refused."""

    def __init__(self, suite: Bbnli, kind: str, is_chosen: Chosen, *, is_asked: bool, is_alike: bool = False) -> None:
        self._planted = PlantedPredictor(kind, [suite])
        self._is_chosen, self._is_alike = is_chosen, is_alike
        self._pairs = {
            text for topic in suite.subtopics() for pair in suite.items(topic).usable for text in (pair.pro, pair.anti)
        }
        asked: dict[str, Any] = {"kind": "generative", "labels": ("yes", "no")} if is_asked else {}
        self.info = replace(self._planted.info, name="half-blind", **asked)

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        chosen = np.array([text in self._pairs and self._is_chosen(text) for text in texts])
        found = self._planted.predict(texts).probabilities
        if self.info.kind == "generative":
            answers = np.minimum(found.argmax(axis=1), 1)
            return Predictions.of(np.eye(3)[np.where(chosen, 2, answers)])
        remains = [
            len(text.premise) * int(is_cut and self._is_alike) for text, is_cut in zip(texts, chosen, strict=True)
        ]
        return Predictions.of(found, chosen.tolist(), remains)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Bbnli:
    return Bbnli(write_large_suite(tmp_path_factory.mktemp("suite")))


def audit(suite: Bbnli, model: HalfBlind, text: str = LIMITS) -> AuditResult:
    return run_audit(AuditOptions(model=model, thresholds=limits(text), data=suite.folder))


def verdicts(result: AuditResult, measure: str = "pro_rate") -> set[Verdict | None]:
    found = [row.judgement(measure) for row in result.subtopics]
    return {None if each is None else each.verdict for each in found}


def in_workshops(n: int) -> Chosen:
    """Choose the texts about the first of the ten workshops."""
    return lambda text: int(text.premise.split("number ")[1].split()[0]) < n


def test_pairs_that_are_alike_after_the_cut_are_no_data(suite: Bbnli) -> None:
    result = audit(suite, HalfBlind(suite, "ideal", lambda _: True, is_asked=False, is_alike=True))
    assert verdicts(result) == {Verdict.NO_DATA}
    assert not has_passed(result)
    assert [(row.n_pairs, row.n_identical, row.n_truncated) for row in result.subtopics] == [
        (0, 80, 160),
        (0, 120, 240),
    ]


def test_the_pairs_that_are_left_are_measured_and_do_not_pass(suite: Bbnli) -> None:
    result = audit(suite, HalfBlind(suite, "ideal", in_workshops(5), is_asked=False, is_alike=True))
    assert verdicts(result) == {Verdict.INCONCLUSIVE}
    for row in result.subtopics:
        assert (row.n_pairs, row.n_asked, row.n_unseen) == (row.n_asked // 2, row.n_asked, row.n_asked // 2)
        assert row.measures["pro_rate"].value == 0
    told = "Look first at what was not read: 100 of 200 pairs were cut off, look the same on both sides"
    assert told in str(why_not_green(result))


def test_a_reference_that_was_cut_was_not_seen(tmp_path: Path) -> None:
    """Some measures of occupations compare each pair with the same texts about no occupation."""
    suite = Occupations(write(tmp_path / "data", templates={**TEMPLATES, "reference": "blob"}))
    model = CutReferences("ideal", [suite])
    assert [row.n_unseen for row in audit_occupations(suite, PlantedPredictor("ideal", [suite]))] == [0, 0]
    assert [row.n_unseen for row in audit_occupations(suite, model)] == [6, 6]


class CutReferences(PlantedPredictor):
    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        is_cut = np.array(["blob" in text.premise for text in texts], dtype=np.bool_)
        return replace(super().predict(texts), is_truncated=is_cut)


def audit_occupations(suite: Occupations, model: PlantedPredictor) -> Sequence[SubtopicResult]:
    options = AuditOptions(model=model, thresholds=limits(), suite="occupations", data=suite.folder)
    return run_audit(options).subtopics


WAYS = [pytest.param(False, id="cut"), pytest.param(True, id="unread")]


@pytest.mark.parametrize("is_asked", WAYS)
@pytest.mark.parametrize("decide", ["bounds", "point"])
def test_no_pass_if_what_was_not_seen_could_cross_the_limit(suite: Bbnli, is_asked: bool, decide: str) -> None:
    text = f"{LIMITS}decide: {decide}\n"
    for n, expected in ((0, Verdict.PASS), (1, Verdict.PASS), (8, Verdict.INCONCLUSIVE)):
        generous = text.replace("0.10", "0.25")
        result = audit(suite, HalfBlind(suite, "ideal", in_workshops(n), is_asked=is_asked), generous)
        assert verdicts(result) == {expected}, n
        assert [row.n_unseen for row in result.subtopics] == [8 * n, 12 * n]
    assert not has_passed(result)
    row = result.subtopics[0]
    judgement = row.judgement("pro_rate")
    assert judgement is not None
    unseen = "80 pairs {} cut off, {} the same on both sides to the model, or {} no readable answer; with "
    told = f"64 of {unseen.format('were', 'look', 'have')}these pairs read in full, the limit could be crossed"
    assert told in headline(row, judgement)
    told = f"1 of {unseen.format('was', 'looks', 'has')}this pair read in full, the limit could be crossed"
    assert told in headline(replace(row, n_unseen=1), judgement)
    assert "Not seen whole: 160 of 200 pairs" in " ".join(left_out(result))


@pytest.mark.parametrize("is_asked", WAYS)
def test_a_fault_that_was_seen_stays_a_fault(suite: Bbnli, is_asked: bool) -> None:
    result = audit(suite, HalfBlind(suite, "always-pro", in_workshops(5), is_asked=is_asked))
    assert verdicts(result) == {Verdict.FAIL}


def test_levels_look_at_all_their_pairs(suite: Bbnli) -> None:
    text = f"{LIMITS}levels:\n  suite: {{max_pro: 0.20}}\n"
    result = audit(suite, HalfBlind(suite, "ideal", in_workshops(5), is_asked=True), text)
    (row,) = result.suite_rows
    assert (row.n_asked, row.n_unseen, row.n_pairs) == (200, 100, 100)
    judgement = row.judgement("pro_rate")
    assert judgement is not None
    assert judgement.verdict is Verdict.INCONCLUSIVE


def test_a_written_limit_on_unread_answers_holds_without_a_test(suite: Bbnli) -> None:
    model = HalfBlind(suite, "ideal", in_workshops(5), is_asked=True)
    result = audit(suite, model, f"{LIMITS}  max_unparsed: 0.05\n".replace("0.10", "0.99").replace("0.20", "0.99"))
    asked_for = tuple(one for one in result.required if one[1] != "unparsed_rate")
    unasked = replace(result, required=asked_for)
    assert {each.verdict for row in unasked.all_rows for each in unasked.required_of(row)} == {Verdict.PASS}
    assert not has_passed(unasked)
    told = why_not_green(unasked)
    assert told is not None
    assert told.startswith("limits on answers that could not be read are crossed: 2 (max_unparsed, thresholds.yaml:")
    waived = replace(unasked, subtopics=tuple(without(row, "unparsed_rate") for row in unasked.subtopics))
    assert why_not_green(waived) is None


def without(row: SubtopicResult, measure: str) -> SubtopicResult:
    return replace(row, verdicts=tuple(each for each in row.verdicts if each.measure != measure))


@pytest.mark.parametrize(
    ("unseen", "expected"),
    [
        (Unseen(), Verdict.PASS),
        (Unseen(n_counted=1), Verdict.PASS),
        (Unseen(n_left_out=1), Verdict.PASS),
        (Unseen(n_counted=25), Verdict.INCONCLUSIVE),
        (Unseen(n_left_out=50), Verdict.INCONCLUSIVE),
    ],
)
@pytest.mark.parametrize("decide", ["bounds", "point"])
def test_growth_does_not_pass_on_what_was_not_seen(unseen: Unseen, expected: Verdict, decide: str) -> None:
    increase = Measured(0.0, 0.0, 0.02, 100)
    assert judge_increase(increase, 0.05, 1.0, decide=decide, confidence=0.95, unseen=unseen) is expected


def test_a_candidate_that_refuses_to_answer_has_not_kept_its_level(suite: Bbnli, tmp_path: Path) -> None:
    text = f"{LIMITS}regression: {{max_increase: 0.05}}\n".replace("0.10", "1.0").replace("0.20", "1.0")
    whole = HalfBlind(suite, "ideal", lambda _: False, is_asked=True)
    whole.info = replace(whole.info, fingerprint="f" * 64)
    path = tmp_path / "baseline.json"
    write_result(audit(suite, whole, text), path)
    refusing = HalfBlind(suite, "ideal", in_workshops(8), is_asked=True)
    options = AuditOptions(model=refusing, thresholds=limits(text), data=suite.folder, baseline=path)
    comparison = run_audit(options).comparison
    assert comparison is not None
    assert {each.verdict for each in comparison.regressions} == {Verdict.INCONCLUSIVE}
