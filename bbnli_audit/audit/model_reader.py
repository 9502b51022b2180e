"""Runs one model on the items of a run: opens and checks the model at its first use, predicts, makes pair tables."""

import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bbnli_audit.audit.facts import find_facts, prove_facts, texts_of_facts
from bbnli_audit.audit.proof import Proof, prove
from bbnli_audit.core.errors import AuditError, ModelError, telling_system_errors
from bbnli_audit.core.results.rows import FastPathCheck, ModelInfo
from bbnli_audit.core.values import Control, Label, Pair, Subtopic, SubtopicItems, TextPair
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.readings.table import OPEN_NEUTRAL, PairTable, Reading, make_table
from bbnli_audit.models.opening import N_CONTROLS, N_PAIRS_TEXTS, OpenedModel, check_fast_path, draw
from bbnli_audit.models.protocol import Predictions, check_predictions
from bbnli_audit.suites.probe import find_controls, probe_items
from bbnli_audit.suites.protocol import Suite, families_of, get_items
from bbnli_audit.suites.sizes import FULL, take_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")


class PairReading(NamedTuple):
    """The pair table of a subtopic, and how much of the subtopic the model did not read."""

    table: PairTable
    n_truncated: int  # samples that were longer than the model takes
    n_asked: int  # pairs that the model was asked about
    n_alike: int  # pairs whose sides are the same tokens to the model; the table leaves these out
    n_unseen: int  # pairs that were cut, are alike, or have an answer that could not be read


class Items:
    """The items of an audit: suites, their subtopics, pairs and controls. Each subtopic is expanded only once."""

    def __init__(self, suites: Sequence[Suite], size: str = FULL) -> None:
        self.suites = suites
        self.size = size
        self._by_name = {suite.name: suite for suite in suites}
        self._expanded: dict[Subtopic, SubtopicItems] = {}

    @cached_property
    def subtopics(self) -> dict[str, Subtopic]:
        return {subtopic.path: subtopic for suite in self.suites for subtopic in suite.subtopics()}

    def of(self, subtopic: Subtopic) -> SubtopicItems:
        if subtopic not in self._expanded:
            self._expanded[subtopic] = take_size(get_items(self._by_name[subtopic.suite], subtopic), self.size)
        return self._expanded[subtopic]

    def pairs(self, subtopic: Subtopic) -> tuple[Pair, ...]:
        return self.of(subtopic).usable

    @cached_property
    def controls(self) -> list[Control]:
        """The controls of all subtopics, selected or not: the selection of tests must not change the competence."""
        return find_controls(self.suites, lambda _, subtopic: self.of(subtopic))

    def families(self, suites: Sequence[str]) -> list[str]:
        """Return the families of measures that all these suites have."""
        first, *others = (families_of(self._by_name[name]) for name in sorted(suites))
        return [family for family in first if all(family in other for other in others)]


def find_cut(found: Predictions, pro: Sequence[int], anti: Sequence[int]) -> "tuple[NDArray[Any], NDArray[Any]]":
    """For each pair, say whether a side was cut, and whether the two sides are the same to the model.

    The sides are the same if the cut removed all that differs, or if the tokenizer does not know the words that differ.
    """
    import numpy as np

    one, other = (np.array(rows, dtype=np.intp) for rows in (pro, anti))
    is_cut = found.is_truncated[one] | found.is_truncated[other]
    left = np.zeros(len(found.is_truncated), dtype=np.uint64) if found.remains is None else found.remains
    return is_cut, (left[one] == left[other]) & (left[one] != 0)


