"""The forms of a question: the answers that a prompt asks for, how they are read, and which labels they mean."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from bbnli_audit.core.values import Label
from bbnli_audit.models.labels import THREE_LABELS
from bbnli_audit.models.language_model import answers, three_way
from bbnli_audit.models.language_model.three_way import ThreeWay
from bbnli_audit.models.prompts import LABELS, TRUTH, YES_NO, Prompt

Row = tuple[float, float, float]  # a prediction

# If the probabilities of all answers add up to less than this, the first token is nearly always something else, and
# there is no answer to read.
LEAST_MASS = 0.05
_CASES = (str.lower, str.capitalize, str.upper)
_SPACES = " \t\n\u0120\u2581"  # the last two stand for a space in vocabularies
_FEWEST_LETTERS = 2  # a token with fewer letters does not count as the beginning of a longer word
_ALWAYS_WHOLE = 3  # a word of at most this many letters must be one token


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a question. A prediction has a column for each of its answers, in their order."""

    kind: str  # the kind of a model that is asked in this form
    labels: tuple[str, ...]  # the meanings of the answers
    words: tuple[tuple[str, ...], ...]  # for each answer, the words that may begin it, the usual one first
    unread: Row  # the prediction for an answer that could not be read
    parse: Callable[[str], int | None]  # from a model's text to the number of an answer
    is_settled: Callable[[str], bool]  # whether the answer is final, whatever follows
    rules: tuple[str | int, ...]  # how texts are parsed; part of the fingerprint, because stores keep only predictions

    def row_of_text(self, text: str) -> Row:
        """Return the prediction for a model's text."""
        found = self.parse(text)
        return self.unread if found is None else _row([float(place == found) for place in range(len(self.words))])

    def row_of_masses(self, masses: Sequence[float]) -> Row:
        """Return the prediction, given the probability that the first token begins each answer."""
        total = sum(masses)
        return self.unread if total < LEAST_MASS else _row([mass / total for mass in masses])

    def answer_begun_by(self, token: str) -> int | None:
        """Return the number of the answer that a token begins. Return None if it begins no answer, or several."""
        word = token.strip(_SPACES)
        if word not in [change(word) for change in _CASES]:
            return None
        found = {place for place, words in enumerate(self.words) if _begins(word.lower(), words)}
        return found.pop() if len(found) == 1 else None

    def masses(self, tokens: Iterable[tuple[str, float]]) -> list[float]:
        """Sum the probabilities of first tokens by the answer that they begin."""
        sums = [0.0] * len(self.words)
        for token, probability in tokens:
            place = self.answer_begun_by(token)
            if place is not None:
                sums[place] += probability
        return sums


def _begins(part: str, words: Iterable[str]) -> bool:
    return any(
        part == word or (len(word) > _ALWAYS_WHOLE and len(part) >= _FEWEST_LETTERS and word.startswith(part))
        for word in words
    )


def _row(shares: Sequence[float]) -> Row:
    first, second, third = (*shares, 0.0)[:3]
    return first, second, third


def _parse_yes_no(text: str) -> int | None:
    return {answers.Answer.YES: 0, answers.Answer.NO: 1}.get(answers.parse_answer(text))


def _three_way(name: str, reader: ThreeWay, *words: tuple[str, ...]) -> Form:
    def parse(text: str) -> int | None:
        found = reader.parse(text)
        return None if found is None else list(Label).index(found)

    # All three columns stand for labels, so an answer that could not be read gets the same value in each.
    unread = (1 / 3, 1 / 3, 1 / 3)
    return Form("generative-three-way", THREE_LABELS, words, unread, parse, reader.is_settled, (name, three_way.PARSER))


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        YES_NO: Form(
            "generative",
            ("entailment", "not_entailment"),
            (("yes",), ("no",)),
            (0.0, 0.0, 1.0),  # yes and no never mean contradiction, so its column stands for "not read"
            _parse_yes_no,
            answers.is_settled,
            (answers.PARSER,),
        ),
        LABELS: _three_way(
            LABELS,
            three_way.LABELS,
            ("entailment", "entailed", "entails"),
            ("neutral",),
            ("contradiction", "contradictory", "contradicted", "contradicts"),
        ),
        TRUTH: _three_way(TRUTH, three_way.TRUTH, ("true",), ("cannot", "can't", "unknown"), ("false",)),
    }
)


def form_of(prompt: Prompt) -> Form:
    return FORMS[prompt.form]
