"""Reads a checkpoint's folder without torch: whether it can be loaded, what its outputs mean, and its fingerprint.

A run that finds all its predictions in the store needs only these facts, and never loads the model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import ModelError, OptionError, suggest
from bbnli_audit.core.files import file_stamp, hash_file
from bbnli_audit.core.reading import ANY_SIZE, Source
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.models.adapter import CONTENT_FILES, TOKENIZER_FILES, Parts, list_checkpoints
from bbnli_audit.models.labels import label_order
from bbnli_audit.models.loading import first_line

# Settings that name further files for transformers to load.
_NAMED_FILES = (("config.json", "transformers_weights"), ("tokenizer_config.json", "fast_tokenizer_files"))

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}
BACKENDS = ("torch", "onnx")


@dataclass(frozen=True, slots=True)
class Precision:
    """How a checkpoint is computed. The exact path is float32 with torch; every other path is checked against it."""

    dtype: str = "float32"
    backend: str = "torch"

    @property
    def is_exact(self) -> bool:
        return self == Precision()

    def __str__(self) -> str:
        return f"{self.backend} {self.dtype}"


EXACT = Precision()


def read_precision(dtype: str | None, backend: str | None) -> Precision:
    """Read --bbnli-dtype and --bbnli-backend."""
    dtype = dtype or "fp32"
    backend = backend or ("onnx" if dtype == "int8" else "torch")  # docs/decisions/0009-fast-paths.md
    if dtype not in DTYPES:
        raise OptionError(f"--bbnli-dtype={dtype}: there is no such number type. {suggest(dtype, DTYPES)}")
    if backend not in BACKENDS:
        raise OptionError(f"--bbnli-backend={backend}: there is no such backend. {suggest(backend, BACKENDS)}")
    if (backend == "onnx" and dtype in ("bf16", "fp16")) or (backend == "torch" and dtype == "int8"):
        known = "torch computes fp32, bf16 and fp16 here, ONNX Runtime fp32 and int8"
        raise OptionError(f"--bbnli-backend={backend} with --bbnli-dtype={dtype}: {known}. Leave one of them out.")
    return Precision(DTYPES[dtype], backend)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A sequence classifier on disk."""

    folder: Path
    info: ModelInfo

    def fingerprint(self, hash_content: Callable[[Path], str] = hash_file) -> str:
        """Return the fingerprint of the files as they are now."""
        labels, computed = ",".join(self.info.labels), Precision(self.info.dtype, self.info.backend)
        return hash_contents(f"{labels}\n{computed}\n", self.folder, hash_content)


def find_checkpoint(
    name: str,
    labels: str | None = None,
    precision: Precision = EXACT,
    folder: Path | None = None,
    hash_content: Callable[[Path], str] = hash_file,
) -> Checkpoint:
    """Check a checkpoint, read what its outputs mean, and describe it. Its folder is `folder`, or by default `name`.

    `hash_content` may come from a store, which keeps the hashes of unchanged files.
    """
    place = folder or Path(name)
    order = check_folder(str(place), labels)
    info = ModelInfo(name, "", "sequence-classification", precision.backend, precision.dtype, order)
    return Checkpoint(place, replace(info, fingerprint=Checkpoint(place, info).fingerprint(hash_content)))


def check_folder(name: str, labels: str | None = None) -> tuple[str, ...]:
    """Refuse a folder that is no NLI checkpoint. Return the label of each output, or () if the files are on the hub."""
    folder = Path(name)
    advice = "Give the folder that holds the checkpoint's config.json"
    if not folder.exists():
        if name.startswith((".", "/", "~")) or name.count("/") > 1:
            raise ModelError(f"--model={name}: there is no such folder.\n{advice}, or a name on the hub (owner/name).")
        return ()  # a name on the hub
    if not folder.is_dir():
        raise ModelError(f"--model={name}: is a file. {advice}.")
    parts = Parts(folder)
    parts.check(name)
    if not parts.base.is_dir():
        return ()  # the base of an adapter, on the hub
    config = read_config(name, parts.base)
    heads = heads_of(config)
    if parts.task != "SEQ_CLS" and not any(head.endswith("ForSequenceClassification") for head in heads):
        needed = "this audit needs a sequence-classification head (…ForSequenceClassification)"
        found = f"its head is {', '.join(heads) or 'none named'}"
        raise ModelError(f"--model={name}: {found}; {needed}.\nGive a checkpoint tuned for NLI.")
    check_contents(name, folder)
    id2label = _read_id2label(name, config)
    if parts.is_adapter and parts.n_outputs not in (None, len(id2label)):
        id2label = {index: f"LABEL_{index}" for index in range(parts.n_outputs or 0)}  # the base's names do not fit
    return label_order(id2label, labels, name)


def check_contents(name: str, folder: Path) -> None:
    """Refuse a folder without safetensors weights or without a tokenizer, whatever its head."""
    parts = Parts(folder)
    parts.check(name)
    with Source(folder, ModelError, f"--model={name}").telling():
        list(folder.iterdir())  # raises if the folder cannot be listed; glob() would just find nothing
    for path in content_files(folder):
        Source(path, ModelError, f"--model={name}: {path.name}").check(ANY_SIZE)
    if parts.base.is_dir() and not any(parts.base.glob("*.safetensors")):
        others = ", ".join(sorted(path.name for path in parts.base.glob("*.bin"))) or "none at all"
        fault = f"no weights in safetensors format ({others}); others can run code when they are loaded"
        raise ModelError(f"--model={name}: {fault}.\nSave it again with save_pretrained(folder).")
    if not any(path for place in parts.all for pattern in TOKENIZER_FILES for path in place.glob(pattern)):
        fault = f"the folder has no tokenizer ({', '.join(TOKENIZER_FILES)})"
        raise ModelError(f"--model={name}: {fault}.\nSave it there with tokenizer.save_pretrained(folder).")
    for place in parts.all:
        _check_named_files(name, place)
        for path in sorted(place.glob("*.index.json")):
            _check_index(name, path)


