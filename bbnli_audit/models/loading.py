"""Loads a checkpoint safely: safetensors only, no remote code, nothing filled with random numbers."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.models.adapter import Parts
from bbnli_audit.models.protocol import Device


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of the machine this process has: xdist workers divide its cores and graphics cards."""

    index: int = 0
    count: int = 1


WHOLE_MACHINE = Share()
_NO_TOKEN = -1
_DEVICES = "Give auto, cpu, cuda or cuda:N."


def load_pretrained(name: str, folder: Path, head: str) -> tuple[Any, Any, int]:
    """Load a model in float32 and its tokenizer, and find how many tokens it takes.

    `head` ends the name of a class of transformers: SequenceClassification, CausalLM or MaskedLM.
    """
    torch = import_torch()
    import transformers
    from safetensors import SafetensorError

    family: Any = getattr(transformers, f"AutoModelFor{head}")
    parts = Parts(folder)
    try:
        with quiet_transformers():
            safely: Any = {"dtype": torch.float32, "use_safetensors": True, "trust_remote_code": False}
            if parts.is_adapter and parts.n_outputs is not None:
                safely |= {"num_labels": parts.n_outputs, "ignore_mismatched_sizes": True}
            model, report = family.from_pretrained(str(parts.base), **safely, output_loading_info=True)
            model = parts.merge(model) if parts.is_adapter else model
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(parts.tokenizer), trust_remote_code=False)
    except (SafetensorError, RuntimeError) as exc:
        advice = "The file may be cut off or not fit its config.json; copy or save the checkpoint again."
        raise ModelError(f"--model={name}: its weights cannot be loaded: {first_line(exc)}.\n{advice}") from exc
    except (OSError, ValueError, KeyError, ImportError) as exc:
        raise ModelError(f"--model={name}: the checkpoint cannot be loaded: {first_line(exc)}.") from exc
    unknown = {*report["missing_keys"], *(key for key, *_ in report.get("mismatched_keys", ()))}
    missing = sorted(unknown - (parts.shapes.keys() if parts.is_adapter else set()))
    if missing:
        is_nli = head == "SequenceClassification"
        trained, wanted = ("NLI", "checkpoint tuned for NLI") if is_nli else ("language-model", "language model")
        raise ModelError(
            f"--model={name}: its weights lack {len(missing)} of the model's tensors ({', '.join(missing[:3])}…), "
            f"which would be random.\nIt has no trained {trained} head, or its file is damaged. Give a {wanted}."
        )
    return model, tokenizer, max_length_of(tokenizer, model)


def load_classifier(name: str, folder: Path) -> tuple[Any, Any, int]:
    model, tokenizer, max_length = load_pretrained(name, folder, "SequenceClassification")
    config = model.config.get_text_config()
    if config.pad_token_id is None:
        # A causal model's classifier pools the last token that is not padding, and without a padding token takes one
        # text at a time. Nothing is padded here, so an id that never occurs lets it pool the last token of each text.
        config.pad_token_id = _NO_TOKEN
    return model, tokenizer, max_length


def load_tokenizer(name: str, folder: Path) -> tuple[Any, int]:
    """Load a classifier's tokenizer, and find how many tokens its model takes without loading the weights."""
    torch = import_torch()
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    parts = Parts(folder)
    with quiet_transformers(), torch.device("meta"):
        try:
            config = AutoConfig.from_pretrained(parts.base, trust_remote_code=False)
            model = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
            tokenizer = AutoTokenizer.from_pretrained(parts.tokenizer, trust_remote_code=False)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as exc:
            raise ModelError(f"--model={name}: the checkpoint cannot be loaded: {first_line(exc)}.") from exc
    return tokenizer, max_length_of(tokenizer, model)


def import_torch() -> Any:
    try:
        import torch
    except ImportError as exc:
        raise ModelError("A checkpoint needs the package torch: pip install torch") from exc
    return torch


def place(model: Any, device: str, share: Share, dtype: str = "float32") -> tuple[Device, int]:
    """Move a model to its device; return the device, and how many batches may run there at a time."""
    import torch

    chosen = pick_device(device, share)
    model.to(chosen, getattr(torch, dtype)).eval()
    return chosen, n_cores(share) if chosen.type == "cpu" else 1


def n_cores(share: Share) -> int:
    return max(1, int(import_torch().get_num_threads()) // share.count)  # honours OMP_NUM_THREADS


@contextmanager
def one_core_each(is_on_cpu: bool) -> Iterator[None]:
    """Give each batch one core: no core waits for another, and rounding is the same on any number of cores."""
    import torch

    n_before = torch.get_num_threads()
    if is_on_cpu:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_before)


def check_device(device: str) -> None:
    """Refuse at start-up what no machine has."""
    if re.fullmatch(r"auto|cpu|mps|(cuda|xpu|npu|hpu)(:\d+)?", device) is None:
        raise OptionError(f"--bbnli-device={device}: there is no such device. {_DEVICES}")


def pick_device(device: str, share: Share = WHOLE_MACHINE) -> Device:
    """Choose where a model runs. Of several graphics cards each xdist worker takes its own."""
    import torch

    check_device(device)
    if device == "auto" and not torch.cuda.is_available():
        return torch.device("cpu")
    if device in ("auto", "cuda") and share.count > 1:
        device = f"cuda:{share.index % max(1, torch.cuda.device_count())}"
    try:
        chosen = torch.device("cuda" if device == "auto" else device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as exc:
        raise OptionError(f"--bbnli-device={device}: cannot be used here: {first_line(exc)}. {_DEVICES}") from exc
    return chosen


def max_length_of(tokenizer: Any, model: Any) -> int:
    """Find how many tokens the model takes: tokenizers without a limit report a huge number."""
    limits = [tokenizer.model_max_length]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            # RoBERTa and its relatives count positions from behind the padding index.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - first)
    configured = getattr(model.config, "max_position_embeddings", None)
    if len(limits) == 1 and configured is not None and configured > 0:
        limits.append(configured)
    return int(min(limits))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep loading bars and advice out of the test output, and put the settings back."""
    from transformers.utils import logging

    level, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def telling_breaks(
    name: str, what: str, lengths: Sequence[int], errors: tuple[type[Exception], ...] = (RuntimeError, IndexError)
) -> Iterator[None]:
    """Turn what breaks a forward pass (no memory, unknown ids) into a message that says how large the batch was."""
    try:
        yield
    except errors as exc:
        shape = f"{len(lengths)} {what} of up to {max(lengths)} tokens"
        raise ModelError(f"{name} broke on a batch of {shape}: {short_reason(exc)}.") from exc


def first_line(exc: BaseException) -> str:
    text = str(exc).strip().splitlines()
    return text[0].rstrip(".") if text else type(exc).__name__


def short_reason(exc: BaseException) -> str:
    return shorten(first_line(exc), 200, placeholder="…")  # ONNX Runtime says where in its sources
