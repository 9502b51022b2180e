"""From the value of --model to a model, loaded only when it is needed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.files import hash_file
from bbnli_audit.core.results.audit import ModelInfo
from bbnli_audit.models.checkpoint import (
    EXACT,
    Checkpoint,
    Precision,
    check_folder,
    fetch,
    find_checkpoint,
)
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.language_model.asking import NOT_ASKED, SERVED, Asking
from bbnli_audit.models.language_model.generative import Decoding, check_generative, find_generative
from bbnli_audit.models.language_model.token_probability import MASKED, find_token_probability, lm_kind
from bbnli_audit.models.loading import WHOLE_MACHINE, Share, check_device
from bbnli_audit.models.planted import KINDS, PlantedPredictor
from bbnli_audit.models.protocol import Predictor
from bbnli_audit.models.python_callable import CallablePredictor, is_callable_name
from bbnli_audit.models.recorded import PREDICTIONS, RecordedPredictor, check_recorded
from bbnli_audit.models.served.server import check_server, find_server
from bbnli_audit.models.served.server_client import Asking as ServerAsking
from bbnli_audit.suites.protocol import Suite

PLANTED = "planted:"
# The small checkpoint inside the package. A folder of that name is reached as ./demo.
DEMO = "demo"
DEMO_FOLDER = Path(__file__).parent / "demo"

ENGINES = ("local", "ray")


@dataclass(frozen=True, slots=True)
class Computing:
    """How and where a checkpoint is computed. Only `precision` may change a number."""

    precision: Precision = EXACT
    device: str = "auto"
    share: Share = WHOLE_MACHINE
    engine: str = "local"
    ray_address: str | None = None

    def check(self) -> None:
        check_device(self.device)
        if self.engine not in ENGINES:
            raise OptionError(f"--bbnli-engine={self.engine}: there is no such engine. {suggest(self.engine, ENGINES)}")
        if self.ray_address is not None and self.engine != "ray":
            raise OptionError(
                f"--bbnli-ray-address={self.ray_address}: is used with --bbnli-engine=ray only. Add that option."
            )


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model that can be opened. `is_content` says that its fingerprint stands for all that decides its answers."""

    info: ModelInfo
    open: Callable[[], Predictor]
    is_content: bool = False


def check_model(name: str, labels: str | None, computing: Computing, asking: Asking = NOT_ASKED) -> None:
    """Refuse at start-up what needs no model to be seen: a missing folder, another head, unreadable labels."""
    asking.check(name)
    kind = lm_kind(Path(name)) if _is_checkpoint(name) else None
    if kind is not None or name.startswith(SERVED):
        _check_language_model(name, kind, computing, asking)
        return
    if asking.prompt is not None and not _is_on_hub(name):
        raise OptionError(
            f"--bbnli-prompt={asking.prompt.name}: --model={name} is no language model, so it cannot be asked. "
            "Leave it out."
        )
    if _is_checkpoint(name):
        scheme, colon, _ = name.partition(":")
        if colon and len(scheme) > 1 and not Path(name).exists():
            raise OptionError(
                f"--model={name}: this version knows no models of the kind {scheme!r}.\n"
                "Give a checkpoint's folder, a name on the hub, openai:NAME, planted:KIND, predictions:FILE or "
                "module:callable."
            )
        check_folder(str(DEMO_FOLDER) if name == DEMO else name, labels)
        return
    if not computing.precision.is_exact or computing.engine != "local":
        raise OptionError(
            f"--model={name}: is no checkpoint, so --bbnli-dtype, --bbnli-backend and --bbnli-engine do not apply. "
            "Leave them out."
        )
    if name.startswith(PLANTED):
        kind = name.removeprefix(PLANTED)
        if kind not in KINDS:
            raise OptionError(f"--model={name}: there is no such planted model. {suggest(kind, KINDS)}")
    elif name.startswith(PREDICTIONS):
        check_recorded(name, labels)


