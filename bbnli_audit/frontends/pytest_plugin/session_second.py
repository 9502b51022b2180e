"""The second readings of one run of pytest: the same pairs by another model, and by the same model asked otherwise.

Each is an audit of its own beside the first, over the same subtopics and in the same processes. What it breaks on costs
the first nothing: it is told at the end, and the run is not green.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from bbnli_audit.audit.assembly import SubtopicAudit
from bbnli_audit.audit.audit import Auditor
from bbnli_audit.core.errors import AuditError, ModelError, OptionError
from bbnli_audit.core.results.audit import AuditResult, ModelInfo, Skill
from bbnli_audit.core.results.second import PROMPT_SENSITIVITY, SecondModel, SecondPrompt
from bbnli_audit.core.values import Subtopic
from bbnli_audit.frontends.pytest_plugin.session_model import SessionModel, SessionProcesses
from bbnli_audit.frontends.pytest_plugin.session_settings import SessionSettings
from bbnli_audit.models.language_model.asking import NOT_ASKED
from bbnli_audit.suites.protocol import get_items

if TYPE_CHECKING:
    import pandas as pd

FIXTURE = "bbnli_answers"
TOTAL = "total"


class SecondReading(ABC):
    """The pairs of a run, read once more. Subclasses say what is looked at, and what it comes to."""

    key = ""  # of its part of the result, and of what travels

    def __init__(self, option: str, model: SessionModel, first: Auditor, settings: SessionSettings) -> None:
        self.option = option  # as it was written
        self._model = model
        self._first = first
        self._confidence = settings.thresholds.file.confidence
        self._auditor = Auditor(
            settings.suites,
            settings.thresholds,
            lambda: model.open(settings.suites),
            is_revealed=settings.is_revealed,
        )
        self._trouble: str | None = None
        self._joined: dict[str, pd.DataFrame] = {}
        self._sent: set[str] = set()
        self._n_only = [0, 0]  # pairs that only the first, or only the second, could be measured on
        self._about: dict[str, Any] = {}

    # Where tests run

    def prepare(self, subtopics: Iterable[Subtopic]) -> None:
        """Predict in one pass all that will be asked for; nothing when the first model could not be opened."""
        with suppress(Exception):
            first = self._first.predictor.info
            with self._telling():
                self._check_other(first)
                self._auditor.prepare(subtopics)

    def _check_other(self, first: ModelInfo) -> None:
        if first.fingerprint == self._auditor.predictor.info.fingerprint:
            raise ModelError(
                f"{self.option}: is the same model as {first.name} (fingerprint {first.fingerprint[:12]}), so they "
                "cannot differ. Give another one."
            )

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Keep what goes wrong for the end of the run: here it would be no test's."""
        try:
            yield
        except AuditError as exc:
            self._trouble = self._trouble or said_of(self.option, self._model.name, str(exc))
        except Exception as exc:  # noqa: BLE001 - an error in a hook would end the run; the message may quote texts
            broken = f"{self.option}: broke with {type(exc).__name__}. Audit it by itself to see where."
            self._trouble = self._trouble or broken

    def join(self, found: SubtopicAudit) -> "pd.DataFrame | None":
        """Put both readings of a subtopic beside each other; None when the second one broke."""
        path = found.subtopic.path
        if path not in self._joined and self._trouble is None:
            with self._telling():
                self._check_other(self._first.predictor.info)
                self._joined[path] = self._join(found)
        return self._joined.get(path)

    @abstractmethod
    def _join(self, found: SubtopicAudit) -> "pd.DataFrame": ...

    def payload(self, found: SubtopicAudit) -> dict[str, Any]:
        """Give what was found in a subtopic, as plain values, without sentences."""
        joined, path = self.join(found), found.subtopic.path
        if joined is None or path in self._sent:
            return {"trouble": self._trouble, "usage": self._model.usage()}
        self._sent.add(path)
        second = self._auditor.audit(found.subtopic)
        return {
            "trouble": self._trouble,
            "usage": self._model.usage(),
            "path": path,
            "joined": {str(name): joined[name].tolist() for name in joined},
            "n_only": [int((~each.frame["pair_id"].isin(joined["pair_id"])).sum()) for each in (found, second)],
            "about": {
                "model": self._auditor.predictor.info.to_dict(),
                "skill": asdict(self._auditor.proof.skill),
                "is_competent": self._auditor.is_competent,
            },
        }

    # Where results are gathered

    def gather(self, payload: dict[str, Any]) -> None:
        import pandas as pd

        self._trouble = self._trouble or payload["trouble"]
        self._model.gather(payload["usage"])
        if "path" in payload:
            self._joined[payload["path"]] = pd.DataFrame(payload["joined"])
            self._n_only = [before + more for before, more in zip(self._n_only, payload["n_only"], strict=True)]
            self._about = payload["about"]

    def attach(self, result: AuditResult) -> AuditResult:
        """Put what was found into the result; leave it as it is when nothing was."""
        import pandas as pd

        frames = {row.path: self._joined[row.path] for row in result.subtopics if row.path in self._joined}
        if not frames or not self._about:
            return result
        frames[TOTAL] = pd.concat(frames.values(), ignore_index=True)
        return self._attach(result, frames)

    @abstractmethod
    def _attach(self, result: AuditResult, frames: "dict[str, pd.DataFrame]") -> AuditResult: ...

    @property
    def trouble(self) -> str | None:
        return self._trouble

    def summary(self) -> Iterable[str]:
        return self._model.summary(f"Predictions for {self.option}")

    def _about_model(self) -> tuple[ModelInfo, Skill, bool]:
        about = self._about
        return ModelInfo.from_dict(about["model"]), Skill(**about["skill"]), bool(about["is_competent"])


