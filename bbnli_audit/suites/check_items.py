"""Finds faults in the items of any suite, including suites of other projects."""

from collections import Counter
from collections.abc import Iterator

from bbnli_audit.core.values import Label, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.check import MIN_CLASS_SHARE, MIN_CLUSTERS, Finding
from bbnli_audit.suites.protocol import Suite, get_items


def check_items(suite: Suite) -> list[Finding]:
    """Check the items of each subtopic, and find pairs that occur in two subtopics."""
    found: list[Finding] = []
    homes: dict[str, Subtopic] = {}
    for subtopic in suite.subtopics():
        items = get_items(suite, subtopic)
        found += [Finding(subtopic.path, "", problem) for problem in _faults(items)]
        for pair in items.usable:
            home = homes.setdefault(pair.id, subtopic)
            if home != subtopic:
                found.append(Finding(subtopic.path, pair.id, f"this pair is also one of {home.path}"))
    return found


def _faults(items: SubtopicItems) -> Iterator[str]:
    texts = [text for pair in items.pairs for text in (pair.pro, pair.anti)]
    texts += [control.text for control in items.controls]
    n_empty = sum(map(_is_empty, texts))
    if n_empty:
        yield f"{n_empty} texts have an empty premise or hypothesis"
    if items.n_identical:
        yield f"{items.n_identical} pairs have the same text on both sides and measure nothing"
    if items.n_duplicates:
        yield f"{items.n_duplicates} pairs stand there twice; each is measured once"
    n_clusters = len({pair.cluster for pair in items.usable})
    if n_clusters < MIN_CLUSTERS:
        yield f"has {n_clusters} clusters; below {MIN_CLUSTERS} most verdicts stay open (docs/suites.md)"
    labels = Counter(control.expected for control in items.controls)
    for label in Label:
        if labels and labels[label] < MIN_CLASS_SHARE * labels.total():
            share = labels[label] / labels.total()
            yield f"{share:.0%} of the controls are {label.value}; expected {MIN_CLASS_SHARE:.0%} or more"


def _is_empty(text: TextPair) -> bool:
    return not all(part.strip() for part in text)
