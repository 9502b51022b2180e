"""Step 3, `fill`: the likeliest whole words of a masked language model, which reads the hypothesis alone."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.files import hash_file
from bbnli_audit.models.checkpoint import check_contents, hash_contents
from bbnli_audit.models.inference.progress import Progress, Silent, tell_time
from bbnli_audit.models.language_model.token_probability import MASKED, lm_kind
from bbnli_audit.workbench.extend.journal import Journal
from bbnli_audit.workbench.extend.mask import MASK
from bbnli_audit.workbench.extend.table import Sample, Word
from bbnli_audit.workbench.extend.words import is_group, whole_words

if TYPE_CHECKING:
    from bbnli_audit.models.language_model.scoring import LanguageModel

SCHEME = "fill 1"
# Words looked at for each one wanted: some are the names of groups.
_SPARE = 20
_AT_ONCE = 512
_N_TIMED = 32

Groups = Mapping[tuple[str, str], tuple[str, str]]  # by domain and subtopic
Proposed = Sequence[tuple[str, float]]  # words and their probabilities, likeliest first


class MaskedModel(NamedTuple):
    """A masked language model on disk, not loaded yet."""

    name: str
    folder: Path
    fingerprint: str

    def open(self, device: str = "auto") -> "LanguageModel":
        from bbnli_audit.models.language_model.scoring import LanguageModel

        return LanguageModel(self.name, self.folder, is_causal=False, device=device)


def find_masked_model(name: str) -> MaskedModel:
    """Find the model without loading it.

    Raises:
        ModelError: when it is no masked language model.
    """
    folder = Path(name)
    if not folder.is_dir():
        raise ModelError(f"--model={name}: there is no such folder. Give a masked language model (…ForMaskedLM).")
    if lm_kind(folder) != MASKED:
        raise ModelError(
            f"--model={name}: is no masked language model, so it cannot propose words for a mask. Give the folder of "
            "one whose config.json names …ForMaskedLM."
        )
    check_contents(name, folder)
    return MaskedModel(folder.resolve().name, folder, hash_contents(f"{SCHEME}\n", folder, hash_file))


def fill(
    samples: Iterable[Sample],
    groups: Groups,
    top: int,
    propose: Callable[[Sequence[str], int], Iterator[tuple[int, Proposed]]],
) -> list[Word]:
    """Give the `top` words of each distinct masked hypothesis of each subtopic.

    Args:
        samples: What `expand` gave.
        groups: The names of the groups of each subtopic: a group's own name fills no mask.
        top: How many words.
        propose: Gives the likeliest words of texts with a mask: the place of the text, and its words.
    """
    hypotheses = list(dict.fromkeys((sample.domain, sample.subtopic, sample.masked) for sample in samples))
    texts = list(dict.fromkeys(masked for _, _, masked in hypotheses))
    found = {texts[at]: words for at, words in propose(texts, top + _SPARE)}
    return [
        Word(domain, subtopic, masked, rank, word, probability)
        for domain, subtopic, masked in hypotheses
        for rank, (word, probability) in enumerate(_choose(found[masked], groups[domain, subtopic], top), start=1)
    ]


def _choose(words: Proposed, groups: tuple[str, str], top: int) -> list[tuple[str, float]]:
    return [entry for entry in words if not is_group(entry[0], groups)][:top]


class Filler:
    """Proposes words with a masked language model; the model is loaded when a text is not in the journal."""

    def __init__(
        self,
        model: MaskedModel,
        journal: Journal,
        *,
        device: str = "auto",
        progress: Progress | None = None,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._model = model
        self._journal = journal
        self._device = device
        self._progress = progress or Silent()
        self._say = say

    def propose(self, texts: Sequence[str], n_words: int) -> Iterator[tuple[int, Proposed]]:
        """Give the likeliest words of each text; what is found is kept at once."""
        known: dict[str, Proposed] = dict(filter(None, map(_read_entry, self._journal.read())))
        missing = [at for at, text in enumerate(texts) if text not in known]
        yield from ((at, known[text]) for at, text in enumerate(texts) if text in known)
        if not missing:
            return
        model = self._model.open(self._device)
        tokenizer = model.tokenizer
        words = whole_words(
            tokenizer.get_vocab(), model.encoder.special, lambda token: tokenizer.convert_tokens_to_string([token])
        )
        started = time.monotonic()
        list(self._predict(model, [texts[at] for at in missing[:_N_TIMED]], words, n_words))
        seconds = (time.monotonic() - started) * len(missing) / min(_N_TIMED, len(missing))
        self._say(f"{len(missing):,} masked hypotheses: about {tell_time(seconds)}.")
        self._progress.begin(len(missing), sum(len(texts[at]) for at in missing))
        try:
            for start in range(0, len(missing), _AT_ONCE):
                some = missing[start : start + _AT_ONCE]
                for place, found in self._predict(model, [texts[at] for at in some], words, n_words):
                    at = some[place]
                    self._journal.add([texts[at], found])
                    self._progress.step(1, len(texts[at]))
                    yield at, found
        finally:
            self._progress.end()

    def _predict(
        self, model: "LanguageModel", texts: Sequence[str], words: Mapping[str, int], n_words: int
    ) -> Iterator[tuple[int, Proposed]]:
        import numpy as np

        mask = model.tokenizer.mask_token
        encoded = model.encoder.encode([text.replace(MASK, mask) for text in texts])
        if any(tokens.is_truncated for tokens in encoded):
            raise ModelError(f"{self._model.name}: a hypothesis is longer than the model takes. Shorten the template.")
        names = list(words)
        for places, probabilities in model.read_masks([tokens.ids for tokens in encoded], list(words.values())):
            for place, row in zip(places, probabilities, strict=True):
                order = np.argsort(-row, kind="stable")[:n_words]
                yield place, [(names[at], float(f"{row[at]:.6g}")) for at in order]


def find_fault(row: Sample, groups: Groups) -> str | None:
    """Say what is wrong with a row that people may have changed."""
    if (row.domain, row.subtopic) not in groups:
        return f"the suite has no subtopic {row.domain}/{row.subtopic}. Mend it, or do `expand` again."
    if row.masked.count(MASK) != 1 or row.counterpart.count(MASK) != 1:
        return f"masked and counterpart must have one {MASK} each. Mend it, or do `expand` again."
    return None


def _read_entry(entry: Any) -> tuple[str, Proposed] | None:
    """Read a line of the journal; what is no such line is left out, and computed again."""
    try:
        text, words = entry
        return str(text), [(str(word), float(probability)) for word, probability in words]
    except (TypeError, ValueError):
        return None


def count(samples: Sequence[Sample], words: Sequence[Word]) -> dict[str, dict[str, int]]:
    """Count filled samples: each masked sample with each of its words."""
    n_words: dict[tuple[str, str], int] = {}
    for word in words:
        key = (f"{word.domain}/{word.subtopic}", word.masked)
        n_words[key] = n_words.get(key, 0) + 1
    counts: dict[str, dict[str, int]] = {}
    for sample in samples:
        path = f"{sample.domain}/{sample.subtopic}"
        found = counts.setdefault(path, {"filled_hypotheses": 0, "filled_samples": 0})
        found["filled_samples"] += n_words.get((path, sample.masked), 0)
    for (path, _), n in n_words.items():
        counts[path]["filled_hypotheses"] += n
    return counts
