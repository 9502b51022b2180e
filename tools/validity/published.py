"""The second route: published BBNLI files, their hypotheses split into a half to plant and a half to ask about."""

import json
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError
from tools.validity.examples import HELD_OUT, TRAINING

_SPLIT = ("bias_hypothesis_stereotypical", "bias_question_stereotypical")  # the same order in both


def write_halves(published: Path, out: Path) -> Path:
    """Write both halves of all files below `out`, in the published format: every second hypothesis in each."""
    paths = sorted(published.glob("*/*.json"))
    if not paths:
        raise OptionError(
            f"{published} has no published BBNLI files. Set BBNLI_SHARED to the folder that has data/bbnli."
        )
    for path in paths:
        data = json.loads(path.read_text(encoding="utf-8"))
        for half, name in enumerate((TRAINING, HELD_OUT)):
            target = out / name / path.parent.name / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(take_half(data, half), indent=1), encoding="utf-8")
    return out


def take_half(data: dict[str, Any], half: int) -> dict[str, Any]:
    """Keep every second hypothesis, from the first (half 0) or the second (half 1)."""
    return {key: value[half::2] if key in _SPLIT else value for key, value in data.items()}
