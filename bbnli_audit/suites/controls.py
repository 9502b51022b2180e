"""Which controls prove a model: those of the suites, or, where no suite has any, those of our own benchmark."""

from collections.abc import Callable, Sequence

from bbnli_audit.core.values import Control, Subtopic, SubtopicItems
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.protocol import Suite


def find_controls(
    suites: Sequence[Suite], get_items: Callable[[Suite, Subtopic], SubtopicItems] | None = None
) -> list[Control]:
    """Return the controls of all subtopics, whichever of them are selected.

    `get_items` returns the items of a subtopic that a run has expanded already.
    """
    get = get_items or (lambda suite, subtopic: suite.items(subtopic))
    found = [control for suite in suites for subtopic in suite.subtopics() for control in get(suite, subtopic).controls]
    if found:
        return found
    own = Bbnli()
    return [control for subtopic in own.subtopics() for control in own.items(subtopic).controls]
