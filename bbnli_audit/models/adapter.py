"""Adapters in the format of `peft`: a folder with adapter_config.json. Loading merges the adapter into its base model.

`Parts` finds the folders of the adapter and of the base model. A folder without an adapter is its own base.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.reading import Source
from bbnli_audit.models.lora import PlainLora, is_plain

ADAPTER_CONFIG, _ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# Files that decide a checkpoint's answers: weights, settings, and the tokenizer, which sets the maximum length.
CONTENT_FILES = (
    *("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.spm", "*.bpe", "*.codes", "*.vocab", "*.tiktoken"),
    "additional_chat_templates/*.jinja",
)
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_PREFIX = "base_model.model."  # the names of tensors in an adapter's file begin with it


@dataclass(frozen=True)  # no slots: cached_property needs a __dict__
class Parts:
    """The folders of a checkpoint: the base with its weights, and the adapter, if any."""

    folder: Path  # the adapter's folder; without an adapter, the model's

    @cached_property
    def is_adapter(self) -> bool:
        return _has_adapter(self.folder)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The content of adapter_config.json; empty without an adapter."""
        if not self.is_adapter:
            return {}
        advice = "Save the adapter again with save_pretrained(folder)."
        name = f"--model={self.folder}: its {ADAPTER_CONFIG}"
        source = Source(self.folder / ADAPTER_CONFIG, ModelError, name, advice=advice)
        settings = source.read_json()
        if not isinstance(settings, dict) or not isinstance(settings.get("base_model_name_or_path"), str):
            raise source.wrong("there is no base_model_name_or_path, so there is nothing to merge it into")
        return settings

    @property
    def task(self) -> str | None:
        """The task that the adapter was trained for, as peft names it: SEQ_CLS, CAUSAL_LM or another."""
        task = self.settings.get("task_type")
        return None if task is None else str(task)

    @cached_property
    def base(self) -> Path:
        """The folder of the base model.

        A relative path is looked up in the working folder, then in the adapter's folder. A path with a leading dot is
        looked up in the adapter's folder first. For a name on the hub, return the folder of the files that were
        fetched before. If no files were fetched, return the name itself as a path.
        """
        if not self.is_adapter:
            return self.folder
        named = str(self.settings["base_model_name_or_path"])
        places = (Path(named), self.folder / named)
        # A path such as "../base" is relative to the adapter. In the working folder it may lead to another model.
        for place in reversed(places) if named.startswith(".") else places:
            if _is_folder(place):
                return place
        return _find_fetched(named)

    @property
    def all(self) -> tuple[Path, ...]:
        """The folders with the files that decide the model's answers."""
        return (self.folder, self.base) if self.is_adapter else (self.folder,)

    @property
    def tokenizer(self) -> Path:
        """The folder whose tokenizer is used: the adapter's, if it has one."""
        has_own = any(path for pattern in TOKENIZER_FILES for path in self.folder.glob(pattern))
        return self.folder if has_own else self.base

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the adapter's tensors, by their names in the base model."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.folder / _ADAPTER_WEIGHTS, framework="numpy") as file:
                return {name.removeprefix(_PREFIX): tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - not a dict
        except (SafetensorError, OSError) as exc:
            raise ModelError(f"--model={self.folder}: its {_ADAPTER_WEIGHTS} cannot be read: {exc}.") from exc

    @property
    def n_outputs(self) -> int | None:
        """The number of outputs of the adapter's own head; None if the adapter has no head."""
        heads = ("score.weight", "classifier.weight", "classifier.out_proj.weight")
        return next((shape[0] for name, shape in self.shapes.items() if name in heads and shape), None)

    def check(self, name: str) -> None:
        """Refuse an adapter that cannot be merged here."""
        if not self.is_adapter:
            return
        if is_plain(self.settings):
            self._read_plain(name)
        elif find_spec("peft") is None:
            needed = 'To merge it, install the package peft: pip install "bbnli-audit[peft]"'
            raise ModelError(f"--model={name}: has an adapter ({ADAPTER_CONFIG}). {needed}")
        if not (self.folder / _ADAPTER_WEIGHTS).is_file():
            fault = f"has an {ADAPTER_CONFIG} and no {_ADAPTER_WEIGHTS}; other formats can run code when loaded"
            raise ModelError(f"--model={name}: {fault}.\nSave the adapter again with save_pretrained(folder).")
        named, is_here = str(self.settings["base_model_name_or_path"]), _is_folder(self.base)
        if not is_here and (named.startswith((".", "/", "~")) or named.count("/") != 1):
            fault = f"its adapter is for the base model {named:.200}, and there is no such folder"
            raise ModelError(f"--model={name}: {fault}.\nCorrect base_model_name_or_path in its {ADAPTER_CONFIG}.")
        if is_here and _has_adapter(self.base):
            fault = f"the base of its adapter, {named}, is an adapter too, and only one adapter can be merged"
            advice = "Merge that one into its base (merge_and_unload), or put the two into folders of their own."
            raise ModelError(f"--model={name}: {fault}.\n{advice}")

    def _read_plain(self, name: str) -> PlainLora:
        try:
            return PlainLora.read(self.settings)
        except ValueError as exc:
            told = f"--model={name}: in its {ADAPTER_CONFIG} {exc}"
            raise ModelError(f"{told}.\nSave the adapter again with save_pretrained(folder).") from exc

    def merge(self, model: Any) -> Any:
        """Merge the adapter into its base model, and return the merged model."""
        if is_plain(self.settings):
            return self._read_plain(str(self.folder)).merge(model, self.folder / _ADAPTER_WEIGHTS, _PREFIX)
        from peft import PeftModel

        return PeftModel.from_pretrained(model, str(self.folder), use_safetensors=True).merge_and_unload()


def _has_adapter(folder: Path) -> bool:
    """Say whether a folder has an adapter's settings. Even a broken link counts: no adapter may be overlooked."""
    return os.path.lexists(folder / ADAPTER_CONFIG)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long, or a link that leads to itself
        return False


def _find_fetched(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        # Ask only for the files that `fetch` fetches: a copy that lacks a requested file is not found.
        found = snapshot_download(name, allow_patterns=list(CONTENT_FILES), local_files_only=True)
        return Path(str(found))
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        return Path(name)


def list_checkpoints(folder: Path) -> list[str]:
    """Return the names of the checkpoints that a training run left in a folder, oldest first."""
    found = [path for path in folder.glob("checkpoint-*") if path.name.rpartition("-")[2].isdigit() and path.is_dir()]
    return [path.name for path in sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))]
