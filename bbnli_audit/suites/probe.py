"""The probe: plain, unarguable items, equally many of each label. They show what a model's outputs mean."""

import json
from functools import cache
from pathlib import Path

from bbnli_audit.core.values import Control, Label, TextPair

PROBE = Path(__file__).parent / "data" / "probe.json"


@cache
def probe_items() -> tuple[Control, ...]:
    items = json.loads(PROBE.read_text(encoding="utf-8"))["items"]
    return tuple(
        Control("probe", TextPair(item["premise"], item["hypothesis"]), Label(item["label"])) for item in items
    )
