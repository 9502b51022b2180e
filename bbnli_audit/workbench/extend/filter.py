"""Step 4, `filter`: keeps the filled samples that at least one of the given NLI models does not call neutral."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bbnli_audit.core.values import TextPair
from bbnli_audit.workbench.extend.mask import MASK
from bbnli_audit.workbench.extend.models import LABEL_NAMES, NEUTRAL, NliModel
from bbnli_audit.workbench.extend.table import Found, Item, Sample, Word
from bbnli_audit.workbench.review.items import item_id


class Candidate(NamedTuple):
    """A masked sample with one of its words."""

    sample: Sample
    word: str

    @property
    def hypothesis(self) -> str:
        return put_in(self.sample.masked, self.word)

    @property
    def counterpart(self) -> str:
        return put_in(self.sample.counterpart, self.word)

    @property
    def text(self) -> TextPair:
        return TextPair(self.sample.premise, self.hypothesis)

    @property
    def path(self) -> str:
        return f"{self.sample.domain}/{self.sample.subtopic}"


def put_in(masked: str, word: str) -> str:
    """Put a word in the place of the mask; with a capital where a sentence begins."""
    return masked.replace(MASK, word[:1].upper() + word[1:] if masked.startswith(MASK) else word)


def find_fault(row: Found) -> str | None:
    """Say what is wrong with a row that people may have changed."""
    try:
        labels = json.loads(row.labels)
    except ValueError:
        labels = None
    if not isinstance(labels, dict) or not labels or not set(labels.values()) <= set(LABEL_NAMES):
        return f"labels is no JSON object of model and label ({', '.join(LABEL_NAMES)}). Mend it, or do `filter` again."
    return None


def make_candidates(samples: Sequence[Sample], words: Sequence[Word]) -> list[Candidate]:
    """Put the words in; a text that several masks lead to is there once."""
    of_hypothesis: dict[tuple[str, str, str], list[str]] = {}
    for word in words:
        of_hypothesis.setdefault((word.domain, word.subtopic, word.masked), []).append(word.word)
    found: dict[tuple[str, TextPair], Candidate] = {}
    for sample in samples:
        for filled in of_hypothesis.get((sample.domain, sample.subtopic, sample.masked), ()):
            candidate = Candidate(sample, filled)
            found.setdefault((candidate.path, candidate.text), candidate)
    return list(found.values())


def keep_found(candidates: Sequence[Candidate], models: Sequence[NliModel]) -> list[Found]:
    """Keep what is not neutral for one of the models at least."""
    texts = [candidate.text for candidate in candidates]
    labels = {model.name: model.labels(texts) for model in models}
    return [
        _found(candidate, {name: LABEL_NAMES[row[at]] for name, row in labels.items()})
        for at, candidate in enumerate(candidates)
        if any(row[at] != NEUTRAL for row in labels.values())
    ]


def _found(candidate: Candidate, labels: Mapping[str, str]) -> Found:
    sample = candidate.sample
    return Found(
        sample.domain,
        sample.subtopic,
        sample.sample,
        sample.cluster,
        sample.strategy,
        sample.premise,
        candidate.hypothesis,
        candidate.counterpart,
        sample.masked,
        candidate.word,
        json.dumps(labels),
    )


def make_items(found: Sequence[Found]) -> list[Item]:
    """Give each distinct hypothesis once, for people to judge."""
    items: dict[str, Item] = {}
    for row in found:
        name = item_id(row.domain, row.subtopic, row.hypothesis)
        known = items.get(name)
        if known is None:
            items[name] = Item(name, row.domain, row.subtopic, row.hypothesis, row.masked, row.word, row.premise, 1)
        else:
            items[name] = known._replace(n_samples=known.n_samples + 1)
    return list(items.values())


def count(
    candidates: Sequence[Candidate], found: Sequence[Found], items: Sequence[Item], models: Sequence[NliModel]
) -> dict[str, dict[str, int]]:
    """Count what was looked at, what is kept, and what each model found."""
    counts: dict[str, dict[str, int]] = {}
    empty = {"candidates": 0, "kept_samples": 0, "kept_hypotheses": 0}
    empty |= {f"found_by {model.name}": 0 for model in models}
    for path, name in _events(candidates, found, items):
        found_there = counts.setdefault(path, dict(empty))
        found_there[name] = found_there.get(name, 0) + 1
    return counts


def _events(
    candidates: Sequence[Candidate], found: Sequence[Found], items: Sequence[Item]
) -> Iterator[tuple[str, str]]:
    for candidate in candidates:
        yield candidate.path, "candidates"
    for row in found:
        path = f"{row.domain}/{row.subtopic}"
        yield path, "kept_samples"
        yield from ((path, f"found_by {name}") for name in row.found_by)
    for item in items:
        yield f"{item.domain}/{item.subtopic}", "kept_hypotheses"
