"""The items that check a model: the probe (plain NLI items that show its label order) and the suites' controls."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from bbnli_audit.core.values import Control, Label, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.protocol import Suite

PROBE = Path(__file__).parent / "data" / "probe.json"


@cache
def probe_items() -> tuple[Control, ...]:
    """Return the items of the probe, equally many of each label."""
    items = json.loads(PROBE.read_text(encoding="utf-8"))["items"]
    return tuple(
        Control("probe", TextPair(each["premise"], each["hypothesis"]), Label(each["label"])) for each in items
    )


def find_controls(
    suites: Sequence[Suite], get_items: Callable[[Suite, Subtopic], SubtopicItems] | None = None
) -> list[Control]:
    """Return the controls of all subtopics, selected or not. If no suite has controls, return our own benchmark's."""
    # A run that has already expanded its items passes its own `get_items`.
    get = get_items or (lambda suite, subtopic: suite.items(subtopic))
    found = [control for suite in suites for subtopic in suite.subtopics() for control in get(suite, subtopic).controls]
    return found or list(_own_controls())


@cache
def _own_controls() -> tuple[Control, ...]:
    return tuple(find_controls([Bbnli()]))
