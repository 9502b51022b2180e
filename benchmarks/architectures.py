"""Compares our pass with plain transformers on small random classifiers of many architectures, and writes a section.

`python -m benchmarks.architectures --output docs/models.md` replaces the section "Tried on many architectures" there.
"""

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from bbnli_audit.core.errors import AuditError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.classifier.hf import HFPredictor
from bbnli_audit.models.find import find_model
from bbnli_audit.models.inference.plain_check import check_against_plain, texts_to_check
from bbnli_audit.models.protocol import Floats
from benchmarks.page import put_section, silence, table
from tests.tiny_checkpoint import LABELS, SPECIAL, WORDS, invented_texts, make_tokenizer

TITLE = "Tried on many architectures"
MAX_LENGTH = 128
N_TEXTS = 10
_MOST_WEIGHTS = 3_000_000  # of a checkpoint here; a config that we could not make small has more
_N_VOCABULARY = len(SPECIAL) + len(WORDS)
_PAD, _START, _END = (SPECIAL.index(name) for name in ("[PAD]", "[CLS]", "[SEP]"))

ENCODERS = (
    *("albert", "bart", "bert", "big_bird", "bigbird_pegasus", "camembert", "canine", "convbert", "data2vec-text"),
    *("deberta", "deberta-v2", "distilbert", "electra", "ernie", "esm", "eurobert", "flaubert", "fnet", "funnel"),
    *("gte", "ibert", "jina_embeddings_v3", "layoutlm", "lilt", "longformer", "luke", "mbart", "megatron-bert"),
    *("mobilebert", "modernbert", "mpnet", "mra", "mt5", "mvp", "nomic_bert", "nystromformer", "perceiver", "plbart"),
    *("reformer", "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "squeezebert", "t5"),
    *("umt5", "xlm", "xlm-roberta", "xlm-roberta-xl", "xlnet", "xmod", "yoso"),
)
DECODERS = (
    *("bloom", "ctrl", "falcon", "gemma", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "llama", "mistral"),
    *(
        "mixtral",
        "modernbert-decoder",
        "mpt",
        "olmo2",
        "openai-gpt",
        "opt",
        "phi",
        "qwen2",
        "qwen3",
        "smollm3",
        "stablelm",
    ),
)
# Under the names that configs have for them.
_SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embedding_size", "d_embed"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "num_key_value_heads"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner"), 48),
    **dict.fromkeys(
        ("hidden_dim", "d_inner", "dff", "feed_forward_size", "ffn_hidden_size", "word_embed_proj_dim"), 48
    ),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"), 2 * MAX_LENGTH),
    "head_dim": 16,
    "d_kv": 16,
    "num_local_experts": 4,
    "initializer_range": 0.4,
    "init_std": 0.4,
}
# What some need besides, and with None what they do not take.
_ODD: dict[str, dict[str, Any]] = {
    "big_bird": {"block_size": 4, "num_random_blocks": 1},
    "bigbird_pegasus": {"block_size": 4, "num_random_blocks": 1},
    "canine": {"num_hash_buckets": 256, "downsampling_rate": 4, "local_transformer_stride": 16},
    "falcon": {"head_dim": None},
    "funnel": {"block_sizes": [1, 1], "d_head": 16, "num_hidden_layers": None},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 8},
    "gptj": {"rotary_dim": 8},
    "lilt": {"hidden_size": 48, "channel_shrink_ratio": 2},
    "longformer": {"attention_window": 8},
    "luke": {"entity_vocab_size": 16, "entity_emb_size": 16},
    "mobilebert": {"embedding_size": 32, "true_hidden_size": 32, "intra_bottleneck_size": 32},
    "opt": {"word_embed_proj_dim": 32},
    "perceiver": {"num_latents": 8, "d_latents": 32, "num_self_attends_per_block": 1, "num_blocks": 1},
    "reformer": {"axial_pos_shape": [16, 16], "axial_pos_embds_dim": [16, 16], "attn_layers": ["local", "lsh"]}
    | {"local_attn_chunk_length": 16, "lsh_attn_chunk_length": 16, "attention_head_size": 16, "hash_seed": 0},
    "roc_bert": {"pronunciation_vocab_size": _N_VOCABULARY, "shape_vocab_size": _N_VOCABULARY}
    | {"pronunciation_embed_dim": 16, "shape_embed_dim": 16},
    "t5": {"decoder_start_token_id": _PAD},
    "xlnet": {"max_position_embeddings": None},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
}


