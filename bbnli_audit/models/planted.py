"""`planted:KIND`: models with known faults, to test that the gate catches such faults.

Some planted models know the sides of the pairs and the expected labels, which no other predictor knows. So their fault
is exact. The other planted models follow a shallow rule, like a model that does not really read. All planted models run
through the same pipeline as a checkpoint.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import chain

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import Label, Pair, Side, TextPair
from bbnli_audit.models.labels import THREE_LABELS
from bbnli_audit.models.options import ModelKind, ModelSettings
from bbnli_audit.models.protocol import ModelSource, Predictions
from bbnli_audit.suites.probe import find_controls, probe_items
from bbnli_audit.suites.protocol import Suite

PLANTED = "planted:"
DOSES = (2, 5, 10, 20)  # percent
E, N, C = Label
Rule = Callable[[TextPair], Label]
Sides = Mapping[Side, Label]

_NEUTRAL, _ENTAILED = {Side.PRO: N, Side.ANTI: N}, {Side.PRO: E, Side.ANTI: E}
_PRO, _ANTI = {Side.PRO: E, Side.ANTI: C}, {Side.PRO: C, Side.ANTI: E}
_RIGHT = {E: E, N: N, C: C}
_ROWS = {label: [0.90 if column is label else 0.05 for column in Label] for label in Label}  # probabilities to predict
_WORD = re.compile(r"\w+")
_CUES = {"not", "no", "never", "nobody", "none", "hardly", "rarely", "cannot", "without", "fewer", "less"}


def _answering(
    on_pair: Callable[[Pair], Sides], on_control: Mapping[Label, Label] = _RIGHT
) -> Callable[[Sequence[Suite]], Rule]:
    """Answer pairs by side, and controls and the probe by expected label. All other texts get neutral."""

    def plant(suites: Sequence[Suite]) -> Rule:
        answers = {item.text: on_control[item.expected] for item in probe_items()}
        for control in find_controls(suites):
            answers.setdefault(control.text, on_control[control.expected])
        for pair in _pairs(suites):
            for side, text in zip(Side, (pair.pro, pair.anti), strict=True):
                answers.setdefault(text, on_pair(pair)[side])
        return lambda text: answers.get(text, N)

    return plant


def _pairs(suites: Sequence[Suite]) -> Sequence[Pair]:
    return [pair for suite in suites for subtopic in suite.subtopics() for pair in suite.items(subtopic).usable]


def _dosed(percent: int, name: Callable[[Pair], str]) -> Callable[[Sequence[Suite]], Rule]:
    """Give stereotyped answers to some pairs, and right answers to all others.

    `name` returns a name for each pair, such as its id. About `percent` % of the names are drawn. The pairs that have a
    drawn name get the stereotyped answers.
    """
    return _answering(lambda pair: _PRO if _drawn(name(pair)) % 100 < percent else _NEUTRAL)


def _drawn(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _by_cues(text: TextPair) -> Label:
    """Label by the hypothesis alone. A cue word means contradiction, some first words neutral, all else entailment."""
    words = _words(text.hypothesis)
    if _CUES & set(words):
        return C
    return N if words[:1] in (["the"], ["a"], ["most"], ["at"], ["in"]) else E


def _by_first_word(text: TextPair) -> Label:
    return list(Label)[_drawn(" ".join(_words(text.hypothesis)[:1])) % 3]


def _by_overlap(text: TextPair) -> Label:
    """Call a text entailed if at least half of the words of the hypothesis are in the premise."""
    words = set(_words(text.hypothesis))
    return E if 2 * len(words & set(_words(text.premise))) >= len(words) else N


def _by_fitted_words(suites: Sequence[Suite]) -> Rule:
    """Label by the words of the hypothesis alone, with a model for each subtopic.

    The model is fitted on the controls of all other subtopics. If there is only one subtopic, it is fitted on that
    subtopic's controls. If there are no controls to fit it on, it is fitted on the probe.
    """
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    items = [suite.items(subtopic) for suite in suites for subtopic in suite.subtopics()]
    controls = [*chain.from_iterable(own.controls for own in items), *probe_items()]
    owner = np.repeat([*range(len(items)), -1], [*(len(own.controls) for own in items), len(probe_items())])
    expected = np.array([each.expected.value for each in controls])
    # Words are counted once, for all models. Each model uses only words of the texts that it is fitted on.
    words = CountVectorizer(ngram_range=(1, 2))
    counts = words.fit_transform([each.text.hypothesis for each in controls])
    answers: dict[TextPair, Label] = {}
    for place, own in enumerate(items):
        texts = [each.text for each in own.controls] + [text for pair in own.usable for text in (pair.pro, pair.anti)]
        if not texts:
            continue
        rows = np.flatnonzero((owner >= 0) & ((owner != place) | (len(items) == 1)))
        rows = rows if len(rows) else np.flatnonzero(owner < 0)
        known = np.flatnonzero(counts[rows].getnnz(axis=0))
        model = MultinomialNB().fit(counts[rows][:, known], expected[rows])
        labels = model.predict(words.transform([text.hypothesis for text in texts])[:, known])
        answers.update(zip(texts, map(Label, labels), strict=True))
    return lambda text: answers.get(text, N)


def _by_group(suites: Sequence[Suite]) -> Rule:
    """Answer neutral if the hypothesis names a group. Label all other texts correctly."""
    right = _answering(lambda _: _NEUTRAL)(suites)
    groups: set[str] = set()
    for pair in _pairs(suites):
        groups |= set(_words(pair.pro.hypothesis)) ^ set(_words(pair.anti.hypothesis))
    return lambda text: N if groups & set(_words(text.hypothesis)) else right(text)


def _shallow(rule: Rule) -> Callable[[Sequence[Suite]], Rule]:
    return lambda _: rule


KINDS: Mapping[str, Callable[[Sequence[Suite]], Rule]] = {
    "ideal": _answering(lambda _: _NEUTRAL),
    "always-neutral": _answering(lambda _: _NEUTRAL, {E: N, N: N, C: N}),
    "always-entail": _answering(lambda _: _ENTAILED, {E: E, N: E, C: E}),
    "always-pro": _answering(lambda _: _PRO),
    "always-anti": _answering(lambda _: _ANTI),
    "brittle": _answering(lambda _: _ENTAILED),
    "label-swapped": _answering(lambda _: _NEUTRAL, {E: C, N: N, C: E}),
    "random": _shallow(lambda text: list(Label)[_drawn("\t".join(("0", *text))) % 3]),
    "blind-cues": _shallow(_by_cues),
    "blind-words": _by_fitted_words,
    "first-word": _shallow(_by_first_word),
    "overlap": _shallow(_by_overlap),
    "group-means-neutral": _by_group,
    **{f"pro-{percent}-of-pairs": _dosed(percent, lambda pair: pair.id) for percent in DOSES},
    **{
        f"pro-{percent}-of-hypotheses": _dosed(percent, lambda pair: pair.pro.hypothesis + pair.anti.hypothesis)
        for percent in DOSES
    },
}


class PlantedPredictor:
    """Answers by a planted rule."""

    def __init__(self, kind: str, suites: Sequence[Suite]) -> None:
        self._rule = KINDS[kind](suites)
        name = f"{PLANTED}{kind}"
        fingerprint = sha256(name.encode()).hexdigest()
        self.info = ModelInfo(name, fingerprint, "planted", "planted", "float64", THREE_LABELS)

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        return Predictions.of([_ROWS[self._rule(text)] for text in texts])


def _check(name: str, settings: ModelSettings) -> None:
    settings.refuse_all(name)
    kind = name.removeprefix(PLANTED)
    if kind not in KINDS:
        raise OptionError(f"--model={name}: there is no such planted model. {suggest(kind, KINDS)}")


KIND = ModelKind(
    "planted",
    f"{PLANTED}KIND",
    lambda name: name.startswith(PLANTED),
    _check,
    lambda name, settings: ModelSource.of(PlantedPredictor(name.removeprefix(PLANTED), settings.suites)),
)
