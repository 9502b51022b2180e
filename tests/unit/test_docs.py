"""Tables in the docs that repeat what the code knows."""

import re
from pathlib import Path

from bbnli_audit.measures.measure import Measure
from bbnli_audit.measures.registry import all_measures

METRICS = Path(__file__).parents[2] / "docs" / "metrics.md"
TITLE = "| measure | limit | unit | readings | family | what it is |"


def row_of(measure: Measure) -> str:
    cells = (
        f"`{measure.name}`",
        f"`{measure.limit}`" if measure.limit else "–",
        measure.unit,
        ", ".join(measure.readings),
        measure.family or "–",
        measure.sentence,
    )
    return f"| {' | '.join(cells)} |"


def test_the_table_of_measures_is_the_registry() -> None:
    lines = METRICS.read_text(encoding="utf-8").splitlines()
    start = lines.index(TITLE) + 2
    end = next(n for n in range(start, len(lines)) if not lines[n].startswith("|"))
    assert lines[start:end] == [row_of(measure) for measure in all_measures()]


def test_every_measure_named_on_the_page_exists() -> None:
    text = METRICS.read_text(encoding="utf-8")
    known = {name for measure in all_measures() for name in (measure.name, measure.limit)}
    named = set(re.findall(r"`(\w+_(?:rate|bias|preference|gap|label|sensitivity))`", text))
    assert named - known == {"entailment_preference"}  # compares two models and is not a measure
