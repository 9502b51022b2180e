"""The pipeline, without pytest: suites -> pairs -> predictor -> outcomes -> rates -> limits -> verdicts.

The plugin asks the same `Auditor` subtopic by subtopic; `run_audit` asks for all of them.
"""

import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, TypeVar

from bbnli_audit.comparison import Comparison
from bbnli_audit.errors import AuditError, ModelError, OptionError, suggest
from bbnli_audit.inference.agreement import N_CONTROLS, N_PAIRS_TEXTS, Agreement, compare, draw
from bbnli_audit.inference.opening import OpenedModel, read_inference
from bbnli_audit.predictors.proof import Proof, probe_items, prove
from bbnli_audit.predictors.protocol import Predictor, check_predictions
from bbnli_audit.predictors.resolve import check_model
from bbnli_audit.results import (
    COMPETENCE,
    AuditResult,
    Cells,
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
from bbnli_audit.values import Control, Pair, Pairing, Subtopic, SubtopicItems, TextPair
from bbnli_audit.verdict import judge, judge_competence
from bbnli_audit.versions import installed_version

if TYPE_CHECKING:
    import pandas as pd

    from bbnli_audit.metrics.rates import Measured

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
        open_model: Callable[[], OpenedModel],
        *,
        today: date | None = None,
        is_revealed: bool = False,
    ) -> None:
        self.suites = suites
        self.thresholds = thresholds
        self._open_model = open_model
        self._today = today or date.today()
        self._is_revealed = is_revealed
        self._expanded: dict[Subtopic, SubtopicItems] = {}
        self._audits: dict[Subtopic, SubtopicAudit] = {}

    @cached_property
    def _model(self) -> OpenedModel:
        return self._open_model()

    @property
    def predictor(self) -> Predictor:
        return self._model.predictor

    def close(self) -> None:
        """Let go of the store."""
        if "_model" in vars(self):
            self._model.close()

    def prepare(self, subtopics: Iterable[Subtopic]) -> None:
        """Predict in one pass all that these subtopics and the proof will ask for.

        What breaks here is left to the tests that need it: they ask again, and each tells its own error.
        """
        with suppress(Exception):
            _ = self.agreement  # a fast path is checked before all is computed with it
            texts = [item.text for item in probe_items()]
            texts += [control.text for control in self._controls]
            texts += [text for subtopic in subtopics for text in _distinct_texts(self._items(subtopic).usable)]
            self._guard("the pass", lambda: self.predictor.predict(list(dict.fromkeys(texts))))

    @cached_property
    def agreement(self) -> Agreement | None:
        """How far a fast path agrees with the exact one; over all subtopics, whichever tests were selected."""
        exact = self._model.exact
        if exact is None:
            return None
        sample = [item.text for item in probe_items()]
        for subtopic in self._all_subtopics:
            items = self._items(subtopic)
            sample += draw(_distinct_texts(items.usable), N_PAIRS_TEXTS)
            sample += draw((control.text for control in items.controls), N_CONTROLS)
        limit = self._model.max_disagreement
        return self._guard("the exact path", lambda: compare(self.predictor, exact, sample, limit))

    @cached_property
    def proof(self) -> Proof:
        """Always over the controls of all subtopics, so that a verdict does not depend on which tests were selected."""
        _ = self.agreement  # a fast path that answers otherwise is refused before any score
        return self._guard("the controls", lambda: prove(self.predictor, self._controls))

    @property
    def _controls(self) -> list[Control]:
        return [control for subtopic in self._all_subtopics for control in self._items(subtopic).controls]

    @cached_property
    def _all_subtopics(self) -> list[Subtopic]:
        return [subtopic for suite in self.suites for subtopic in suite.subtopics()]

    def _items(self, subtopic: Subtopic) -> SubtopicItems:
        if subtopic not in self._expanded:
            suite = next(suite for suite in self.suites if suite.name == subtopic.suite)
            self._expanded[subtopic] = get_items(suite, subtopic)
        return self._expanded[subtopic]

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
        items = self._items(subtopic)
        pairs = items.usable
        texts = _distinct_texts(pairs)
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


def collect_cells(auditor: Auditor, subtopics: Iterable[Subtopic]) -> Cells:
    """Give what each pair shows, by subtopic; one that cannot be measured is left out and tells its own error."""
    from bbnli_audit.metrics.frame import cells_by_cluster

    found = {}
    for subtopic in subtopics:
        with suppress(AuditError):
            found[subtopic.path] = cells_by_cluster(auditor.audit(subtopic).frame)
    return found


