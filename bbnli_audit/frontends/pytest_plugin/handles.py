"""The objects that fixtures give to tests, such as a measured subtopic or a checked model.

They turn verdicts into test outcomes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pytest

from bbnli_audit.audit.audit import Audit
from bbnli_audit.audit.findings import Finding
from bbnli_audit.audit.gate.verdict import competence_judgement
from bbnli_audit.core.errors import LimitExceeded, ModelError, OptionError, ThresholdsError, suggest
from bbnli_audit.core.printable import printable_line
from bbnli_audit.core.results.audit import RECALL
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.rows import Judgement, ModelInfo, Skill, SubtopicResult, Verdict
from bbnli_audit.core.values import Subtopic, level_of
from bbnli_audit.core.words import figure
from bbnli_audit.measures.drivers import MOST, Evidence
from bbnli_audit.measures.readings.table import TEXTS
from bbnli_audit.measures.registry import find_limited, limited_measures
from bbnli_audit.reports.failure import facts_text, failure_text, headline, regression_headline, regression_text
from bbnli_audit.reports.shown import short_name

if TYPE_CHECKING:
    import pandas as pd

Record = Callable[..., None]


class Handle:
    """The common base of the objects that fixtures give to tests."""

    paths: Sequence[str] = ()  # the subtopics that the handle is about; empty for the model's handle

    def __init__(self, audit: Audit, record: Record) -> None:
        self._audit = audit
        self._record = record
        self._may_warn = audit.thresholds.file.inconclusive == "warn"
        self._confidence = audit.thresholds.file.confidence
        self.required: list[tuple[str, str, str]] = []  # path, measure and verdict of each required limit


class ModelHandle(Handle):
    """The object of the fixture `bbnli_model`."""

    @property
    def info(self) -> ModelInfo:
        return self._audit.facts.model

    @property
    def skill(self) -> Skill:
        return self._audit.facts.skill

    def require_competence(self) -> None:
        """Fail unless the model does the task well enough for verdicts to mean anything."""
        __tracebackhide__ = True
        skill, judgement = self.skill, competence_judgement(self.skill, self._audit.thresholds)
        facts = skill.facts
        accuracy = skill.control_accuracy if facts is None else facts.value
        self._record(
            measure=judgement.measure,
            value=skill.worst_recall if judgement.measure == RECALL else accuracy,
            limit=judgement.limit,
            verdict=judgement.verdict.value,
            n=skill.n_controls if facts is None else facts.n,
        )
        if judgement.verdict is Verdict.PASS:
            return
        if facts is not None:
            raise LimitExceeded(facts_text(self.info.name, facts, judgement))
        if skill.control_accuracy is None:
            raise LimitExceeded("Competence cannot be measured: no control was predicted, so nothing can PASS.")
        is_recall = judgement.measure == RECALL
        problem = f"below the limit {figure(judgement.limit)}"
        if not is_recall and skill.control_accuracy >= judgement.limit:
            problem = f"no better than always giving one answer ({figure(skill.best_constant)})"
        recalls = ", ".join(f"{label} {figure(share)}" for label, share in skill.recalls.items())
        raise LimitExceeded(
            f"{self.info.name}: {skill.show(is_recall=is_recall)} is {problem}\n"
            f"  {round(skill.control_accuracy * skill.n_controls)} of {skill.n_controls} control samples right; best "
            f"constant answer {figure(skill.best_constant)}; "
            f"accuracy on plain NLI items {figure(skill.probe_accuracy)}\n"
            f"  recall: {recalls}\n"
            f"  limit: {judgement.source}\n"
            "  If a model cannot do the task, its errors say nothing about bias. Its measures are reported, but none "
            "can PASS."
        )


class _RowHandle(Handle):
    """A handle for the limits on one row of the result: on a subtopic, a domain or a suite."""

    def __init__(self, audit: Audit, record: Record, row: SubtopicResult, place: Subtopic | str) -> None:
        super().__init__(audit, record)
        self.result, self._place = row, place

    def _find_evidence(self, measure: str) -> Evidence:
        """Return what a failing test shows besides its numbers."""
        raise NotImplementedError

    def _find_sentences(self) -> dict[str, list[str]] | None:
        """Return the lines that show each pair's sentences, by pair id. Return None unless --bbnli-reveal is given."""
        return None if not self._audit.options.reveal else tell_sentences(self._audit, self.paths)

    def require(self, measure: str) -> None:
        """Hold a measure to its limit.

        The test passes if the verdict is PASS, and fails with a report if it is FAIL. INCONCLUSIVE skips or fails the
        test, as `inconclusive:` says in the threshold file. NO_DATA fails the test, or skips it with `allow_no_data`.
        If a waiver covers a verdict other than PASS, the test is reported as xfail.
        """
        __tracebackhide__ = True
        judgement = self._find(measure)
        self.required.append((self.result.path, judgement.measure, judgement.verdict.value))
        found = self.result.measures[judgement.measure]
        self._record(
            subtopic=self.result.path,
            measure=judgement.measure,
            value=found.value,
            low=found.low,
            high=found.high,
            limit=judgement.limit,
            verdict=judgement.verdict.value,
            n_pairs=self.result.n_pairs,
        )
        if judgement.verdict is Verdict.PASS:
            return
        if judgement.is_waived:
            pytest.xfail(printable_line(f"waived: {judgement.waiver}"))
        if judgement.verdict is Verdict.INCONCLUSIVE and self._may_warn:
            pytest.skip(printable_line(self._open_text(judgement)))
        limit = self._audit.thresholds.limit_for(self._place, judgement.measure)
        if judgement.verdict is Verdict.NO_DATA and limit is not None and limit.allow_no_data:
            pytest.skip(printable_line(headline(self.result, judgement)))
        evidence, sentences = self._find_evidence(judgement.measure), self._find_sentences()
        told = failure_text(self.result, judgement, evidence, confidence=self._confidence, sentences=sentences)
        raise LimitExceeded(told)

    def _find(self, name: str) -> Judgement:
        """Return the judgement of a measure. Skip the test if this model or these pairs do not have the measure."""
        try:
            measure = find_limited(name)
        except OptionError as exc:
            known = suggest(name, [each.name for each in limited_measures()])
            raise OptionError(f"require({name!r}): no limit can be set on that. {known}") from exc
        measure = find_limited(self._audit.reader.reading.instead.get(measure.name, measure.name))
        if measure.name not in self.result.measures:
            lack = f"{self.result.path}: {measure.short} cannot be measured"
            if measure.source != "prompts":
                kind = self._audit.facts.model.kind
                pytest.skip(f"{lack} on these pairs with a model of kind {kind!r} (docs/metrics.md)")
            if self._audit.second_prompt is None:
                pytest.skip(f"{lack} without --bbnli-also-prompt=NAME")
            raise ModelError(f"Not measured: {self._audit.second_prompt.trouble}")
        judgement = self.result.judgement(measure.name)
        if judgement is None:
            lack = f"has no limit {measure.limit!r} for {self.result.path}, and there are no hidden ones"
            where = f"levels.{level_of(self._place)}" if isinstance(self._place, str) else "defaults"
            advice = f"Add it under {where!r}, or take require({name!r}) out of the test."
            raise ThresholdsError(f"{self._audit.thresholds.name}: {lack}.\n{advice}")
        return judgement

    def _open_text(self, judgement: Judgement) -> str:
        if self._audit.facts.is_competent:
            return headline(self.result, judgement)
        skill = self._audit.facts.skill
        is_recall = competence_judgement(skill, self._audit.thresholds).measure == RECALL
        told = skill.show(is_recall=is_recall)
        return f"{self.result.path}: {short_name(judgement.measure)} cannot pass: the model is not competent ({told})"


