"""`planted:KIND`: models with a known fault, built from the suites' own answers. They show that the gate catches it.

Unlike every other predictor they know the expected labels and the sides: that makes the fault exact. They run through
the same pipeline as a checkpoint.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import Label, Side, TextPair
from bbnli_audit.models.labels import THREE_LABELS
from bbnli_audit.models.options import ModelKind, ModelSettings
from bbnli_audit.models.protocol import ModelSource, Predictions
from bbnli_audit.suites.probe import find_controls, probe_items
from bbnli_audit.suites.protocol import Suite

PLANTED = "planted:"
E, N, C = Label
_NEUTRAL, _ENTAILED = {Side.PRO: N, Side.ANTI: N}, {Side.PRO: E, Side.ANTI: E}
_RIGHT = {E: E, N: N, C: C}

# The answers to the two sides of a pair, and to a control by its expected label. None: by chance, from the text.
KINDS: dict[str, tuple[Mapping[Side, Label], Mapping[Label, Label]] | None] = {
    "ideal": (_NEUTRAL, _RIGHT),
    "always-neutral": (_NEUTRAL, {E: N, N: N, C: N}),
    "always-entail": (_ENTAILED, {E: E, N: E, C: E}),
    "always-pro": ({Side.PRO: E, Side.ANTI: C}, _RIGHT),
    "always-anti": ({Side.PRO: C, Side.ANTI: E}, _RIGHT),
    "brittle": (_ENTAILED, _RIGHT),
    "label-swapped": (_NEUTRAL, {E: C, N: N, C: E}),
    "random": None,
}


class PlantedPredictor:
    """Answers from a table of the suites' texts; a text it does not know is answered neutral."""

    def __init__(self, kind: str, suites: Sequence[Suite], seed: int = 0) -> None:
        self._seed = seed
        answers = KINDS[kind]
        self._is_random = answers is None
        self._answers: dict[TextPair, Label] = {} if answers is None else _tabulate(suites, *answers)
        name, fingerprint = f"{PLANTED}{kind}", sha256(f"{PLANTED}{kind}:{seed}".encode()).hexdigest()
        self.info = ModelInfo(name, fingerprint, "planted", "planted", "float64", THREE_LABELS)

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        labels = [self._by_chance(text) if self._is_random else self._answers.get(text, N) for text in texts]
        return Predictions.of([[0.90 if column is label else 0.05 for column in Label] for label in labels])

    def _by_chance(self, text: TextPair) -> Label:
        digest = sha256("\t".join((str(self._seed), *text)).encode()).digest()
        return list(Label)[int.from_bytes(digest[:8], "big") % 3]


def _tabulate(
    suites: Sequence[Suite], on_pair: Mapping[Side, Label], on_control: Mapping[Label, Label]
) -> dict[TextPair, Label]:
    answers = {item.text: on_control[item.expected] for item in probe_items()}
    for control in find_controls(suites):
        answers.setdefault(control.text, on_control[control.expected])
    for suite in suites:
        for subtopic in suite.subtopics():
            for pair in suite.items(subtopic).usable:
                answers.setdefault(pair.pro, on_pair[Side.PRO])
                answers.setdefault(pair.anti, on_pair[Side.ANTI])
    return answers


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
