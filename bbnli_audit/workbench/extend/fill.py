"""Step 3, `fill`: fills masks with the likeliest whole words. The masked language model reads only the hypothesis."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.files import hash_file
from bbnli_audit.core.reading import parse_json
from bbnli_audit.models.batches import chunks
from bbnli_audit.models.checkpoint import ContentStamps, check_contents, hash_contents
from bbnli_audit.models.inference.progress import Progress, tell_time
from bbnli_audit.models.language_model.scoring import LanguageModel
from bbnli_audit.models.language_model.token_probability import MASKED, lm_kind
from bbnli_audit.workbench.extend.mask import MASK
from bbnli_audit.workbench.extend.table import Sample, Word, path_of
from bbnli_audit.workbench.workspace import Counts, count_by_subtopic, telling

SCHEME = "fill 1"
_SPARE = 20  # words to propose beyond those wanted, because names of groups are removed
_AT_ONCE = 512
_N_TIMED = 32
# Tokenizers mark the start of a word (byte-level BPE, SentencePiece) or all pieces but the first (WordPiece).
_STARTS = ("Ġ", "▁")
_MARKED = 0.05  # a mark is in use if more than this share of the tokens begin with it
_PIECE = "##"
_ONE_LETTER = frozenset("ai")
_PLURALS = {"men": "man", "women": "woman", "people": "person", "children": "child", "wives": "wife"}

Groups = Mapping[str, tuple[str, str]]  # subtopic path → names of its groups
Proposed = Sequence[tuple[str, float]]  # words and their probabilities, most likely first
# A function that takes distinct texts with a mask, and the number of words to propose. It yields each text with its
# words.
Propose = Callable[[Sequence[str], int], Iterator[tuple[str, Proposed]]]


class MaskedModel(NamedTuple):
    """A masked language model on disk, not loaded yet."""

    name: str
    folder: Path
    fingerprint: str
    check: Callable[[], None]  # raises if the model's files have changed since it was found


def find_masked_model(name: str) -> MaskedModel:
    """Find a masked language model without loading it. Refuse any other kind of model."""
    folder = Path(name)
    if not folder.is_dir():
        raise ModelError(f"--model={name}: there is no such folder. Name a masked language model (…ForMaskedLM).")
    if lm_kind(folder) != MASKED:
        raise ModelError(f"--model={name}: is not a masked language model. Its config.json must say …ForMaskedLM.")
    check_contents(name, folder)
    before = ContentStamps.of(name, folder)
    return MaskedModel(folder.resolve().name, folder, hash_contents(f"{SCHEME}\n", folder, hash_file), before.check)


def fill(samples: Iterable[Sample], groups: Groups, top: int, propose: Propose) -> list[Word]:
    """Return the `top` likeliest words for each distinct masked hypothesis of each subtopic.

    The names of a subtopic's groups never fill a mask.
    """
    hypotheses = list(dict.fromkeys((sample.domain, sample.subtopic, sample.masked) for sample in samples))
    texts = list(dict.fromkeys(masked for _, _, masked in hypotheses))
    found = dict(propose(texts, top + _SPARE))
    filled: list[Word] = []
    for domain, subtopic, masked in hypotheses:
        names = groups[f"{domain}/{subtopic}"]
        chosen = [entry for entry in found[masked] if not is_group(entry[0], names)][:top]
        filled += (Word(domain, subtopic, masked, rank, *entry) for rank, entry in enumerate(chosen, start=1))
    return filled


class Journal:
    """A file of finished work, as JSON lines. With this file, a killed step continues where it stopped.

    The first line says what the work is. If this line differs from `work`, the file starts empty. Incomplete lines
    are dropped.
    """

    def __init__(self, path: Path, work: Mapping[str, Any]) -> None:
        self._path = path
        self._work = json.dumps({"work": work}, sort_keys=True)

    def read(self) -> list[Any]:
        """Return the finished entries. Remove everything else from the file."""
        with telling(self._path, "read"):
            text = self._path.read_text(encoding="utf-8", errors="replace") if self._path.exists() else ""
        work, *lines = text.split("\n")
        entries: dict[str, Any] = {}
        for line in lines[:-1] if work == self._work else ():  # what follows the last newline is incomplete
            with suppress(ValueError):
                entries[line] = parse_json(line)
        whole = "".join(f"{line}\n" for line in (self._work, *entries))
        if whole != text:
            self._write(whole, "w")
        return list(entries.values())

    def add(self, entry: Any) -> None:
        """Save one entry. It is on the disk when this returns."""
        self._write(f"{json.dumps(entry, ensure_ascii=False)}\n", "a")

    def remove(self) -> None:
        with suppress(OSError):
            self._path.unlink()

    def _write(self, text: str, mode: str) -> None:
        with telling(self._path, "written"), self._path.open(mode, encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


@dataclass(frozen=True, slots=True)
class Filler:
    """Proposes words with a masked language model, which is loaded only if a text is not in the journal."""

    model: MaskedModel
    journal: Journal
    device: str = "auto"
    progress: Progress = field(default_factory=Progress)
    say: Callable[[str], object] = lambda _: None

    def propose(self, texts: Sequence[str], n_words: int) -> Iterator[tuple[str, Proposed]]:
        """Yield each text with the most likely words for its mask, and save each result at once."""
        known: dict[str, Proposed] = dict(filter(None, map(_read_entry, self.journal.read())))
        missing = [text for text in texts if text not in known]
        yield from ((text, known[text]) for text in texts if text in known)
        if not missing:
            return
        model = LanguageModel(self.model.name, self.model.folder, is_causal=False, device=self.device)
        tokenizer = model.tokenizer
        words = whole_words(
            tokenizer.get_vocab(), model.encoder.special, lambda token: tokenizer.convert_tokens_to_string([token])
        )
        started = time.monotonic()
        list(self._predict(model, missing[:_N_TIMED], words, n_words))
        seconds = (time.monotonic() - started) * len(missing) / min(_N_TIMED, len(missing))
        self.say(f"{len(missing):,} masked hypotheses: about {tell_time(seconds)}.")
        self.progress.begin(len(missing), sum(map(len, missing)))
        try:
            for some in chunks(missing, _AT_ONCE):
                for text, found in self._predict(model, some, words, n_words):
                    self.model.check()
                    self.journal.add([text, found])
                    self.progress.step(1, len(text))
                    yield text, found
        finally:
            self.progress.end()

    def _predict(
        self, model: LanguageModel, texts: Sequence[str], words: Mapping[str, int], n_words: int
    ) -> Iterator[tuple[str, Proposed]]:
        import numpy as np

        encoded = model.encoder.encode([text.replace(MASK, model.tokenizer.mask_token) for text in texts])
        if any(tokens.is_truncated for tokens in encoded):
            raise ModelError(f"{self.model.name}: a hypothesis is too long for the model. Shorten the template.")
        names = list(words)
        for places, probabilities in model.read_masks([tokens.ids for tokens in encoded], list(words.values())):
            for place, row in zip(places, probabilities, strict=True):
                order = np.argsort(-row, kind="stable")[:n_words]
                yield texts[place], [(names[at], float(f"{row[at]:.6g}")) for at in order]


def whole_words(
    vocabulary: Mapping[str, int], special: Collection[int], decode: Callable[[str], str] = str
) -> dict[str, int]:
    """Return the tokens that are whole words, with their ids.

    Word pieces, punctuation, numbers, special tokens and single letters other than *a* and *i* are left out. If a word
    has two tokens, with and without a capital, both stay: to the model they are different words. `decode` returns the
    text of a token: a byte-level vocabulary does not contain tokens as plain text.
    """
    # A vocabulary may contain a mark's character without using it as a mark. A real mark begins many tokens.
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
    """Say whether a word is the name of a group, or part of such a name, in the singular or the plural."""
    names = {_singular(part) for group in groups for part in group.lower().replace("-", " ").split()}
    return _singular(word.lower()) in names


def _singular(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _read_entry(entry: Any) -> tuple[str, Proposed] | None:
    """Read a journal entry. Return None for an entry of the wrong shape; its text is then predicted again."""
    try:
        text, words = entry
        return str(text), [(str(word), float(probability)) for word, probability in words]
    except (TypeError, ValueError):
        return None


def find_fault(row: Sample, groups: Groups) -> str | None:
    if path_of(row) not in groups:
        return f"the suite has no subtopic {path_of(row)}. Fix that line, or repeat `expand`."
    if row.masked.count(MASK) != 1 or row.counterpart.count(MASK) != 1:
        return f"masked and counterpart must each have one {MASK}. Fix that line, or repeat `expand`."
    return None


def count(samples: Sequence[Sample], words: Sequence[Word]) -> Counts:
    """Count filled hypotheses and filled samples. A masked hypothesis or sample counts once for each of its words."""
    n_words = Counter((path_of(word), word.masked) for word in words)
    filled: list[str] = []
    for sample in samples:
        filled += [path_of(sample)] * n_words[path_of(sample), sample.masked]
    return count_by_subtopic({"filled_hypotheses": map(path_of, words), "filled_samples": filled})
