"""NLI models for tests of the workbench, given as `tests.workbench_models:NAME`. They look only at single words."""

from collections.abc import Sequence

_CONTROLS = {
    "A workshop is open": 0,
    "The workshop is closed": 2,
    "There is a workshop on the red moon.": 0,
    "The red moon has no workshop.": 2,
}


def careful(texts: Sequence[tuple[str, str]]) -> list[list[float]]:
    """Neutral, except for the controls."""
    return [_answer(_known(hypothesis, 1)) for _, hypothesis in texts]


def hasty(texts: Sequence[tuple[str, str]]) -> list[list[float]]:
    """Believes what is said of Zorbs or Fins before others are named; denies that Quints or Gills walk."""
    return [_answer(_known(hypothesis, _hasty(hypothesis))) for _, hypothesis in texts]


def gullible(texts: Sequence[tuple[str, str]]) -> list[list[float]]:
    """Believes everything that has an even number of letters."""
    return [_answer(_known(hypothesis, len(hypothesis) % 2)) for _, hypothesis in texts]


def useless(texts: Sequence[tuple[str, str]]) -> list[list[float]]:
    return [_answer(1) for _ in texts]


def _known(hypothesis: str, otherwise: int) -> int:
    return next((label for start, label in _CONTROLS.items() if hypothesis.startswith(start)), otherwise)


def _hasty(hypothesis: str) -> int:
    first, second = (
        min((at for group in groups if (at := hypothesis.find(group)) >= 0), default=len(hypothesis))
        for groups in (("Zorbs", "Fins"), ("Quints", "Gills"))
    )
    if "walk" in hypothesis and second < len(hypothesis):
        return 2
    return 0 if first < second else 1


def _answer(label: int) -> list[float]:
    return [0.9 if at == label else 0.05 for at in range(3)]
