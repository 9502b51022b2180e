"""Finds faults that would distort a measurement: in template files, and in the items of any suite.

The rules are rough, so a person must judge each finding. The tests check our own data, and `bbnli-audit suites check`
checks a user's data.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bbnli_audit.core.values import Label, Pairing, Subtopic, SubtopicItems
from bbnli_audit.core.words import counted
from bbnli_audit.suites.protocol import Suite, get_items
from bbnli_audit.suites.template_file import (
    BIAS,
    CONTROL,
    PLACEHOLDER,
    TemplateFile,
    expand_items,
    expand_pairs,
    render,
)

MIN_PAIRS = 200
MIN_CLUSTERS = 24
MIN_CLASS_SHARE = 0.20
MOST_UNEVEN = 3  # the largest subtopic has at most this many times the pairs of the smallest
LEAK_SHARE = 0.75

Faults = Iterator[tuple[str, str]]  # each item: an entry of the file, and the fault of the entry

_WORD = re.compile(r"[A-Za-z']+")
_WORD_OR_MARK = re.compile(r"[A-Za-z']+|[^\sA-Za-z']")
_ARTICLE = re.compile(r"\b(an?) (\w+)", re.IGNORECASE)
_DOUBLED = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)
_PLURALS = {"men", "women", "people", "children"}
_PREPOSITIONS = {"of", "by", "for", "with", "from", "to", "than", "among", "between", "like", "about", "and", "or"}
_SINGULAR_VERBS = {"is", "was", "has", "does", "wants", "seems", "tends"}
# Words that begin with another sound than their first letter suggests.
_VOWEL_SOUND = {"hour", "honest", "honor", "heir"}
_CONSONANT_SOUND = re.compile("(one|once|university|union|unit|unique|used|useful|user|uniform|european|usual)")
_LABEL_WORDS = {"entail", "entails", "entailment", "neutral", "contradict", "contradicts", "contradiction"}


class Finding(NamedTuple):
    """One fault: the file, the entry, and what is wrong."""

    file: str
    entry: str
    problem: str

    def __str__(self) -> str:
        return f"{self.file}: {self.entry}: {self.problem}" if self.entry else f"{self.file}: {self.problem}"


def check_files(files: Sequence[TemplateFile]) -> list[Finding]:
    """Check each file alone, then compare the files with each other."""
    findings = [Finding(file.path.name, *found) for file in files for rule in RULES for found in rule(file)]
    return [*findings, *_find_repeats(files), *_find_uneven_sizes(files)]


def _find_lost_groups(file: TemplateFile) -> Faults:
    """Find hypotheses whose groups are not exchanged: they have no placeholder, or spell out a group's name."""
    for index, hypothesis in enumerate(file.hypotheses):
        names = set(PLACEHOLDER.findall(hypothesis.template))
        if not names & {"GROUP1", "GROUP2"}:
            yield f"{BIAS}[{index}]", "holds no {{GROUP1}} or {{GROUP2}}, so its two sides are the same"
        rest = _words_of(PLACEHOLDER.sub(" ", hypothesis.template))
        for group in file.groups:
            if rest & {group.lower(), f"{group.lower()}s"}:
                yield f"{BIAS}[{index}]", f"names {group!r} outright, so this group is never exchanged"


def _find_identical_sides(file: TemplateFile) -> Faults:
    identical = Counter(pair.cluster for pair in expand_pairs(file, Pairing.BOTH) if pair.is_identical)
    for cluster, n in sorted(identical.items()):
        yield cluster, f"{counted(n, 'pair has', 'pairs have')} the same text on both sides, so nothing is measured"


def _find_uneven_classes(file: TemplateFile) -> Faults:
    counts = Counter(control.expected for control in file.controls)
    for label in Label:
        if counts[label] < MIN_CLASS_SHARE * len(file.controls) or not file.controls:
            shares = ", ".join(f"{counts[each]} {each}" for each in Label)
            yield CONTROL, f"too few controls are {label} ({shares})"


