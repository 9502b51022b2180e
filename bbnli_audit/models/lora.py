"""Merges plain LoRA adapters without the library `peft`.

A plain adapter has two thin matrices, A and B, for each weight W that it changes. W becomes W + B·A·alpha / r, where r
is the rank of the adapter, and nothing else changes. An adapter with any setting that `_KEYS` does not list is left to
`peft`, which knows what all settings mean.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bbnli_audit.models.protocol import Tensor

_KEYS = {"base_model_name_or_path", "peft_type", "task_type", "r", "lora_alpha", "target_modules"}
_NEEDED = {"r", "lora_alpha", "target_modules"}
_DOWN, _UP = ".lora_A.weight", ".lora_B.weight"


def is_plain(settings: Mapping[str, Any]) -> bool:
    """Say whether a LoRA adapter has no settings except those in `_KEYS`, and names its layers in a list."""
    is_lora = settings.get("peft_type") == "LORA" and settings.keys() >= _NEEDED
    return is_lora and settings.keys() <= _KEYS and isinstance(settings["target_modules"], list)


@dataclass(frozen=True, slots=True)
class PlainLora:
    """The settings of a plain adapter."""

    rank: int
    alpha: float
    layers: tuple[str, ...]  # the name of each changed layer ends with one of these

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> "PlainLora":
        """Read the settings. Raise a ValueError if a setting has a value that is not possible."""
        rank, alpha, layers = (settings[name] for name in ("r", "lora_alpha", "target_modules"))
        if not isinstance(rank, int) or isinstance(rank, bool) or rank < 1:
            raise ValueError(f"r is {rank!r:.40}; expected a whole number above 0")
        if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not math.isfinite(alpha):
            raise ValueError(f"lora_alpha is {alpha!r:.40}; expected a number")
        if not layers or not all(isinstance(layer, str) and layer for layer in layers):
            raise ValueError(f"target_modules is {layers!r:.40}; expected the names of layers")
        return cls(rank, float(alpha), tuple(layers))

    def merge(self, model: Any, weights: Path, prefix: str) -> Any:
        """Add to each weight the scaled product of its two matrices. In the file, layers' names begin with `prefix`."""
        import torch
        from safetensors.torch import load_file

        tensors = load_file(weights)
        with torch.no_grad():
            for stem in _stems(tensors):
                layer = model.get_submodule(self._layer_of(stem, prefix))
                if not isinstance(layer, torch.nn.Linear):
                    kind = type(layer).__name__
                    raise ValueError(f"{stem} is a {kind}, and a plain adapter changes linear layers only")
                down, up = tensors[stem + _DOWN], tensors[stem + _UP]
                self._refuse_other_sizes(stem, down, up, layer.weight)
                layer.weight += self.alpha / self.rank * (up.float() @ down.float())
        return model

    def _layer_of(self, stem: str, prefix: str) -> str:
        name = stem.removeprefix(prefix)
        is_named = any(name == layer or name.endswith(f".{layer}") for layer in self.layers)
        if name == stem or not is_named:
            raise ValueError(f"its tensors are for {stem}, which target_modules does not name")
        return name

    def _refuse_other_sizes(self, stem: str, down: "Tensor", up: "Tensor", weight: "Tensor") -> None:
        """Refuse matrices of wrong sizes. PyTorch could broadcast some of them. A wrong rank makes the scale wrong."""
        n_out, n_in = weight.shape
        found, expected = (tuple(down.shape), tuple(up.shape)), ((self.rank, n_in), (n_out, self.rank))
        if found != expected or not (down.is_floating_point() and up.is_floating_point()):
            told = f"its matrices are {_sizes(found)}, and with r = {self.rank} should be {_sizes(expected)}"
            raise ValueError(f"{stem}: {told}, of floating-point numbers")


def _stems(tensors: Mapping[str, Any]) -> list[str]:
    """Return the names of the changed layers. The file must hold two matrices for each layer, and nothing else."""
    stems = [name.removesuffix(_DOWN) for name in tensors if name.endswith(_DOWN)]
    if not stems or {stem + end for stem in stems for end in (_DOWN, _UP)} != set(tensors):
        raise ValueError("its tensors are not pairs of lora_A.weight and lora_B.weight")
    return stems


def _sizes(shapes: Sequence[Sequence[int]]) -> str:
    return " and ".join(" x ".join(map(str, shape)) or "a single number" for shape in shapes)
