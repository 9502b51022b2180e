"""Checkpoints with a sequence-classification head, through transformers. The only module that knows torch.

Loading is safe: safetensors only, no remote code. The exact path: float32, inference mode, batches that depend on
nothing but the texts, so that the same texts always give the same numbers.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.errors import ModelError, OptionError
from bbnli_audit.predictors.labels import columns_of, label_order
from bbnli_audit.predictors.protocol import Predictions
from bbnli_audit.results import ModelInfo
from bbnli_audit.values import TextPair

if TYPE_CHECKING:
    import torch

# About what fits the caches of a CPU core; larger batches are slower there.
TOKENS_PER_BATCH = 1024
# Files that decide what a checkpoint answers.
_FINGERPRINT_FILES = ("*.safetensors", "*.json", "*.txt", "*.model")
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")


def check_folder(name: str, labels: str | None = None) -> None:
    """Refuse, without loading anything, what can be seen to be wrong in a local folder.

    Raises:
        ModelError: for a folder that is no checkpoint, has another head, or no readable labels.
    """
    folder = Path(name)
    if not folder.exists():
        if name.startswith((".", "/", "~")) or name.count("/") > 1:
            raise ModelError(
                f"--model={name}: there is no such folder.\nGive the folder that holds the checkpoint's config.json, "
                "or a name on the hub (owner/name)."
            )
        return  # a name on the hub
    if not folder.is_dir():
        raise ModelError(f"--model={name}: is a file. Give the folder that holds the checkpoint's config.json.")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise ModelError(
            f"--model={name}: the folder has no config.json, so it is no checkpoint that transformers can load.\n"
            "Save the model there with save_pretrained(), tokenizer included."
        ) from exc
    except (OSError, ValueError) as exc:
        raise ModelError(f"--model={name}: its config.json cannot be read: {exc}.") from exc
    if not isinstance(config, dict):
        raise ModelError(f"--model={name}: its config.json holds no object. Save the checkpoint again.")
    architectures = config.get("architectures") or []
    check_head(name, architectures if isinstance(architectures, list) else [str(architectures)])
    if not any(folder.glob("*.safetensors")):
        others = ", ".join(sorted(path.name for path in folder.glob("*.bin"))) or "none at all"
        raise ModelError(
            f"--model={name}: no weights in safetensors format ({others}). Other formats can run code when they are "
            "loaded.\nSave it again with save_pretrained(folder), which writes model.safetensors."
        )
    if not any(path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern)):
        raise ModelError(
            f"--model={name}: the folder has no tokenizer ({', '.join(_TOKENIZER_FILES)}); transformers would make up "
            "an empty one, and every word would be unknown.\nSave it there with tokenizer.save_pretrained(folder)."
        )
    id2label = config.get("id2label") or {str(index): f"LABEL_{index}" for index in range(2)}
    if not isinstance(id2label, dict) or not all(str(index).isdigit() for index in id2label):
        raise ModelError(
            f"--model={name}: id2label in its config.json is {id2label!r}; expected the number of each output and its "
            'name, as in {"0": "entailment", ...}.'
        )
    label_order({int(index): str(label) for index, label in id2label.items()}, labels, name)


def check_head(name: str, architectures: Sequence[str]) -> None:
    if not any(architecture.endswith("ForSequenceClassification") for architecture in architectures):
        found = ", ".join(architectures) or "none named"
        raise ModelError(
            f"--model={name}: its head is {found}; this audit needs a sequence-classification head tuned for NLI "
            "(…ForSequenceClassification).\nGive an NLI checkpoint."
        )


class HFPredictor:
    """A sequence classifier, loaded once."""

    def __init__(self, name: str, labels: str | None = None, device: str = "auto", folder: Path | None = None) -> None:
        """Load a checkpoint.

        Args:
            name: A folder or a name on the hub; what messages and results call the model.
            labels: The value of --bbnli-labels.
            device: The value of --bbnli-device.
            folder: Where the checkpoint lies, if not at `name`.
        """
        place = str(folder or name)
        check_folder(place, labels)
        self._torch = _import_torch()
        with _quiet_transformers():
            self._model, self._tokenizer = _load(place)
        config = self._model.config
        check_head(name, config.architectures or [])
        order = label_order(config.id2label, labels, name)
        self._columns = columns_of(order)
        self._device = _pick_device(device)
        self._model.to(self._device).eval()
        self._max_length = _max_length(self._tokenizer, self._model)
        self.info = ModelInfo(
            name=name,
            fingerprint=_fingerprint(config.name_or_path, order, self._max_length),
            kind="sequence-classification",
            backend=f"torch-{self._device.type}",
            dtype=str(self._model.dtype).removeprefix("torch."),
            labels=order,
        )

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        import numpy as np

        if not texts:
            return Predictions(np.empty((0, 3)), np.empty(0, dtype=np.bool_))
        encoded, is_truncated = self._encode(texts)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        logits = np.empty((len(texts), len(self._model.config.id2label)))
        for rows in _batches(lengths):
            logits[rows] = self._forward({key: [values[row] for row in rows] for key, values in encoded.items()})
        return Predictions(self._to_probabilities(logits), np.array(is_truncated, dtype=np.bool_))

    def _encode(self, texts: Sequence[TextPair]) -> tuple[dict[str, list[list[int]]], list[bool]]:
        premises, hypotheses = ([text[side] for text in texts] for side in (0, 1))
        encoded = dict(self._tokenizer(premises, hypotheses, verbose=False))
        is_truncated = [len(ids) > self._max_length for ids in encoded["input_ids"]]
        for row, is_long in enumerate(is_truncated):
            if is_long:
                # Cuts the longer text first: the premise, so that the hypothesis keeps its group.
                short = self._tokenizer(*texts[row], truncation=True, max_length=self._max_length)
                for key, values in encoded.items():
                    values[row] = short[key]
        return encoded, is_truncated

    def _forward(self, batch: dict[str, list[list[int]]]) -> Any:
        try:
            with self._torch.inference_mode():
                inputs = self._tokenizer.pad(batch, return_tensors="pt").to(self._device)
                return self._model(**inputs).logits.double().cpu().numpy()
        except (RuntimeError, IndexError) as exc:  # out of memory, ids the embeddings do not have
            shape = f"{len(batch['input_ids'])} texts of up to {max(map(len, batch['input_ids']))} tokens"
            raise ModelError(f"{self.info.name} broke on a batch of {shape}: {_first_line(exc)}.") from exc

    def _to_probabilities(self, logits: Any) -> Any:
        import numpy as np

        with np.errstate(invalid="ignore", over="ignore"):  # not finite is refused by the caller, with a message
            exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
            softmax = exponentials / exponentials.sum(axis=1, keepdims=True)
        # (n_texts, 3), columns in Label order. Checkpoints disagree on theirs, so we reorder here and nowhere else.
        zeros = np.zeros(len(softmax))
        return np.column_stack([zeros if column is None else softmax[:, column] for column in self._columns])


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Cut rows into batches of a limited number of tokens, padding included, shortest first."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if batch and lengths[row] * (len(batch) + 1) > TOKENS_PER_BATCH:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as exc:
        raise ModelError(
            "A checkpoint needs the package torch, which is not installed here: pip install torch"
        ) from exc
    return torch


def _load(name: str) -> tuple[Any, Any]:
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    try:
        model, report = AutoModelForSequenceClassification.from_pretrained(
            name, dtype=torch.float32, use_safetensors=True, trust_remote_code=False, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (SafetensorError, RuntimeError) as exc:
        raise ModelError(
            f"--model={name}: its weights cannot be loaded: {_first_line(exc)}.\n"
            "The file may be cut off or not fit its config.json; copy or save the checkpoint again."
        ) from exc
    except (OSError, ValueError, KeyError, ImportError) as exc:
        if Path(name).is_dir():
            raise ModelError(f"--model={name}: the checkpoint cannot be loaded: {_first_line(exc)}.") from exc
        raise ModelError(
            f"--model={name}: is no folder here, and cannot be had from the hub: {_first_line(exc)}.\n"
            "Look at the spelling and the network (HF_HUB_OFFLINE forbids it), or give a local folder."
        ) from exc
    if tokenizer.pad_token is None:
        # A causal model's classifier pads with its end token; the mask keeps padding out of the answer.
        if tokenizer.eos_token is None:
            raise ModelError(f"--model={name}: its tokenizer has no padding token, so texts cannot be batched.")
        tokenizer.pad_token = tokenizer.eos_token
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelError(
            f"--model={name}: its weights lack {len(missing)} of the model's tensors ({', '.join(missing[:3])}…), "
            "which would be filled with random numbers.\nThis is an encoder without a trained NLI head, or a damaged "
            "file. Give a checkpoint tuned for NLI."
        )
    return model, tokenizer


def check_device(device: str) -> None:
    """Refuse at start-up what no machine has."""
    if re.fullmatch(r"auto|cpu|mps|(cuda|xpu|npu|hpu)(:\d+)?", device) is None:
        raise OptionError(f"--bbnli-device={device}: there is no such device. Give auto, cpu, cuda or cuda:N.")


def _pick_device(device: str) -> "torch.device":
    import torch

    check_device(device)

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as exc:
        raise OptionError(
            f"--bbnli-device={device}: cannot be used here: {_first_line(exc)}. Give auto, cpu, cuda or cuda:N."
        ) from exc
    return chosen


def _max_length(tokenizer: Any, model: Any) -> int:
    """Find how many tokens the model takes: tokenizers without a limit report a huge number."""
    limits = [tokenizer.model_max_length]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            # RoBERTa and its kin count positions from behind the padding index.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - first)
    configured = getattr(model.config, "max_position_embeddings", None)
    if len(limits) == 1 and configured is not None and configured > 0:
        limits.append(configured)
    return int(min(limits))


def _fingerprint(folder: str, order: Sequence[str], max_length: int) -> str:
    """Hash what decides the answers: file contents, label order, length."""
    digest = sha256(f"{','.join(order)}\n{max_length}\n".encode())
    paths = {path for pattern in _FINGERPRINT_FILES for path in _local_folder(folder).glob(pattern)}
    for path in sorted(paths):
        digest.update(f"{path.name}\n".encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _local_folder(name: str) -> Path:
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(name, local_files_only=True))


@contextmanager
def _quiet_transformers() -> Iterator[None]:
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


def _first_line(exc: BaseException) -> str:
    text = str(exc).strip().splitlines()
    return text[0].rstrip(".") if text else type(exc).__name__
