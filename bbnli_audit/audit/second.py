"""Second readings: the same pairs read by another model, or by the same model with another prompt.

Each second reading has its own `ModelReader`. If a second reading fails, the first is unaffected, but the problem is
reported at the end and the run does not pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bbnli_audit.audit.findings import Finding, ModelFacts
from bbnli_audit.audit.gate.thresholds import Thresholds
from bbnli_audit.audit.model_reader import ModelReader
from bbnli_audit.core.errors import AuditError, ModelError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import SecondModel, SecondPrompt
from bbnli_audit.core.results.file import dump, load
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import Subtopic
from bbnli_audit.measures.agreement import join_strengths, measure_agreement, r_over
from bbnli_audit.measures.answers import PROMPT_SENSITIVITY, estimate_sensitivity, join_answers, measure_prompts
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.registry import MeasuredTable
from bbnli_audit.measures.statistics.intervals import Estimate

if TYPE_CHECKING:
    import pandas as pd

TOTAL = "total"


class SecondReading(ABC):
    """A second reading of a run's pairs. Subclasses define what is compared, and how it is summarised."""

    def __init__(self, option: str, name: str, first: ModelReader, second: ModelReader, thresholds: Thresholds) -> None:
        self.option = option  # the option that asked for this reading
        self._name = name  # the name of the model that the second reading uses
        self._first = first
        self.second = second
        self._thresholds = thresholds
        self._confidence = thresholds.file.confidence
        self.trouble: str | None = None
        self._joined: dict[str, pd.DataFrame] = {}
        self._n_only: dict[str, tuple[int, int]] = {}  # pairs that only the first reading measured, or only the second
        self._facts: ModelFacts | None = None

    def prepare(self, subtopics: Iterable[Subtopic]) -> None:
        """Predict all needed texts in one pass. Do nothing if the first model could not be opened."""
        with suppress(Exception):
            first = self._first.info
            with self._telling():
                self._check_other(first)
                self.second.prepare(subtopics)

    def _check_other(self, first: ModelInfo) -> None:
        if first.fingerprint == self.second.info.fingerprint:
            same = f"the same model as {first.name} (fingerprint {first.fingerprint[:12]})"
            raise ModelError(f"{self.option}: is {same}, so they cannot differ. Give another one.")

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Keep errors for the end of the run: raised here, they would belong to no test."""
        try:
            yield
        except AuditError as exc:
            self.trouble = self.trouble or tell_of(self.option, self._name, str(exc))
        except Exception as exc:  # noqa: BLE001 - an error in a hook would end the run; the message may quote texts
            told = f"{self.option}: broke with {type(exc).__name__}. Audit it by itself to see where."
            self.trouble = self.trouble or told

    def join(self, subtopic: Subtopic, table: PairTable) -> "pd.DataFrame | None":
        """Join both readings of a subtopic, one row per pair; None if the second reading failed."""
        path = subtopic.path
        if path not in self._joined and self.trouble is None:
            with self._telling():
                self._check_other(self._first.info)
                second = self.second.read(subtopic).table
                joined = self._join(table, second)
                self._n_only[path] = _n_only(table, joined), _n_only(second, joined)
                self._facts = ModelFacts.of(self.second, self._thresholds)
                self._joined[path] = joined
        return self._joined.get(path)

    @staticmethod
    @abstractmethod
    def _join(first: PairTable, second: PairTable) -> "pd.DataFrame": ...

    def pack(self, found: Finding) -> dict[str, Any]:
        """Return the findings on a subtopic as plain values without sentences, to send to another process."""
        joined, path = self.join(found.subtopic, found.table), found.subtopic.path
        packed: dict[str, Any] = {"trouble": self.trouble}
        if joined is None or self._facts is None:
            return packed
        return packed | {
            "path": path,
            "joined": {str(name): joined[name].tolist() for name in joined},
            "n_only": list(self._n_only[path]),
            "facts": dump(self._facts),
        }

    def unpack(self, packed: dict[str, Any]) -> None:
        import pandas as pd

        self.trouble = self.trouble or packed["trouble"]
        if "path" in packed:
            self._joined[packed["path"]] = pd.DataFrame(packed["joined"])
            self._n_only[packed["path"]] = tuple(packed["n_only"])
            self._facts = load(ModelFacts, packed["facts"])

    def attach(self, result: AuditResult) -> AuditResult:
        """Add the comparison to the result; return the result unchanged if nothing was compared."""
        import pandas as pd

        frames = {row.path: self._joined[row.path] for row in result.subtopics if row.path in self._joined}
        if not frames or self._facts is None:
            return result
        frames[TOTAL] = pd.concat(frames.values(), ignore_index=True)
        about = {name: getattr(self._facts, name) for name in ("model", "skill", "is_competent")}
        return self._attach(result, frames, about)

    @abstractmethod
    def _attach(self, result: AuditResult, frames: "dict[str, pd.DataFrame]", about: dict[str, Any]) -> AuditResult: ...


def _n_only(table: PairTable, joined: "pd.DataFrame") -> int:
    return int((~table.measured.frame["pair_id"].isin(joined["pair_id"])).sum())


class ModelReading(SecondReading):
    """The same pairs read by another model (--bbnli-also). The two models are compared by which way they lean."""

    _join = staticmethod(join_strengths)

    def _attach(self, result: AuditResult, frames: "dict[str, pd.DataFrame]", about: dict[str, Any]) -> AuditResult:
        measures = reading_of(result.model.kind).preference, reading_of(about["model"].kind).preference
        *rows, total = [measure_agreement(path, frame, self._confidence, measures) for path, frame in frames.items()]
        n_only = [sum(self._n_only[path][side] for path in frames if path != TOTAL) for side in (0, 1)]
        r = r_over(rows)
        found = SecondModel(
            **about,
            measures=measures,
            n_only_first=n_only[0],
            n_only_second=n_only[1],
            r_squared=None if r is None else r**2,
            subtopics=tuple(rows),
            total=total,
            r=r,
        )
        return replace(result, second_model=found)


class PromptReading(SecondReading):
    """The same pairs read by the same model with another prompt (--bbnli-also-prompt), to find answers that change."""

    prompts: tuple[str, str] = ("", "")  # names of the first and the second prompt
    _join = staticmethod(join_answers)

    def extend(self, subtopic: Subtopic, table: PairTable, measured: MeasuredTable) -> MeasuredTable:
        """Extend the measures of a subtopic by the share of answers that the second prompt changes."""
        joined = self.join(subtopic, table)
        if joined is None:
            return measured
        measure, estimate = estimate_sensitivity(joined, self._confidence)
        if estimate is None:
            return replace(measured, measures={**measured.measures, PROMPT_SENSITIVITY: measure})

        def again(confidence: float) -> Estimate:
            found = estimate_sensitivity(joined, confidence)[1]
            assert found is not None
            return found

        return measured.adding(PROMPT_SENSITIVITY, measure, estimate, again)

    def _attach(self, result: AuditResult, frames: "dict[str, pd.DataFrame]", about: dict[str, Any]) -> AuditResult:
        *rows, total = [measure_prompts(path, frame, self._confidence) for path, frame in frames.items()]
        found = SecondPrompt(**about, prompts=self.prompts, subtopics=tuple(rows), total=total)
        return replace(result, second_prompt=found)


def tell_of(option: str, name: str, text: str) -> str:
    """Turn a message about --model into a message about the model that `option` names."""
    text = text.replace(f"--model={name}", option)
    if not text.startswith("--bbnli-also"):
        text = text.removeprefix(f"{name} ").removeprefix(f"{name}: ")
        text = f"{option}: {text}"
    if "--bbnli-labels=" in text and option.startswith("--bbnli-also="):
        text += "\n--bbnli-labels is about --model: give that model there, or correct its config.json."
    return text
