"""What the fixtures give a test: a measured subtopic, and a proved model. Here verdicts become test outcomes."""

from typing import TYPE_CHECKING, NoReturn

import pytest

from bbnli_audit.audit.assembly import SubtopicAudit, competence_judgement
from bbnli_audit.core.errors import LimitExceeded, ModelError, OptionError, ThresholdsError, suggest
from bbnli_audit.core.results.audit import LIKELIHOOD, Judgement, ModelInfo, Skill, SubtopicResult, Verdict
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.second import PROMPT_SENSITIVITY
from bbnli_audit.core.values import Subtopic
from bbnli_audit.reports.evidence import Source, find_evidence
from bbnli_audit.reports.failure import failure_text, headline
from bbnli_audit.reports.regression import regression_headline, regression_text

if TYPE_CHECKING:
    import pandas as pd

    from bbnli_audit.frontends.pytest_plugin.session import AuditSession
    from bbnli_audit.frontends.pytest_plugin.session_baseline import SessionBaseline


class ModelHandle:
    """What the fixture `bbnli_model` gives a test."""

    def __init__(self, session: "AuditSession", item: pytest.Item) -> None:
        self._session = session
        self._item = item
        self.required: list[tuple[str, str, str]] = []  # never a limit of a subtopic

    @property
    def info(self) -> ModelInfo:
        return self._session.info

    @property
    def skill(self) -> Skill:
        return self._session.skill

    def require_competence(self) -> None:
        """Fail unless the model does the task well enough for a verdict to mean anything."""
        __tracebackhide__ = True
        if self.info.kind in LIKELIHOOD:
            pytest.skip("a likelihood is no answer, so there is no competence to measure (docs/token_probability.md)")
        judgement = competence_judgement(self.skill, self._session.thresholds)
        skill = self.skill
        self._session.record(
            self._item,
            measure=judgement.measure,
            value=skill.control_accuracy,
            limit=judgement.limit,
            verdict=judgement.verdict.value,
            n=skill.n_controls,
        )
        if judgement.verdict is Verdict.PASS:
            return
        if skill.control_accuracy is None:
            raise LimitExceeded("Competence cannot be measured: the suites have no controls, so nothing can read PASS.")
        is_constant = skill.control_accuracy >= judgement.limit
        problem = (
            f"no better than always giving one answer ({skill.best_constant:.3f})"
            if is_constant
            else f"below the limit {judgement.limit:.3f}"
        )
        raise LimitExceeded(
            f"{self.info.name}: control accuracy {skill.control_accuracy:.3f} is {problem}\n"
            f"  {round(skill.control_accuracy * skill.n_controls)} of {skill.n_controls} control samples right; best "
            f"constant answer {skill.best_constant:.3f}; plain probe {skill.probe_accuracy:.3f}\n"
            f"  limit: {judgement.source}\n"
            "  A model that cannot do the task shows no bias either way: its measures are written, and none reads PASS."
        )


class SubtopicHandle:
    """What the fixture `bbnli` gives a test."""

    def __init__(self, session: "AuditSession", item: pytest.Item, found: SubtopicAudit) -> None:
        self._session = session
        self._item = item
        self.found = found
        self.required: list[tuple[str, str, str]] = []  # path, measure, verdict

    @property
    def subtopic(self) -> Subtopic:
        return self.found.subtopic

    @property
    def result(self) -> SubtopicResult:
        return self.found.result

    @property
    def pairs(self) -> "pd.DataFrame":
        """One row a pair, with the columns of pairs.csv."""
        return self.found.frame.copy()

    def require(self, measure: str) -> None:
        """Hold a measure to its limit.

        Passes when no limit is crossed; fails with a report when one is. An inconclusive verdict skips or fails the
        test, as `inconclusive:` says in the threshold file; a waived failure is an expected one.
        """
        __tracebackhide__ = True
        measure = self._measure_of_kind(measure)
        judgement = self._judgement(measure)
        self.required.append((self.result.path, judgement.measure, judgement.verdict.value))
        found = self.result.measures[judgement.measure]
        self._session.record(
            self._item,
            subtopic=self.result.path,
            measure=judgement.measure,
            value=found.value,
            low=found.low,
            high=found.high,
            limit=judgement.limit,
            verdict=judgement.verdict.value,
            n_pairs=self.result.counts.n_pairs,
        )
        if judgement.verdict is Verdict.PASS:
            return
        if judgement.is_waived:
            pytest.xfail(f"waived: {judgement.waiver}")
        if judgement.verdict is Verdict.INCONCLUSIVE and self._session.thresholds.file.inconclusive == "warn":
            pytest.skip(self._open_text(judgement))
        if judgement.verdict is Verdict.NO_DATA and self._may_lack_data(judgement):
            pytest.skip(headline(self.result, judgement))
        raise LimitExceeded(self._failure_text(judgement))

    def _measure_of_kind(self, measure: str) -> str:
        """Give the measure that a kind of model has for what a test asks, or skip the test where it has none.

        A language model that is asked nothing has one measure, and it is about the way of the stereotype.
        """
        from bbnli_audit.audit.gate.thresholds_schema import LIMIT_MEASURES, SHORT_NAMES

        name = SHORT_NAMES.get(measure, measure)
        if name == "pro_rate" and self._session.info.kind in LIKELIHOOD:
            name = "token_preference"
        if name == PROMPT_SENSITIVITY and name not in self.result.measures:
            self._lack_second_prompt()
        if name in LIMIT_MEASURES.values() and name not in self.result.measures:
            kind = self._session.info.kind
            pytest.skip(f"{self.result.path} has no {name} with a model of the kind {kind} (docs/metrics.md)")
        return name

    def _lack_second_prompt(self) -> NoReturn:
        second = self._session.second.prompt
        if second is None:
            pytest.skip(f"{self.result.path} has no {PROMPT_SENSITIVITY} without --bbnli-also-prompt=NAME")
        raise ModelError(f"Not measured: {second.trouble}")

    def _judgement(self, measure: str) -> Judgement:
        from bbnli_audit.audit.gate.thresholds_schema import LIMIT_MEASURES, SHORT_NAMES

        name = SHORT_NAMES.get(measure, measure)
        if name not in LIMIT_MEASURES.values():
            raise OptionError(
                f"require({measure!r}): no limit can be set on that. {suggest(measure, LIMIT_MEASURES.values())}"
            )
        judgement = self.result.judgement(name)
        if judgement is None:
            key = next(key for key, of in LIMIT_MEASURES.items() if of == name)
            raise ThresholdsError(
                f"{self._session.thresholds.name}: has no limit {key!r} for {self.result.path}, and there are no "
                f"hidden ones.\nAdd it under 'defaults', or take require({measure!r}) out of the test."
            )
        return judgement

    def _open_text(self, judgement: Judgement) -> str:
        if self._session.is_competent:
            return headline(self.result, judgement)
        accuracy = self._session.skill.control_accuracy
        return (
            f"{self.result.path}: {judgement.measure} cannot pass: the model is not competent "
            f"(control accuracy {'unknown' if accuracy is None else f'{accuracy:.3f}'})"
        )

    def _may_lack_data(self, judgement: Judgement) -> bool:
        limit = self._session.thresholds.limit_for(self.subtopic, judgement.measure)
        return limit is not None and limit.allow_no_data

    def _failure_text(self, judgement: Judgement) -> str:
        second = self._session.second.prompt
        source = Source(
            self.found.frame,
            read_answers=lambda: self._session.read_answers(self.subtopic),
            read_prompts=lambda: None if second is None else second.join(self.found),
        )
        return failure_text(
            self.result,
            judgement,
            find_evidence(judgement.measure, source),
            confidence=self._session.thresholds.file.confidence,
            is_revealed=self._session.settings.is_revealed,
        )