class ModelReading(SecondReading):
    """Another model over the same pairs (--bbnli-also): do the two lean the same way?"""

    key = "second_model"

    def _join(self, found: SubtopicAudit) -> "pd.DataFrame":
        from bbnli_audit.measures.agreement import join_strengths

        second = self._auditor.audit(found.subtopic)
        kinds = [auditor.predictor.info.kind for auditor in (self._first, self._auditor)]
        return join_strengths(found.frame, kinds[0], second.frame, kinds[1])

    def _attach(self, result: AuditResult, frames: "dict[str, pd.DataFrame]") -> AuditResult:
        from bbnli_audit.measures.agreement import measure_agreement, preference_of, r_squared_over

        *rows, total = [measure_agreement(path, frame, self._confidence) for path, frame in frames.items()]
        info, skill, is_competent = self._about_model()
        found = SecondModel(
            model=info,
            skill=skill,
            is_competent=is_competent,
            measures=(preference_of(result.model.kind), preference_of(info.kind)),
            n_only_first=self._n_only[0],
            n_only_second=self._n_only[1],
            r_squared=r_squared_over(rows),
            subtopics=tuple(rows),
            total=total,
        )
        return replace(result, second_model=found)


class PromptReading(SecondReading):
    """The same model asked with another prompt (--bbnli-also-prompt): do its answers change?"""

    key = "second_prompt"

    def __init__(
        self, prompts: tuple[str, str], model: SessionModel, first: Auditor, settings: SessionSettings
    ) -> None:
        super().__init__(f"--bbnli-also-prompt={prompts[1]}", model, first, settings)
        self.prompts = prompts

    def _join(self, found: SubtopicAudit) -> "pd.DataFrame":
        from bbnli_audit.measures.prompt_sensitivity import join_answers

        self._auditor.audit(found.subtopic)  # proves the prompt, and tells what the model breaks on
        return join_answers(*(read_answers(auditor, found.subtopic) for auditor in (self._first, self._auditor)))

    def extend(self, found: SubtopicAudit) -> SubtopicAudit:
        """Add the share of answers that change, held to its limit, to what was found in a subtopic."""
        from bbnli_audit.measures.prompt_sensitivity import estimate_sensitivity
        from bbnli_audit.measures.rates import Measured

        joined, result = self.join(found), found.result
        if joined is None:
            return found
        measure, estimate = estimate_sensitivity(joined, self._confidence)
        measured = Measured(
            result.counts,
            result.n_clusters,
            {PROMPT_SENSITIVITY: measure},
            {} if estimate is None else {PROMPT_SENSITIVITY: estimate},
        )
        verdicts = (*result.verdicts, *self._first.judge(found.subtopic, measured))
        return replace(
            found, result=replace(result, measures={**result.measures, **measured.measures}, verdicts=verdicts)
        )

    def _attach(self, result: AuditResult, frames: "dict[str, pd.DataFrame]") -> AuditResult:
        from bbnli_audit.measures.prompt_sensitivity import measure_prompts

        *rows, total = [measure_prompts(path, frame, self._confidence) for path, frame in frames.items()]
        return replace(result, second_prompt=SecondPrompt(*self._about_model(), self.prompts, tuple(rows), total))


