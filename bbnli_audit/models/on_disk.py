"""Checkpoints: a folder, a name on the hub, `demo` or `demo-next`. The kind of head decides how a model is read."""

from dataclasses import replace
from pathlib import Path

from bbnli_audit.core.errors import OptionError
from bbnli_audit.models.adapter import Parts
from bbnli_audit.models.checkpoint import (
    Checkpoint,
    ContentStamps,
    check_contents,
    check_folder,
    fetch,
    find_checkpoint,
)
from bbnli_audit.models.classifier.hf import open_classifier
from bbnli_audit.models.classifier.on_ray import RayPredictor
from bbnli_audit.models.language_model.generative import find_generative
from bbnli_audit.models.language_model.token_probability import MASKED, SEQ2SEQ, find_token_probability, lm_kind
from bbnli_audit.models.options import ModelKind, ModelSettings
from bbnli_audit.models.protocol import ModelSource, Predictor

# The small checkpoints inside the package. If your own folder has one of these names, write ./demo or ./demo-next.
DEMO, DEMO_NEXT = "demo", "demo-next"
DEMO_FOLDER, DEMO_NEXT_FOLDER = (Path(__file__).parent / name for name in (DEMO, DEMO_NEXT))
_BUNDLED = {DEMO: DEMO_FOLDER, DEMO_NEXT: DEMO_NEXT_FOLDER}


def _claims(name: str) -> bool:
    scheme, colon, _ = name.partition(":")
    is_scheme = bool(colon) and len(scheme) > 1  # a single letter is a Windows drive
    return not is_scheme or Path(name).exists()


def _check(name: str, settings: ModelSettings) -> None:
    settings.refuse_address(name)
    folder = _folder_of(name)
    kind = lm_kind(folder)
    if kind is None:
        if folder.is_dir():  # for a name on the hub, the kind of head is not known yet
            settings.refuse_prompt(name)
        check_folder(str(folder) if name in _BUNDLED else name, settings.labels)  # Path would drop a leading ./
        return
    settings.refuse_fast_paths(name)
    if kind == SEQ2SEQ:
        _require_prompt(name, settings)
    if kind == MASKED and settings.prompt is not None:
        problem = f"--model={name} is a masked language model, which cannot answer"
        raise OptionError(f"--bbnli-prompt={settings.prompt.name}: {problem}. Leave the option out.")
    check_contents(name, folder)


def _find(name: str, settings: ModelSettings) -> ModelSource:
    folder = _folder_of(name)
    if not folder.is_dir():
        folder = fetch(name)
    base = Parts(folder).base
    if not base.is_dir():
        fetch(str(base))
    before = ContentStamps.of(name, folder)  # after the last file was fetched, and before anything is hashed
    return replace(_find_in(name, folder, settings), check=before.check)


def _find_in(name: str, folder: Path, settings: ModelSettings) -> ModelSource:
    kind = lm_kind(folder)
    if kind == SEQ2SEQ:
        _require_prompt(name, settings)
    if kind is not None and settings.prompt is not None:
        return find_generative(name, folder, settings)
    if kind is not None:
        return find_token_probability(name, folder, kind, settings)
    checkpoint = find_checkpoint(name, settings.labels, settings.precision, folder, settings.hash_content)
    return ModelSource(checkpoint.info, lambda: _open_checkpoint(checkpoint, settings), is_content=True)


def _open_checkpoint(checkpoint: Checkpoint, settings: ModelSettings) -> Predictor:
    if settings.engine == "ray":
        return RayPredictor(checkpoint, settings.device, settings.ray_address)
    return open_classifier(checkpoint, settings.device, settings.share)


def _require_prompt(name: str, settings: ModelSettings) -> None:
    if settings.prompt is None:
        problem = "is an encoder-decoder model, which has to be asked"
        raise OptionError(f"--model={name}: {problem}. Add a prompt, such as --bbnli-prompt=nli.")


def _folder_of(name: str) -> Path:
    return _BUNDLED.get(name, Path(name))


KIND = ModelKind("checkpoint", "a checkpoint (its folder, or its name on the hub)", _claims, _check, _find)