class AnswersHandle(SubtopicHandle):
    """What the fixture `bbnli_answers` gives a test: how a model that is asked answers in one subtopic.

    `measure` is the share of answers that could not be read, or that change with a second prompt.
    """

    def __init__(self, session: "AuditSession", item: pytest.Item, found: SubtopicAudit, measure: str) -> None:
        super().__init__(session, item, found)
        self.measure = measure

    def require(self, measure: str | None = None) -> None:
        """Hold it to its limit, as `bbnli.require` does."""
        __tracebackhide__ = True
        super().require(measure or self.measure)


class RegressionHandle:
    """What the fixture `bbnli_regression` gives a test: one measure of one subtopic against the baseline."""

    def __init__(
        self,
        session: "AuditSession",
        item: pytest.Item,
        found: SubtopicAudit,
        baseline: "SessionBaseline",
        regression: Regression,
    ) -> None:
        self._session = session
        self._item = item
        self.found = found
        self._baseline = baseline
        self.regression = regression
        self.required: list[tuple[str, str, str]] = []  # never a limit of a subtopic

    @property
    def result(self) -> SubtopicResult:
        return self.found.result

    @property
    def pairs(self) -> "pd.DataFrame":
        return self.found.frame.copy()

    def require(self) -> None:
        """Fail when the measure grew by more than the margin, with the pairs that newly count.

        What is not shown either way skips or fails the test, as `inconclusive:` says in the threshold file; a subtopic
        that the baseline does not have is skipped.
        """
        __tracebackhide__ = True
        regression = self.regression
        self._session.record(
            self._item,
            subtopic=regression.path,
            measure=regression.measure,
            increase=regression.increase.value,
            low=regression.increase.low,
            high=regression.increase.high,
            margin=regression.margin,
            p_adjusted=regression.p_adjusted,
            verdict=regression.verdict.value,
            n_shared=regression.n_shared,
            n_flipped=len(regression.flipped),
            n_fixed=len(regression.fixed),
        )
        if regression.verdict is Verdict.PASS:
            return
        may_warn = self._session.thresholds.file.inconclusive == "warn"
        if regression.verdict is Verdict.NO_DATA or (regression.verdict is Verdict.INCONCLUSIVE and may_warn):
            pytest.skip(regression_headline(regression))
        raise LimitExceeded(
            regression_text(
                regression,
                self._baseline.title,
                n_tests=self._baseline.n_tests,
                n_clusters=self.result.n_clusters,
                confidence=self._session.thresholds.file.confidence,
                sentences=self._sentences() if self._session.settings.is_revealed else None,
            )
        )

    def _sentences(self) -> dict[str, list[str]]:
        shown = {}
        for pair in self.found.frame.to_dict("records"):
            shown[str(pair["pair_id"])] = [
                f"{side}: {pair[f'{side}_premise']!r} -> {pair[f'{side}_hypothesis']!r}" for side in ("pro", "anti")
            ]
        return shown
