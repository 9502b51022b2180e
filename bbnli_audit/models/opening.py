"""Opens a model and its store as the options say, and checks a fast path against the exact path."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.files import hash_file
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.results.rows import FastPathCheck
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.checkpoint import EXACT
from bbnli_audit.models.explanation import Explaining, Explanation
from bbnli_audit.models.find import find_kind
from bbnli_audit.models.inference.progress import Progress
from bbnli_audit.models.inference.store import PredictionStore, text_key
from bbnli_audit.models.inference.stored import StoredPredictor, Tally
from bbnli_audit.models.loading import WHOLE_MACHINE, Share
from bbnli_audit.models.options import MAX_DISAGREEMENT, ModelKind, ModelSettings, read_options
from bbnli_audit.models.prompts import Prompt
from bbnli_audit.models.protocol import Predictor
from bbnli_audit.models.served import server
from bbnli_audit.suites.protocol import Suite

# From each subtopic, a fast path is checked on this many texts of pairs and this many controls.
N_PAIRS_TEXTS, N_CONTROLS = 16, 8
_NOT_HERE = (
    "inspect {name}: this model is not computed on this machine, so it cannot be inspected. Give a checkpoint or a "
    "language model."
)


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model to audit. If it runs on a fast path, `exact` is the same model on the exact path, for a comparison."""

    predictor: Predictor
    exact: Predictor | None = None
    max_disagreement: float = MAX_DISAGREEMENT
    store: PredictionStore | None = None

    @property
    def tally(self) -> Tally | None:
        return self.predictor.tally if isinstance(self.predictor, StoredPredictor) else None

    def close(self) -> None:
        """Close the store. SQLite then merges its side files into the store's one file."""
        if self.store is not None:
            self.store.close()


@dataclass(frozen=True, slots=True)
class Process:
    """This process's part of the machine, and the store that it shares with the run's other processes."""

    share: Share = WHOLE_MACHINE
    run_store: Path | None = None  # None keeps predictions in memory


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model whose name and options have been checked, but which is not loaded yet."""

    name: str
    kind: ModelKind
    settings: ModelSettings
    store: Path | None  # keeps predictions between runs
    run_store: Path | None

    @property
    def is_asked(self) -> bool:
        return self.prompt is not None

    @property
    def prompt(self) -> Prompt | None:
        """The prompt that the model is asked with; a served model is always asked."""
        return self.settings.prompt_or_default if self.kind is server.KIND else self.settings.prompt

    def open(self, suites: Sequence[Suite], progress: Progress | None = None) -> OpenedModel:
        """Find the model. It is loaded only when a prediction is missing."""
        run_store = PredictionStore(self.run_store)
        kept = run_store if self.store is None else PredictionStore(self.store, fallback=self.run_store)
        settings = replace(self.settings, suites=suites, hash_content=lambda path: kept.file_hash(path, hash_file))
        source = self.kind.find(self.name, settings)
        # Later runs may reuse predictions only if the fingerprint covers everything that decides the answers.
        store = kept if source.is_content else run_store
        predictor = StoredPredictor(source, store, device=settings.device, progress=progress)
        if settings.precision.is_exact:
            return OpenedModel(predictor, store=store)
        reference = self.kind.find(self.name, replace(settings, precision=EXACT))
        exact = StoredPredictor(reference, store, device=settings.device, progress=progress)
        return OpenedModel(predictor, exact, settings.max_disagreement, store)


def plan_model(name: str, options: ModelOptions, process: Process = Process()) -> PlannedModel:  # noqa: B008 - frozen
    """Read and check the name of a model and all its options, without loading anything."""
    settings = read_options(options, process.share)
    kind = find_kind(name)
    kind.check(name, settings)
    return PlannedModel(name, kind, settings, options.store, process.run_store)


def explain_model(name: str, options: ModelOptions, text: TextPair) -> Explanation:
    """Show how a model reads a text. Compute the text's probabilities as in an audit, and with plain transformers.

    For a fast path, `ours` comes from the fast path, and `plain` from plain transformers in float32.
    """
    planned = plan_model(name, options)
    if planned.kind is server.KIND:  # before anything is asked of the server
        raise OptionError(_NOT_HERE.format(name=name))
    exact = planned.kind.find(name, replace(planned.settings, precision=EXACT)).open()
    if not isinstance(exact, Explaining):
        raise OptionError(_NOT_HERE.format(name=name))
    found, info = exact.explain(text), exact.info
    if not planned.settings.precision.is_exact:
        fast = planned.kind.find(name, planned.settings).open()
        lines = {**dict(found.lines), "path": getattr(fast, "path", str(planned.settings.precision))}
        found = replace(found, lines=tuple(lines.items()), ours=fast.predict([text]).probabilities[0].tolist())
        info = fast.info
    model = f"{name} ({info.kind}, {info.backend} {info.dtype}, fingerprint {info.fingerprint[:12]})"
    return replace(found, lines=(("model", model), *found.lines))


def draw(texts: Iterable[TextPair], n_texts: int) -> list[TextPair]:
    """Draw texts by their hash: as good as a random draw, but independent of the order of the texts."""
    return sorted(set(texts), key=text_key)[:n_texts]


def check_fast_path(fast: Predictor, exact: Predictor, sample: Sequence[TextPair], limit: float) -> FastPathCheck:
    """Run both paths on the sample. Refuse the fast path if it changes too many labels."""
    labels = [predictor.predict(sample).probabilities.argmax(axis=1) for predictor in (fast, exact)]
    found = FastPathCheck(len(sample), int((labels[0] != labels[1]).sum()), limit)
    if found.n_different > limit * found.n_checked:
        path = f"{fast.info.name}: {fast.info.backend} with {fast.info.dtype}"
        advice = "Leave out --bbnli-dtype and --bbnli-backend, or audit the model as it is released."
        raise ModelError(f"{path} changes the answers: {found}.\n{advice}")
    return found