class SessionSecond:
    """All second readings of a run: none, one or two."""

    def __init__(self, settings: SessionSettings, processes: SessionProcesses, first: Auditor) -> None:
        self._readings: list[SecondReading] = []
        if settings.also is not None:
            self._readings.append(_read_model(settings, processes, first, settings.also))
        self.prompt = _read_prompt(settings, processes, first)
        if self.prompt is not None:
            self._readings.append(self.prompt)

    @property
    def options(self) -> list[str]:
        return [reading.option for reading in self._readings]

    def answer_tests(self, paths: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Give the tests of answers by the ids they have: `bbnli/gender/man_is_to_programmer-unparsed`."""
        measures = ["unparsed_rate", *([] if self.prompt is None else [PROMPT_SENSITIVITY])]
        return {f"{path}-{measure.removesuffix('_rate')}": (path, measure) for path in paths for measure in measures}

    def prepare(self, subtopics: Sequence[Subtopic]) -> None:
        for reading in self._readings:
            reading.prepare(subtopics)

    def extend(self, found: SubtopicAudit) -> SubtopicAudit:
        return found if self.prompt is None else self.prompt.extend(found)

    def payload(self, found: SubtopicAudit) -> dict[str, Any]:
        return {reading.key: reading.payload(found) for reading in self._readings}

    def gather(self, payload: dict[str, Any]) -> None:
        for reading in self._readings:
            if reading.key in payload:
                reading.gather(payload[reading.key])

    def attach(self, result: AuditResult) -> AuditResult:
        for reading in self._readings:
            result = reading.attach(result)
        return result

    @property
    def troubles(self) -> list[str]:
        return [reading.trouble for reading in self._readings if reading.trouble is not None]

    def summary(self) -> Iterator[str]:
        for reading in self._readings:
            yield from reading.summary()


def _read_model(settings: SessionSettings, processes: SessionProcesses, first: Auditor, name: str) -> ModelReading:
    """Find the second model: on the exact path and the same device, whatever is said of the first."""
    option = f"--bbnli-also={name}"
    if name == settings.model and settings.read_asking().prompt is None:
        raise OptionError(f"{option}: is the model of --model itself, so they cannot differ. Give another one.")
    try:
        model = SessionModel(processes, name, processes.read_inference(NOT_ASKED, "device"))
    except AuditError as exc:
        raise type(exc)(said_of(option, name, str(exc))) from exc
    return ModelReading(option, model, first, settings)


def _read_prompt(settings: SessionSettings, processes: SessionProcesses, first: Auditor) -> PromptReading | None:
    asking = settings.read_second_asking()
    if asking is None:
        return None
    model = SessionModel(processes, settings.model, processes.read_inference(asking, "device"))
    prompts = (settings.read_asking().of_server.name, asking.of_server.name)
    return PromptReading(prompts, model, first, settings)


def read_answers(auditor: Auditor, subtopic: Subtopic) -> "pd.DataFrame":
    """Give the pair table of a subtopic with the pairs whose answers could not be read. All is predicted by then."""
    from bbnli_audit.measures.frame import pair_frame

    suite = next(suite for suite in auditor.suites if suite.name == subtopic.suite)
    pairs = get_items(suite, subtopic).usable
    found = auditor.predictor.predict([text for pair in pairs for text in (pair.pro, pair.anti)]).probabilities
    return pair_frame(subtopic, pairs, found[::2], found[1::2])


def said_of(option: str, name: str, text: str) -> str:
    """Say what went wrong with a model that another option than --model names."""
    text = text.replace(f"--model={name}", option)
    if not text.startswith("--bbnli-also"):
        text = text.removeprefix(f"{name} ").removeprefix(f"{name}: ")
        text = f"{option}: {text}"
    if "--bbnli-labels=" in text and option.startswith("--bbnli-also="):
        text += "\n--bbnli-labels is about --model: give that model there, or correct its config.json."
    return text
