"""Puts a model and its store together, as the options say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.files import hash_file
from bbnli_audit.models.checkpoint import EXACT, read_precision
from bbnli_audit.models.classifier.labels import parse_labels
from bbnli_audit.models.find import Computing, find_model
from bbnli_audit.models.inference.fast_paths import MAX_DISAGREEMENT
from bbnli_audit.models.inference.progress import Progress
from bbnli_audit.models.inference.store import PredictionStore, check_store
from bbnli_audit.models.inference.stored import StoredPredictor, Tally
from bbnli_audit.models.language_model.asking import NOT_ASKED, Asking
from bbnli_audit.models.loading import WHOLE_MACHINE, Share
from bbnli_audit.models.protocol import Predictor
from bbnli_audit.suites.protocol import Suite


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model to audit; with the exact path beside it when it is a fast one, to be checked against."""

    predictor: Predictor
    exact: Predictor | None = None
    max_disagreement: float = MAX_DISAGREEMENT
    store: PredictionStore | None = None

    @property
    def tally(self) -> Tally | None:
        return self.predictor.tally if isinstance(self.predictor, StoredPredictor) else None

    def close(self) -> None:
        """Close the store; SQLite then puts all into the one file."""
        if self.store is not None:
            self.store.close()


def read_inference(
    *,
    labels: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    backend: str | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    max_disagreement: str | float | None = None,
    store: Path | None = None,
    run_store: Path | None = None,
    share: Share = WHOLE_MACHINE,
    asking: Asking = NOT_ASKED,
) -> "Inference":
    """Read the options of the same names.

    Raises:
        OptionError: for a value that cannot be.
    """
    if labels is not None:
        parse_labels(labels)
    if store is not None:
        check_store(store)
    computing = Computing(read_precision(dtype, backend), device or "auto", share, engine or "local", ray_address)
    computing.check()
    limit = _read_share(max_disagreement)
    if limit is not None and computing.precision.is_exact:
        raise OptionError(
            f"--bbnli-max-disagreement={max_disagreement}: there is nothing to check on the exact path. Leave it out, "
            "or name a fast path with --bbnli-dtype or --bbnli-backend."
        )
    return Inference(labels, computing, MAX_DISAGREEMENT if limit is None else limit, store, run_store, asking)


def _read_share(given: str | float | None) -> float | None:
    if given is None:
        return None
    try:
        share = float(given)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise OptionError(f"--bbnli-max-disagreement={given}: expected a share between 0 and 1, such as 0.01.")
    return share


@dataclass(frozen=True, slots=True)
class Inference:
    """How a model is computed, and where its predictions are kept: what the options say, checked."""

    labels: str | None
    computing: Computing
    max_disagreement: float
    store: Path | None  # keeps predictions between runs
    run_store: Path | None  # shared by the processes of one run; memory when left out
    asking: Asking = NOT_ASKED

    def open(self, name: str, suites: Sequence[Suite], progress: Progress | None = None) -> OpenedModel:
        """Find the model that --model names. It is loaded when a prediction is missing, and not before."""
        run_store = PredictionStore(self.run_store)
        kept = run_store if self.store is None else PredictionStore(self.store, fallback=self.run_store)
        source = find_model(
            name,
            suites=suites,
            labels=self.labels,
            computing=self.computing,
            asking=self.asking,
            hash_content=lambda path: kept.file_hash(path, hash_file),
        )
        # Only a fingerprint of all that decides the answers may stand for them in later runs.
        store = kept if source.is_content else run_store
        device = self.computing.device
        predictor = StoredPredictor(source, store, device=device, progress=progress)
        if self.computing.precision.is_exact:
            return OpenedModel(predictor, store=store)
        reference = find_model(
            name,
            labels=self.labels,
            computing=replace(self.computing, precision=EXACT),
            hash_content=lambda path: kept.file_hash(path, hash_file),
        )
        exact = StoredPredictor(reference, store, device=device, progress=progress)
        return OpenedModel(predictor, exact, self.max_disagreement, store)
