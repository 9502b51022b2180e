"""Loads a checkpoint safely: only safetensors, no remote code, no weights filled with random numbers."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from bbnli_audit.core.errors import AuditError, ModelError, OptionError
from bbnli_audit.models.adapter import Parts
from bbnli_audit.models.protocol import Device


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the machine that this process uses: xdist workers divide the cores and graphics cards."""

    index: int = 0
    count: int = 1


WHOLE_MACHINE = Share()
_FEWEST_TOKENS = 8  # enough for the special tokens and a word or two of each sentence
_NO_TOKEN = -1
_DEVICES = "Give auto, cpu, cuda or cuda:N."


def load_pretrained(name: str, folder: Path, head: str) -> tuple[Any, Any, int]:
    """Load a model (in float32) and its tokenizer. Find how many tokens the model takes.

    `head` is the end of a transformers class name: SequenceClassification, CausalLM, MaskedLM or Seq2SeqLM.
    """
    torch = import_torch()
    import transformers

    family: Any = getattr(transformers, f"AutoModelFor{head}")
    parts = Parts(folder)
    with telling_loading(name, "its config.json"):
        transformers.AutoConfig.from_pretrained(str(parts.base), trust_remote_code=False)
    with telling_loading(name, "its weights"):
        # Weights of wrong sizes are let through here, so that `_refuse_other_sizes` can name them.
        safely: Any = {"use_safetensors": True, "trust_remote_code": False, "ignore_mismatched_sizes": True}
        if parts.is_adapter and parts.n_outputs is not None:
            safely["num_labels"] = parts.n_outputs
        model, report = family.from_pretrained(str(parts.base), dtype=torch.float32, **safely, output_loading_info=True)
        model = parts.merge(model) if parts.is_adapter else model
    brought = parts.shapes.keys() if parts.is_adapter else set()
    _refuse_other_sizes(name, sorted(each for each in report["mismatched_keys"] if each[0] not in brought))
    with telling_loading(name, "its tokenizer"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(parts.tokenizer), trust_remote_code=False)
    missing = sorted(set(report["missing_keys"]) - brought)
    if missing:
        is_nli = head == "SequenceClassification"
        trained, wanted = ("NLI", "checkpoint tuned for NLI") if is_nli else ("language-model", "language model")
        raise ModelError(
            f"--model={name}: its weights lack {len(missing)} of the model's tensors ({', '.join(missing[:3])}…), "
            f"which would be random.\nIt has no trained {trained} head, or its file is damaged. Give a {wanted}."
        )
    return model, tokenizer, check_length(name, tokenizer, model)


@contextmanager
def telling_loading(name: str, what: str) -> Iterator[None]:
    """Turn any exception of transformers about a checkpoint into a message that says which files are at fault."""
    try:
        with quiet_transformers():
            yield
    except AuditError:
        raise
    except Exception as exc:  # transformers may raise anything on files that it does not expect
        kind = "" if isinstance(exc, OSError | ValueError | RuntimeError) else f"{type(exc).__name__}: "
        reason = shorten(" ".join(str(exc).split()), 300, placeholder="…").rstrip(".") or type(exc).__name__
        advice = "A file may be cut off, edited, or of another version; copy or save the checkpoint again."
        raise ModelError(f"--model={name}: {what} cannot be loaded: {kind}{reason}.\n{advice}") from exc


def _refuse_other_sizes(name: str, found: Sequence[tuple[str, Sequence[int], Sequence[int]]]) -> None:
    if found:
        tensor, own, wanted = found[0]
        sizes = f"{tensor} is {' x '.join(map(str, own))}, and config.json says {' x '.join(map(str, wanted))}"
        fault = f"its weights do not fit its config.json (tensors: {len(found)}): {sizes}"
        advice = "The weights and the config.json are of different models. Save the checkpoint again."
        raise ModelError(f"--model={name}: {fault}.\n{advice}")