def _check_named_files(name: str, folder: Path) -> None:
    """Refuse settings that make transformers load a file that the fingerprint does not cover."""
    for file, key in _NAMED_FILES:
        path = folder / file
        if not path.exists():
            continue
        source = Source(path, ModelError, f"--model={name}: its {file}", advice="Save the checkpoint again.")
        settings = source.read_json()
        named = settings.get(key) if isinstance(settings, dict) else None
        for one in named if isinstance(named, list) else [named]:
            if one is not None and not (isinstance(one, str) and _is_content(one)):
                problem = f"{key} is {one!r:.120}, which is not a file of the folder itself"
                raise source.wrong(problem)


def _is_content(file: str) -> bool:
    """Say whether a checkpoint's fingerprint covers a file of this name in its folder."""
    return file == Path(file).name and any(fnmatchcase(file, pattern) for pattern in CONTENT_FILES)


def _check_index(name: str, path: Path) -> None:
    """Refuse an index that names weights outside the folder: no fingerprint would cover them."""
    index = Source(
        path, ModelError, f"--model={name}: its {path.name}", advice="Save the checkpoint again."
    ).read_json()
    parts = index.get("weight_map") if isinstance(index, dict) else None
    files = list(parts.values()) if isinstance(parts, dict) else [None]
    if not all(isinstance(file, str) and file == Path(file).name for file in files):
        problem = f"its {path.name} names weights that are not files of the folder itself"
        raise ModelError(f"--model={name}: {problem}.\nSave the checkpoint again, or put its files into one folder.")


@dataclass(frozen=True, slots=True)
class ContentStamps:
    """The state of a checkpoint's files before they were hashed."""

    name: str
    folder: Path
    stamps: Mapping[Path, str] | None  # the value that `_stamps` returned

    @classmethod
    def of(cls, name: str, folder: Path) -> "ContentStamps":
        return cls(name, folder, _stamps(folder))

    def check(self) -> None:
        """Refuse to go on if a file has changed. Memory-mapped weights change with their file, even after loading."""
        if self.stamps is None or _stamps(self.folder) != self.stamps:
            fault = "files of the checkpoint changed while it was in use, so its answers may be those of another model"
            advice = "Nothing that it answered since then was kept. Run it again when nobody writes to the folder."
            raise ModelError(f"--model={self.name}: {fault}.\n{advice}")


def _stamps(folder: Path) -> dict[Path, str] | None:
    """Return the stamps of a checkpoint's files. If a listed file has vanished, return None: it counts as changed."""
    try:
        return {path: file_stamp(path) for path in (*content_files(folder), *Parts(folder).all)}
    except OSError:
        return None


def content_files(folder: Path) -> list[Path]:
    """List the files that decide a checkpoint's answers; for an adapter, also those of its base."""
    return [
        path
        for place in Parts(folder).all
        for path in sorted({path for pattern in CONTENT_FILES for path in place.glob(pattern)})
    ]


def hash_contents(start: str, folder: Path, hash_content: Callable[[Path], str]) -> str:
    """Return a fingerprint of the files that decide a checkpoint's answers, and of `start`.

    `start` says how the answers are computed.
    """
    digest = sha256(start.encode())
    for path in content_files(folder):
        digest.update(f"{path.name} {hash_content(path)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def read_config(name: str, folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.exists():
        problem = "the folder has no config.json, so transformers cannot load it"
        inside = list_checkpoints(folder)
        if inside:
            told = f"{problem}. It holds {', '.join(inside)}"
            raise ModelError(f"--model={name}: {told}.\nGive one of them: --model={name}/{inside[-1]}")
        raise ModelError(f"--model={name}: {problem}.\nSave the model there with save_pretrained().")
    source = Source(path, ModelError, f"--model={name}: its config.json", advice="Save the checkpoint again.")
    config = source.read_json()
    if not isinstance(config, dict):
        raise source.wrong("does not hold an object")
    return config


def heads_of(config: Mapping[str, Any]) -> list[str]:
    """Return the class names under `architectures` in a config, such as BertForMaskedLM."""
    architectures = config.get("architectures") or []
    return [str(head) for head in (architectures if isinstance(architectures, list) else [architectures])]


def _read_id2label(name: str, config: Mapping[str, Any]) -> dict[int, str]:
    id2label = config.get("id2label") or {str(index): f"LABEL_{index}" for index in range(2)}
    if not isinstance(id2label, dict) or not all(map(_is_output, id2label)):
        expected = 'expected the number of each output and its name, as in {"0": "entailment", ...}'
        raise ModelError(f"--model={name}: id2label in its config.json is {id2label!r:.200}; {expected}.")
    return {int(index): str(label) for index, label in id2label.items()}


def _is_output(index: str) -> bool:
    return index.isascii() and index.isdigit() and len(index) < 10


def fetch(name: str) -> Path:
    """Fetch the newest files from the hub. Without a network, find the files that were fetched before."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(str(snapshot_download(name, allow_patterns=list(CONTENT_FILES))))
    except (OSError, LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, ValueError) as exc:
        problem = f"is not a folder here, and cannot be fetched from the hub: {first_line(exc)}"
        advice = "Check the spelling and the network (HF_HUB_OFFLINE forbids it), or give a local folder."
        raise ModelError(f"--model={name}: {problem}.\n{advice}") from exc
