"""The pipeline, without pytest: suites -> pairs -> predictor -> outcomes -> rates -> limits -> verdicts.

The plugin asks the same `Auditor` subtopic by subtopic; `run_audit` asks for all of them.
"""

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, TypeVar

from bbnli_audit.errors import AuditError, ModelError, OptionError, suggest
from bbnli_audit.predictors.proof import Proof, prove
from bbnli_audit.predictors.protocol import Predictor, check_predictions
from bbnli_audit.predictors.resolve import check_model, open_predictor
from bbnli_audit.results import (
    AuditResult,
    Judgement,
    Measure,
    ModelInfo,
    Skill,
    SubtopicResult,
    SuiteInfo,
    Verdict,
)
from bbnli_audit.suites.bbnli import OWN_DATA, Bbnli
from bbnli_audit.suites.protocol import Suite, check_suite, get_items
from bbnli_audit.thresholds import Limit, Thresholds, read_thresholds
from bbnli_audit.values import Pairing, Subtopic, TextPair
from bbnli_audit.verdict import judge, judge_competence

if TYPE_CHECKING:
    import pandas as pd

    from bbnli_audit.metrics.rates import Measured

COMPETENCE = "control_accuracy"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SubtopicAudit:
    """What was found in one subtopic: the result for the report, and the pair table it was made from."""

    subtopic: Subtopic
    result: SubtopicResult
    frame: "pd.DataFrame"


class Auditor:
    """Measures and judges subtopics. The model is opened and proved at the first need, and only once."""

    def __init__(
        self,
        suites: Sequence[Suite],
        thresholds: Thresholds,
        open_model: Callable[[], Predictor],
        *,
        today: date | None = None,
        is_revealed: bool = False,
    ) -> None:
        self.suites = suites
        self.thresholds = thresholds
        self._open_model = open_model
        self._today = today or date.today()
        self._is_revealed = is_revealed
        self._audits: dict[Subtopic, SubtopicAudit] = {}

    @cached_property
    def predictor(self) -> Predictor:
        return self._open_model()

    @cached_property
    def proof(self) -> Proof:
        """Always over the controls of all subtopics, so that a verdict does not depend on which tests were selected."""
        controls = [
            control
            for suite in self.suites
            for subtopic in suite.subtopics()
            for control in get_items(suite, subtopic).controls
        ]
        return self._guard("the controls", lambda: prove(self.predictor, controls))

    @property
    def is_competent(self) -> bool:
        return competence_judgement(self.proof.skill, self.thresholds).verdict is Verdict.PASS

    def audit(self, subtopic: Subtopic) -> SubtopicAudit:
        if subtopic not in self._audits:
            self._audits[subtopic] = self._audit(subtopic)
        return self._audits[subtopic]

    def _audit(self, subtopic: Subtopic) -> SubtopicAudit:
        from bbnli_audit.metrics.frame import pair_frame
        from bbnli_audit.metrics.rates import measure_pairs

        proof = self.proof  # before any score
        suite = next(suite for suite in self.suites if suite.name == subtopic.suite)
        items = get_items(suite, subtopic)
        pairs = items.usable
        # Distinct texts of this subtopic alone: the batches, and with them every digit, are the same whichever
        # other tests run.
        texts = list(dict.fromkeys(text for pair in pairs for text in (pair.pro, pair.anti)))
        predictions = self._guard(subtopic.path, lambda: self.predictor.predict(texts))
        check_predictions(predictions, len(texts), self.predictor.info.name)
        row_of: dict[TextPair, int] = {text: row for row, text in enumerate(texts)}
        pro_rows = [row_of[pair.pro] for pair in pairs]
        anti_rows = [row_of[pair.anti] for pair in pairs]
        probabilities = predictions.probabilities
        frame = pair_frame(subtopic, pairs, probabilities[pro_rows], probabilities[anti_rows])
        measured = measure_pairs(frame, self.thresholds.file.confidence)
        result = SubtopicResult(
            path=subtopic.path,
            n_clusters=measured.n_clusters,
            counts=measured.counts,
            measures=measured.measures,
            control_accuracy=proof.accuracy_on(items.controls),
            n_controls=len(items.controls),
            verdicts=tuple(self._judge(subtopic, measured)),
            n_identical=items.n_identical,
            n_duplicates=items.n_duplicates,
            n_truncated=int(predictions.is_truncated[pro_rows + anti_rows].sum()),
        )
        return SubtopicAudit(subtopic, result, frame)

    def _judge(self, subtopic: Subtopic, measured: "Measured") -> Iterable[Judgement]:
        for name, measure in measured.measures.items():
            limit = find_limit(self.thresholds, subtopic, name)
            if limit is not None:
                yield self._judge_measure(subtopic, measured, measure, limit)

    def _judge_measure(self, subtopic: Subtopic, measured: "Measured", measure: Measure, limit: Limit) -> Judgement:
        from bbnli_audit.metrics.intervals import pairs_needed

        settings = self.thresholds.file
        verdict = judge(measure, limit.value, decide=settings.decide, is_competent=self.is_competent)
        needed = None
        if verdict is Verdict.INCONCLUSIVE and self.is_competent:
            needed = pairs_needed(measured.estimates[limit.measure], limit.value, settings.confidence)
        judgement = Judgement(limit.measure, limit.value, verdict, limit.source, needed)
        waiver = self.thresholds.waiver_for(subtopic, limit.measure)
        if waiver is None:
            return judgement
        told = waiver.on(self._today)
        return replace(judgement, waiver=told, verdict=Verdict.FAIL if told.is_expired else verdict)

    def _guard(self, what: str, predict: Callable[[], T]) -> T:
        """Call the model, and tell its own exceptions without the sentences they may quote."""
        try:
            return predict()
        except AuditError:
            raise
        except Exception as exc:
            frame = traceback.extract_tb(exc.__traceback__)[-1]
            told = f": {exc}" if self._is_revealed else " (--bbnli-reveal shows its message, which may quote texts)"
            raise ModelError(
                f"{self.predictor.info.name} broke on {what}: {type(exc).__name__} at {Path(frame.filename).name}:"
                f"{frame.lineno}, in {frame.name}{told}"
            ) from exc