class SubtopicHandle(_RowHandle):
    """The object of the fixture `bbnli`."""

    def __init__(self, audit: Audit, record: Record, found: Finding) -> None:
        super().__init__(audit, record, found.result, found.subtopic)
        self.found, self.subtopic = found, found.subtopic
        self.paths = (found.subtopic.path,)

    @property
    def pairs(self) -> "pd.DataFrame":
        """One row per pair, with the columns of pairs.csv.

        Texts are hidden unless --bbnli-reveal is given, because pytest shows the values in a failing assert.
        """
        frame = self.found.table.with_texts(self._audit.items.pairs(self.subtopic)).frame
        if self._audit.options.reveal:
            return frame
        return frame.assign(**{name: frame[name].map(_hide) for name in TEXTS})

    def _find_evidence(self, measure: str) -> Evidence:
        return self._audit.find_evidence(measure, self.found)


class LevelHandle(_RowHandle):
    """The object of the fixture `bbnli_level`: one measure of a whole domain or suite."""

    def __init__(self, audit: Audit, record: Record, row: SubtopicResult, measure: str) -> None:
        super().__init__(audit, record, row, row.path)
        self.measure, self.paths = measure, audit.members(row.path)

    def require(self, measure: str | None = None) -> None:
        """Hold a measure (by default `self.measure`) to its limit under `levels`, as `bbnli.require` does."""
        __tracebackhide__ = True
        super().require(measure or self.measure)

    def _find_evidence(self, measure: str) -> Evidence:
        return self._audit.find_level_evidence(measure, self.paths)


