"""Finds faults in files of quads, by those rules of docs/datasheet.md that a program can check.

Rules for one file are about numbers, combinations, variety, controls and grammar. Rules for all files together find
wording that gives away a label, and wording that tells hypotheses from controls. They also find texts that repeat a
text of another file or a published template.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from bbnli_audit.core.values import Label, Pairing, Side
from bbnli_audit.suites.check import Faults, Finding, find_bad_grammar, find_repeats
from bbnli_audit.suites.quad_file import GROUPS, QuadFile, expand_quads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST = {"premises": 36, "disparities": 18, "scenes": 12, "hypotheses": 90, "pairs": 300, "controls": 96, "sources": 2}
MOST_TEXTS = 800
MOST_OF_PREMISE, MOST_OF_HYPOTHESIS = 0.06, 0.03  # largest shares of a file's pairs
MOST_COMPARATIVE, LEAST_OF_ONE_GROUP = 1 / 3, 1 / 2  # shares of a file's hypotheses
MOST_SHARED_WORDS, LEAST_VARIETY = 0.20, 65.0
SHORTEST, LONGEST = 10, 45  # length of a premise, in words
MOST_FROM_HYPOTHESIS = 0.45  # share of controls that a bag of words gets right without the premise, in a held-out file
SAME_ORDER = (0.35, 0.65)  # share of facts that name the same group first as their premise: from, to
MOST_SEPARABLE = 0.75  # with which words may tell hypotheses from controls (balanced accuracy, held-out file)
NEAR = 0.75  # two hypotheses with this share of their content words in common say nearly the same
NEAR_PUBLISHED = 0.5  # the largest share of a template's word 5-grams that may also be in one published template

_WORD = re.compile(r"[a-z0-9']+")
_TOKEN = r"(?u)\b\w+\b|[.,;:]"  # noqa: S105 - a token of a text


def check_quads(files: Mapping[Path, QuadFile], published: Iterable[str] = ()) -> list[Finding]:
    """Check each file alone, then all files together. No template may nearly repeat one in `published`."""
    found = [Finding(path.name, *fault) for path, file in files.items() for rule in RULES for fault in rule(file)]
    found += _find_telling_words(list(files.values()))
    return [*found, *_find_repeats(files), *_find_published(files, published)]


def _find_small_numbers(file: QuadFile) -> Faults:
    items = expand_quads(file, Pairing.QUADS)
    kinds = Counter(premise.kind for premise in file.premises)
    counts = {
        "premises": len(file.premises),
        "disparities": kinds["disparity"],
        "scenes": kinds["scene"],
        "hypotheses": len(file.hypotheses),
        "pairs": len(items.usable),
        "controls": len(items.controls),
        "sources": len(file.sources),
    }
    for name, least in LEAST.items():
        if counts[name] < least:
            yield "", f"has {counts[name]} {name}; a verdict needs {least} or more"
    texts = {text for pair in items.usable for text in (pair.pro, pair.anti)} | {each.text for each in items.controls}
    if len(texts) > MOST_TEXTS:
        yield "", f"has {len(texts)} texts; more than {MOST_TEXTS} make an audit slow"


def _find_uneven_crossing(file: QuadFile) -> Faults:
    pairs = expand_quads(file, Pairing.QUADS).usable
    for part, most in ((0, MOST_OF_PREMISE), (1, MOST_OF_HYPOTHESIS)):
        for entry, n in Counter(pair.cluster.split("/")[part] for pair in pairs).items():
            if n > most * len(pairs):
                share = f"{n / len(pairs):.1%} of the pairs"
                yield entry, f"is in {share}, more than {most:.0%}: one wording weighs too much"
    met = {premise for hypothesis in file.hypotheses for premise in hypothesis.premises}
    for premise in file.premises:
        if premise.id not in met:
            yield premise.id, "meets no hypothesis"


def _find_uneven_forms(file: QuadFile) -> Faults:
    n = len(file.hypotheses)
    about = Counter(hypothesis.about for hypothesis in file.hypotheses)
    if about["both"] > MOST_COMPARATIVE * n:
        yield "", f"{about['both']} of {n} hypotheses name both groups, more than a third"
    if max(about["GROUP1"], about["GROUP2"]) < LEAST_OF_ONE_GROUP * n:
        yield "", f"fewer than half of {n} hypotheses name the stereotyped group alone"
    for hypothesis in file.hypotheses:
        named = {name for name in GROUPS if name in hypothesis.text}
        if named != (set(GROUPS) if hypothesis.about == "both" else {hypothesis.about}):
            yield hypothesis.id, f"is said to be about {hypothesis.about}, and names {' and '.join(sorted(named))}"


def _find_little_variety(file: QuadFile) -> Faults:
    texts = [file.render(premise.text, Side.PRO) for premise in file.premises]
    for premise, text in zip(file.premises, texts, strict=True):
        n = len(_words(text))
        if not SHORTEST <= n <= LONGEST:
            yield premise.id, f"has {n} words; premises have {SHORTEST} to {LONGEST}"
    shared = mean_shared_words(texts)
    if shared > MOST_SHARED_WORDS:
        yield "", f"two premises share {shared:.2f} of their content words on average, more than {MOST_SHARED_WORDS}"
    variety = mtld([word for text in texts for word in _words(text)])
    if variety < LEAST_VARIETY:
        yield "", f"the premises have a lexical variety (MTLD) of {variety:.0f}, less than {LEAST_VARIETY:.0f}"


def _find_order_cue(file: QuadFile) -> Faults:
    """Check that the order of the groups, in premise and fact, does not give away the label of a control."""
    premises = {premise.id: premise.text for premise in file.premises}
    n_same = sum(_first_group(fact.text) == _first_group(premises[fact.follows_from]) for fact in file.controls)
    low, high = SAME_ORDER
    if file.controls and not low <= n_same / len(file.controls) <= high:
        what = f"in {n_same} of {len(file.controls)} facts the first group is also the first in the premise"
        yield "controls", f"{what}. It should be {low:.0%} to {high:.0%}: otherwise the order gives the label away"


def _first_group(template: str) -> str:
    found = re.search(r"GROUP[12]", template)
    return found.group() if found else ""


def _find_duplicates(file: QuadFile) -> Faults:
    words = {hypothesis.id: _content(hypothesis.text) for hypothesis in file.hypotheses}
    for (one, first), (other, second) in combinations(words.items(), 2):
        n_in_either = len(first | second)
        if n_in_either > 2 and len(first & second) >= NEAR * n_in_either:
            yield one, f"says nearly the same as {other}"


def _find_grammar(file: QuadFile) -> Faults:
    renderings = ((entry, file.render(template, side)) for entry, template in file.entries() for side in Side)
    yield from find_bad_grammar(file.group_names, renderings)


RULES: tuple[Callable[[QuadFile], Faults], ...] = (
    _find_small_numbers,
    _find_uneven_crossing,
    _find_uneven_forms,
    _find_little_variety,
    _find_order_cue,
    _find_duplicates,
    _find_grammar,
)


def _find_telling_words(files: Sequence[QuadFile]) -> Iterator[Finding]:
    found = accuracy_from_hypothesis(files)
    if found is not None and found > MOST_FROM_HYPOTHESIS:
        what = f"a classifier that sees only the words of the hypotheses gets {found:.0%} of the controls right"
        yield Finding("all files", "controls", f"{what}; {MOST_FROM_HYPOTHESIS:.0%} are allowed")
    found = separability(files)
    if found is not None and found > MOST_SEPARABLE:
        what = f"a classifier tells controls from hypotheses by their words with a balanced accuracy of {found:.2f}"
        yield Finding("all files", "controls", f"{what}, more than {MOST_SEPARABLE}")


def _find_repeats(files: Mapping[Path, QuadFile]) -> Iterator[Finding]:
    yield from find_repeats(
        (path, entry, [" ".join(_words(file.render(template, side))) for side in Side])
        for path, file in files.items()
        for entry, template in file.entries()
    )


def _find_published(files: Mapping[Path, QuadFile], published: Iterable[str]) -> Iterator[Finding]:
    theirs = [_grams(text) for text in published]
    for path, file in files.items():
        for entry, template in file.entries():
            ours = _grams(template)
            if any(len(ours & grams) > NEAR_PUBLISHED * len(ours) for grams in theirs):
                yield Finding(path.name, entry, "shares more than half of its word 5-grams with a published template")


def accuracy_from_hypothesis(files: Sequence[QuadFile]) -> float | None:
    """Return the share of controls that a classifier gets right from the hypothesis alone, in held-out files."""
    rows = [
        (control.text.hypothesis, list(Label).index(control.expected), place)
        for place, file in enumerate(files)
        for control in expand_quads(file, Pairing.QUADS).controls
    ]
    predicted, expected = _leave_one_out(rows)
    return float((predicted == expected).mean()) if len(expected) else None


def separability(files: Sequence[QuadFile]) -> float | None:
    """Return how well a classifier tells hypotheses from controls by their words: balanced accuracy in held-out files.

    Every text is rendered twice: as written, and with the groups exchanged. So the names of the groups tell nothing.
    """
    rows = [
        (file.render(template, side), kind, place)
        for place, file in enumerate(files)
        for kind, templates in enumerate(
            ([each.text for each in file.controls], [each.text for each in file.hypotheses])
        )
        for template in templates
        for side in Side
    ]
    predicted, expected = _leave_one_out(rows)
    if not len(expected):
        return None
    return float(sum((predicted[expected == kind] == kind).mean() for kind in (0, 1)) / 2)


def _leave_one_out(rows: Sequence[tuple[str, int, int]]) -> "tuple[NDArray[np.intp], NDArray[np.intp]]":
    """Predict the labels of each file's texts with a model that learns from the other files.

    Return the predicted and the true labels. A row is a text, its label and the number of its file. With fewer than two
    files, both arrays are empty.
    """
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    texts = [text for text, _, _ in rows]
    expected = np.array([label for _, label, _ in rows], dtype=np.intp)
    place = np.array([number for _, _, number in rows], dtype=np.intp)
    if len(set(place)) < 2:
        return expected[:0], expected[:0]
    predicted = np.empty_like(expected)
    # Words and bigrams are counted once, for all files. A model uses those that at least two training texts have.
    counts = CountVectorizer(ngram_range=(1, 2), token_pattern=_TOKEN).fit_transform(texts)
    for left_out in sorted(set(place)):
        rest, own = np.flatnonzero(place != left_out), np.flatnonzero(place == left_out)
        known = np.flatnonzero(counts[rest].getnnz(axis=0) >= 2)
        model = LogisticRegression(C=0.3, max_iter=500, class_weight="balanced")
        with threadpool_limits(1):  # on a busy machine, threads for such small products only wait for each other
            model.fit(counts[rest][:, known], expected[rest])
        predicted[own] = model.predict(counts[own][:, known])
    return predicted, expected


def mtld(words: Sequence[str], threshold: float = 0.72) -> float:
    """Return the lexical variety of a text (MTLD; McCarthy and Jarvis 2010).

    MTLD is the mean length of the stretches of text in which the share of different words stays at or above the
    threshold. The result is the mean of a pass forwards and a pass backwards.
    """

    def one_way(ordered: Sequence[str]) -> float:
        n_factors, n, seen = 0.0, 0, set[str]()
        for word in ordered:
            n += 1
            seen.add(word)
            if len(seen) / n < threshold:
                n_factors, n, seen = n_factors + 1, 0, set()
        n_factors += (1 - len(seen) / n) / (1 - threshold) if n else 0.0
        return len(ordered) / n_factors if n_factors else float("inf")

    return (one_way(words) + one_way(words[::-1])) / 2


def mean_shared_words(texts: Sequence[str]) -> float:
    """Return the share of content words that two texts have in common, on average."""
    contents = [_content(text) for text in texts]
    shares = [len(one & other) / max(len(one | other), 1) for one, other in combinations(contents, 2)]
    return sum(shares) / max(len(shares), 1)


def _content(template: str) -> set[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return {word for word in _words(re.sub(r"\{\{[^}]*\}\}", " ", template)) if word not in ENGLISH_STOP_WORDS}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(template: str, size: int = 5) -> set[tuple[str, ...]]:
    words = _words(re.sub(r"\{\{[^}]*\}\}", "group", template))
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}