def load_classifier(name: str, folder: Path) -> tuple[Any, Any, int]:
    model, tokenizer, max_length = load_pretrained(name, folder, "SequenceClassification")
    config = model.config.get_text_config()
    if config.pad_token_id is None:
        # A causal model's classifier reads the last token that is not padding. Without a padding token, this
        # classifier takes only one text at a time. Nothing is padded here, so we set a padding token that never occurs.
        # The classifier then reads the last token of each text.
        config.pad_token_id = _NO_TOKEN
    return model, tokenizer, max_length


def load_tokenizer(name: str, folder: Path) -> tuple[Any, int]:
    """Load a classifier's tokenizer. Find how many tokens the model takes, without loading its weights."""
    torch = import_torch()
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    parts = Parts(folder)
    with telling_loading(name, "its config.json"), torch.device("meta"):
        config = AutoConfig.from_pretrained(parts.base, trust_remote_code=False)
        model = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    with telling_loading(name, "its tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(parts.tokenizer, trust_remote_code=False)
    return tokenizer, check_length(name, tokenizer, model)


def import_torch() -> Any:
    try:
        import torch
    except ImportError as exc:
        raise ModelError("A checkpoint needs the package torch: pip install torch") from exc
    return torch


def place(model: Any, device: str, share: Share, dtype: str = "float32") -> tuple[Device, int]:
    """Move a model to its device. Return the device, and the number of batches that may run there at a time."""
    import torch

    chosen = pick_device(device, share)
    model.to(chosen, getattr(torch, dtype)).eval()
    return chosen, n_cores(share) if chosen.type == "cpu" else 1


def n_cores(share: Share) -> int:
    return max(1, int(import_torch().get_num_threads()) // share.count)  # torch follows OMP_NUM_THREADS


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
    """Refuse, at start-up, a name that no device has."""
    if re.fullmatch(r"auto|cpu|mps|(cuda|xpu|npu|hpu)(:\d+)?", device) is None:
        raise OptionError(f"--bbnli-device={device}: there is no such device. {_DEVICES}")


def pick_device(device: str, share: Share = WHOLE_MACHINE) -> Device:
    """Choose where a model runs. With several graphics cards, each xdist worker uses its own."""
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


def check_length(name: str, tokenizer: Any, model: Any) -> int:
    """Find how many tokens the model takes. Refuse a model that takes too few: cut texts would all look alike."""
    given = tokenizer.model_max_length
    length = max_length_of(tokenizer, model) if isinstance(given, int | float) and given == given else None
    if length is None or length < _FEWEST_TOKENS:
        problem = f"model_max_length in its tokenizer_config.json is {given!r:.40}"
        if length is not None and length != given:
            problem = f"takes {length} tokens"
        advice = "Correct model_max_length in its tokenizer_config.json, or the number of positions in its config.json."
        raise ModelError(f"--model={name}: {problem}; texts need {_FEWEST_TOKENS} tokens or more.\n{advice}")
    return length


def max_length_of(tokenizer: Any, model: Any) -> int:
    """Find how many tokens the model takes.

    A tokenizer without a limit reports a huge number, so the limits of the model count too.
    """
    limits = [tokenizer.model_max_length]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            # In RoBERTa and its relatives, positions start after the padding index.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - first)
    configured = getattr(model.config, "max_position_embeddings", None)
    if len(limits) == 1 and configured is not None and configured > 0:
        limits.append(configured)
    return int(min(limits))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep progress bars and advice out of the test output, and restore the settings afterwards."""
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
    """Turn errors of a forward pass (no memory, unknown ids) into a message with the size of the batch."""
    try:
        yield
    except errors as exc:
        shape = f"{len(lengths)} {what} of up to {max(lengths)} tokens"
        raise ModelError(f"{name} broke on a batch of {shape}: {short_reason(exc)}.") from exc


def first_line(exc: BaseException) -> str:
    text = str(exc).strip().splitlines()
    return text[0].rstrip(".") if text else type(exc).__name__


def short_reason(exc: BaseException) -> str:
    return shorten(first_line(exc), 200, placeholder="…")  # ONNX Runtime's messages are long
