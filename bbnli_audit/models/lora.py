"""Merges the plainest adapters without the library `peft`: those with two thin matrices for each weight.

A weight W becomes W + B·A·alpha / r, and nothing else changes. Adapters with any other setting are left to the library,
which knows what the settings mean.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_KEYS = {"base_model_name_or_path", "peft_type", "task_type", "r", "lora_alpha", "target_modules"}
_DOWN, _UP = ".lora_A.weight", ".lora_B.weight"


def is_plain(settings: Mapping[str, Any]) -> bool:
    """Say whether an adapter has no settings that matter besides its rank and its scale."""
    return settings.keys() <= _KEYS and settings.get("peft_type") == "LORA" and {"r", "lora_alpha"} <= settings.keys()


def merge_plain(model: Any, weights: Path, prefix: str, scale: float) -> Any:
    """Add to each weight the product of its two matrices. In the file, names begin with `prefix`."""
    import torch
    from safetensors.torch import load_file

    tensors = load_file(weights)
    downs = [name for name in tensors if name.endswith(_DOWN)]
    ups = {name.removesuffix(_DOWN) + _UP for name in downs}
    if not downs or ups | set(downs) != set(tensors):
        raise ValueError("its tensors are not pairs of lora_A.weight and lora_B.weight")
    with torch.no_grad():
        for down in downs:
            stem = down.removesuffix(_DOWN)
            weight = model.get_parameter(stem.removeprefix(prefix) + ".weight")
            weight += scale * (tensors[stem + _UP].float() @ tensors[down].float())
    return model
