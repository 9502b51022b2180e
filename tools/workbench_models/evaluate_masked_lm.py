"""Print a masked language model's figures on held-out words, and the words it expects in sentences you give."""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from tools.workbench_models.masked_words import (
    encode_sentences,
    log_frequencies,
    mask_one_word_each,
    measure,
    measure_frequencies,
    read_sentences,
    told,
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--sentence", nargs="*", default=["The man is a [MASK]."], help="each with one [MASK]")
    parser.add_argument("--max-length", type=int, default=32, help="tokens of a held-out sentence that are read")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args()


@torch.inference_mode()
def expected_words(model: Any, tokenizer: Any, sentence: str, count: int = 20) -> list[str]:
    """Most probable tokens at the sentence's mask, best first."""
    encoded = tokenizer(sentence, return_tensors="pt")
    places = (encoded["input_ids"][0] == tokenizer.mask_token_id).nonzero()
    if len(places) != 1:
        raise SystemExit(f"{sentence!r} has {len(places)} masks; write [MASK] once.")
    best = model(**encoded).logits[0, places[0, 0]].topk(count).indices
    return [str(tokenizer.convert_ids_to_tokens(int(token))) for token in best]


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    model = AutoModelForMaskedLM.from_pretrained(args.checkpoint).eval()
    tokenizer = AutoTokenizer.from_pretrained(args.checkpoint)
    for sentence in args.sentence:
        print(f"{sentence}  {', '.join(expected_words(model, tokenizer, sentence))}")
    vocabulary = tokenizer.get_vocab()
    pieces = sorted(vocabulary, key=lambda piece: int(vocabulary[piece]))
    training, held_texts = read_sentences()
    held = encode_sentences(tokenizer, held_texts, args.max_length)
    words = mask_one_word_each(held, pieces, int(tokenizer.mask_token_id))
    frequencies = log_frequencies(encode_sentences(tokenizer, training, args.max_length), len(pieces))
    found = {"most frequent words": measure_frequencies(frequencies, pieces, words), "model": measure(model, words)}
    size = sum(path.stat().st_size for path in args.checkpoint.iterdir())
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {model.dtype}, folder {size:,} bytes")
    print(f"{len(words)} words of {len(held)} held-out sentences")
    for name, values in found.items():
        print(told(name, values))
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