def _distinct_texts(pairs: Iterable[Pair]) -> list[TextPair]:
    return list(dict.fromkeys(text for pair in pairs for text in (pair.pro, pair.anti)))


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
    agreement: Agreement | None = None,
    required: Collection[tuple[str, str]] | None = None,
    comparison: Comparison | None = None,
) -> AuditResult:
    """Put subtopics together into one result. Their order does not matter.

    Args:
        model: Which model was measured.
        skill: How well it does the task.
        suites: What was audited.
        thresholds: What it was held to.
        audits: What was found.
        agreement: How a fast path compares with the exact one.
        required: Path and measure of the limits that tests asked for; every limit when left out.
        comparison: What became of the measures since a baseline.
    """
    import pandas as pd

    from bbnli_audit.metrics.frame import cells_by_cluster

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
            **({} if agreement is None else {"agreement": asdict(agreement)}),
            "not_audited": sorted(
                {subtopic.path for suite in suites for subtopic in suite.subtopics()}
                - {audit.subtopic.path for audit in found}
            ),
        },
        subtopics=tuple(audit.result for audit in found),
        domains=tuple(domains),
        total=total,
        pairs={audit.subtopic.path: cells_by_cluster(audit.frame) for audit in found},
        required=frozenset(
            ((audit.result.path, judgement.measure) for audit in found for judgement in audit.result.verdicts)
            if required is None
            else required
        ),
        comparison=comparison,
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
        "versions": {"python": python_version(), **{name: installed_version(name) for name in _PACKAGES}},
    }


_PACKAGES = ("bbnli-audit", "numpy", "scipy", "torch", "transformers")


def run_audit(
    model: str | Predictor,
    *,
    thresholds: str | Path | Thresholds = "thresholds.yaml",
    data: str | Path = OWN_DATA,
    pairing: str | Pairing = Pairing.BOTH,
    suites: Sequence[Suite] | None = None,
    subtopics: Sequence[str] | None = None,
    labels: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    backend: str | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    store: str | Path | None = None,
) -> AuditResult:
    """Audit a model without pytest and give the same result the plugin would.

    Args:
        model: As for `--model`, or any object with `info` and `predict`.
        thresholds: The file with the limits.
        data: The folder of the `bbnli` suite; the package's own when left out.
        pairing: Where the groups are exchanged, `both` or `hypothesis`.
        suites: Suites to audit instead of `bbnli`.
        subtopics: Paths to audit; all when left out.
        labels: As for `--bbnli-labels`; likewise `device`, `dtype`, `backend`, `engine` and `ray_address`.
        device: Where a checkpoint is computed.
        dtype: In which number type.
        backend: By which runtime.
        engine: On this machine or on a Ray cluster.
        ray_address: Which cluster.
        store: A file that keeps predictions between runs; none is kept when left out.

    Raises:
        AuditError: when the audit cannot be made as asked. A crossed limit is no error: it is a verdict.
    """
    if pairing not in list(Pairing):
        raise OptionError(f"pairing={pairing!r}: there is no such pairing. {suggest(str(pairing), Pairing)}")
    if suites is None:
        suites = [Bbnli(Path(data), Pairing(pairing))]
    for suite in suites:
        check_suite(suite)
    inference = read_inference(
        labels=labels,
        device=device,
        dtype=dtype,
        backend=backend,
        engine=engine,
        ray_address=ray_address,
        store=None if store is None else Path(store),
    )
    if isinstance(model, str):
        check_model(model, inference.labels, inference.computing)
    if not isinstance(thresholds, Thresholds):
        thresholds = read_thresholds(Path(thresholds))
    check_thresholds_names(thresholds, suites)
    chosen = choose_subtopics(suites, subtopics)
    auditor = Auditor(
        suites,
        thresholds,
        lambda: inference.open(model, suites) if isinstance(model, str) else OpenedModel(model),
    )
    try:
        auditor.prepare(chosen)
        audits = [auditor.audit(subtopic) for subtopic in chosen]
        return assemble(auditor.predictor.info, auditor.proof.skill, suites, thresholds, audits, auditor.agreement)
    finally:
        auditor.close()


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
