"""Which of a masked language model's tokens are words that may fill a mask."""

from collections.abc import Callable, Collection, Mapping

# How tokenizers mark the start of a word; WordPiece marks the other pieces instead.
_STARTS = ("Ġ", "▁")  # byte-level BPE and SentencePiece
_MARKED = 0.05
_PIECE = "##"
_ONE_LETTER = frozenset("ai")
_PLURALS = {"men": "man", "women": "woman", "people": "person", "children": "child", "wives": "wife"}


def whole_words(
    vocabulary: Mapping[str, int], special: Collection[int], decode: Callable[[str], str] = str
) -> dict[str, int]:
    """Give the tokens that are whole words, without pieces, punctuation, numbers, single letters and special tokens.

    Of two tokens for one word (with a capital and without) both stay: they are different words to the model.

    Args:
        vocabulary: Tokens and their numbers.
        special: Numbers of tokens that are no words.
        decode: Gives the text of a token; byte pairs do not show it.
    """
    # A vocabulary may have such a letter without using it as a mark.
    shares = {start: sum(token.startswith(start) for token in vocabulary) / len(vocabulary) for start in _STARTS}
    mark = next((start for start, share in shares.items() if share > _MARKED), None)
    found: dict[str, int] = {}
    for token, number in sorted(vocabulary.items(), key=lambda entry: entry[1]):
        if number in special or (mark is not None and not token.startswith(mark)) or token.startswith(_PIECE):
            continue
        word = decode(token).strip().removeprefix(mark or "")
        if word.isalpha() and (len(word) > 1 or word.lower() in _ONE_LETTER):
            found.setdefault(word, number)
    return found


def is_group(word: str, groups: Collection[str]) -> bool:
    """Say whether a word is the name of a group, or a part of it, in the singular or the plural."""
    names = {_singular(part) for group in groups for part in group.lower().replace("-", " ").split()}
    return _singular(word.lower()) in names


def _singular(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