def find_limit(thresholds: Thresholds, subtopic: Subtopic, measure: str) -> Limit | None:
    from bbnli_audit.thresholds_schema import LIMIT_MEASURES

    return thresholds.limit_for(subtopic, measure) if measure in LIMIT_MEASURES.values() else None


def competence_judgement(skill: Skill, thresholds: Thresholds) -> Judgement:
    limit = thresholds.file.competence.min_control_accuracy
    source = thresholds.source("competence", "min_control_accuracy")
    return Judgement(COMPETENCE, limit, judge_competence(skill, limit), source)


def assemble(
    model: ModelInfo,
    skill: Skill,
    suites: Sequence[Suite],
    thresholds: Thresholds,
    audits: Iterable[SubtopicAudit],
) -> AuditResult:
    """Put subtopics together into one result. Their order does not matter."""
    import pandas as pd

    found = sorted(audits, key=lambda audit: audit.subtopic.path)
    if not found:
        raise AuditError("No subtopic was audited, so there is no result.")
    by_domain: dict[str, list[SubtopicAudit]] = {}
    for audit in found:
        by_domain.setdefault(f"{audit.subtopic.suite}/{audit.subtopic.domain}", []).append(audit)
    confidence = thresholds.file.confidence
    domains = [
        _pool(path, members, pd.concat([member.frame for member in members]), confidence)
        for path, members in by_domain.items()
    ]
    total = replace(
        _pool("total", found, pd.concat([audit.frame for audit in found]), confidence),
        control_accuracy=skill.control_accuracy,
        n_controls=skill.n_controls,
        verdicts=(competence_judgement(skill, thresholds),),
    )
    return AuditResult(
        model=model,
        suites=tuple(SuiteInfo(suite.name, suite.version, suite.sha256, suite.pairing.value) for suite in suites),
        settings={
            **_settings(skill, thresholds),
            "not_audited": sorted(
                {subtopic.path for suite in suites for subtopic in suite.subtopics()}
                - {audit.subtopic.path for audit in found}
            ),
        },
        subtopics=tuple(audit.result for audit in found),
        domains=tuple(domains),
        total=total,
    )


