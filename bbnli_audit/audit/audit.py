"""The pipeline, without pytest: suites -> pairs -> predictor -> outcomes -> rates -> limits -> verdicts.

The plugin asks the same `Auditor` subtopic by subtopic; `run_audit` asks for all of them.
"""

import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bbnli_audit.audit.assembly import SubtopicAudit, assemble, competence_judgement
from bbnli_audit.audit.gate.thresholds import Limit, Thresholds, read_thresholds
from bbnli_audit.audit.gate.verdict import judge
from bbnli_audit.audit.proof import Proof, prove
from bbnli_audit.core.errors import AuditError, ModelError, OptionError, suggest
from bbnli_audit.core.results.audit import (
    GENERATIVE,
    HIGHER_IS_BETTER,
    LIKELIHOOD,
    AuditResult,
    Cells,
    Judgement,
    Measure,
    Skill,
    SubtopicResult,
    Verdict,
)
from bbnli_audit.core.values import TEMPLATE_PAIRINGS, Control, Pair, Pairing, Subtopic, SubtopicItems, TextPair
from bbnli_audit.models.find import check_model
from bbnli_audit.models.inference.fast_paths import N_CONTROLS, N_PAIRS_TEXTS, Agreement, compare, draw
from bbnli_audit.models.inference.opening import OpenedModel, read_inference
from bbnli_audit.models.language_model.asking import read_asking
from bbnli_audit.models.protocol import Predictor, check_predictions
from bbnli_audit.suites.controls import find_controls
from bbnli_audit.suites.probe import probe_items
from bbnli_audit.suites.protocol import Suite, check_suite, families_of, get_items
from bbnli_audit.suites.registry import BUILT_IN, DEFAULT, open_suite

if TYPE_CHECKING:
    from bbnli_audit.measures.rates import Measured

T = TypeVar("T")


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
            texts = [] if self._is_likelihood else [item.text for item in (*probe_items(), *self._controls)]
            texts += [text for subtopic in subtopics for text in self._texts(self._items(subtopic).usable)]
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
            sample += draw(self._texts(items.usable), N_PAIRS_TEXTS)
            sample += draw((control.text for control in items.controls), N_CONTROLS)
        limit = self._model.max_disagreement
        return self._guard("the exact path", lambda: compare(self.predictor, exact, sample, limit))

    @cached_property
    def proof(self) -> Proof:
        """Always over the controls of all subtopics, so that a verdict does not depend on which tests were selected."""
        _ = self.agreement  # a fast path that answers otherwise is refused before any score
        if self._is_likelihood:
            return Proof(Skill(probe_accuracy=None, control_accuracy=None, n_controls=0, best_constant=0.0), {})
        return self._guard("the controls", lambda: prove(self.predictor, self._controls))

    def _families(self, suite: str) -> tuple[str, ...]:
        return next(families_of(one) for one in self.suites if one.name == suite)

    @cached_property
    def _controls(self) -> list[Control]:
        return find_controls(self.suites, lambda _, subtopic: self._items(subtopic))

    @cached_property
    def _all_subtopics(self) -> list[Subtopic]:
        return [subtopic for suite in self.suites for subtopic in suite.subtopics()]

    def _items(self, subtopic: Subtopic) -> SubtopicItems:
        if subtopic not in self._expanded:
            suite = next(suite for suite in self.suites if suite.name == subtopic.suite)
            self._expanded[subtopic] = get_items(suite, subtopic)
        return self._expanded[subtopic]

    @property
    def _is_likelihood(self) -> bool:
        return self.predictor.info.kind in LIKELIHOOD

    def _sides(self, pair: Pair) -> tuple[TextPair, TextPair]:
        """Give what the model is asked for the two sides of a pair: each text, or each sentence against the other."""
        if not self._is_likelihood:
            return pair.pro, pair.anti
        pro, anti = " ".join(pair.pro), " ".join(pair.anti)
        return TextPair(pro, anti), TextPair(anti, pro)

    def _texts(self, pairs: Iterable[Pair]) -> list[TextPair]:
        return list(dict.fromkeys(text for pair in pairs for text in self._sides(pair)))

    @property
    def is_competent(self) -> bool:
        return self._is_likelihood or competence_judgement(self.proof.skill, self.thresholds).verdict is Verdict.PASS

    def audit(self, subtopic: Subtopic) -> SubtopicAudit:
        if subtopic not in self._audits:
            self._audits[subtopic] = self._audit(subtopic)
        return self._audits[subtopic]

    def _audit(self, subtopic: Subtopic) -> SubtopicAudit:
        from bbnli_audit.measures.frame import pair_frame
        from bbnli_audit.measures.likelihood import measure_preference
        from bbnli_audit.measures.rates import measure_pairs
        from bbnli_audit.measures.unparsed import measure_parsed

        proof = self.proof  # before any score
        items = self._items(subtopic)
        pairs = items.usable
        texts = self._texts(pairs)
        predictions = self._guard(subtopic.path, lambda: self.predictor.predict(texts))
        check_predictions(predictions, len(texts), self.predictor.info.name)
        row_of: dict[TextPair, int] = {text: row for row, text in enumerate(texts)}
        pro_rows, anti_rows = ([row_of[self._sides(pair)[side]] for pair in pairs] for side in (0, 1))
        probabilities = predictions.probabilities
        frame = pair_frame(subtopic, pairs, probabilities[pro_rows], probabilities[anti_rows])
        confidence, families, n_unparsed = self.thresholds.file.confidence, self._families(subtopic.suite), 0
        if self._is_likelihood:
            measured = measure_preference(frame, confidence)
        elif self.predictor.info.kind == GENERATIVE:
            frame, measured, n_unparsed = measure_parsed(frame, confidence, families)
        else:
            measured = measure_pairs(frame, confidence, families)
        result = SubtopicResult(
            path=subtopic.path,
            n_clusters=measured.n_clusters,
            counts=measured.counts,
            measures=measured.measures,
            control_accuracy=proof.accuracy_on(items.controls),
            n_controls=len(items.controls),
            verdicts=tuple(self.judge(subtopic, measured)),
            n_identical=items.n_identical,
            n_duplicates=items.n_duplicates,
            n_truncated=int(predictions.is_truncated[pro_rows + anti_rows].sum()),
            n_unparsed=n_unparsed,
        )
        return SubtopicAudit(subtopic, result, frame)

    def judge(self, subtopic: Subtopic, measured: "Measured") -> Iterable[Judgement]:
        """Hold each measure that has a limit to it."""
        for name, measure in measured.measures.items():
            limit = find_limit(self.thresholds, subtopic, name)
            if limit is not None:
                yield self._judge_measure(subtopic, measured, measure, limit)

    def _judge_measure(self, subtopic: Subtopic, measured: "Measured", measure: Measure, limit: Limit) -> Judgement:
        from bbnli_audit.measures.statistics.intervals import pairs_needed

        settings = self.thresholds.file
        is_minimum = limit.measure in HIGHER_IS_BETTER
        verdict = judge(
            measure, limit.value, decide=settings.decide, is_competent=self.is_competent, is_minimum=is_minimum
        )
        needed = None
        if verdict is Verdict.INCONCLUSIVE and self.is_competent:
            estimate = measured.estimates[limit.measure]
            if is_minimum:  # of what is missing there may be so much at most
                estimate = estimate._replace(value=1 - estimate.value, low=1 - estimate.high, high=1 - estimate.low)
            allowed = 1 - limit.value if is_minimum else limit.value
            needed = pairs_needed(estimate, allowed, settings.confidence)
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
    from bbnli_audit.measures.frame import cells_by_cluster

    found = {}
    for subtopic in subtopics:
        with suppress(AuditError):
            found[subtopic.path] = cells_by_cluster(auditor.audit(subtopic).frame)
    return found


