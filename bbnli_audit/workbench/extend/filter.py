"""Step 4, `filter`: keeps the filled samples that at least one of the given NLI models does not call neutral."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from bbnli_audit.core.reading import parse_json
from bbnli_audit.core.values import Label, TextPair
from bbnli_audit.workbench.extend.mask import MASK
from bbnli_audit.workbench.extend.models import NliModel
from bbnli_audit.workbench.extend.table import Found, Item, Sample, Word, path_of
from bbnli_audit.workbench.workspace import Counts, count_by_subtopic, draw_by_content, item_id


class Candidate(NamedTuple):
    """A masked sample with one of its words."""

    sample: Sample
    word: str

    @property
    def text(self) -> TextPair:
        return TextPair(self.sample.premise, put_in(self.sample.masked, self.word))


def put_in(masked: str, word: str) -> str:
    """Replace the mask by a word, which gets a capital at the start of a sentence."""
    return masked.replace(MASK, word[:1].upper() + word[1:] if masked.startswith(MASK) else word)


def find_fault(row: Found) -> str | None:
    try:
        labels = parse_json(row.labels)
    except ValueError:
        labels = None
    if not isinstance(labels, dict) or not labels or not all(label in tuple(Label) for label in labels.values()):
        names = ", ".join(Label)
        return f"labels is not a JSON object of models and labels ({names}). Fix that line, or repeat `filter`."
    return None


def make_candidates(samples: Sequence[Sample], words: Sequence[Word]) -> list[Candidate]:
    """Fill the masks with words. Within a subtopic, a text that arises several times is only one candidate."""
    of_hypothesis: dict[tuple[str, str], list[str]] = {}
    for word in words:
        of_hypothesis.setdefault((path_of(word), word.masked), []).append(word.word)
    found: dict[tuple[str, TextPair], Candidate] = {}
    for sample in samples:
        for filled in of_hypothesis.get((path_of(sample), sample.masked), ()):
            candidate = Candidate(sample, filled)
            found.setdefault((path_of(sample), candidate.text), candidate)
    return list(found.values())


def keep_found(candidates: Sequence[Candidate], models: Sequence[NliModel]) -> list[Found]:
    """Return the candidates that at least one model does not call neutral, with the label from each model."""
    texts = [candidate.text for candidate in candidates]
    labels = {model.name: model.labels(texts) for model in models}
    found = []
    for at, (sample, word) in enumerate(candidates):
        given = {name: tuple(Label)[row[at]] for name, row in labels.items()}
        if set(given.values()) - {Label.NEUTRAL}:
            source = (sample.domain, sample.subtopic, sample.sample, sample.cluster, sample.strategy)
            sentences = (*texts[at], put_in(sample.counterpart, word))
            found.append(Found(*source, *sentences, sample.masked, word, json.dumps(given)))
    return found


def make_items(found: Sequence[Found], sample: int | None = None) -> list[Item]:
    """Return the distinct hypotheses for people to judge, at most `sample` of each subtopic."""
    ids = [item_id(row.domain, row.subtopic, row.hypothesis) for row in found]
    n_samples = Counter(ids)
    items: dict[str, Item] = {}
    for name, row in zip(ids, found, strict=True):
        source = (row.domain, row.subtopic, row.hypothesis, row.masked, row.word, row.premise)
        items.setdefault(name, Item(name, *source, n_samples[name]))
    of_subtopic: dict[str, list[str]] = {}
    for item in items.values():
        of_subtopic.setdefault(path_of(item), []).append(item.item)
    chosen = set().union(*(draw_by_content(each, sample) for each in of_subtopic.values()))
    return [item for name, item in items.items() if name in chosen]


def count(
    candidates: Sequence[Candidate], found: Sequence[Found], items: Sequence[Item], models: Sequence[NliModel]
) -> Counts:
    by_model = {model.name: [path_of(row) for row in found if model.name in row.found_by] for model in models}
    return count_by_subtopic(
        {
            "candidates": [path_of(candidate.sample) for candidate in candidates],
            "kept_samples": map(path_of, found),
            "hypotheses_to_judge": map(path_of, items),
            **{f"found_by {name}": paths for name, paths in by_model.items()},
        }
    )