class ModelReader:
    """Reads the pairs of the suites with one model."""

    def __init__(self, items: Items, open_model: Callable[[], OpenedModel], *, is_revealed: bool = False) -> None:
        self._items = items
        self._open_model = open_model
        self._is_revealed = is_revealed
        self._read: dict[Subtopic, PairReading] = {}
        self._found: OpenedModel | AuditError | None = None

    @property
    def opened(self) -> OpenedModel:
        """The opened model. If opening it fails, later accesses raise the same error and do not try again."""
        if isinstance(self._found, AuditError):
            raise self._found
        if self._found is None:
            try:
                with telling_system_errors():
                    self._found = self._open_model()
            except AuditError as exc:
                self._found = exc
                raise
        return self._found

    @property
    def is_opened(self) -> bool:
        return isinstance(self._found, OpenedModel)

    @property
    def info(self) -> ModelInfo:
        return self.opened.predictor.info

    @cached_property
    def reading(self) -> Reading:
        return reading_of(self.info.kind)

    def close(self) -> None:
        """Close the store."""
        if self.is_opened:
            self.opened.close()

    def prepare(self, subtopics: Iterable[Subtopic]) -> None:
        """Predict in one pass all texts that these subtopics and the check of the model need.

        Errors are ignored here. They are raised when the predictions are needed.
        """
        with suppress(Exception):
            _ = self.fast_path_check  # check a fast path before using it for everything
            texts = self._texts_of_check()
            for subtopic in subtopics:
                texts += [*self._texts(self._items.pairs(subtopic)), *self._open_texts(subtopic)]
            self._guard("the pass", lambda: self.opened.predictor.predict(list(dict.fromkeys(texts))))

    @cached_property
    def fast_path_check(self) -> FastPathCheck | None:
        """How far a fast path agrees with the exact path, on texts of all subtopics. None if no fast path is used."""
        exact = self.opened.exact
        if exact is None:
            return None
        sample = [item.text for item in probe_items()]
        for subtopic in self._items.subtopics.values():
            sample += draw(self._texts(self._items.pairs(subtopic)), N_PAIRS_TEXTS)
            sample += draw((control.text for control in self._items.of(subtopic).controls), N_CONTROLS)
        limit = self.opened.max_disagreement
        return self._guard("the exact path", lambda: check_fast_path(self.opened.predictor, exact, sample, limit))

    @cached_property
    def proof(self) -> Proof:
        _ = self.fast_path_check  # refuse a fast path with different answers before any score
        if not self.reading.has_task:
            skill = self._guard("the facts", lambda: prove_facts(self.opened.predictor, self.reading, self._facts))
            return Proof(skill, {})
        return self._guard("the controls", lambda: prove(self.opened.predictor, self._items.controls))

    def read(self, subtopic: Subtopic) -> PairReading:
        if subtopic in self._read:
            return self._read[subtopic]
        _ = self.proof  # check the model before any score
        pairs = self._items.pairs(subtopic)
        texts = self._texts(pairs)
        found = self._guard(subtopic.path, lambda: self.opened.predictor.predict(texts))
        check_predictions(found, len(texts), self.info.name)
        row_of = {text: row for row, text in enumerate(texts)}

        def rows(some: Sequence[Pair]) -> list[list[int]]:
            return [[row_of[self.reading.ask(pair)[side]] for pair in some] for side in (0, 1)]

        pro, anti = rows(pairs)
        is_cut, is_alike = find_cut(found, pro, anti)
        kept = [pair for pair, is_same in zip(pairs, is_alike, strict=True) if not is_same]
        references = [pair.reference for pair in kept if pair.reference is not None]
        sides, (pro_reference, anti_reference) = rows(kept), rows(references)
        shown = found.probabilities
        has_references = len(references) == len(kept)
        of_references = (shown[pro_reference], shown[anti_reference]) if has_references else None
        table = make_table(subtopic, kept, self.reading, (shown[sides[0]], shown[sides[1]]), of_references)
        is_unseen = is_cut[~is_alike] | ~table.is_measured
        if has_references and references:
            is_unseen |= found.is_truncated[pro_reference] | found.is_truncated[anti_reference]
        n_unread = len(table) - len(table.beside_references[0]) if has_references and references else 0
        n_unseen = min(len(pairs), int(is_unseen.sum() + is_alike.sum()) + n_unread)
        table = self._with_open_texts(subtopic, table)
        n_truncated = int(found.is_truncated[pro + anti].sum())
        self._read[subtopic] = PairReading(table, n_truncated, len(pairs), int(is_alike.sum()), n_unseen)
        return self._read[subtopic]

    @cached_property
    def _facts(self) -> list[Pair]:
        return find_facts(self._items.controls)

    def _texts_of_check(self) -> list[TextPair]:
        """Return the texts that the check of the model needs."""
        if not self.reading.has_task:
            return texts_of_facts(self.reading, self._facts)
        return [item.text for item in (*probe_items(), *self._items.controls)]

    def _texts(self, pairs: Iterable[Pair]) -> list[TextPair]:
        """Return the distinct texts of pairs and of their references."""
        both = (each for pair in pairs for each in (pair, pair.reference) if each is not None)
        return list(dict.fromkeys(text for pair in both for text in self.reading.ask(pair)))

    def _open_texts(self, subtopic: Subtopic) -> list[TextPair]:
        """Return the texts that belong to no pair. Return none for a model that does not answer with three labels."""
        has_labels = self.reading.has_measures_of(["labels"])
        return list(dict.fromkeys(self._items.of(subtopic).open_texts)) if has_labels else []

    def _with_open_texts(self, subtopic: Subtopic, table: PairTable) -> PairTable:
        """Add a column to the table: the share of neutral answers on the texts in no pair, if there are any."""
        texts = self._open_texts(subtopic)
        if not texts:
            return table
        found = self._guard(subtopic.path, lambda: self.opened.predictor.predict(texts))
        check_predictions(found, len(texts), self.info.name)
        is_read = ~self.reading.is_unread(found.probabilities)
        row_of = {text: row for row, text in enumerate(texts)}
        asked = [row_of[text] for text in self._items.of(subtopic).open_texts if is_read[row_of[text]]]
        if not asked:
            return table
        is_neutral = found.probabilities[asked].argmax(axis=1) == list(Label).index(Label.NEUTRAL)
        return replace(table, frame=table.frame.assign(**{OPEN_NEUTRAL: float(is_neutral.mean())}))

    def _guard(self, what: str, predict: Callable[[], T]) -> T:
        """Call the model. Show messages of its exceptions only with --bbnli-reveal: they may quote sentences."""
        try:
            return predict()
        except AuditError:
            raise
        except (Exception, SystemExit) as exc:  # a model's own code may call sys.exit
            frame = traceback.extract_tb(exc.__traceback__)[-1]
            told = f": {exc}" if self._is_revealed else " (--bbnli-reveal shows its message, which may quote texts)"
            where = f"{Path(frame.filename).name}:{frame.lineno}, in {frame.name}"
            raise ModelError(f"{self.info.name} broke on {what}: {type(exc).__name__} at {where}{told}") from exc