def _find_duplicates(file: TemplateFile) -> Faults:
    places: dict[tuple[str, str], list[str]] = {}
    for entry, template in file.entries():
        places.setdefault((entry.partition("[")[0], _normal(template)), []).append(entry)
    for first, *more in places.values():
        if more:
            yield first, f"occurs {len(more) + 1} times"
    n_duplicates = expand_items(file, Pairing.BOTH).n_duplicates
    if n_duplicates:
        yield "", f"{counted(n_duplicates, 'pair is', 'pairs are')} expanded twice to the same texts"


def _find_bad_grammar(file: TemplateFile) -> Faults:
    renderings = ((entry, text) for entry, template in file.entries() for text in _renderings(file, template))
    yield from find_bad_grammar(file.groups, renderings)


def find_bad_grammar(groups: Sequence[str], renderings: Iterable[tuple[str, str]]) -> Faults:
    """Look for wrong articles, plurals with a singular verb, doubled words and small first letters in rendered text."""
    plural = {group.lower() for group in groups}
    plural = {group for group in plural if group in _PLURALS or (group.endswith("s") and not group.endswith("ss"))}
    found = dict.fromkeys((entry, problem) for entry, text in renderings for problem in _grammar(plural, text))
    yield from sorted(found, key=lambda fault: fault[0])


def _grammar(plurals: set[str], text: str) -> Iterator[str]:
    for article, word in _ARTICLE.findall(text):
        sound = word.lower()
        needs_an = sound in _VOWEL_SOUND or (sound[0] in "aeiou" and not _CONSONANT_SOUND.fullmatch(sound))
        if needs_an != (article.lower() == "an"):
            yield f"reads {article + ' ' + word!r}; it needs {'an' if needs_an else 'a'}"
    for doubled in _DOUBLED.findall(text):
        yield f"says {doubled!r} twice in a row"
    if text[:1].islower():
        yield f"begins with a small letter ({text.split()[0]!r})"
    words = [word.lower() for word in _WORD_OR_MARK.findall(text)]
    for index in range(len(words) - 1):
        # A plural after a preposition is not the subject: in "a team led by two men is", the verb agrees with the team.
        is_governed = bool(_PREPOSITIONS & set(words[max(index - 2, 0) : index]))
        is_governed |= index > 0 and words[index - 1].endswith("ing")  # "promoting men does more"
        if words[index] in plurals and words[index + 1] in _SINGULAR_VERBS and not is_governed:
            yield f"reads {' '.join(words[index : index + 2])!r}; a plural needs another verb"


def _find_label_leaks(file: TemplateFile) -> Faults:
    """Find words that give away a label, so that a model could be right without reading the premise.

    Also find hypotheses that a premise states: these are not neutral.
    """
    controls = [(_words_of(control.template), control.expected) for control in file.controls]
    for label in Label:
        mine = [words for words, expected in controls if expected is label]
        others = {word for words, expected in controls if expected is not label for word in words}
        tally = Counter(word for words in mine for word in words - others)
        for word, n in sorted(tally.items()):
            if n >= 3 and n >= LEAK_SHARE * len(mine):
                yield CONTROL, f"{word!r} is in {n} of {len(mine)} {label} controls and in no other"
    for entry, template in file.entries():
        for word in sorted(_words_of(template) & _LABEL_WORDS):
            yield entry, f"says {word!r}, the name of a label"
    for index, hypothesis in enumerate(file.hypotheses):
        text = _normal(hypothesis.template)
        if any(text in _normal(premise) for premise in file.premises):
            yield f"{BIAS}[{index}]", "is stated by a premise, so it is entailed and not neutral"


def _find_unused_words(file: TemplateFile) -> Faults:
    used = {name for _, template in file.entries() for name in PLACEHOLDER.findall(template)}
    for key in file.words:
        if key not in used:
            yield f"data.{key}", "is used by no premise or hypothesis"