def _pool(path: str, members: Sequence[SubtopicAudit], frame: "pd.DataFrame", confidence: float) -> SubtopicResult:
    from bbnli_audit.metrics.rates import measure_pairs

    measured = measure_pairs(frame, confidence)
    results = [member.result for member in members]
    n_controls = sum(result.n_controls for result in results)
    n_right = sum(round((result.control_accuracy or 0) * result.n_controls) for result in results)
    return SubtopicResult(
        path=path,
        n_clusters=measured.n_clusters,
        counts=measured.counts,
        measures=measured.measures,
        control_accuracy=n_right / n_controls if n_controls else None,
        n_controls=n_controls,
        n_identical=sum(result.n_identical for result in results),
        n_duplicates=sum(result.n_duplicates for result in results),
        n_truncated=sum(result.n_truncated for result in results),
    )


def _settings(skill: Skill, thresholds: Thresholds) -> dict[str, Any]:
    file = thresholds.file
    return {
        "thresholds": thresholds.name,
        "decide": file.decide,
        "confidence": file.confidence,
        "inconclusive": file.inconclusive,
        "skill": asdict(skill),
        "versions": {"python": python_version(), **{name: _version(name) for name in _PACKAGES}},
    }


_PACKAGES = ("bbnli-audit", "numpy", "scipy", "torch", "transformers")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def run_audit(
    model: str | Predictor,
    *,
    thresholds: str | Path | Thresholds = "thresholds.yaml",
    data: str | Path = OWN_DATA,
    pairing: str | Pairing = Pairing.BOTH,
    suites: Sequence[Suite] | None = None,
    subtopics: Sequence[str] | None = None,
    labels: str | None = None,
    device: str = "auto",
) -> AuditResult:
    """Audit a model without pytest and give the same result the plugin would.

    Args:
        model: As for `--model`, or any object with `info` and `predict`.
        thresholds: The file with the limits.
        data: The folder of the `bbnli` suite; the package's own when left out.
        pairing: Where the groups are exchanged, `both` or `hypothesis`.
        suites: Suites to audit instead of `bbnli`.
        subtopics: Paths to audit; all when left out.
        labels: As for `--bbnli-labels`.
        device: As for `--bbnli-device`.

    Raises:
        AuditError: when the audit cannot be made as asked. A crossed limit is no error: it is a verdict.
    """
    if pairing not in list(Pairing):
        raise OptionError(f"pairing={pairing!r}: there is no such pairing. {suggest(str(pairing), Pairing)}")
    if suites is None:
        suites = [Bbnli(Path(data), Pairing(pairing))]
    for suite in suites:
        check_suite(suite)
    if isinstance(model, str):
        check_model(model, labels)
    if not isinstance(thresholds, Thresholds):
        thresholds = read_thresholds(Path(thresholds))
    check_thresholds_names(thresholds, suites)
    chosen = choose_subtopics(suites, subtopics)
    auditor = Auditor(
        suites,
        thresholds,
        lambda: open_predictor(model, suites=suites, labels=labels, device=device) if isinstance(model, str) else model,
    )
    audits = [auditor.audit(subtopic) for subtopic in chosen]
    return assemble(auditor.predictor.info, auditor.proof.skill, suites, thresholds, audits)


def check_thresholds_names(thresholds: Thresholds, suites: Sequence[Suite]) -> None:
    known = [subtopic for suite in suites for subtopic in (*suite.subtopics(), *suite.documented())]
    thresholds.check_names(known)


def choose_subtopics(suites: Sequence[Suite], paths: Sequence[str] | None) -> list[Subtopic]:
    by_path = {subtopic.path: subtopic for suite in suites for subtopic in suite.subtopics()}
    if paths is None:
        return list(by_path.values())
    for path in paths:
        if path not in by_path:
            raise OptionError(f"There is no subtopic {path!r}. {suggest(path, by_path)}")
    return [by_path[path] for path in dict.fromkeys(paths)]
