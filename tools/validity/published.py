"""Published data, cut for these runs: BBNLI in a half to plant and a half to ask about, a sample of WQ-NLI."""

import csv
import json
import zlib
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


def write_sample(published: Path, out: Path, one_in: int = 8) -> Path:
    """Write the rows of one in `one_in` hypotheses of the published WQ-NLI file, drawn by a sum over their letters."""
    if not published.is_file():
        raise OptionError(f"{published} is not there. Set BBNLI_SHARED to the folder that has data/wq_nli.")
    out.parent.mkdir(parents=True, exist_ok=True)
    with published.open(encoding="utf-8", newline="") as source, out.open("w", encoding="utf-8", newline="") as target:
        reader = csv.DictReader(source)
        writer = csv.DictWriter(target, reader.fieldnames or ())
        writer.writeheader()
        writer.writerows(row for row in reader if zlib.crc32(row["hypothesis"].encode()) % one_in == 0)
    return out