def _find_small_numbers(file: TemplateFile) -> Faults:
    pairs = expand_items(file, Pairing.BOTH).usable
    n_clusters = len({pair.cluster for pair in pairs})
    if n_clusters < MIN_CLUSTERS:
        what = f"{n_clusters} clusters (premises and hypotheses)"
        yield "", f"{what} are too few for a verdict; have {MIN_CLUSTERS} or more"
    if len(pairs) < MIN_PAIRS:
        yield "", f"{len(pairs)} usable pairs are too few for a verdict; have {MIN_PAIRS} or more"


def _find_repeats(files: Sequence[TemplateFile]) -> Iterator[Finding]:
    yield from find_repeats(
        (file.path, f"{BIAS}[{index}]", map(_normal, _renderings(file, hypothesis.template)))
        for file in files
        for index, hypothesis in enumerate(file.hypotheses)
    )


def find_repeats(entries: Iterable[tuple[Path, str, Iterable[str]]]) -> Iterator[Finding]:
    """Find entries that share a text with another file. Each of `entries` is a file, the entry's name and its texts."""
    homes: dict[str, Path] = {}
    for path, entry, texts in entries:
        found = [homes.setdefault(text, path) for text in texts]
        other = next((home for home in found if home != path), None)
        if other is not None:
            yield Finding(path.name, entry, f"is in {other.name} as well")


def _find_uneven_sizes(files: Sequence[TemplateFile]) -> Iterator[Finding]:
    sizes = [(len(expand_items(file, Pairing.BOTH).usable), file.path.name) for file in files]
    if not sizes:
        return
    (n_least, smallest), (n_most, largest) = min(sizes), max(sizes)
    if n_most > MOST_UNEVEN * n_least:
        fault = f"has {n_least} pairs and {largest} {n_most}: more than {MOST_UNEVEN} times as many"
        yield Finding(smallest, "", fault)


RULES: tuple[Callable[[TemplateFile], Faults], ...] = (
    _find_lost_groups,
    _find_identical_sides,
    _find_uneven_classes,
    _find_duplicates,
    _find_bad_grammar,
    _find_label_leaks,
    _find_unused_words,
    _find_small_numbers,
)


def check_items(suite: Suite) -> list[Finding]:
    """Check the items of each subtopic of any suite, and find pairs that occur in two subtopics."""
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
    n_empty = sum(not all(part.strip() for part in text) for text in texts)
    if n_empty:
        yield f"empty premise or hypothesis in {counted(n_empty, 'text')}"
    if items.n_identical:
        yield f"the same text on both sides, so nothing to measure, in {counted(items.n_identical, 'pair')}"
    if items.n_duplicates:
        yield f"already there, so not measured again: {counted(items.n_duplicates, 'pair')}"
    n_clusters = len({pair.cluster for pair in items.usable})
    if n_clusters < MIN_CLUSTERS:
        yield f"has {counted(n_clusters, 'cluster')}; below {MIN_CLUSTERS} most verdicts stay open (docs/suites.md)"
    labels = Counter(control.expected for control in items.controls)
    for label in Label:
        if labels and labels[label] < MIN_CLASS_SHARE * labels.total():
            share = labels[label] / labels.total()
            yield f"{share:.0%} of the controls are {label.value}; expected {MIN_CLASS_SHARE:.0%} or more"


def _words_of(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _renderings(file: TemplateFile, template: str) -> Iterator[str]:
    """Render both sides often enough to use each word of every list. The checks do not need every combination."""
    longest = max((len(words) for words in file.words.values()), default=1)
    for first, second in (file.groups, file.groups[::-1]):
        for turn in range(longest):
            words = {key: values[turn % len(values)] for key, values in file.words.items()}
            yield render(template, {**words, "GROUP1": first, "GROUP2": second})


def _normal(text: str) -> str:
    return " ".join(re.sub(r"[^\w{}]+", " ", text.lower()).split())