def find_model(
    name: str,
    *,
    suites: Sequence[Suite] = (),
    labels: str | None = None,
    computing: Computing = Computing(),  # noqa: B008 - frozen
    asking: Asking = NOT_ASKED,
    hash_content: Callable[[Path], str] = hash_file,
) -> ModelSource:
    """Find the model that --model names, without loading it.

    Args:
        name: The value of --model.
        suites: What a planted model must know.
        labels: The value of --bbnli-labels.
        computing: How and where a checkpoint is computed.
        asking: How a language model is asked.
        hash_content: Gives the SHA-256 of a file.
    """
    if name.startswith(SERVED):
        how = ServerAsking(is_first_token=asking.is_first_token)
        return find_server(name, asking.base_url, asking.of_server, asking=how)
    if not _is_checkpoint(name):
        predictor = _open_other(name, suites)
        return ModelSource(predictor.info, lambda: predictor)
    folder = DEMO_FOLDER if name == DEMO else None
    if _is_on_hub(name):
        folder = fetch(name)
    kind = lm_kind(folder or Path(name))
    if kind is not None:
        return _find_language_model(name, folder or Path(name), kind, computing, asking, hash_content)
    checkpoint = find_checkpoint(name, labels, computing.precision, folder)
    info = checkpoint.info(hash_content)
    return ModelSource(info, lambda: _open_checkpoint(checkpoint, computing, info), is_content=True)


def _check_language_model(name: str, kind: str | None, computing: Computing, asking: Asking) -> None:
    if kind is None:
        check_server(name, asking.base_url)
    if not computing.precision.is_exact or computing.engine != "local":
        raise OptionError(
            f"--model={name}: is a language model; --bbnli-dtype, --bbnli-backend and --bbnli-engine are for NLI "
            "checkpoints. Leave them out."
        )
    if kind == MASKED and asking.prompt is not None:
        raise OptionError(
            f"--bbnli-prompt={asking.prompt.name}: --model={name} is a masked language model, which cannot answer. "
            "Leave it out: its likelihoods are compared."
        )
    if kind is not None and asking.prompt is not None:
        check_generative(name, Path(name))
    elif kind is not None:
        find_token_probability(name, Path(name), kind, lambda _: "")  # looks at the folder


def _find_language_model(
    name: str, folder: Path, kind: str, computing: Computing, asking: Asking, hash_content: Callable[[Path], str]
) -> ModelSource:
    """Ask a model that has a prompt; of any other only the likelihoods are compared."""
    if asking.prompt is not None:
        return find_generative(
            name,
            folder,
            asking.prompt,
            hash_content,
            decoding=Decoding(first_token=asking.is_first_token),
            device=computing.device,
            share=computing.share,
        )
    info, open_model = find_token_probability(name, folder, kind, hash_content)
    return ModelSource(info, lambda: open_model(computing.device, computing.share), is_content=True)


def _open_checkpoint(checkpoint: Checkpoint, computing: Computing, info: ModelInfo) -> Predictor:
    if computing.engine == "ray":
        from bbnli_audit.models.inference.on_ray import RayPredictor

        return RayPredictor(checkpoint, computing.device, info, computing.ray_address)
    return open_here(checkpoint, computing.device, computing.share, info)


def open_here(checkpoint: Checkpoint, device: str, share: Share, info: ModelInfo) -> Predictor:
    """Load a checkpoint in this process."""
    if checkpoint.precision.backend == "onnx":
        from bbnli_audit.models.classifier.onnx import OnnxPredictor

        return OnnxPredictor(checkpoint, share, info)
    return HFPredictor(checkpoint, device, share, info)


def _open_other(name: str, suites: Sequence[Suite]) -> Predictor:
    if name.startswith(PLANTED):
        return PlantedPredictor(name.removeprefix(PLANTED), suites)
    if name.startswith(PREDICTIONS):
        return RecordedPredictor(name)
    return CallablePredictor(name)


def _is_checkpoint(name: str) -> bool:
    return not (name.startswith((PLANTED, PREDICTIONS, SERVED)) or is_callable_name(name))


def _is_on_hub(name: str) -> bool:
    return _is_checkpoint(name) and name != DEMO and not Path(name).is_dir()