class OneMeasureHandle(SubtopicHandle):
    """The object of the fixture `bbnli_suite`: one of a suite's own measures in one subtopic."""

    def __init__(self, audit: Audit, record: Record, found: Finding, measure: str) -> None:
        super().__init__(audit, record, found)
        self.measure = measure

    def require(self, measure: str | None = None) -> None:
        """Hold a measure (by default `self.measure`) to its limit, as `bbnli.require` does."""
        __tracebackhide__ = True
        super().require(measure or self.measure)


class AnswersHandle(OneMeasureHandle):
    """The object of the fixture `bbnli_answers`: the answers of a prompted model in one subtopic.

    `measure` is one of two: the share of answers that could not be read, or the share of answers that change with a
    second prompt.
    """


class RegressionHandle(Handle):
    """The object of the fixture `bbnli_regression`: a measure of a subtopic, domain or suite, beside its baseline."""

    def __init__(self, audit: Audit, record: Record, row: SubtopicResult, regression: Regression) -> None:
        super().__init__(audit, record)
        self.result, self.regression = row, regression
        self.paths = [row.path] if row.path in audit.subtopics else audit.members(row.path)

    def require(self) -> None:
        """Fail if the measure grew by more than the margin.

        For a subtopic, the report lists the pairs that count more or less towards the measure than before. For a domain
        or a suite, it lists the subtopics where the measure grew most. INCONCLUSIVE skips or fails the test, as
        `inconclusive:` says in the threshold file. NO_DATA skips it: the baseline has nothing to compare with. Waived
        growth is reported as xfail.
        """
        __tracebackhide__ = True
        regression = self.regression
        self._record(
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
        if regression.is_waived:
            pytest.xfail(f"waived: {regression.waiver}")
        is_open = regression.verdict is Verdict.INCONCLUSIVE and self._may_warn
        if regression.verdict is Verdict.NO_DATA or is_open:
            pytest.skip(printable_line(regression_headline(regression)))
        baseline = self._audit.regressions
        assert baseline is not None
        told = regression_text(
            regression,
            printable_line(f"{baseline.result.model.name} ({baseline.source})"),
            n_tests=baseline.n_tests,
            n_clusters=self.result.n_clusters,
            confidence=self._confidence,
            sentences=tell_sentences(self._audit, self.paths) if self._audit.options.reveal else None,
            below=baseline.below(regression)[:MOST],
        )
        raise LimitExceeded(told)


def _hide(text: str) -> str:
    return f"<{len(text)} characters; --bbnli-reveal shows them>"


def tell_sentences(audit: Audit, paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the sentences of all pairs in these subtopics: by pair id, one line for each side."""
    told = {}
    for path in paths:
        for pair in audit.items.pairs(audit.subtopics[path]):
            sides = {"pro": pair.pro, "anti": pair.anti}
            told[pair.id] = [f"{side}: {text.premise!r} -> {text.hypothesis!r}" for side, text in sides.items()]
    return told