def find_limit(thresholds: Thresholds, subtopic: Subtopic, measure: str) -> Limit | None:
    from bbnli_audit.audit.gate.thresholds_schema import LIMIT_MEASURES

    return thresholds.limit_for(subtopic, measure) if measure in LIMIT_MEASURES.values() else None


def run_audit(
    model: str | Predictor,
    *,
    thresholds: str | Path | Thresholds = "thresholds.yaml",
    data: str | Path | None = None,
    pairing: str | Pairing = Pairing.BOTH,
    suite: str = DEFAULT,
    suites: Sequence[Suite] | None = None,
    subtopics: Sequence[str] | None = None,
    labels: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    backend: str | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    store: str | Path | None = None,
    prompt: str | None = None,
    prompts: str | Path | None = None,
    base_url: str | None = None,
    answers: str | None = None,
) -> AuditResult:
    """Audit a model without pytest and give the same result the plugin would.

    Args:
        model: As for `--model`, or any object with `info` and `predict`.
        thresholds: The file with the limits.
        data: The data of the suite; the package's own when left out.
        pairing: Where the groups are exchanged, `both` or `hypothesis`.
        suite: A suite of the package by name.
        suites: Suites to audit instead of it.
        subtopics: Paths to audit; all when left out.
        labels: As for `--bbnli-labels`; likewise `device`, `dtype`, `backend`, `engine` and `ray_address`.
        device: Where a checkpoint is computed.
        dtype: In which number type.
        backend: By which runtime.
        engine: On this machine or on a Ray cluster.
        ray_address: Which cluster.
        store: A file that keeps predictions between runs; none is kept when left out.
        prompt: As for `--bbnli-prompt`; likewise `prompts`, `base_url` and `answers`.
        prompts: A file with prompts.
        base_url: Where a model is served.
        answers: How answers are read.

    Raises:
        AuditError: when the audit cannot be made as asked. A crossed limit is no error: it is a verdict.
    """
    if pairing not in TEMPLATE_PAIRINGS:
        raise OptionError(f"pairing={pairing!r}: there is no such pairing. {suggest(str(pairing), TEMPLATE_PAIRINGS)}")
    if suites is None:
        suites = [open_suite(suite, None if data is None else Path(data), Pairing(pairing))]
    for one in suites:
        check_suite(one)
    inference = read_inference(
        labels=labels,
        device=device,
        dtype=dtype,
        backend=backend,
        engine=engine,
        ray_address=ray_address,
        store=None if store is None else Path(store),
        asking=read_asking(
            prompt=prompt, prompts=None if prompts is None else Path(prompts), base_url=base_url, answers=answers
        ),
    )
    if isinstance(model, str):
        check_model(model, inference.labels, inference.computing, inference.asking)
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
    thresholds.check_names(known, BUILT_IN)


def choose_subtopics(suites: Sequence[Suite], paths: Sequence[str] | None) -> list[Subtopic]:
    by_path = {subtopic.path: subtopic for suite in suites for subtopic in suite.subtopics()}
    if paths is None:
        return list(by_path.values())
    for path in paths:
        if path not in by_path:
            raise OptionError(f"There is no subtopic {path!r}. {suggest(path, by_path)}")
    return [by_path[path] for path in dict.fromkeys(paths)]