class Kind(NamedTuple):
    """What a checkpoint is besides its architecture."""

    told: str
    is_ended: bool  # its tokenizer puts the end token behind every text
    has_padding: bool  # its config names a padding token


PLAIN = Kind("", is_ended=True, has_padding=True)
CAUSAL = (
    Kind("padding token", is_ended=False, has_padding=True),
    Kind("no padding token", is_ended=False, has_padding=False),
    Kind("no padding token, texts end with EOS", is_ended=True, has_padding=False),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one checkpoint."""

    family: str
    kind: Kind
    path: str = ""
    largest: float = 0.0
    n_other: int = 0  # labels
    checking: float = 0.0  # processor seconds of the check
    refused: str = ""  # our message
    broken: str = ""  # what else was raised, which would be our fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", help="names of model types (default: all)")
    parser.add_argument("--output", type=Path, help="the page in which to replace the section (default: print it)")
    arguments = parser.parse_args()
    silence()
    trials = [trial for family, kind in _choose(arguments.families) if (trial := _told(family, kind))]
    put_section(arguments.output, TITLE, write_section(trials))


def _choose(families: Sequence[str]) -> Iterator[tuple[str, Kind]]:
    yield from ((family, PLAIN) for family in ENCODERS if not families or family in families)
    yield from ((family, kind) for family in DECODERS for kind in CAUSAL if not families or family in families)


def _told(family: str, kind: Kind) -> Trial | None:
    with TemporaryDirectory(prefix="bbnli-benchmark-") as folder:
        try:
            save_checkpoint(Path(folder), family, kind)
        except Exception as exc:  # noqa: BLE001 - transformers raises anything about sizes that do not go together
            print(f"{family}: not made: {type(exc).__name__}: {exc}"[:200], file=sys.stderr, flush=True)
            return None
        trial = try_checkpoint(Path(folder), family, kind)
    problem = trial.refused or trial.broken
    print(f"{family} ({kind.told}): {trial.largest:.1e} {trial.n_other} {problem}"[:300], file=sys.stderr, flush=True)
    return trial


def save_checkpoint(folder: Path, family: str, kind: Kind) -> None:
    config = _config(family, kind)
    head = transformers.AutoModelForSequenceClassification
    with torch.device("meta"):
        n_weights = sum(weight.numel() for weight in head.from_config(config).parameters())  # type: ignore[no-untyped-call]
    if n_weights > _MOST_WEIGHTS:
        raise ValueError(f"{n_weights:,} weights")
    torch.manual_seed(0)
    model: Any = head.from_config(config)  # type: ignore[no-untyped-call]
    tokenizer = make_tokenizer(MAX_LENGTH)
    if not kind.is_ended:
        tokenizer.backend_tokenizer.post_processor = None
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    if getattr(config, "type_vocab_size", 0) >= 2 and "token_type_ids" in inspect.signature(model.forward).parameters:
        tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    _even_out(model.eval(), tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _even_out(model: Any, tokenizer: Any) -> None:
    """Scale the last layer so that logits are neither all alike nor far apart: either would hide differences."""
    with torch.no_grad():
        rows = [deepcopy(model)(**tokenizer(*text, return_tensors="pt")).logits[0] for text in invented_texts(N_TEXTS)]
        scale = float(torch.stack(rows).std())
        *_, last = (part for part in model.modules() if isinstance(part, torch.nn.Linear) and part.out_features == 3)
        for weight in last.parameters():
            weight.div_(scale)


def _config(family: str, kind: Kind) -> Any:
    made: Any = transformers.AutoConfig.for_model(family)
    known = {name: size for name, size in _SIZES.items() if hasattr(made, name)}
    tokens = {"bos_token_id": _START, "eos_token_id": _END, "pad_token_id": _PAD if kind.has_padding else None}
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {name: at for at, name in enumerate(LABELS)}}
    sizes = {name: size for name, size in (known | _ODD.get(family, {})).items() if size is not None}
    return transformers.AutoConfig.for_model(family, **sizes, **tokens, **labels, vocab_size=_N_VOCABULARY)


def try_checkpoint(folder: Path, family: str, kind: Kind) -> Trial:
    texts = invented_texts(N_TEXTS)
    try:
        opened = find_model(str(folder)).open()
        assert isinstance(opened, HFPredictor)
        start = process_time()
        check_against_plain(opened, texts_to_check(texts))
        checking = process_time() - start
        ours = opened.predict(texts).probabilities
        plain = with_plain_transformers(folder, texts)
    except AuditError as exc:
        return Trial(family, kind, refused=str(exc).splitlines()[0].replace(str(folder), "MODEL"))
    except Exception as exc:  # noqa: BLE001 - told in the table
        return Trial(family, kind, broken=f"{type(exc).__name__}: {exc}")
    n_other = int((ours.argmax(axis=1) != plain.argmax(axis=1)).sum())
    return Trial(family, kind, opened.path, float(np.abs(ours - plain).max()), n_other, checking)


def with_plain_transformers(folder: Path, texts: Sequence[TextPair]) -> Floats:
    """Compute each text alone, with a copy of the model that has computed nothing: nothing of ours takes part."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    model: Any = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    rows = []
    for text in texts:
        with torch.no_grad():
            logits = deepcopy(model)(**tokenizer(*text, return_tensors="pt")).logits
        rows.append(logits[0].double().softmax(-1).numpy())
    return np.stack(rows)


def write_section(trials: Sequence[Trial]) -> str:
    fine = [trial for trial in trials if not trial.refused and not trial.broken]
    families = {trial.family for trial in trials}
    head = (
        f"`python -m benchmarks.architectures --output docs/models.md`: small classifiers with random weights, "
        f"{len(families)} architectures of transformers {transformers.__version__} as {len(trials)} checkpoints "
        f"(decoders with and without a padding token in the config, and with a tokenizer that ends texts with EOS). "
        f"{N_TEXTS} texts each, the check above, then each text alone with plain transformers and a fresh model.\n\n"
    )
    if not fine:
        return head + _problems(trials)
    figures = {
        "architectures": f"{len(families)}",
        "checkpoints": f"{len(trials)}",
        "audited": f"{len(fine)}",
        "largest difference of a probability": f"{max(trial.largest for trial in fine):.1e}",
        "other labels": f"{sum(trial.n_other for trial in fine)} of {N_TEXTS * len(fine):,}",
        "refused with a message": f"{sum(bool(trial.refused) for trial in trials)}",
        "broke in another way": f"{sum(bool(trial.broken) for trial in trials)}",
        "the check, processor time (median)": f"{1000 * median(trial.checking for trial in fine):.0f} ms",
    }
    paths: dict[str, list[str]] = {}
    for trial in fine:
        names = paths.setdefault(trial.path, [])
        names += [] if trial.family in names else [trial.family]
    rows = [[path, str(len(names)), ", ".join(names)] for path, names in paths.items()]
    ways = table(["computed by", "architectures", "which"], rows)
    return head + table(["figure", "value"], figures.items()) + "\n" + ways + _problems(trials)


def _problems(trials: Sequence[Trial]) -> str:
    found: dict[str, list[str]] = {}
    for trial in trials:
        if trial.refused or trial.broken:
            told = trial.family + (f" ({trial.kind.told})" if trial.kind.told else "")
            found.setdefault(trial.refused or trial.broken, []).append(told)
    if not found:
        return ""
    return "\n" + table(["not audited, because", "which"], [[why, ", ".join(names)] for why, names in found.items()])


if __name__ == "__main__":
    main()
